"""Pipelines of scikit-learn: their steps in a stream, and as plain data."""
