"""Errors of a symmetric matrix entry by entry, for columns whose units differ."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from sksketch._typing import Array

# Squares below the square of this vanish.
SMALLEST_ROOT = 1e-160

# More than what a few operations on positive numbers, and sums of up to 10^9 of them, can lose.
SLACK = 1e-6


@dataclass(frozen=True, eq=False)
class ColumnErrors:
    """Bounds on the error of a symmetric matrix, entry by entry.

    With a and b the roots of the two arrays, the error of entry (i, j) is at most
    ``a_i b_j + b_i a_j + b_i b_j + flat``. Errors of this form add: by Cauchy and Schwarz the
    squares of a and b may be summed.

    Parameters
    ----------
    sizes, errors : arrays of shape (n_features,)
        Squares of a and b.
    flat : float
        A bound that is the same for all entries.
    """

    sizes: Array
    errors: Array
    flat: float = 0.0

    @classmethod
    def none(cls, n_features: int) -> ColumnErrors:
        """Return no error at all."""
        sizes, errors = np.zeros((2, n_features))
        return cls(sizes, errors)

    def __add__(self, other: ColumnErrors) -> ColumnErrors:
        return ColumnErrors(
            self.sizes + other.sizes, self.errors + other.errors, self.flat + other.flat
        )

    def scaled(self, factor: float) -> ColumnErrors:
        """Return the errors of ``factor`` times the matrix."""
        return ColumnErrors(self.sizes * factor, self.errors * factor, self.flat * factor)

    @functools.cached_property
    def _roots(self) -> tuple[Array, Array]:
        """Both, with what their squares lost by underflow and by being summed."""
        a, b = np.sqrt(self.sizes), np.sqrt(self.errors)
        return a * (1.0 + SLACK) + SMALLEST_ROOT, b * (1.0 + SLACK) + SMALLEST_ROOT

    def diagonal(self) -> Array:
        """Bound the errors on the diagonal."""
        a, b = self._roots
        return np.asarray((2.0 * a + b) * b + self.flat)

    def times(self, x: Array) -> Array:
        """Bound the error matrix times the columns of ``x``, entry by entry."""
        a, b = (root[:, None] for root in self._roots)
        x = np.abs(x)
        far, off = a.T @ x, b.T @ x
        return np.asarray(a * off + b * (far + off) + self.flat * x.sum(axis=0))

    def quadratic(self, x: Array) -> Array:
        """Bound the quadratic form of the error matrix in each column of ``x``."""
        return np.asarray(np.vecdot(np.abs(x).T, self.times(x).T))

    def norm(self, scales: Array) -> float:
        """Bound the spectral norm after row and column i were divided by ``scales[i]``."""
        far, off = (float(np.linalg.norm(root / scales)) for root in self._roots)
        flat = self.flat * float((scales**-2.0).sum()) if self.flat else 0.0
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
