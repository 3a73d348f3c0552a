"""Buckets of rows: states that are joined as they grow old, so that few of them are a window.

Let E be the energy of a bucket, the sum of the squared lengths of its rows, and N that of all rows
after it. Two neighbors are joined if E_1 + E_2 <= tol N. N only grows, so a bucket of several
rows, when the edge of the window cuts it, has at most ``tol`` times the energy of the rows after
it, all of which are in the window. And of any two neighbors together E_1 + E_2 > tol N, so that
there are at most 2 log(W / R) / log(1 + tol) buckets, with W the energy of the window and R that
of the rows that wait. This is the exponential histogram [1]_, whose levels of doubling energy come
about by themselves.

References
----------
.. [1] Datar, M., Gionis, A., Indyk, P. and Motwani, R. (2002). "Maintaining Stream Statistics over
   Sliding Windows". SIAM Journal on Computing 31(6). doi:10.1137/S0097539701398363
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from sksketch._typing import Array
from sksketch.sketches.base import Sketch
from sksketch.sketches.windows.templates import trimmed


class Bucket(NamedTuple):
    """The state of some rows that came one after the other.

    Parameters
    ----------
    sketch : Sketch
        What remembers them.
    n_rows : int
        How many they are.
    energy : float
        Sum of their squared lengths, for the centered ones around a fixed point.
    first, last : int or float
        Their first and last time.
    """

    sketch: Sketch
    n_rows: int
    energy: float
    first: int | float
    last: int | float

    def joined(self, others: list[Bucket]) -> Bucket:
        """Return one bucket with the rows of all, which it takes over."""
        sketch = self.sketch
        for other in others:
            sketch.merge(other.sketch)
        together = [self, *others]
        return Bucket(
            trimmed(sketch.compact()),
            sum(bucket.n_rows for bucket in together),
            sum(bucket.energy for bucket in together),
            min(bucket.first for bucket in together),
            max(bucket.last for bucket in together),
        )


def cuts(energies: Array, newer: float, tol: float) -> Iterator[tuple[int, int]]:
    """Yield starts and ends of new buckets among rows, the last of which have ``newer`` after them.

    A bucket is one row, or has at most ``tol`` times the energy of all rows after it.

    >>> list(cuts(np.ones(6), 14.0, 0.1))
    [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 6)]
    >>> list(cuts(np.ones(6), 25.0, 0.1))
    [(0, 2), (2, 4), (4, 6)]
    """
    sums = np.concatenate([[0.0], np.cumsum(energies)])
    total = sums[-1] + newer
    start = 0
    while start < len(energies):
        # The largest sum at whose row the bucket may stop.
        most = (sums[start] + tol * total) / (1.0 + tol)
        stop = max(int(np.searchsorted(sums, most, side="right")) - 1, start + 1)
        yield start, stop
        start = stop


def compressed(buckets: list[Bucket], newer: float, tol: float) -> list[Bucket]:
    """Return buckets with neighbors joined, where the rows after them allow that.

    ``newer`` is the energy of all rows after the last one.
    """
    if not buckets:
        return []
    after = newer + np.concatenate([np.cumsum([b.energy for b in buckets[::-1]])[-2::-1], [0.0]])
    result: list[Bucket] = []
    i = 0
    while i < len(buckets):
        energy, stop = buckets[i].energy, i + 1
        while stop < len(buckets):
            energy += buckets[stop].energy
            if energy > tol * after[stop]:
                break
            stop += 1
        result.append(buckets[i].joined(buckets[i + 1 : stop]) if stop > i + 1 else buckets[i])
        i = stop
    return result
