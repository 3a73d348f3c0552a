"""The work of the longer commands, imported when one runs: help needs none of it."""
