"""The command ``sksketch``: parses, calls, prints."""

from sksketch.cli.app import main

__all__ = ["main"]
