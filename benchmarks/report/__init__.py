"""One report of every comparison of speed."""
