"""Sparse rows that wait until there are enough of them for a shrink."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from sksketch._typing import Array, Matrix
from sksketch.arrays.namespace import empty, like, on_device, precision, same_place
from sksketch.arrays.sparse import csr

FIRST_ENTRIES, FIRST_ROWS = 1 << 12, 1 << 8


class SparseRowBuffer:
    """A block of CSR rows that hands itself out whenever it is full.

    It is full when it has ``max_rows`` rows or at least ``max_entries`` stored entries, which
    depends on the rows alone and not on how they were cut into blocks. Its arrays grow as
    rows come, by doubling.

    >>> import scipy.sparse as sp
    >>> buffer = SparseRowBuffer(2, 100).allocate(3, np.dtype(float))
    >>> [block.shape for block, weights in buffer.fill(sp.csr_array(np.eye(3)))]
    [(2, 3)]
    >>> buffer.rows.toarray()
    array([[0., 0., 1.]])
    """

    def __init__(self, max_rows: int, max_entries: int) -> None:
        self.max_rows, self.max_entries = max_rows, max_entries
        self._n_features = 0
        self._used = 0
        self._indptr = np.zeros(1, dtype=np.int64)
        self._indices: Array = np.zeros(0, dtype=np.int32)
        self._data: Array = np.zeros(0)
        self._weights: Array = np.zeros(0)

    def allocate(self, n_features: int, dtype: np.dtype[Any]) -> SparseRowBuffer:
        """Learn the shape of the rows."""
        self._n_features = n_features
        index = np.int32 if n_features <= np.iinfo(np.int32).max else np.int64
        self._indices, self._data = self._indices.astype(index), self._data.astype(dtype)
        return self

    def __len__(self) -> int:
        return self._used

    def __getstate__(self) -> tuple[int, int, Any, Array]:
        """Return the waiting rows alone, without the room for more, for copies and pickles."""
        return self.max_rows, self.max_entries, self.rows.copy(), self.weights.copy()

    def __setstate__(self, state: tuple[int, int, Any, Array]) -> None:
        max_rows, max_entries, rows, weights = state
        self.__init__(max_rows, max_entries)  # type: ignore[misc]
        self.allocate(rows.shape[1], rows.dtype)._settle(rows.data)
        self.restore(rows, weights)

    @property
    def nnz(self) -> int:
        """Stored entries of the rows that wait."""
        return int(self._indptr[self._used])

    @property
    def rows(self) -> Any:
        """The rows that wait, as a CSR array that shares the buffer's memory."""
        indptr = self._indptr[: self._used + 1]
        end = int(indptr[-1])
        return csr(self._data[:end], self._indices[:end], indptr, self._n_features)

    @property
    def weights(self) -> Array:
        """A number that came with each row, one if none did."""
        return self._weights[: self._used]

    @property
    def nbytes(self) -> int:
        """Bytes held, whether in use or not."""
        arrays = self._data, self._indices, self._indptr, self._weights
        return sum(len(array) * precision(array).itemsize for array in arrays)

    def fill(self, rows: sp.csr_array, weights: Array | None = None) -> Iterator[tuple[Any, Array]]:
        """Copy CSR rows in; yield the whole block each time it is full, then start over.

        The block and its weights are views that the caller must not keep.
        """
        start, n_rows = 0, rows.shape[0]
        weights = np.ones(n_rows) if weights is None else weights
        while start < n_rows:
            self._settle(rows.data)
            end = self._end_of_block(rows.indptr, start)
            self._append(rows, weights, start, end)
            start = end
            if self._used == self.max_rows or self._indptr[self._used] >= self.max_entries:
                block = self.rows, self.weights
                self._used = 0
                yield block

    def _settle(self, data: sp.csr_array) -> None:
        """Move to the device of entries that are on one."""
        if on_device(data) and not same_place(data, self._data):
            self._data, self._indices = like(self._data, data), like(self._indices, data)

    def _end_of_block(self, indptr: Array, start: int) -> int:
        """Return the row of the input after which the block is full, or its end."""
        room = self.max_entries - int(self._indptr[self._used]) + int(indptr[start])
        by_entries = int(np.searchsorted(indptr, room, side="left"))
        by_rows = start + self.max_rows - self._used
        return min(max(by_entries, start + 1), by_rows, len(indptr) - 1)

    def _append(self, rows: sp.csr_array, weights: Array, start: int, end: int) -> None:
        first, last = int(rows.indptr[start]), int(rows.indptr[end])
        at = int(self._indptr[self._used])
        n_entries, n_rows = last - first, end - start
        self._data = _with_room(self._data, at, at + n_entries, FIRST_ENTRIES)
        self._indices = _with_room(self._indices, at, at + n_entries, FIRST_ENTRIES)
        self._indptr = _with_room(self._indptr, self._used + 1, self._used + n_rows + 1, FIRST_ROWS)
        self._weights = _with_room(self._weights, self._used, self._used + n_rows, FIRST_ROWS)
        self._data[at : at + n_entries] = like(rows.data[first:last], self._data)
        self._indices[at : at + n_entries] = like(rows.indices[first:last], self._indices)
        new = slice(self._used + 1, self._used + n_rows + 1)
        np.add(rows.indptr[start + 1 : end + 1], at - first, out=self._indptr[new])
        self._weights[self._used : self._used + n_rows] = weights[start:end]
        self._used += n_rows

    def restore(self, rows: Matrix, weights: Array | None = None) -> None:
        """Hold exactly these rows, fewer than would fill it."""
        self.clear()
        n_rows = rows.shape[0]
        self._append(rows, np.ones(n_rows) if weights is None else weights, 0, n_rows)

    def clear(self) -> None:
        """Forget the rows that wait."""
        self._used = 0


def _with_room(array: Array, used: int, needed: int, fewest: int) -> Array:
    """Return ``array``, or a larger copy of its used part if it is too short."""
    if needed <= len(array):
        return array
    grown: Array = empty(max(needed, 2 * len(array), fewest), array, precision(array))
    grown[:used] = array[:used]
    return grown
