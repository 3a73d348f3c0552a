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

    def levels(self) -> list[tuple[Array, float]]:
        """Return the numbers of each level, and for how many of the stream each stands."""
        return [(level, float(1 << h)) for h, level in enumerate(self._levels)]

    def quantile(self, share: float) -> float:
        """Return a number with about that share of all below it."""
        return quantile_of(self.levels(), share)

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


def quantile_of(levels: list[tuple[Array, float]], share: float) -> float:
    """Return the quantile of numbers that are repeated by weight, as numpy interpolates.

    Each level has numbers and their one weight.

    >>> quantile_of([(np.array([1.0, 3.0, 2.0]), 1.0), (np.array([9.0]), 2.0)], 0.25)
    2.0
    """
    levels = [(values, weight) for values, weight in levels if len(values)]
    if not levels:
        return -np.inf
    total = sum(weight * len(values) for values, weight in levels)
    place = share * max(total - 1.0, 0.0)
    below = np.floor(place + 1e-9)
    # What is larger than this part of every level is behind the quantile.
    most = max(_smallest(values, int(share * len(values)) + 3) for values, _ in levels)
    lowest = [(values[values <= most], weight) for values, weight in levels]
    if sum(weight * len(values) for values, weight in lowest) >= below + 2.0:
        levels = lowest
    values = np.concatenate([values for values, _ in levels])
    weights = np.repeat([weight for _, weight in levels], [len(part) for part, _ in levels])
    order = np.argsort(values)
    values, ends = values[order], np.cumsum(weights[order])
    first, second = np.minimum(
        np.searchsorted(ends, [below, below + 1.0], side="right"), len(values) - 1
    )
    part = max(float(place - below), 0.0)
    low, high = float(values[first]), float(values[second])
    return low if part == 0.0 else low + part * (high - low)


def _smallest(values: Array, count: int) -> float:
    """Return the largest of that many smallest numbers."""
    if count >= len(values):
        return float(values.max())
    return float(np.partition(values, count - 1)[count - 1])
