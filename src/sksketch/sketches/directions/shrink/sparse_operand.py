"""The buffer of a shrink whose new rows are sparse, and never filled in."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from sksketch._typing import Array
from sksketch.arrays.linalg import aligned_empty, nystrom, orthonormal_columns
from sksketch.arrays.namespace import cast, copied, empty, joined, like, on_device, precision
from sksketch.arrays.products import (
    NORM_ERROR,
    add_normal_inplace,
    gram,
    normal_rows,
    squared_norm,
)
from sksketch.arrays.rounding import gamma
from sksketch.arrays.sparse import SparseRows, whole_lines
from sksketch.sketches.directions.shrink.loss_products import LossOperator
from sksketch.sketches.directions.shrink.operand import (
    MODERATE,
    SMALLEST_SQUARE,
    Projection,
    digest,
    unit_rows,
)

# Directions along which sparse rows are looked at for their digest.
DIGEST = 8

# A cold start with sparse rows makes one more product with P'P for each of these numbers of
# columns: the more there are, the further are chance directions from the right ones.
MANY_COLUMNS = 10_000, 100_000


class SparseOperand:
    """Kept rows and new rows that are sparse, around a center or not.

    Products with P'P read every stored entry once and never need an array with a row for each
    row of P, and one of them does what `DenseOperand` does with two (see `nystrom_rows`). What
    counts is in float64: sums over many rows of the same sign need it.
    """

    depth = 5

    def __init__(self, dense: Array, rows: SparseRows, total: float) -> None:
        self.dense, self.rows = dense, rows
        self.n_features = rows.shape[1]
        self.n_rows = len(dense) + len(rows)
        self.squared_norm = total
        self.digest = b""

    @functools.cached_property
    def _energy(self) -> float:
        """Squared norm of all that products add up, which may cancel around a center."""
        dense = squared_norm(self.dense) if len(self.dense) else 0.0
        return dense + self.rows.all_energy

    @property
    def squared_norm_error(self) -> float:
        """Bound on the error of ``squared_norm``."""
        return NORM_ERROR * self.squared_norm + self.rows.squared_norm_error

    @property
    def gram_error(self) -> float:
        """Bound on the norm of the error of `gram`."""
        return gamma(2 * self.n_features + 8) * 4.0 * self._energy

    def gram(self) -> Array:
        """Return P P'."""
        n_dense = len(self.dense)
        G: Array = empty((self.n_rows, self.n_rows), self.dense, np.float64)
        G[:n_dense, :n_dense] = gram(self.dense)
        G[n_dense:, n_dense:] = self.rows.gram()
        G[:n_dense, n_dense:] = self.rows.products(self.dense)
        G[n_dense:, :n_dense] = G[:n_dense, n_dense:].T
        return G

    def combined(self, C: Array) -> tuple[Array, float]:
        """Return C P in float64, and a bound on the norm of its error."""
        n_dense = len(self.dense)
        C = cast(C, np.float64)
        total = self.rows.combined(C[:, n_dense:])
        if n_dense:
            total += C[:, :n_dense] @ self.dense
        error = 2.0 * gamma(self.n_rows + 8) * math.sqrt(squared_norm(C) * self._energy)
        return total, error

    def start(self, size: int) -> Array:
        """Return the dense rows at unit length; where they are too few, chance has to do."""
        return unit_rows(self.dense[:size])

    def width(self, n_directions: int) -> int:
        """Return the number of directions that cost no more than ``n_directions``."""
        return whole_lines(n_directions, 2)

    def project(self, start: Array, fresh: Array, cheap: bool) -> Iterator[Projection]:
        """Yield Y'P where Y spans P (P'P)^k times all directions, with k larger in a cold start."""
        self.digest = rows_digest(self.rows, fresh)
        start = joined([start, like(fresh, start)])
        # Divided by its trace P'P has norm at most one, so squares of products do not overflow.
        # Directions may be rough, so half the memory traffic will do until the last product.
        single = MODERATE[0] < self.squared_norm < MODERATE[1]
        V = _columns(start, np.dtype(np.float32 if single else np.float64))
        extra = 0 if len(self.dense) else sum(self.n_features > n for n in MANY_COLUMNS)
        for _ in range(1 + extra):
            W = self._normal(V)
            W /= self.squared_norm
            V = orthonormal_columns(W)
        V = cast(V, np.float64)
        W = self._normal(V)
        W /= self.squared_norm
        error = math.sqrt(V.shape[1]) * self.noise / self.squared_norm
        Z, excess = nystrom(V, W, error)
        Z = Z * math.sqrt(self.squared_norm)
        yield Projection(Z, 0.0, excess * self.squared_norm)

    @property
    def noise(self) -> float:
        """Bound on the error of a product with P'P - B'B in float64."""
        return 4.0 * gamma(self.n_rows + 2 * self.n_features) * self._energy

    def loss_operators(self, matrix: Array, lost: float) -> Iterator[LossOperator]:
        """Yield products with P'P - B'B for B = ``matrix``."""
        B, lost = matrix, max(lost, SMALLEST_SQUARE)

        def apply(W: Array) -> Array:
            image: Array = self._normal(_columns(W / lost, precision(W))).T[: len(W)]
            lost_image: Array = image - normal_rows(W / lost, B)
            return lost_image

        yield LossOperator(apply, lost, lambda: self.noise)

    def _normal(self, V: Array) -> Array:
        """Return P'P V."""
        W = self.rows.normal(V)
        if len(self.dense):
            dense = cast(self.dense, precision(V))
            add_normal_inplace(W, dense, V)
        return W


def rows_digest(rows: SparseRows, directions: Array) -> bytes:
    """Return a digest of the images of all rows along the first of some random directions.

    Along a single one a sparse row can be made to have any image; along several it cannot.
    """
    return digest(rows.products(like(directions[:DIGEST], rows.sparse.data, np.float64)))


def _columns(rows: Array, dtype: np.dtype[Any]) -> Array:
    """Return the transpose in ``dtype``, with zero columns up to whole cache lines."""
    if on_device(rows):
        columns: Array = copied(cast(rows, dtype).T)
        return columns
    V = aligned_empty((rows.shape[1], whole_lines(len(rows))), dtype)
    V[:, : len(rows)] = rows.T
    V[:, len(rows) :] = 0.0
    return V
