"""The buffer of a shrink, P = [kept rows; new rows], as the products that a shrink needs.

`DenseStack` holds all rows as arrays, `SparseStack` new rows that are mostly zeros. The
solvers see only the methods that both have.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from sksketch._typing import Array
from sksketch.arrays.linalg import (
    add_product,
    aligned_empty,
    eigh_descending,
    gram,
    nystrom_rows,
    orthonormal_columns,
    orthonormal_rows,
)
from sksketch.arrays.namespace import (
    cast,
    copied,
    empty,
    joined,
    like,
    on_device,
    precision,
    squared_norms,
)
from sksketch.arrays.sparse import SparseRows, whole_lines
from sksketch.sketches.ledger import ROUNDING_FACTOR, rounding_allowance
from sksketch.sketches.loss_products import CheapProducts, LossOperator, loss_products

# A cold start looks at this many sketch sizes of rows first.
WARM_UP = 3

# Roundings, of the largest eigenvalue, in a projection of so many rows in single precision. One or
# two are common; they grow with the rows where one of them is much heavier than all others.
SINGLE_ROUNDINGS, SINGLE_ROWS = 16.0, 1 << 14

# Squared norms whose squares are far from the ends of single precision.
MODERATE = 1e-10, 1e10

# Inverses of smaller squares could overflow.
SMALLEST_SQUARE = 1e-300

# The Gram matrix resolves directions down to about 1e-5 of the largest singular value.
GRAM_RESOLUTION = 1e-10

# A cold start with sparse rows makes one more product with P'P for each of these numbers of
# columns: the more there are, the further are chance directions from the right ones.
MANY_COLUMNS = 10_000, 100_000


class Projection(NamedTuple):
    """The rows Z = Y'P for an orthonormal Y: Z'Z is never above P'P, but for roundings.

    ``roundings`` is how many of them, of the largest eigenvalue, to allow for.
    """

    rows: Array
    roundings: float = ROUNDING_FACTOR

    @property
    def eps(self) -> float:
        """Size of a rounding."""
        return float(np.finfo(precision(self.rows)).eps)

    def allowance(self, largest: float) -> float:
        """Return the error to allow for, with that largest eigenvalue of Z'Z."""
        return rounding_allowance(self.eps, largest, self.roundings)

    def gram(self) -> Array:
        """Return Z Z'."""
        return gram(self.rows)

    def combined(self, C: Array, dtype: np.dtype[Any]) -> Array:
        """Return C Z in a precision in which its rows can be orthogonal."""
        product: Array = cast(C, dtype) @ cast(self.rows, dtype)
        return product


class DenseStack:
    """Kept rows and new rows that are arrays.

    Directions are found in single precision: every orthonormal Y gives a valid shrink, so it
    may be rough, and its products cost half. Rows are scaled to unit norm where fourth powers
    might leave the range of that precision.

    Parameters
    ----------
    kept : array of shape (n_kept, n_features)
        Orthogonal rows.
    eigenvalues : array of shape (n_kept,)
        Their squared lengths.
    rows : array of shape (n_rows, n_features)
        New rows.
    total : float
        Squared norm of all of them.
    scratch : callable
        Lends room for n rows in single precision.
    """

    # Products with P'P that a verification spends: where rows are sparse they cost much of a pass.
    depth = 6

    def __init__(
        self,
        kept: Array,
        eigenvalues: Array,
        rows: Array,
        total: float,
        scratch: Callable[[int], Array],
    ) -> None:
        self.kept, self.rows = kept, rows
        self.n_features = rows.shape[1]
        self.n_rows = len(kept) + len(rows)
        self.squared_norm = total
        self._eigenvalues = eigenvalues
        self._scratch = scratch

    @functools.cached_property
    def matrix(self) -> Array:
        """P itself."""
        both: Array = joined([self.kept, self.rows])
        return both

    def gram(self) -> Array:
        """Return P P'; the part of the kept rows is diagonal and, in float64, known."""
        n_kept = len(self.kept)
        if on_device(self.rows) or self.rows.dtype != np.float64 or not n_kept:
            return gram(self.matrix)
        G = np.empty((self.n_rows, self.n_rows))
        G[:n_kept, :n_kept] = np.diag(self._eigenvalues)
        G[n_kept:, n_kept:] = self.rows @ self.rows.T
        cross = self.kept @ self.rows.T
        G[:n_kept, n_kept:] = cross
        G[n_kept:, :n_kept] = cross.T
        return G

    def combined(self, C: Array) -> Array:
        """Return C P."""
        C, n_kept = cast(C, precision(self.rows)), len(self.kept)
        product: Array = C[:, :n_kept] @ self.kept
        return add_product(product, C[:, n_kept:], self.rows)

    def start(self, size: int) -> Array:
        """Return unit rows to start from: the kept ones, or directions of the first rows."""
        if len(self.kept) >= size:
            return unit_rows(self.kept)
        P = joined([self.kept, self.rows[: WARM_UP * size]])
        # A few more than will be kept: what is lost in the first block no later one brings back.
        wanted = size + size // 3
        spectrum, U = eigh_descending(gram(P), wanted)
        # They come largest first.
        n_clear = np.count_nonzero(spectrum[:wanted] > GRAM_RESOLUTION * max(spectrum[0], 0.0))
        first = unit_rows(cast(U[:, :n_clear].T, precision(P)) @ P)
        return first if len(self.kept) else self._improved(first)

    def _improved(self, directions: Array) -> Array:
        """Return directions that all new rows have turned to the heavier ones."""
        rows = self._single[1]
        images: Array = (directions @ rows.T) @ rows
        return orthonormal_columns(images.T).T

    def width(self, n_directions: int) -> int:
        """Return how many directions cost no more than so many."""
        return n_directions

    def project(self, start: Array, cheap: bool) -> Iterator[Projection]:
        """Yield Y'P where Y spans P ``start'``: a cheap one if wanted, then in full precision."""
        n_kept = len(self.kept)
        kept, rows = self._single
        T = joined([start @ kept.T, (rows @ start.T).T], axis=1)
        if cheap and precision(self.rows) == np.float64 and self._single_scale == 1.0:
            Y = orthonormal_rows(T)
            Z = Y[:, n_kept:] @ rows
            Z += Y[:, :n_kept] @ kept
            yield Projection(Z, single_roundings(self.n_rows))
        Y = orthonormal_rows(cast(T, precision(self.rows)))
        Z = Y[:, n_kept:] @ self.rows
        Z += Y[:, :n_kept] @ self.kept
        yield Projection(Z)

    def loss_operators(self, matrix: Array, lost: float) -> Iterator[LossOperator]:
        """Yield products with P'P - B'B for B = ``matrix``: the cheap ones, then the exact."""
        scale = self._single_scale**2
        cheap = CheapProducts(self.kept, self._single[1], matrix, scale)
        yield LossOperator(cheap, 1.0 / scale, lambda: cheap.noise() / scale)
        # Divided by its trace the matrix has norm at most one: no overflow, no underflow.
        lost = max(lost, SMALLEST_SQUARE)
        apply = loss_products(self.kept, self.rows, matrix, 1.0 / lost)
        yield LossOperator(apply, lost)

    @functools.cached_property
    def _single_scale(self) -> float:
        moderate = MODERATE[0] < self.squared_norm < MODERATE[1]
        return 1.0 if moderate else 1.0 / math.sqrt(max(self.squared_norm, SMALLEST_SQUARE))

    @functools.cached_property
    def _single(self) -> tuple[Array, Array]:
        scratch = None if on_device(self.rows) else self._scratch(len(self.rows))
        return self._cast(self.kept), self._cast(self.rows, scratch)

    def _cast(self, rows: Array, out: Array | None = None) -> Array:
        if on_device(rows) or (rows.dtype == np.float32 and self._single_scale == 1.0):
            scaled = rows if self._single_scale == 1.0 else rows * self._single_scale
            single: Array = cast(scaled, np.float32)
            return single
        out = np.empty(rows.shape, dtype=np.float32) if out is None else out
        if self._single_scale == 1.0:
            np.copyto(out, rows, casting="same_kind")
        else:
            np.multiply(rows, rows.dtype.type(self._single_scale), out=out, casting="same_kind")
        return out


class SparseStack:
    """Kept rows and new rows that are sparse, around a centre or not.

    Products with P'P read every stored entry once and never need an array with a row for each
    row of P, and one of them does what `DenseStack` does with two (see `nystrom_rows`). What
    counts is in float64: sums over many rows of the same sign need it.
    """

    depth = 5

    def __init__(self, dense: Array, rows: SparseRows, total: float) -> None:
        self.dense, self.rows = dense, rows
        self.n_features = rows.shape[1]
        self.n_rows = len(dense) + len(rows)
        self.squared_norm = total

    def gram(self) -> Array:
        """Return P P'."""
        n_dense = len(self.dense)
        G: Array = empty((self.n_rows, self.n_rows), self.dense, np.float64)
        G[:n_dense, :n_dense] = gram(self.dense)
        G[n_dense:, n_dense:] = self.rows.gram()
        G[:n_dense, n_dense:] = self.rows.products(self.dense)
        G[n_dense:, :n_dense] = G[:n_dense, n_dense:].T
        return G

    def combined(self, C: Array) -> Array:
        """Return C P."""
        n_dense = len(self.dense)
        total = self.rows.combined(C[:, n_dense:])
        if n_dense:
            total += C[:, :n_dense] @ cast(self.dense, np.float64)
        combined: Array = cast(total, self.rows.dtype)
        return combined

    def start(self, size: int) -> Array:
        """Return the dense rows at unit length; where they are too few, chance has to do."""
        return unit_rows(self.dense[:size])

    def width(self, n_directions: int) -> int:
        """Return how many directions cost no more than so many."""
        return whole_lines(n_directions, 2)

    def project(self, start: Array, cheap: bool) -> Iterator[Projection]:
        """Yield Y'P where Y spans P (P'P)^k ``start'``, with k larger in a cold start."""
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
        yield Projection(float(np.sqrt(self.squared_norm)) * nystrom_rows(V, W))

    def loss_operators(self, matrix: Array, lost: float) -> Iterator[LossOperator]:
        """Yield products with P'P - B'B for B = ``matrix``."""
        B, lost = cast(matrix, np.float64), max(lost, SMALLEST_SQUARE)

        def apply(W: Array) -> Array:
            image: Array = self._normal(_columns(W / lost, precision(W))).T[: len(W)]
            lost_image: Array = image - (W @ B.T / lost) @ B
            return lost_image

        yield LossOperator(apply, lost)

    def _normal(self, V: Array) -> Array:
        """Return P'P V."""
        W = self.rows.normal(V)
        if len(self.dense):
            dense = cast(self.dense, precision(V))
            W += dense.T @ (dense @ V)
        return W


Stack = DenseStack | SparseStack


def single_roundings(n_rows: int) -> float:
    """Return how many roundings to allow for where so many rows are projected in float32."""
    return SINGLE_ROUNDINGS * max(1.0, n_rows / SINGLE_ROWS)


def unit_rows(matrix: Array) -> Array:
    """Return the rows that are not zero at unit length, in single precision."""
    if on_device(matrix):
        lengths = np.sqrt(squared_norms(matrix))
        chosen = matrix[like(np.flatnonzero(lengths), matrix)]
        unit = cast(chosen, np.float64) / like(lengths[lengths > 0][:, None], matrix)
        single: Array = cast(unit, np.float32)
        return single
    rows = matrix.astype(np.float64, copy=False)
    lengths = np.sqrt(np.vecdot(rows, rows))
    nonzero = lengths > 0
    return np.asarray((rows[nonzero] / lengths[nonzero, None]).astype(np.float32))


def _columns(rows: Array, dtype: np.dtype[Any]) -> Array:
    """Return the transpose in ``dtype``, with zero columns up to whole cache lines."""
    if on_device(rows):
        columns: Array = copied(cast(rows, dtype).T)
        return columns
    V = aligned_empty((rows.shape[1], whole_lines(len(rows))), dtype)
    V[:, : len(rows)] = rows.T
    V[:, len(rows) :] = 0.0
    return V
