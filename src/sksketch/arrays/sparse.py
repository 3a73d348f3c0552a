"""Sparse rows around a center, worked on without ever filling in the zeros."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import blas

from sksketch._typing import Array, Matrix
from sksketch.arrays.device_sparse import DeviceCSR, on_host
from sksketch.arrays.kernels import kernels
from sksketch.arrays.linalg import aligned_empty
from sksketch.arrays.namespace import cast, like, namespace, on_device, precision, to_numpy
from sksketch.arrays.parallel import helped, in_parallel, spans
from sksketch.arrays.products import norm_error, squared_norm
from sksketch.arrays.rounding import gamma

# Numbers in a cache line.
LINE = 8

# Rows whose images are held at once, and those of one part; ranges of columns, and the entries by
# which they are chosen.
PANEL_ROWS, PART_ROWS = 1 << 14, 1 << 9
RANGES, SAMPLED_ENTRIES = 32, 1 << 18


@dataclass(frozen=True, eq=False)
class SparseRows:
    """The rows ``sparse - scale center'``, of which only the parts are stored.

    Parameters
    ----------
    sparse : csr_array or DeviceCSR of shape (n_rows, n_features)
        In canonical form.
    scale : array of shape (n_rows,)
        Share of the center in each row, in float64; empty where there is none.
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
    def plain(cls, sparse: sp.csr_array) -> SparseRows:
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
        """Whether there is a center."""
        return len(self.scale) > 0

    @property
    def squared_norm(self) -> float:
        """Sum of the squared entries."""
        stored = squared_norm(self.sparse.data[None])
        if not self.centered:
            return stored
        mixed = float(self.scale @ to_numpy(self._times(self.center[:, None]))[:, 0])
        return max(stored - 2.0 * mixed + self.center_energy, 0.0)

    @property
    def center_energy(self) -> float:
        """Squared norm of what is subtracted: its roundings stay in the differences."""
        if not self.centered:
            return 0.0
        return float(self.scale @ self.scale) * float(self.center @ self.center)

    @property
    def all_energy(self) -> float:
        """Squared norm of the stored entries and of what is subtracted: products round by it."""
        return squared_norm(self.sparse.data[None]) + self.center_energy

    @property
    def squared_norm_error(self) -> float:
        """Bound on the error of `squared_norm`."""
        relative = norm_error(self.sparse.data[None])
        if self.centered:
            relative += 2.0 * gamma(sum(self.shape) + 4)
        return relative * self.all_energy

    def scaled(self, factors: Array) -> SparseRows:
        """Return the rows with each multiplied by a factor of its own."""
        scale = self.scale * factors if self.centered else self.scale
        return SparseRows(scaled_rows(self.sparse, factors), scale, self.center)

    def squared(self) -> SparseRows:
        """Return plain rows with the squares of the stored entries, in float64."""
        X = self.sparse
        double = cast(X.data, np.float64)
        return SparseRows.plain(csr(double * double, X.indices, X.indptr, X.shape[1]))

    def normal(self, W: Array) -> Array:
        """Return P'P W for these rows P, in the precision of W; reads the stored entries once.

        Parameters
        ----------
        W : array of shape (n_features, n_vectors)
            Rows of whole cache lines make it fastest.
        """
        X = self.sparse
        if isinstance(X, DeviceCSR):
            product: Array = self._normal_on_device(W)
            return product
        image = aligned_empty(W.shape, W.dtype)
        image[...] = 0.0
        pull = np.zeros(W.shape[1], dtype=W.dtype)
        offset = (self.center @ W).astype(W.dtype) if self.centered else pull
        if helped():
            self._normal_in_parallel(image, pull, W, offset)
        else:
            kernels().normal_csr_inplace(
                image, pull, W, X.indptr, X.indices, X.data, self.scale, offset
            )
        if self.centered and pull.size:
            # In place: the transpose is what BLAS calls a matrix.
            ger = blas.dger if W.dtype == np.float64 else blas.sger
            ger(-1.0, pull, self.center.astype(W.dtype), a=image.T, overwrite_a=1)
        return image

    def _normal_in_parallel(self, image: Array, pull: Array, W: Array, offset: Array) -> None:
        """Do what `normal_csr_inplace` does, to the bit, with all threads.

        Images of some rows are found by rows, and added up by ranges of columns, each of which
        sees the rows in their order.
        """
        X, loops = self.sparse, kernels()
        splits = self._splits
        n_ranges = splits.shape[1] - 1
        room = np.empty((min(len(self), PANEL_ROWS), W.shape[1]), W.dtype)
        for panel in spans(len(self), PANEL_ROWS):
            rows = [
                slice(panel.start + part.start, panel.start + part.stop)
                for part in spans(panel.stop - panel.start, PART_ROWS)
            ]
            T = room[: panel.stop - panel.start]
            shares = self.scale[panel]

            def images_of(i: int, panel: slice = panel, rows: Any = rows, T: Array = T) -> None:
                part = rows[i]
                indptr = X.indptr[part.start : part.stop + 1]
                out = T[part.start - panel.start : part.stop - panel.start]
                scale = self.scale[part]
                loops.times_csr_inplace(out, W, indptr, X.indices, X.data, scale, offset)

            def add(r: int, panel: slice = panel, T: Array = T, shares: Array = shares) -> None:
                if r < n_ranges:
                    loops.spread_csr_inplace(image, T, splits[panel], r, X.indices, X.data)
                else:
                    loops.add_rows_inplace(pull, T, shares)

            in_parallel(images_of, len(rows))
            in_parallel(add, n_ranges + self.centered)

    @functools.cached_property
    def _splits(self) -> Array:
        """Starts of ranges of columns in each row, all with about as many entries."""
        X = self.sparse
        counts = np.bincount(X.indices[:SAMPLED_ENTRIES], minlength=self.shape[1])
        share = np.cumsum(counts) / max(int(counts.sum()), 1)
        inner = np.searchsorted(share, np.arange(1, RANGES) / RANGES)
        bounds = np.unique(np.concatenate([[0], inner, [self.shape[1]]])).astype(X.indices.dtype)
        splits = np.empty((len(self), len(bounds)), X.indptr.dtype)
        rows = spans(len(self), PART_ROWS)

        def split(i: int) -> None:
            indptr = X.indptr[rows[i].start : rows[i].stop + 1]
            kernels().split_csr_inplace(splits[rows[i]], indptr, X.indices, bounds)

        in_parallel(split, len(rows))
        return splits

    def _normal_on_device(self, W: Array) -> Any:
        Y = self._times(W)
        if not self.centered:
            return self.sparse.transposed_times(Y)
        scale, center = (like(part[:, None], W, precision(W)) for part in (self.scale, self.center))
        Y = Y - scale @ (center.T @ W)
        return self.sparse.transposed_times(Y) - center @ (scale.T @ Y)

    def _times(self, W: Array) -> Any:
        """Return the stored part times W, where the entries are."""
        if isinstance(self.sparse, DeviceCSR):
            return self.sparse.times(like(W, self.sparse.data))
        X, dtype = self.sparse, np.result_type(self.sparse.dtype, W.dtype)
        W = np.ascontiguousarray(W, dtype)
        T = np.empty((len(self), W.shape[1]), dtype)
        nothing, parts = np.zeros(W.shape[1], dtype), spans(len(self), PART_ROWS)

        def write(i: int) -> None:
            indptr = X.indptr[parts[i].start : parts[i].stop + 1]
            kernels().times_csr_inplace(
                T[parts[i]], W, indptr, X.indices, X.data, np.zeros(0), nothing
            )

        in_parallel(write, len(parts))
        return T

    def weighted_sum(self, weights: Array) -> Array:
        """Return the sum of the stored rows, each times its weight, in numpy."""
        X = self.sparse
        if not isinstance(X, DeviceCSR):
            return np.asarray(X.T @ weights)
        return to_numpy(X.transposed_times(like(weights[:, None], X.data)))[:, 0]

    def products(self, V: Array) -> Array:
        """Return V P' for dense rows V."""
        image: Array = cast(self._times(V.T).T, np.float64)
        if self.centered:
            image = image - like(np.outer(to_numpy(V) @ self.center, self.scale), image)
        return image

    def gram(self) -> Array:
        """Return P P' in float64."""
        if isinstance(self.sparse, DeviceCSR):
            # They are few, and few libraries multiply two sparse matrices.
            host = SparseRows(self.sparse.on_host(), self.scale, self.center)
            on_device_again: Array = like(host.gram(), self.sparse.data)
            return on_device_again
        X = self.sparse.astype(np.float64)
        G = np.asarray((X @ X.T).toarray())
        if self.centered:
            mixed = np.outer(X @ self.center, self.scale)
            G += float(self.center @ self.center) * np.outer(self.scale, self.scale)
            G -= mixed + mixed.T
        return G

    def combined(self, C: Array) -> Array:
        """Return C P, dense."""
        if isinstance(self.sparse, DeviceCSR):
            C = like(C, self.sparse.data)
            image: Array = cast(self.sparse.transposed_times(C.T).T, np.float64)
        else:
            image = np.ascontiguousarray((self.sparse.T @ C.T).T, dtype=np.float64)
        if self.centered:
            image = image - like(np.outer(to_numpy(C) @ self.scale, self.center), image)
        return image


def whole_lines(n_vectors: int, n_lines: int = 1) -> int:
    """Return how many vectors fill whole cache lines, as products with sparse rows read them.

    >>> whole_lines(51), whole_lines(51, 2)
    (56, 64)
    """
    return -(-n_vectors // (LINE * n_lines)) * LINE * n_lines


def is_sparse(X: object) -> bool:
    """Return whether rows are sparse, on the host or on a device.

    >>> is_sparse(sp.csr_array(np.eye(2))), is_sparse(np.eye(2))
    (True, False)
    """
    return sp.issparse(X) or isinstance(X, DeviceCSR)


def csr(data: Array, indices: Array, indptr: Array, n_features: int) -> Any:
    """Return a CSR array of parts that are known to be right, which saves looking at them."""
    if on_device(data):
        return DeviceCSR(data, indices, indptr, n_features)
    rows = sp.csr_array((len(indptr) - 1, n_features), dtype=data.dtype)
    rows.data, rows.indices, rows.indptr = data, indices, indptr
    return rows


def scaled_rows(rows: sp.csr_array, factors: Array) -> Any:
    """Return a CSR matrix with every row multiplied by a factor of its own."""
    data = rows.data * like(np.repeat(factors, np.diff(rows.indptr)), rows.data)
    return csr(cast(data, precision(rows)), rows.indices, rows.indptr, rows.shape[1])


def nonzero_rows(rows: sp.csr_array) -> Any:
    """Return a CSR matrix without the rows that are all zero, stored zeros included."""
    if isinstance(rows, DeviceCSR):
        rows = _without_zeros(rows)
    elif not rows.data.all():
        rows = rows.copy()
        rows.eliminate_zeros()
    ends = rows.indptr[1:]
    filled = ends > rows.indptr[:-1]
    if filled.all():
        return rows
    indptr = np.concatenate([rows.indptr[:1], ends[filled]])
    return csr(rows.data, rows.indices, indptr, rows.shape[1])


def _without_zeros(rows: DeviceCSR) -> DeviceCSR:
    """Return the rows without stored zeros."""
    filled = rows.data != 0
    if bool(namespace(filled).all(filled)):
        return rows
    before = np.concatenate([[0], np.cumsum(to_numpy(filled))])
    return DeviceCSR(rows.data[filled], rows.indices[filled], before[rows.indptr], rows.shape[1])


def sparse_arrays(name: str, rows: Matrix) -> dict[str, Array]:
    """Return copies of the three arrays of a CSR matrix, named for a saved state."""
    rows = on_host(rows)
    return {f"{name}_{part}": getattr(rows, part).copy() for part in ("data", "indices", "indptr")}


def from_sparse_arrays(name: str, arrays: Mapping[str, Array], n_features: int) -> Any:
    """Build the CSR matrix that `sparse_arrays` came from."""
    data, indices, indptr = (arrays[f"{name}_{part}"] for part in ("data", "indices", "indptr"))
    rows = sp.csr_array((data, indices, indptr), shape=(len(indptr) - 1, n_features))
    # A file may say anything, and the compiled loops do not look.
    rows.check_format(full_check=True)
    return rows


def in_units(rows: Matrix, units: Array) -> Any:
    """Return rows, wherever they are, with columns divided by ``units``, in their precision.

    >>> in_units(np.array([[2.0, 3.0]], dtype=np.float32), np.array([2.0, 1.0]))
    array([[1., 3.]], dtype=float32)
    """
    dtype = precision(rows)
    if is_sparse(rows):
        rows = on_host(rows)
        data = (rows.data / units[rows.indices]).astype(dtype, copy=False)
        return csr(data, rows.indices, rows.indptr, rows.shape[1])
    return cast(rows / like(units, rows), dtype)
