"""Sparse rows around a centre, worked on without ever filling in the zeros."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import blas

from sksketch._typing import Array
from sksketch.arrays.kernels import kernels
from sksketch.arrays.linalg import aligned_empty, squared_norm

# Numbers in a cache line.
LINE = 8


@dataclass(frozen=True, eq=False)
class SparseRows:
    """The rows ``sparse - scale center'``, of which only the parts are stored.

    Parameters
    ----------
    sparse : csr_array of shape (n_rows, n_features)
        In canonical form.
    scale : array of shape (n_rows,)
        What each row has of the centre, in float64; empty where there is none.
    center : array of shape (n_features,)
        In float64; empty where there is none.

    Examples
    --------
    >>> rows = SparseRows(sp.csr_array([[1.0, 0.0], [0.0, 3.0]]), np.ones(2), np.array([0.5, 1.0]))
    >>> rows.normal(np.eye(2))
    array([[ 0.5, -1.5],
           [-1.5,  5. ]])
    """

    sparse: Any
    scale: Array
    center: Array

    @classmethod
    def plain(cls, sparse: Any) -> SparseRows:
        """Return sparse rows as they are."""
        return cls(sparse, np.zeros(0), np.zeros(0))

    def __len__(self) -> int:
        return int(self.sparse.shape[0])

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        n_rows, n_features = self.sparse.shape
        return int(n_rows), int(n_features)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Precision of the stored entries."""
        dtype: np.dtype[Any] = self.sparse.dtype
        return dtype

    @property
    def centered(self) -> bool:
        """Whether there is a centre."""
        return len(self.scale) > 0

    @property
    def squared_norm(self) -> float:
        """Sum of the squared entries."""
        stored = squared_norm(self.sparse.data[None])
        if not self.centered:
            return stored
        mixed = float(self.scale @ (self.sparse @ self.center))
        return max(stored - 2.0 * mixed + self.center_energy, 0.0)

    @property
    def center_energy(self) -> float:
        """Squared norm of what is subtracted: its roundings stay in the differences."""
        if not self.centered:
            return 0.0
        return float(self.scale @ self.scale) * float(self.center @ self.center)

    def scaled(self, factors: Array) -> SparseRows:
        """Return the rows with each multiplied by a factor of its own."""
        scale = self.scale * factors if self.centered else self.scale
        return SparseRows(scaled_rows(self.sparse, factors), scale, self.center)

    def normal(self, W: Array) -> Array:
        """Return P'P W for these rows P, in the precision of W; reads the stored entries once.

        Parameters
        ----------
        W : array of shape (n_features, n_vectors)
            Rows of whole cache lines make it fastest.
        """
        X = self.sparse
        image = aligned_empty(W.shape, W.dtype)
        image[...] = 0.0
        pull = np.zeros(W.shape[1], dtype=W.dtype)
        offset = (self.center @ W).astype(W.dtype) if self.centered else pull
        kernels().normal_csr_inplace(
            image, pull, W, X.indptr, X.indices, X.data, self.scale, offset
        )
        if self.centered:
            # In place: the transpose is what BLAS calls a matrix.
            ger = blas.dger if W.dtype == np.float64 else blas.sger
            ger(-1.0, pull, self.center.astype(W.dtype), a=image.T, overwrite_a=1)
        return image

    def products(self, V: Array) -> Array:
        """Return V P' for dense rows V."""
        image = np.asarray((self.sparse @ V.T).T, dtype=np.float64)
        if self.centered:
            image -= np.outer(V @ self.center, self.scale)
        return image

    def gram(self) -> Array:
        """Return P P' in float64."""
        X = self.sparse.astype(np.float64)
        G = np.asarray((X @ X.T).toarray())
        if self.centered:
            mixed = np.outer(X @ self.center, self.scale)
            G += float(self.center @ self.center) * np.outer(self.scale, self.scale)
            G -= mixed + mixed.T
        return G

    def combined(self, C: Array) -> Array:
        """Return C P, dense."""
        image = np.ascontiguousarray((self.sparse.T @ C.T).T, dtype=np.float64)
        if self.centered:
            image -= np.outer(C @ self.scale, self.center)
        return image


def whole_lines(n_vectors: int, n_lines: int = 1) -> int:
    """Return how many vectors fill whole cache lines, as products with sparse rows read them.

    >>> whole_lines(51), whole_lines(51, 2)
    (56, 64)
    """
    return -(-n_vectors // (LINE * n_lines)) * LINE * n_lines


def csr(data: Array, indices: Array, indptr: Array, n_features: int) -> Any:
    """Return a CSR array of parts that are known to be right, which saves looking at them."""
    rows = sp.csr_array((len(indptr) - 1, n_features), dtype=data.dtype)
    rows.data, rows.indices, rows.indptr = data, indices, indptr
    return rows


def scaled_rows(rows: Any, factors: Array) -> Any:
    """Return a CSR matrix with every row multiplied by a factor of its own."""
    data = rows.data * np.repeat(factors, np.diff(rows.indptr))
    return csr(data.astype(rows.dtype), rows.indices, rows.indptr, rows.shape[1])


def nonzero_rows(rows: Any) -> Any:
    """Return a CSR matrix without the rows that are all zero, stored zeros included."""
    if not rows.data.all():
        rows = rows.copy()
        rows.eliminate_zeros()
    ends = rows.indptr[1:]
    filled = ends > rows.indptr[:-1]
    if filled.all():
        return rows
    indptr = np.concatenate([rows.indptr[:1], ends[filled]])
    return csr(rows.data, rows.indices, indptr, rows.shape[1])


def sparse_arrays(name: str, rows: Any) -> dict[str, Array]:
    """Return copies of the three arrays of a CSR matrix, named for a saved state."""
    return {f"{name}_{part}": getattr(rows, part).copy() for part in ("data", "indices", "indptr")}


def from_sparse_arrays(name: str, arrays: Mapping[str, Array], n_features: int) -> Any:
    """Build the CSR matrix that `sparse_arrays` came from."""
    data, indices, indptr = (arrays[f"{name}_{part}"] for part in ("data", "indices", "indptr"))
    return sp.csr_array((data, indices, indptr), shape=(len(indptr) - 1, n_features))
