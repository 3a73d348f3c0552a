"""Every claim of the papers beside our figures."""
