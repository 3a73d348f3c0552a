"""Linear algebra on arrays; knows nothing of sketches."""
