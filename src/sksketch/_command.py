"""Signals while this process is the command and its libraries are still being imported.

Imports take a second or two, and whoever stops the command then wants neither a traceback nor a
half of a library. Nothing is done in a process that only imports the package.
"""

from __future__ import annotations

import os
import signal
import sys
from itertools import pairwise
from typing import Any

# What ends a command: Ctrl-C, and what batch systems and closed terminals send.
STOPPING = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]


def is_command() -> bool:
    """Return whether this process was started as ``sksketch`` or ``python -m sksketch``."""
    words = getattr(sys, "orig_argv", [])
    if ("-m", "sksketch") in pairwise(words):
        return True
    # A process of a pool has the arguments of its parent and was started otherwise.
    script = sys.argv[0] if sys.argv else ""
    return script in words[1:] and os.path.basename(script) in ("sksketch", "sksketch.exe")


def leave_quietly() -> None:
    """Let signals end the process at once with one line, as long as there is nothing to save."""
    for number in STOPPING:
        # One that is ignored, as by nohup, stays so.
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _leave)


def _leave(number: int, _frame: Any) -> None:
    os.write(2, b"sksketch: stopped\n")
    os._exit(128 + number)


if is_command():
    leave_quietly()
