"""One `State` and one file of it: plain data, written whole or not at all."""
