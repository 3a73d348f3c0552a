"""Sparse rows on a device: the little of a CSR matrix that sketches need there."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from sksketch._typing import Array, Matrix
from sksketch.arrays.namespace import (
    cast,
    copied,
    csr_matrix_of,
    csr_parts_of,
    like,
    namespace,
    precision,
    to_numpy,
)


class DeviceCSR:
    """CSR rows whose entries are on a device; where each row starts is known to the host.

    Parameters
    ----------
    data, indices : arrays of shape (n_entries,)
        On the device; the columns of a row ascend.
    indptr : numpy array of shape (n_rows + 1,)
        Where each row starts.
    n_features : int
    """

    def __init__(self, data: Array, indices: Array, indptr: Array, n_features: int) -> None:
        self.data, self.indices = data, indices
        self.indptr = np.asarray(indptr, dtype=np.int64)
        self.shape = len(self.indptr) - 1, n_features
        self.ndim = 2
        self._products: dict[str, Any] = {}

    @property
    def nnz(self) -> int:
        """Stored entries."""
        return int(self.indptr[-1])

    @property
    def dtype(self) -> np.dtype[Any]:
        """Precision of the entries, as numpy calls it."""
        return precision(self.data)

    def astype(self, dtype: npt.DTypeLike, copy: bool = True) -> DeviceCSR:
        """Return the rows in another precision."""
        return self if self.dtype == dtype and not copy else self.with_data(cast(self.data, dtype))

    def copy(self) -> DeviceCSR:
        """Return an independent copy."""
        return DeviceCSR(copied(self.data), copied(self.indices), self.indptr, self.shape[1])

    def with_data(self, data: Array) -> DeviceCSR:
        """Return rows with other entries at the same places."""
        return DeviceCSR(data, self.indices, self.indptr, self.shape[1])

    def on_host(self) -> Any:
        """Return the rows as a CSR array of scipy."""
        parts = to_numpy(self.data), to_numpy(self.indices), self.indptr
        return sp.csr_array(parts, shape=self.shape)

    def times(self, W: Array) -> Any:
        """Return X W for dense columns W on the device, in their precision."""
        return self._matrix(precision(W), transposed=False) @ W

    def transposed_times(self, W: Array) -> Any:
        """Return X'W."""
        return self._matrix(precision(W), transposed=True) @ W

    def _matrix(self, dtype: np.dtype[Any], transposed: bool) -> Any:
        name = f"{dtype} {transposed}"
        if name not in self._products:
            data, indices, starts, shape = self._by_columns if transposed else self._by_rows
            self._products[name] = csr_matrix_of(cast(data, dtype), indices, starts, shape)
        return self._products[name]

    @property
    def _by_rows(self) -> tuple[Any, Any, Any, tuple[int, int]]:
        starts = like(self.indptr, self.indices)
        return self.data, self.indices, starts, self.shape

    @cached_property
    def _by_columns(self) -> tuple[Any, Any, Any, tuple[int, int]]:
        """The transpose in the same form; libraries multiply it slowly or not at all otherwise."""
        xp = namespace(self.data)
        n_rows, n_features = self.shape
        order = xp.argsort(self.indices, stable=True)
        row_of = like(np.repeat(np.arange(n_rows), np.diff(self.indptr)), self.indices)
        columns = like(np.arange(n_features + 1), self.indices, precision(self.indices))
        starts = xp.searchsorted(self.indices[order], columns)
        return self.data[order], row_of[order], starts, (n_features, n_rows)

    def squared_norms(self) -> Array:
        """Return the squared norm of every row in float64, in numpy."""
        squares = cast(self.data, np.float64) ** 2
        ones = like(np.ones((self.shape[1], 1)), self.data)
        return to_numpy(self.with_data(squares).times(ones))[:, 0]


def on_host(rows: Matrix) -> Any:
    """Return sparse rows of a device as a CSR array of scipy, and everything else as it is."""
    return rows.on_host() if isinstance(rows, DeviceCSR) else rows


def is_sparse_on_device(X: object) -> bool:
    """Return whether ``X`` is a sparse tensor of torch or a sparse matrix of cupy.

    >>> is_sparse_on_device(sp.csr_array(np.eye(2)))
    False
    """
    return csr_parts_of(X) is not None


def as_device_csr(X: Matrix) -> DeviceCSR:
    """Return sparse rows of torch or cupy, of any layout, in the form used here."""
    parts = csr_parts_of(X)
    assert parts is not None
    return DeviceCSR(*parts(), int(X.shape[1]))
