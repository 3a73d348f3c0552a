"""``python -m sksketch``: the same commands as ``sksketch``."""

from __future__ import annotations

from sksketch.cli import run

if __name__ == "__main__":
    run()
