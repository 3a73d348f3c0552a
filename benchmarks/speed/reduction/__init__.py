"""Reduced models beside their peers."""
