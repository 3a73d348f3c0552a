"""Sketches around a sketch: centered rows, and rows with targets."""
