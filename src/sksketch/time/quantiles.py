"""Quantiles of a stream of numbers from few of them, with a bound on the rank that is certain."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sksketch._typing import Array

# Numbers that a level holds before it gives half of its room to the next one.
CAPACITY = 8192


class QuantileSketch:
    """Numbers at levels, where one of level h stands for 2^h of the stream; mergeable.

    A full level is sorted, and every other of its numbers goes to the next level: the odd ones and
    the even ones in turn [1]_. That moves the rank of any number by at most 2^h, so the sum of
    these over all times it was done, `rank_error`, bounds what any rank is off by. For n numbers
    it is at most n / capacity times the number of levels. No chance is involved.

    Examples
    --------
    >>> sketch = QuantileSketch(capacity=64).update(np.arange(10_000.0))
    >>> off = abs(sketch.quantile(0.1) - 1000)
    >>> bool(off <= sketch.rank_error + 1), sketch.rank_error <= 10_000 / 64 * 8
    (True, True)

    References
    ----------
    .. [1] Manku, G. S., Rajagopalan, S. and Lindsay, B. G. (1998). "Approximate Medians and other
       Quantiles in One Pass and with Limited Memory". SIGMOD. doi:10.1145/276304.276342
    """

    def __init__(self, capacity: int = CAPACITY) -> None:
        self.capacity = capacity
        self.n = 0
        self.rank_error = 0
        self._levels: list[Array] = [np.zeros(0)]
        # Whether the odd ones are kept the next time.
        self._odd: list[bool] = [False]

    def update(self, values: Array) -> QuantileSketch:
        """Add numbers, the same however they are cut into blocks."""
        start = 0
        while start < len(values):
            part = values[start : start + self.capacity - len(self._levels[0])]
            self._levels[0] = np.concatenate([self._levels[0], part])
            start += len(part)
            self._compact()
        self.n += len(values)
        return self

    def _compact(self) -> None:
        """Halve the levels that are full, from the lowest on."""
        h = 0
        while h < len(self._levels):
            if len(self._levels[h]) >= self.capacity:
                values = np.sort(self._levels[h])
                # One may stay behind, so that two by two the others are one each.
                even = len(values) - len(values) % 2
                kept = values[int(self._odd[h]) : even : 2]
                if h + 1 == len(self._levels):
                    self._levels.append(np.zeros(0))
                    self._odd.append(False)
                self._levels[h + 1] = np.concatenate([self._levels[h + 1], kept])
                self._levels[h] = values[even:]
                self._odd[h] = not self._odd[h]
                self.rank_error += 1 << h
            h += 1

    def merge(self, other: QuantileSketch) -> QuantileSketch:
        """Add what another one has seen, which is left as it was."""
        for h, values in enumerate(other._levels):
            if h == len(self._levels):
                self._levels.append(np.zeros(0))
                self._odd.append(False)
            self._levels[h] = np.concatenate([self._levels[h], values])
        self.n += other.n
        self.rank_error += other.rank_error
        self._compact()
        return self

    def weighted(self) -> tuple[Array, Array]:
        """Return the numbers held, and for how many of the stream each stands."""
        weights = [np.full(len(level), float(1 << h)) for h, level in enumerate(self._levels)]
        return np.concatenate(self._levels), np.concatenate(weights)

    def quantile(self, share: float) -> float:
        """Return a number with about that share of all below it."""
        return weighted_quantile(*self.weighted(), share)

    def arrays(self) -> dict[str, Array]:
        """Return plain arrays, for a saved state."""
        sizes = [len(level) for level in self._levels]
        facts = [self.capacity, self.n, self.rank_error, *sizes]
        return {
            "facts": np.array(facts, dtype=np.int64),
            "odd": np.array(self._odd),
            "values": np.concatenate(self._levels),
        }

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, Array]) -> QuantileSketch:
        """Return what `arrays` came from."""
        capacity, n, error, *sizes = arrays["facts"].tolist()
        sketch = cls(capacity)
        sketch.n, sketch.rank_error = n, error
        sketch._odd = arrays["odd"].tolist()
        sketch._levels = [np.array(p) for p in np.split(arrays["values"], np.cumsum(sizes)[:-1])]
        return sketch


def weighted_quantile(values: Array, weights: Array, share: float) -> float:
    """Return the quantile of numbers that are repeated by weight, as numpy interpolates.

    >>> weighted_quantile(np.array([1.0, 2.0, 3.0]), np.ones(3), 0.25)
    1.5
    """
    order = np.argsort(values, kind="stable")
    values, weights = values[order], weights[order]
    if not len(values):
        return -np.inf
    ends = np.cumsum(weights)
    place = share * max(ends[-1] - 1.0, 0.0)
    below = np.floor(place + 1e-9)
    first, second = np.minimum(
        np.searchsorted(ends, [below, below + 1.0], side="right"), len(values) - 1
    )
    part = max(float(place - below), 0.0)
    low, high = float(values[first]), float(values[second])
    return low if part == 0.0 else low + part * (high - low)
