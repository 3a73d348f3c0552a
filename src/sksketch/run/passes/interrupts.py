"""Signals to stop that wait until a block is learned from."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Interrupts:
    """Lets Ctrl-C wait until a block is learned from, so that what is left can be saved.

    So do SIGTERM and SIGHUP where the program handles them. A second signal does not wait.
    Outside of the main thread nothing is changed.
    """

    def __enter__(self) -> Interrupts:
        self._busy = False
        self._pending: tuple[int, Any] | None = None
        self._former: dict[int, Any] = {}
        if threading.current_thread() is threading.main_thread():
            for name in ("SIGINT", "SIGTERM", "SIGHUP"):
                number = getattr(signal, name, None)
                former = None if number is None else signal.getsignal(number)
                if number is not None and callable(former):
                    self._former[number] = former
                    signal.signal(number, self._handle)
        return self

    def __exit__(self, *_error: object) -> None:
        for number, former in self._former.items():
            signal.signal(number, former)

    def _handle(self, number: int, frame: object) -> None:
        if self._busy and self._pending is None:
            self._pending = number, frame
        else:
            self._former[number](number, frame)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the first signal back until the end of the body."""
        self._busy = True
        try:
            yield
        finally:
            self._busy = False
        if self._pending is not None:
            (number, frame), self._pending = self._pending, None
            self._former[number](number, frame)
