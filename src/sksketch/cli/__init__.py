"""The command ``sksketch``: parses, calls, prints."""

from sksketch.cli.app import main, run

__all__ = ["main", "run"]
