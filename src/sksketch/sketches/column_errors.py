"""Errors of a symmetric matrix entry by entry, for columns whose units differ."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from sksketch._typing import Array
from sksketch.arrays.rounding import gamma

# Squares below the square of this vanish.
SMALLEST_ROOT = 1e-160

# More than what a few operations on positive numbers, and sums of up to 10^9 of them, can lose.
SLACK = 1e-6


@dataclass(frozen=True, eq=False)
class ColumnErrors:
    """Bounds on the error of a symmetric matrix, entry by entry.

    With a and b the roots of the two arrays, the error of entry (i, j) is at most
    ``a_i b_j + b_i a_j + b_i b_j + flat / (u_i u_j)``. Errors of this form add, where u is the
    same: by Cauchy and Schwarz the squares of a and b may be summed.

    Parameters
    ----------
    sizes, errors : arrays of shape (n_features,)
        Squares of a and b.
    flat : float
        A bound that is the same for all entries, up to their units.
    units : array of shape (n_features,) or float
        u.
    """

    sizes: Array
    errors: Array
    flat: float = 0.0
    units: Array | float = 1.0

    @classmethod
    def none(cls, n_features: int) -> ColumnErrors:
        """Return no error at all."""
        sizes, errors = np.zeros((2, n_features))
        return cls(sizes, errors)

    def __add__(self, other: ColumnErrors) -> ColumnErrors:
        sizes, errors = self.sizes + other.sizes, self.errors + other.errors
        return ColumnErrors(sizes, errors, self.flat + other.flat, self.units)

    def scaled(self, factor: float) -> ColumnErrors:
        """Return the errors of ``factor`` times the matrix."""
        sizes, errors = self.sizes * factor, self.errors * factor
        return ColumnErrors(sizes, errors, self.flat * factor, self.units)

    def in_units(self, units: Array) -> ColumnErrors:
        """Return the errors after row and column i were divided by ``units[i]``.

        >>> errors = ColumnErrors(np.array([4.0, 0.0]), np.array([1.0, 0.0]))
        >>> errors.diagonal().round(3), errors.in_units(np.array([2.0, 1.0])).diagonal().round(3)
        (array([5., 0.]), array([1.25, 0.  ]))
        """
        # What squares lost by underflow is a length in the old units.
        a, b = (root / units for root in self._roots)
        return ColumnErrors(a**2, b**2, self.flat, self.units * units)

    @functools.cached_property
    def _roots(self) -> tuple[Array, Array]:
        """Both, with what their squares lost by underflow and by being summed."""
        a, b = np.sqrt(self.sizes), np.sqrt(self.errors)
        return a * (1.0 + SLACK) + SMALLEST_ROOT, b * (1.0 + SLACK) + SMALLEST_ROOT

    def diagonal(self) -> Array:
        """Bound the errors on the diagonal."""
        a, b = self._roots
        return np.asarray((2.0 * a + b) * b + self.flat / self._spread**2)

    @property
    def _spread(self) -> Array:
        """The units of all columns."""
        return np.broadcast_to(np.asarray(self.units, dtype=np.float64), self.sizes.shape)

    def times(self, x: Array) -> Array:
        """Bound the error matrix times the columns of ``x``, entry by entry."""
        a, b = (root[:, None] for root in self._roots)
        x = np.abs(x)
        far, off = a.T @ x, b.T @ x
        flat = 0.0
        if self.flat:
            units = self._spread[:, None]
            flat = self.flat * (1.0 + SLACK) / units * (x / units).sum(axis=0)
        return np.asarray(a * off + b * (far + off) + flat)

    def quadratic(self, x: Array) -> Array:
        """Bound the quadratic form of the error matrix in each column of ``x``."""
        return np.asarray(np.vecdot(np.abs(x).T, self.times(x).T))

    def norm(self, scales: Array) -> float:
        """Bound the spectral norm after row and column i were divided by ``scales[i]``."""
        far, off = (float(np.linalg.norm(root / scales)) for root in self._roots)
        flat = self.flat * float(((scales * self._spread) ** -2.0).sum()) if self.flat else 0.0
        return ((2.0 * far + off) * off + flat) * (1.0 + SLACK)


@dataclass(frozen=True, eq=False)
class ExactGram:
    """A'A as it was accumulated, and what it is off by.

    Parameters
    ----------
    matrix : array of shape (n_features, n_features)
        A'A, symmetric.
    ridge : float
        The target is ``A'A + ridge I``.
    errors : ColumnErrors
        Bounds on the errors of ``matrix``.
    """

    matrix: Array
    ridge: float
    errors: ColumnErrors

    def allowing(self, errors: ColumnErrors) -> Self:
        """Return the matrix with more allowed for."""
        return replace(self, errors=self.errors + errors)

    def in_units(self, units: Array) -> Self:
        """Return the matrix of the same rows with columns divided by exactly ``units``.

        >>> gram = ExactGram(np.diag([4.0, 9.0]), 0.0, ColumnErrors.none(2))
        >>> gram.in_units(np.array([2.0, 3.0])).matrix
        array([[1., 0.],
               [0., 1.]])
        """
        matrix = self.matrix / units / units[:, None]
        # Two divisions, of numbers no larger than the product of two columns' lengths.
        sizes = np.maximum(matrix.diagonal(), 0.0) * (1.0 + SLACK)
        errors = self.errors.in_units(units) + ColumnErrors(
            sizes, gamma(3) ** 2 * sizes, 0.0, self.errors.units * units
        )
        return replace(self, matrix=matrix, errors=errors)
