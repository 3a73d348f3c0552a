"""Progress of a run: one line on stderr, any callable, or scikit-learn's callbacks."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

#: Called with the rows done so far, and with all rows or None: at the start and after each block.
Progress = Callable[[int, int | None], None]

# Seconds between two lines: on a terminal, where they replace each other, and in a log.
TERMINAL_PERIOD, LOG_PERIOD = 0.1, 30.0


class ProgressLine:
    """Rows, rows per second and the time left, as one line of text.

    On a terminal or in a notebook the line is written over and over; elsewhere a new one comes
    twice a minute.
    """

    def __init__(self, file: TextIO) -> None:
        self._file = file
        # Notebooks write over a line as terminals do, but say that they are none.
        self._terminal = file.isatty() or type(file).__module__.startswith("ipykernel")
        self._began = self._written = time.monotonic()
        self._first: int | None = None
        self._now: tuple[int, int | None] = (0, None)

    def __call__(self, n_done: int, n_rows: int | None) -> None:
        """Write the line if it is time to."""
        if self._first is None:
            self._first = n_done
        self._now = (n_done, n_rows)
        period = TERMINAL_PERIOD if self._terminal else LOG_PERIOD
        if time.monotonic() - self._written >= period:
            self._write("" if self._terminal else "\n")

    def finish(self) -> None:
        """Write the last line."""
        if self._first is not None:
            self._write("\n")

    def _write(self, end: str) -> None:
        self._written = time.monotonic()
        seconds = self._written - self._began
        text = describe(*self._now, n_new=self._now[0] - (self._first or 0), seconds=seconds)
        self._file.write(("\r" + text.ljust(78) if self._terminal else text) + end)
        self._file.flush()


def describe(n_done: int, n_rows: int | None, *, n_new: int, seconds: float) -> str:
    """Return how far a run is, in words; ``n_new`` rows of it took ``seconds``.

    >>> describe(50_000, 200_000, n_new=50_000, seconds=2.0)
    '50,000 of 200,000 rows (25%), 25,000 rows/s, 6 s left'
    >>> describe(50_000, None, n_new=0, seconds=0.0)
    '50,000 rows'
    """
    if n_rows:
        text = f"{n_done:,} of {n_rows:,} rows ({n_done / n_rows:.0%})"
    else:
        text = f"{n_done:,} rows"
    if n_new > 0 and seconds > 0:
        text += f", {n_new / seconds:,.0f} rows/s"
        if n_rows and n_done < n_rows:
            text += f", {_duration((n_rows - n_done) * seconds / n_new)} left"
    return text


def _duration(seconds: float) -> str:
    whole = math.ceil(seconds)
    if whole < 60:
        return f"{whole} s"
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {whole % 60} s"


@contextmanager
def reporting(progress: bool | Progress) -> Iterator[Progress]:
    """Yield the callable that ``progress`` stands for, and finish its last line."""
    if callable(progress):
        yield progress
    elif not progress:
        yield lambda _n_done, _n_rows: None
    else:
        line = ProgressLine(sys.stderr)
        try:
            yield line
        finally:
            line.finish()
