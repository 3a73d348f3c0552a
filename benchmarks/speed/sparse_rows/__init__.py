"""Sparse rows: sketches beside their peers."""
