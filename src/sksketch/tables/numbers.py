"""The summary of a column of numbers: how many, their mean and spread, and their limits."""

from __future__ import annotations

import math
from typing import Self

import numpy as np

from sksketch._typing import Array
from sksketch.tables.kernels import table_kernels
from sksketch.tables.kernels.column_facts import HIGH, KNOWN, LOW, N_FACTS, N_LANES, ORIGIN, WHOLE


class NumberSummary:
    """Sums over the numbers of a column, in one pass and in any parts.

    The same rows give the same sums to the last bit, however they are cut into blocks.

    Examples
    --------
    >>> numbers = NumberSummary()
    >>> numbers.add(np.array([1.0, np.nan, 3.0]), first_row=0)
    -1
    >>> numbers.n_known, numbers.mean, numbers.low, numbers.high
    (2, 2.0, 1.0, 3.0)
    """

    def __init__(self) -> None:
        self.facts = np.zeros(N_FACTS)
        self.lanes = np.zeros((2, N_LANES))

    def add(self, values: Array, first_row: int) -> int:
        """Add the numbers of some rows; NaN is a hole. Return a row that is infinite, or -1."""
        values = np.asarray(values, dtype=np.float64)
        return int(table_kernels().summarize_inplace(values, first_row, self.facts, self.lanes))

    def copy(self) -> Self:
        """Return one that has seen the same."""
        return self.of(self.facts, self.lanes)

    def merge(self, other: NumberSummary) -> None:
        """Add the numbers that another one has seen."""
        if not other.n_known:
            return
        if not self.n_known:
            self.facts, self.lanes = other.facts.copy(), other.lanes.copy()
            return
        shift = float(other.facts[ORIGIN] - self.facts[ORIGIN])
        sums, squares = other.lanes
        self.lanes[1] += squares + 2.0 * shift * sums
        self.lanes[0] += sums
        self.lanes[0, 0] += other.n_known * shift
        self.lanes[1, 0] += other.n_known * shift**2
        self.facts[KNOWN] += other.facts[KNOWN]
        self.facts[LOW] = min(self.low, other.low)
        self.facts[HIGH] = max(self.high, other.high)
        self.facts[WHOLE] = min(self.facts[WHOLE], other.facts[WHOLE])

    @property
    def n_known(self) -> int:
        """Numbers so far."""
        return int(self.facts[KNOWN])

    @property
    def low(self) -> float:
        """The smallest."""
        return float(self.facts[LOW])

    @property
    def high(self) -> float:
        """The largest."""
        return float(self.facts[HIGH])

    @property
    def mean(self) -> float:
        """Their mean."""
        return float(self.facts[ORIGIN]) + self._from_origin if self.n_known else 0.0

    @property
    def _from_origin(self) -> float:
        return math.fsum(self.lanes[0]) / self.n_known

    def deviation(self, n_rows: int) -> float:
        """Return the standard deviation of ``n_rows`` numbers, of which the others are the mean."""
        squares = math.fsum(self.lanes[1]) - self.n_known * self._from_origin**2
        return math.sqrt(max(0.0, squares) / n_rows)

    @property
    def is_constant(self) -> bool:
        """Whether there is at most one value."""
        return self.low == self.high

    @property
    def counts_rows(self) -> bool:
        """Whether these are the whole numbers of a range, each once: numbers of rows."""
        n, width = self.n_known, self.high - self.low + 1.0
        if n < 3 or not self.facts[WHOLE] or width != n:
            return False
        away = self.low - float(self.facts[ORIGIN])
        total = n * away + n * (n - 1.0) / 2.0
        squares = n * away**2 + away * n * (n - 1.0) + (n - 1.0) * n * (2.0 * n - 1.0) / 6.0
        found = math.fsum(self.lanes[0]), math.fsum(self.lanes[1])
        return bool(np.allclose(found, (total, squares), rtol=1e-12, atol=0.0))

    def arrays(self) -> dict[str, Array]:
        """Return all it is, as plain arrays."""
        return {"facts": self.facts.copy(), "lanes": self.lanes.copy()}

    @classmethod
    def of(cls, facts: Array, lanes: Array) -> Self:
        """Build the summary that `arrays` was taken from."""
        one = cls()
        one.facts[...], one.lanes[...] = facts, lanes
        return one
