"""Signals that stop a command: what is done is kept, and the exit code tells which it was."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sksketch._command import STOPPING


class Stopped(KeyboardInterrupt):
    """A signal asks the command to end; as Ctrl-C does, it may come anywhere.

    Parameters
    ----------
    number : int
        The signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def exit_code(error: BaseException | None) -> int:
    """Return the code of a command that an interruption has ended, as a shell would give it.

    >>> exit_code(KeyboardInterrupt()), exit_code(Stopped(15))
    (130, 143)
    """
    while error is not None:
        if isinstance(error, Stopped):
            return 128 + error.number
        # The parser of options has an exception of its own for Ctrl-C.
        error = error.__cause__ or error.__context__
    return 128 + signal.SIGINT


@contextmanager
def stoppable() -> Iterator[None]:
    """Let signals raise `Stopped` in the main thread, until the end of the body."""
    former: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        for number in STOPPING:
            # One that is ignored, as by nohup, stays so.
            if signal.getsignal(number) != signal.SIG_IGN:
                former[number] = signal.signal(number, _stop)
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


def _stop(number: int, _frame: object) -> None:
    raise Stopped(number)
