"""The rows and buckets of a window: what waits, what becomes a bucket, and what has left."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from sksketch._typing import Array
from sksketch.sketches.base import Sketch
from sksketch.sketches.windows.buckets import Bucket, compressed, cuts
from sksketch.sketches.windows.times import DATES, NANOSECONDS
from sksketch.sketches.windows.waiting import Part, WaitingRows, merged_by_time

#: Gives the sketch of some rows.
Maker: TypeAlias = Callable[[list[Part]], Sketch]


class Content(NamedTuple):
    """Contents of a window: whole buckets, those at its edge, and the first row that waits."""

    inside: list[Bucket]
    edges: list[tuple[Bucket, float]]
    first_waiting: int


class History:
    """The rows of a window in the order of their arrival, as few states as its ``tol`` allows.

    Parameters
    ----------
    rows, duration : int or None, float or None
        How far the window reaches: one of the two.
    tol : float
        Part of the energy of all later rows that a bucket may have.
    reserve : int
        Rows that wait at least, once there are as many.
    clock : str or None
        What times are.
    """

    def __init__(
        self,
        rows: int | None = None,
        duration: float | None = None,
        tol: float = 1.0,
        reserve: int = 1,
        clock: str | None = None,
    ) -> None:
        self.rows, self.duration, self.tol = rows, duration, tol
        self.reserve, self.clock = reserve, clock
        self.latest: int | float = 0.0
        self.n_total = 0
        self.waiting = WaitingRows()
        self.buckets: list[Bucket] = []

    def take(self, part: Part, make: Maker) -> None:
        """Let rows wait, and make buckets of the oldest ones whenever there are enough."""
        start, full = 0, 2 * self.reserve
        while start < part.n_rows:
            stop = min(part.n_rows, start + full - len(self.waiting))
            self.waiting.add(part.cut(start, stop))
            # A Python number, which is exact for moments as well.
            self.latest = part.times[stop - 1].item()
            self.n_total += stop - start
            if len(self.waiting) == full:
                self._flush(self.reserve, make)
            start = stop
        self.waiting.own()

    def refusal(self, other: History) -> str | None:
        """Return why another one cannot be merged, or None."""
        mine, theirs = (clock or "nothing" for clock in (self.clock, other.clock))
        if mine == theirs:
            return None
        return f"times are {mine} here and {theirs} there; give the same to both"

    def absorb(self, other: History, make: Maker) -> None:
        """Add all that another one has, which is given up: by time, or as if it came after."""
        self.latest = max(self.latest, other.latest)
        self.n_total += other.n_total
        if self.duration is not None:
            self.waiting = merged_by_time(self.waiting, other.waiting)
            buckets = [*self.buckets, *other.buckets]
            self.buckets = sorted(buckets, key=lambda bucket: (bucket.last, bucket.first))
        else:
            if len(self.waiting):
                later = sum(bucket.energy for bucket in other.buckets)
                later += total(other.waiting.column("energies"))
                n_later = len(other.waiting) + sum(bucket.n_rows for bucket in other.buckets)
                self._flush(len(self.waiting), make, later, n_later)
            self.buckets += other.buckets
            self.waiting = other.waiting
        if len(self.waiting) >= 2 * self.reserve:
            self._flush(len(self.waiting) - self.reserve, make)
        else:
            self._tidy(total(self.waiting.column("energies")), len(self.waiting))

    def _flush(self, n_rows: int, make: Maker, later: float = 0.0, n_later: int = 0) -> None:
        """Make buckets of the oldest waiting rows; ``n_later`` rows of ``later`` come after all."""
        energies, times = self.waiting.column("energies"), self.waiting.column("times")
        n_newer = len(self.waiting) - n_rows + n_later
        newer = later + total(energies[n_rows:])
        runs = self.waiting.take(n_rows)
        if self.rows is not None:
            left = n_rows + n_newer - self.rows
        else:
            left = int(np.searchsorted(times, self.edge, side="right"))
        left = min(max(left, 0), n_rows)
        for start, stop in cuts(energies[left:n_rows], newer, self.tol):
            first, end = left + start, left + stop
            sketch = make(_between(runs, first, end))
            energy, span = total(energies[first:end]), (times[first].item(), times[end - 1].item())
            self.buckets.append(Bucket(sketch, end - first, energy, *span))
        self._tidy(newer, n_newer)

    def _tidy(self, newer: float, n_newer: int) -> None:
        """Drop buckets that have left the window, and join neighbors that may be one."""
        inside, edges, _ = self._content(n_newer)
        kept = {id(bucket) for bucket in (*inside, *(bucket for bucket, _ in edges))}
        buckets = [bucket for bucket in self.buckets if id(bucket) in kept]
        self.buckets = compressed(buckets, newer, self.tol)

    @property
    def edge(self) -> int | float:
        """The time up to which rows are outside."""
        assert self.duration is not None
        if self.clock == DATES:
            return int(self.latest) - round(self.duration * NANOSECONDS)
        return self.latest - self.duration

    def content(self) -> Content:
        """Return what is in the window now."""
        content = self._content(len(self.waiting))
        if self.rows is None:
            times = self.waiting.column("times")
            return content._replace(
                first_waiting=int(np.searchsorted(times, self.edge, side="right"))
            )
        return content._replace(first_waiting=max(len(self.waiting) - self.rows, 0))

    def _content(self, n_newer: int) -> Content:
        """Return the buckets in the window, with that many rows after the last one."""
        inside: list[Bucket] = []
        edges: list[tuple[Bucket, float]] = []
        if self.rows is None:
            edge = self.edge
            for bucket in self.buckets:
                if bucket.first > edge:
                    inside.append(bucket)
                elif bucket.last > edge:
                    # As if the rows had come evenly.
                    after = (bucket.last - edge) / (bucket.last - bucket.first)
                    edges.append((bucket, after * (bucket.n_rows - 1) / bucket.n_rows))
            return Content(inside, edges, 0)
        room = self.rows - n_newer
        for bucket in reversed(self.buckets):
            if room >= bucket.n_rows:
                inside.append(bucket)
            elif room > 0:
                edges.append((bucket, room / bucket.n_rows))
            room -= bucket.n_rows
        return Content(inside[::-1], edges, 0)

    def counted(self) -> tuple[int, float]:
        """Return rows in the window and their weight, with the shares of buckets at the edge."""
        content = self.content()
        n_rows = len(self.waiting) - content.first_waiting
        weight = total(self.waiting.column("weights")[content.first_waiting :])
        for bucket, share in [*((b, 1.0) for b in content.inside), *content.edges]:
            n_rows += round(share * bucket.n_rows)
            weight += share * bucket.sketch.total_weight
        return n_rows, weight


def total(values: Array) -> float:
    """Return a sum that does not depend on what else is in memory, nor on threads.

    >>> total(np.array([1.0, 2.0])), total(np.zeros(0))
    (3.0, 0.0)
    """
    return float(np.cumsum(values)[-1]) if len(values) else 0.0


def _between(runs: list[Part], start: int, stop: int) -> list[Part]:
    """Return the rows from ``start`` to ``stop`` of some parts, one after the other."""
    found, before = [], 0
    for run in runs:
        first, last = max(start - before, 0), min(stop - before, run.n_rows)
        if first < last:
            found.append(run.cut(first, last))
        before += run.n_rows
    return found
