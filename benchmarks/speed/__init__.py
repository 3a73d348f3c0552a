"""Speed, error and memory beside peers."""
