"""Sketches on a GPU."""
