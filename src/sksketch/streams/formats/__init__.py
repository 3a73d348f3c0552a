"""One file per format of rows."""
