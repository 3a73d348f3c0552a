"""How many different values a stream has, from a sample of them, in flat memory."""

from __future__ import annotations

import numpy as np

from sksketch._typing import Array

LARGEST_HASH = float(2**64)


class DistinctValues:
    """The values with the smallest hashes, and how often each came.

    Every value is in the sample or not whatever the others are, and a sampled one with all that
    came of it. So the sample tells how many values there are, and how often they repeat.

    Parameters
    ----------
    size : int, default=4096
        Values in the sample: the relative error of the number is about ``size ** -0.5``, and none
        as long as all values are in it.

    References
    ----------
    .. [1] Bar-Yossef, Z., Jayram, T. S., Kumar, R., Sivakumar, D. and Trevisan, L. (2002).
       "Counting Distinct Elements in a Data Stream". RANDOM.

    Examples
    --------
    >>> values = DistinctValues()
    >>> values.add(np.array([7, 9, 7], dtype=np.uint64))
    >>> values.estimate, values.repeats
    (2.0, True)
    """

    def __init__(self, size: int = 4096) -> None:
        self._size = size
        self.hashes = np.empty(0, dtype=np.uint64)
        self.counts = np.empty(0, dtype=np.int64)

    def add(self, hashes: Array, counts: Array | None = None) -> None:
        """Add values by their hashes: each once, or as often as ``counts`` says."""
        if counts is not None:
            self._join(hashes, counts)
            return
        if len(self.hashes) == self._size:
            hashes = hashes[hashes <= self.hashes[-1]]
        self._join(*np.unique(hashes, return_counts=True))

    def merge(self, other: DistinctValues) -> None:
        """Add the values that another one has seen."""
        self._join(other.hashes, other.counts)

    def _join(self, hashes: Array, counts: Array) -> None:
        found, places = np.unique(np.concatenate([self.hashes, hashes]), return_inverse=True)
        sums = np.zeros(len(found), dtype=np.int64)
        np.add.at(sums, places, np.concatenate([self.counts, counts]))
        self.hashes, self.counts = found[: self._size], sums[: self._size]

    @property
    def estimate(self) -> float:
        """How many different values there are; exact while all are in the sample."""
        if len(self.hashes) < self._size:
            return float(len(self.hashes))
        return (self._size - 1) * LARGEST_HASH / (float(self.hashes[-1]) + 1.0)

    @property
    def repeats(self) -> bool:
        """Whether a value of the sample came more than once."""
        return bool((self.counts > 1).any())
