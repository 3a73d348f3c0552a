"""Numbers as sums of two floats: thirty digits for small dense problems, the same on any machine.

A number is ``high + low`` with ``low`` no larger than the rounding of ``high``. Sums and products
are without error but in the last of about 106 bits (Dekker 1971; Knuth's two-sum). Every step is
elementwise, so no bit depends on BLAS, its threads or fused operations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sksketch._typing import Array

# Splits 53 bits into 26 and 27 (Dekker 1971).
SPLITTER = 134217729.0


@dataclass(frozen=True, eq=False)
class Doubled:
    """An array of numbers of twice the precision.

    Parameters
    ----------
    high, low : float64 arrays of one shape
        Leading parts, and what they leave.

    Examples
    --------
    >>> third = Doubled.of(np.ones(1)) / Doubled.of(np.full(1, 3.0))
    >>> rest = third * Doubled.of(np.full(1, 3.0)) - Doubled.of(np.ones(1))
    >>> bool(abs(rest.high[0]) < 1e-31)
    True
    """

    high: Array
    low: Array

    @classmethod
    def of(cls, values: Array) -> Doubled:
        """Return plain floats as such numbers."""
        high = np.array(values, dtype=np.float64)
        return cls(high, np.zeros_like(high))

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array."""
        return self.high.shape

    @property
    def T(self) -> Doubled:
        """The transpose."""
        return Doubled(self.high.T, self.low.T)

    def __getitem__(self, key: Any) -> Doubled:
        return Doubled(self.high[key], self.low[key])

    def put(self, key: Any, values: Doubled) -> None:
        """Write into a part of the array, in place."""
        self.high[key], self.low[key] = values.high, values.low

    def copy(self) -> Doubled:
        """Return an independent copy."""
        return Doubled(self.high.copy(), self.low.copy())

    def rounded(self) -> Array:
        """Return the nearest floats."""
        return np.asarray(self.high + self.low)

    def __neg__(self) -> Doubled:
        return Doubled(-self.high, -self.low)

    def __add__(self, other: Doubled) -> Doubled:
        high, low = _two_sum(self.high, other.high)
        rest, last = _two_sum(self.low, other.low)
        high, low = _quick_sum(high, low + rest)
        return Doubled(*_quick_sum(high, low + last))

    def __sub__(self, other: Doubled) -> Doubled:
        return self + (-other)

    def __mul__(self, other: Doubled) -> Doubled:
        high, low = _two_product(self.high, other.high)
        return Doubled(*_quick_sum(high, low + (self.high * other.low + self.low * other.high)))

    def __truediv__(self, other: Doubled) -> Doubled:
        first = self.high / other.high
        rest = self - other * Doubled.of(first)
        second = rest.high / other.high
        rest = rest - other * Doubled.of(second)
        return Doubled(*_quick_sum(first, second)) + Doubled.of(rest.high / other.high)

    def scaled(self, factors: Array | float) -> Doubled:
        """Return the numbers times powers of two."""
        return Doubled(self.high * factors, self.low * factors)

    def sum(self, axis: int) -> Doubled:
        """Return sums along an axis, from the first number to the last."""
        high, low = (np.moveaxis(part, axis, 0) for part in (self.high, self.low))
        total = Doubled(np.zeros(high.shape[1:]), np.zeros(high.shape[1:]))
        for i in range(len(high)):
            total = total + Doubled(high[i], low[i])
        return total

    def times(self, other: Doubled) -> Doubled:
        """Return the product of two matrices."""
        total = Doubled.of(np.zeros((self.shape[0], other.shape[1])))
        for k in range(self.shape[1]):
            total = total + self[:, k, None] * other[None, k]
        return total


def _two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    total = a + b
    moved = total - a
    return total, (a - (total - moved)) + (b - moved)


def _quick_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Return the sum and its error where ``a`` is the larger one."""
    total = a + b
    return total, b - (total - a)


def _two_product(a: Array, b: Array) -> tuple[Array, Array]:
    product = a * b
    (a1, a2), (b1, b2) = _split(a), _split(b)
    return product, ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2


def _split(a: Array) -> tuple[Array, Array]:
    moved = SPLITTER * a
    high = moved - (moved - a)
    return high, a - high


@dataclass(frozen=True, eq=False)
class Swept:
    """A symmetric matrix [[M, c], [c', s]] after its first rows were eliminated.

    Parameters
    ----------
    inverse : Doubled of shape (rank, rank)
        Inverse of M on the pivots.
    solution : Doubled of shape (rank, n_columns)
        That inverse times the other columns: first those of M that depend on the pivots, in the
        order of ``dependent``, then c.
    rest : Doubled of shape (n_others, n_others)
        What is left of s.
    pivots, dependent : arrays of int
        Rows of M that were eliminated, in ascending order, and those that could not be.
    """

    inverse: Doubled
    solution: Doubled
    rest: Doubled
    pivots: Array
    dependent: Array


def sweep(matrix: Doubled, n_rows: int, least: Array) -> Swept:
    """Eliminate the first rows of a symmetric positive matrix, the largest pivots first.

    Parameters
    ----------
    matrix : Doubled of shape (n, n)
        Symmetric.
    n_rows : int
        Rows that may be eliminated.
    least : array of shape (n_rows,)
        A row whose pivot is no larger than this depends on those before.

    Returns
    -------
    Swept

    Examples
    --------
    >>> found = sweep(Doubled.of(np.array([[2.0, 2.0, 2.0], [2.0, 2.0, 2.0], [2.0, 2.0, 9.0]])), 2,
    ...     np.full(2, 1e-12))
    >>> found.pivots, found.dependent, found.solution.rounded(), found.rest.rounded()
    (array([0]), array([1]), array([[1., 1.]]), array([[7.]]))
    """
    diagonal = np.diagonal(matrix.high)
    # Powers of two: no rounding, and no unit matters when pivots are chosen.
    with np.errstate(divide="ignore"):
        roots = np.where(diagonal > 0.0, np.round(0.5 * np.log2(np.abs(diagonal))), 0.0)
    units = np.exp2(roots)
    A = matrix.scaled(1.0 / units).scaled(1.0 / units[:, None]).copy()
    limits = least / units[:n_rows] ** 2
    left = list(range(n_rows))
    pivots: list[int] = []
    while left:
        values = A.high[left, left]
        open_ = values > np.maximum(limits[left], 0.0)
        if not open_.any():
            break
        k = left.pop(int(np.argmax(np.where(open_, values, -np.inf))))
        pivots.append(k)
        pivot = A[k, k]
        row = A[k] / Doubled(np.broadcast_to(pivot.high, len(A.high)), pivot.low)
        column = A[:, k].copy()
        A = A - column[:, None] * row[None]
        A.put(k, row)
        A.put((slice(None), k), row)
        A.put((k, k), -(Doubled.of(np.ones(())) / pivot))
    chosen, others = np.array(sorted(pivots), dtype=int), np.array(left, dtype=int)
    right = np.concatenate([others, np.arange(n_rows, len(units))])
    u, v = units[chosen], units[right]
    last = units[n_rows:]
    return Swept(
        (-A[np.ix_(chosen, chosen)]).scaled(1.0 / u).scaled(1.0 / u[:, None]),
        A[np.ix_(chosen, right)].scaled(v).scaled(1.0 / u[:, None]),
        A[n_rows:, n_rows:].scaled(last).scaled(last[:, None]),
        chosen,
        others,
    )
