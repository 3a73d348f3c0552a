"""Linear maps to few coordinates and back: a basis of the data's own range, or a random one."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from sksketch._typing import Array, Rows
from sksketch.arrays.kernels import kernels
from sksketch.arrays.linalg import eigh_descending, thin_svd
from sksketch.arrays.random import stream
from sksketch.sketches.projections.projection import Projection
from sksketch.sketches.projections.sparse_total import DENSE_BYTES

# Directions below this part of the largest one are roundings of the others.
RANK_RESOLUTION = 1e-12
# The columns found from a Gram matrix may be off by this much.
ORTHONORMALITY = 1e-8
# Rows of a sparse basis that are made dense at a time.
TILE_ROWS = 4096


class LinearMap(ABC):
    """Rows of ``n_features`` columns to ``n_components`` coordinates, and models back."""

    n_features: int
    n_components: int

    @property
    def size(self) -> float:
        """Frobenius norm of U, or of its factors multiplied: what rounding is relative to."""
        return math.sqrt(self.n_components)

    @abstractmethod
    def project(self, rows: Rows) -> Array:
        """Return the coordinates U'x of rows, dense or CSR, one row each."""

    @abstractmethod
    def lift(self, models: Array) -> Array:
        """Return U v for models v as columns, of shape (n_features, n_models)."""

    def restore(self, coordinates: Array, inverse: Array) -> Array:
        """Return the shortest rows that have the coordinates, or come closest, one row each.

        Parameters
        ----------
        coordinates : array of shape (n_rows, n_components)
        inverse : array of shape (n_components, n_components)
            What `inverse_gram` returns.
        """
        rows = self.lift(inverse @ coordinates.T)
        # The Gram matrix has squared the condition; a second step brings the digits back.
        left = coordinates - self.project(np.ascontiguousarray(rows.T))
        return np.asarray((rows + self.lift(inverse @ left.T)).T)


class DenseBasis(LinearMap):
    """Orthonormal columns that are stored.

    >>> basis = DenseBasis(np.eye(3)[:, :2])
    >>> basis.project(np.array([[1.0, 2.0, 3.0]]))
    array([[1., 2.]])
    """

    def __init__(self, vectors: Array) -> None:
        # In this order products with sparse rows need no copy.
        self.vectors = np.ascontiguousarray(vectors)
        self.n_features, self.n_components = vectors.shape

    def project(self, rows: Rows) -> Array:
        """Return the coordinates of rows."""
        return np.asarray(rows @ self.vectors.astype(rows.dtype, copy=False))

    def lift(self, models: Array) -> Array:
        """Return the models in the original columns."""
        return np.asarray(self.vectors @ models)


class FactoredBasis(LinearMap):
    """Orthonormal columns Y T with Y sparse or large and T small; their product is not formed.

    Parameters
    ----------
    spanning : array or csr_array of shape (n_features, size)
        Y.

    Notes
    -----
    T = V S^-1 comes from Y'Y = V S^2 V'. That squares the condition of Y, so directions below
    sqrt(8 size eps) of the largest are cut, and where others are so small that rounding may
    show, a second such step is taken on Y T.

    Examples
    --------
    >>> basis = FactoredBasis(sp.csr_array([[3.0, 6.0], [4.0, 8.0], [0.0, 0.0]]))
    >>> basis.lift(np.eye(1)).ravel().round(6) + 0.0
    array([0.6, 0.8, 0. ])
    """

    def __init__(self, spanning: Any) -> None:
        self._spanning = spanning
        self._factor, self.complete = self._orthonormal_factor()
        self.n_features, self.n_components = spanning.shape[0], self._factor.shape[1]

    @property
    def size(self) -> float:
        """Frobenius norms of Y and T multiplied."""
        entries = self._spanning.data if sp.issparse(self._spanning) else self._spanning
        return float(np.linalg.norm(entries) * np.linalg.norm(self._factor))

    def _orthonormal_factor(self) -> tuple[Array, bool]:
        """Return T, and whether no direction was cut or is close to it."""
        Y, eps = self._spanning, float(np.finfo(np.float64).eps)
        if sp.issparse(Y):
            G = np.zeros((Y.shape[1], Y.shape[1]))
            _add_product(G, Y.T.tocsr(), Y)
        else:
            G = np.asarray(Y.T @ Y)
        values, V = eigh_descending(G)
        keep = values > 8 * len(G) * eps * max(values[0], 0.0)
        factor = np.asarray(V[:, keep] / np.sqrt(values[keep]))
        if not keep.any():
            return factor, False
        rounding = len(G) * eps * values[0]
        if rounding > ORTHONORMALITY * values[keep][-1]:
            again, V = eigh_descending(self._gram_of_columns(factor))
            return factor @ (V / np.sqrt(again)), False
        return factor, bool(keep.all())

    def _gram_of_columns(self, factor: Array) -> Array:
        """Return (Y T)'(Y T), from the rows of Y T themselves."""
        Y = self._spanning
        filled = np.flatnonzero(np.diff(Y.indptr)) if sp.issparse(Y) else np.arange(len(Y))
        total = np.zeros((factor.shape[1], factor.shape[1]))
        for start in range(0, len(filled), TILE_ROWS):
            rows = Y[filled[start : start + TILE_ROWS]] @ factor
            total += rows.T @ rows
        return total

    def project(self, rows: Rows) -> Array:
        """Return the coordinates of rows."""
        if not sp.issparse(self._spanning):
            images = np.asarray(rows @ self._spanning)
        elif sp.issparse(rows):
            images = np.zeros((rows.shape[0], self._factor.shape[0]))
            _add_product(images, rows, self._spanning)
        else:
            images = np.asarray((self._spanning.T @ rows.T).T)
        return np.asarray(images @ self._factor)

    def lift(self, models: Array) -> Array:
        """Return the models in the original columns."""
        return np.asarray(self._spanning @ (self._factor @ models))


class RandomMap(LinearMap):
    """X S' for a random S that knows nothing of the data, with one column for each of X's.

    Parameters
    ----------
    operator : Projection
        Chooses S; no rows have come to it.
    n_features : int
        Columns of the rows.
    """

    def __init__(self, operator: Projection, n_features: int) -> None:
        self._operator = operator
        self.n_features, self.n_components = n_features, operator.sketch_size
        self._sparse: Any = None
        parts = operator.columns(0, 1)
        if sp.issparse(next(parts)[1]):
            columns = [part for _, part in operator.columns(0, n_features)]
            self._sparse = sp.vstack(columns, format="csr")

    def _tiles(self) -> Iterator[tuple[slice, Any]]:
        return self._operator.columns(0, self.n_features)

    def project(self, rows: Any) -> Array:
        """Return the coordinates of rows."""
        total = np.zeros((rows.shape[0], self.n_components))
        if self._sparse is None:
            # Columns that lie together are read together.
            by_column = rows.tocsc() if sp.issparse(rows) else rows
            for part, columns in self._tiles():
                total += by_column[:, part] @ columns
        elif sp.issparse(rows):
            _add_product(total, rows, self._sparse)
        else:
            total = np.asarray((self._sparse.T @ rows.T).T)
        return total

    def lift(self, models: Array) -> Array:
        """Return the models in the original columns."""
        if self._sparse is not None:
            return np.asarray(self._sparse @ models)
        parts = [columns @ models for _, columns in self._tiles()]
        return np.concatenate(parts)


class ColumnSample(LinearMap):
    """Some of the columns, scaled so that squared lengths are right on average.

    >>> ColumnSample(2, 8, seed=0).project(np.ones((1, 8)))
    array([[2., 2.]])
    """

    def __init__(self, n_components: int, n_features: int, seed: int) -> None:
        chosen = stream(seed, "column sample").permutation(n_features)[:n_components]
        self._chosen = np.sort(chosen)
        self.n_features, self.n_components = n_features, len(chosen)
        self._scale = math.sqrt(n_features / len(chosen))

    def project(self, rows: Rows) -> Array:
        """Return the coordinates of rows."""
        taken = rows[:, self._chosen]
        return np.asarray(self._scale * (taken.toarray() if sp.issparse(taken) else taken))

    def lift(self, models: Array) -> Array:
        """Return the models in the original columns."""
        lifted = np.zeros((self.n_features, models.shape[1]))
        lifted[self._chosen] = self._scale * models
        return lifted


def inverse_gram(linear: LinearMap) -> Array:
    """Return the pseudo-inverse of U'U, a few of its columns at a time.

    >>> inverse_gram(ColumnSample(2, 8, seed=0)).round(6).tolist()
    [[0.25, 0.0], [0.0, 0.25]]
    """
    k = linear.n_components
    step = max(1, DENSE_BYTES // (8 * linear.n_features))
    parts = [
        linear.project(np.ascontiguousarray(linear.lift(np.eye(k)[:, start : start + step]).T))
        for start in range(0, k, step)
    ]
    G = np.concatenate(parts)
    values, V = eigh_descending((G + G.T) / 2.0)
    keep = values > 8 * k * float(np.finfo(np.float64).eps) * max(values[0], 0.0)
    return np.asarray((V[:, keep] / values[keep]) @ V[:, keep].T)


def basis_of(spanning: Any) -> LinearMap:
    """Return an orthonormal basis of the rows of a matrix, of its numerical rank.

    >>> basis_of(np.array([[3.0, 4.0], [6.0, 8.0]])).n_components
    1
    """
    if sp.issparse(spanning):
        return FactoredBasis(sp.csr_array(spanning.T, dtype=np.float64))
    if spanning.size * 8 > DENSE_BYTES and spanning.dtype == np.float64:
        basis = FactoredBasis(np.ascontiguousarray(spanning.T))
        if basis.complete:
            return basis
    values, vectors = thin_svd(spanning)
    rounding = float(np.finfo(spanning.dtype).eps) * max(spanning.shape) ** 0.5
    largest = float(values.max(initial=0.0))
    rank = int(np.count_nonzero(values > max(RANK_RESOLUTION, rounding) * largest))
    return DenseBasis(vectors[:rank].T)


def _add_product(total: Array, rows: Any, other: Any) -> None:
    """Add the product of two CSR arrays to a dense one."""
    parts = [
        part
        for A in (rows, other)
        for part in (A.indptr, A.indices, A.data.astype(total.dtype, copy=False))
    ]
    kernels().product_csr_inplace(total, *parts)
