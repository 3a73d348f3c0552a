"""Rows that wait until there are enough of them to be worth a matrix product."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from sksketch._typing import Array
from sksketch.arrays.linalg import aligned_empty

SLACK_BYTES = 1 << 20


class RowBuffer:
    """A block of fixed capacity that hands itself out whenever it is full.

    What it hands out depends on the rows alone and not on how they were cut into
    blocks, which is why splitting a stream is invisible.

    >>> buffer = RowBuffer(2).allocate(1, np.dtype(float))
    >>> [block.ravel().tolist() for block in buffer.fill(np.array([[1.0], [2.0], [3.0]]))]
    [[1.0, 2.0]]
    >>> buffer.rows
    array([[3.]])
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._storage: Array | None = None
        self._scratch: Array | None = None
        self._used = 0

    def allocate(self, n_features: int, dtype: np.dtype[Any]) -> RowBuffer:
        """Make room for rows of that width, keeping those already held."""
        held = self.rows if self._storage is not None else None
        # A wrapper may ask for an answer with a few rows more than the capacity.
        slack = max(1, SLACK_BYTES // (n_features * dtype.itemsize))
        self._storage = aligned_empty((self.capacity + slack, n_features), dtype)
        self._scratch = None
        if held is not None:
            self._storage[: len(held)] = held
        return self

    def scratch(self, n_rows: int) -> Array:
        """Return room for so many rows in single precision.

        It is kept, since the pages of a new array of this size cost as much as filling it.
        """
        assert self._storage is not None
        if self._scratch is None or len(self._scratch) < n_rows:
            shape = max(n_rows, len(self._storage)), self._storage.shape[1]
            self._scratch = aligned_empty(shape, np.dtype(np.float32))
        return self._scratch[:n_rows]

    def __getstate__(self) -> tuple[int, Array | None]:
        """Return the waiting rows alone, without the room for more, for copies and pickles."""
        return self.capacity, None if self._storage is None else self.rows.copy()

    def __setstate__(self, state: tuple[int, Array | None]) -> None:
        capacity, rows = state
        self.__init__(capacity)  # type: ignore[misc]
        if rows is not None:
            self.allocate(rows.shape[1], rows.dtype).restore(rows)

    @property
    def rows(self) -> Array:
        """The rows that wait, as a view."""
        assert self._storage is not None
        return self._storage[: self._used]

    @property
    def nbytes(self) -> int:
        """Bytes held, whether in use or not."""
        return 0 if self._storage is None else self._storage.nbytes

    def fill(self, rows: Array) -> Iterator[Array]:
        """Copy rows in; yield the whole block each time it is full, then start over.

        The block is a view that the caller may change and must not keep. The caller may
        give the buffer another capacity while it holds the block.
        """
        start = 0
        while start < len(rows):
            assert self._storage is not None
            n_copied = min(self.capacity - self._used, len(rows) - start)
            self._storage[self._used : self._used + n_copied] = rows[start : start + n_copied]
            self._used += n_copied
            start += n_copied
            if self._used == self.capacity:
                block = self.rows
                self._used = 0
                yield block

    def with_extra(self, extra: Array | None) -> Array:
        """Return the waiting rows and ``extra`` behind them; the buffer stays as it is."""
        if extra is None:
            return self.rows
        assert self._storage is not None
        end = self._used + len(extra)
        if end > len(self._storage):
            return np.concatenate([self.rows, extra])
        self._storage[self._used : end] = extra
        return self._storage[:end]

    def resize(self, capacity: int) -> None:
        """Change the capacity of an empty buffer."""
        if capacity != self.capacity:
            assert self._storage is not None
            assert self._used == 0
            self.capacity = capacity
            self.allocate(self._storage.shape[1], self._storage.dtype)

    def restore(self, rows: Array) -> None:
        """Hold exactly these rows, fewer than the capacity."""
        assert self._storage is not None
        self._storage[: len(rows)] = rows
        self._used = len(rows)

    def clear(self) -> None:
        """Forget the rows that wait."""
        self._used = 0
