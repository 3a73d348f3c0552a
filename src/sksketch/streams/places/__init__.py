"""Places of files: behind a URL, compressed, in folders that are columns."""
