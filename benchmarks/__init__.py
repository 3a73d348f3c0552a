"""What the library is held against: the papers' experiments, and the speed of its peers."""
