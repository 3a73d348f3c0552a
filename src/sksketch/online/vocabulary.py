"""The features that were met: a number for each column, in the order in which they came."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from sksketch._typing import Array
from sksketch.arrays.linalg import aligned_empty
from sksketch.online.kernels import online_kernels

# Entries of rows that are numbered and then learned from while they are still close.
BLOCK_ENTRIES = 1 << 16


def grown(array: Array, n_rows: int, fill: float = 0) -> Array:
    """Return the array with room for at least ``n_rows`` rows, or twice as many as before."""
    if n_rows <= len(array):
        return array
    shape = (max(n_rows, 2 * len(array)), *array.shape[1:])
    more = aligned_empty(shape, array.dtype) if array.ndim == 2 else np.empty(shape, array.dtype)
    more[: len(array)] = array
    more[len(array) :] = fill
    return more


class NumberedRows(NamedTuple):
    """Rows as numbered features and their values, row after row; no value is zero."""

    indptr: Array
    ids: Array
    values: Array

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.indptr) - 1


class Vocabulary:
    """Numbers columns as they are met, so that memory grows with the columns in use.

    Parameters
    ----------
    width : int
        Columns that rows have.
    constant : bool
        Whether every row has a first feature of value one, for the intercept.

    Examples
    --------
    >>> words = Vocabulary(1000, constant=False)
    >>> [rows.ids for _, rows in words.blocks(np.eye(2, 1000, 7))]
    [array([0, 1], dtype=int32)]
    >>> words.size
    2
    """

    def __init__(self, width: int, *, constant: bool) -> None:
        self.constant = constant
        # Zero pages, which take no memory before a column of theirs is met.
        self._index = np.zeros(width, np.int32)
        self.size = int(constant)
        self._room = np.empty(0, np.int32), np.empty(0)
        self._met = np.empty(0, np.int64)

    @property
    def width(self) -> int:
        """Columns that rows may have."""
        return len(self._index)

    def widen(self, width: int) -> None:
        """Let rows have more columns."""
        if width > self.width:
            index = np.zeros(max(width, 2 * self.width), np.int32)
            index[: self.width] = self._index
            self._index = index

    def blocks(self, X: Any) -> Iterator[tuple[slice, NumberedRows]]:
        """Give the rows with numbered features, a cache full at a time, good until the next.

        New columns get new numbers.
        """
        if sp.issparse(X):
            X = X.tocsr()
            if not X.has_canonical_format:
                X = X.copy()
                X.sum_duplicates()
            ends = X.indptr
        else:
            X = np.ascontiguousarray(X)
            ends = np.arange(X.shape[0] + 1) * X.shape[1]
        start, n_rows = 0, X.shape[0]
        while start < n_rows:
            stop = int(np.searchsorted(ends, ends[start] + BLOCK_ENTRIES, side="right")) - 1
            part = slice(start, min(max(stop, start + 1), n_rows))
            yield part, self._number(X, part, int(ends[part.stop] - ends[start]))
            start = part.stop

    def whole_blocks(self, X: Any) -> Iterator[tuple[slice, NumberedRows]]:
        """Give the rows with all columns, zeros included, where all have their numbers in order."""
        n_rows, constant = X.shape[0], int(self.constant)
        width = self.width + constant
        step = max(1, BLOCK_ENTRIES // width)
        for start in range(0, n_rows, step):
            part = slice(start, min(start + step, n_rows))
            n = part.stop - start
            values = np.ones((n, width))
            values[:, constant:] = X[part].toarray() if sp.issparse(X) else X[part]
            ids = np.tile(np.arange(width, dtype=np.int32), n)
            yield part, NumberedRows(np.arange(n + 1) * width, ids, values.ravel())

    def _number(self, X: Any, part: slice, n_entries: int) -> NumberedRows:
        n_rows = part.stop - part.start
        room = n_entries + self.constant * n_rows
        if room > len(self._room[1]):
            self._room = np.empty(room, np.int32), np.empty(room)
        rows = NumberedRows(np.empty(n_rows + 1, np.int64), *self._room)
        self._met = grown(self._met, self.size + n_entries)
        state = self._index, self._met, self.size, self.constant, *rows
        if sp.issparse(X):
            indptr = X.indptr[part.start : part.stop + 1]
            size = online_kernels().number_sparse(indptr, X.indices, X.data, *state)
        else:
            size = online_kernels().number_dense(X[part], *state)
        self.size = int(size)
        used = rows.indptr[-1]
        return NumberedRows(rows.indptr, rows.ids[:used], rows.values[:used])

    def forget(self, size: int, width: int) -> None:
        """Leave out all numbers but the first ones, and columns beyond a width."""
        self._index[self._met[size - self.constant : self.size - self.constant]] = 0
        self._index, self.size = self._index[:width], size

    def columns(self) -> Array:
        """Return the columns met, in the order of their numbers; the constant is not one."""
        return self._met[: self.size - self.constant]

    def known(self, row: Any) -> tuple[Array, Array]:
        """Return the numbers and values of the features of one row that were met."""
        row = sp.csr_array(row)
        met = self._index[row.indices]
        features, values = met[met > 0].astype(np.int64) - 1, row.data[met > 0]
        if self.constant:
            return np.append(0, features), np.append(1.0, values)
        return features, values

    def restore(self, columns: Array) -> None:
        """Give these columns the numbers that they had when `columns` listed them."""
        # New, and not filled with zeros: those would take the memory of columns nobody has met.
        self._index = np.zeros(self.width, np.int32)
        self._index[columns] = np.arange(len(columns), dtype=np.int32) + 1 + self.constant
        self._met = np.array(columns)
        self.size = len(columns) + self.constant

    def dense(self, weights: Array, width: int) -> tuple[Array, float]:
        """Lay the weights of all numbered features out by column; return the constant's apart."""
        coefficients = np.zeros(width)
        coefficients[self.columns()] = weights[self.constant :]
        return coefficients, float(weights[0]) if self.constant else 0.0

    def scores(self, X: Any, weights: list[Array]) -> Array:
        """Return X times each of the weights; columns that were not met count nothing."""
        columns = np.zeros((self.size + 1, len(weights)))
        columns[1:] = np.column_stack(weights)
        numbered = sp.csr_array(
            (X.data, self._index[X.indices], X.indptr), shape=(X.shape[0], self.size + 1)
        )
        return np.asarray(numbered @ columns + (columns[1] if self.constant else 0.0))
