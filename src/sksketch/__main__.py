"""``python -m sksketch``: the same commands as ``sksketch``."""

from __future__ import annotations

import sys

from sksketch.cli import main

if __name__ == "__main__":
    sys.exit(main())
