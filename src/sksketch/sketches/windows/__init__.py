"""The last rows of a stream, remembered by states that are dropped as they leave."""
