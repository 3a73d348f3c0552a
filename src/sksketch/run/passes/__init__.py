"""Passes over the rows, and what they wait for: first rows, and signals."""
