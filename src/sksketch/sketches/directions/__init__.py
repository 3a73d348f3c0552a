"""Sketches that keep directions: Frequent Directions and the exact covariance."""
