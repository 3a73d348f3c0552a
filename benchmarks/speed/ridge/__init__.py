"""Ridge regression beside its peers."""
