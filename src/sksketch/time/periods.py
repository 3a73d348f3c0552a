"""Periods in the order of time, and the binary cells of time that groups of them fill.

A cell is [i 2^k, (i + 1) 2^k) for whole numbers i and k. The smallest cell that holds some
periods has its middle in one of them, or some on either side. So all periods of an archive are a
tree with one node for each such cell, whose depth is at most the logarithm of how much longer all
of time is than a period, and where each node has two parts and perhaps a period between them. It
does not depend on the order in which periods came.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple

#: A moment: nanoseconds as an int, or a number as a float.
Moment = int | float

# Beyond this level no cell holds more numbers.
HIGHEST = 1100


class Period(NamedTuple):
    """Some time from ``start`` on, up to but not including ``end``."""

    start: Moment
    end: Moment


class Cell(NamedTuple):
    """A binary cell of time.

    >>> Cell(2, 3).start, Cell(2, 3).end, Cell(2, 3).middle
    (12, 16, 14)
    """

    level: int
    number: int

    @property
    def start(self) -> Moment:
        """Its first moment."""
        return _scaled(self.number, self.level)

    @property
    def end(self) -> Moment:
        """The moment after its last one."""
        return _scaled(self.number + 1, self.level)

    @property
    def middle(self) -> Moment:
        """The moment in which its halves meet."""
        return _scaled(2 * self.number + 1, self.level - 1)


def _scaled(number: int, level: int) -> Moment:
    return number << level if level >= 0 else math.ldexp(number, level)


def _number(start: Moment, level: int) -> int:
    return start >> level if isinstance(start, int) else math.floor(math.ldexp(start, -level))


def cell_of(start: Moment, end: Moment) -> Cell | None:
    """Return the smallest cell that holds some time; None for one across zero.

    >>> cell_of(5, 7), cell_of(0.25, 0.5), cell_of(-1, 1)
    (Cell(level=2, number=1), Cell(level=-2, number=1), None)
    """
    if start < 0 < end:
        return None
    level = math.frexp(float(end - start))[1] - 1
    if isinstance(start, int):
        level = max(level, 0)
    while level < HIGHEST:
        cell = Cell(level, _number(start, level))
        if end <= cell.end:
            return cell
        level += 1
    return None


class Periods:
    """Periods that do not overlap, sorted.

    >>> found = Periods([Period(3, 5), Period(0, 2)])
    >>> list(found), found.inside(Cell(2, 0)), found.split(0, 2)
    ([Period(start=0, end=2), Period(start=3, end=5)], (0, 1), [(0, 1), (1, 2)])
    """

    def __init__(self, periods: Sequence[Period]) -> None:
        self._all = sorted(periods)
        self._starts = [period.start for period in self._all]
        self._ends = [period.end for period in self._all]

    def with_one(self, period: Period) -> Periods:
        """Return the periods with one more, or with the one that is there."""
        return Periods([*(p for p in self._all if p != period), period])

    def __len__(self) -> int:
        return len(self._all)

    def __getitem__(self, i: int) -> Period:
        return self._all[i]

    def overlapping(self, start: Moment, end: Moment) -> tuple[int, int]:
        """Return which periods have some of that time: from the first to before the last."""
        return bisect_right(self._ends, start), bisect_left(self._starts, end)

    def inside(self, cell: Cell) -> tuple[int, int]:
        """Return which periods are in a cell as a whole."""
        return bisect_left(self._starts, cell.start), bisect_right(self._ends, cell.end)

    def cell(self, first: int, stop: int) -> Cell | None:
        """Return the smallest cell that holds some periods."""
        return cell_of(self._starts[first], self._ends[stop - 1])

    def split(self, first: int, stop: int) -> list[tuple[int, int]]:
        """Cut periods at the middle of their cell: those before, the one across, those after."""
        cell = self.cell(first, stop)
        middle = 0 if cell is None else cell.middle
        before = bisect_right(self._ends, middle, first, stop)
        after = bisect_left(self._starts, middle, before, stop)
        parts = [(first, before), (before, after), (after, stop)]
        return [part for part in parts if part[0] < part[1]]

    def gap(self, first: int, stop: int) -> int | None:
        """Return the first of some periods that does not end where the next one begins."""
        for i in range(first, stop - 1):
            if self._ends[i] != self._starts[i + 1]:
                return i
        return None
