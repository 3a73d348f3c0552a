"""Algorithms that learn from rows and targets: plain arrays in, plain arrays out."""
