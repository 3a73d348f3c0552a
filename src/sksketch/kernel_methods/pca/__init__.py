"""Kernel principal components."""
