"""Rows that wait until there are enough of them to be worth a matrix product."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

from sksketch._typing import Array
from sksketch.arrays.linalg import aligned_empty
from sksketch.arrays.namespace import (
    copied,
    empty,
    joined,
    like,
    on_device,
    precision,
    same_place,
    to_numpy,
)
from sksketch.arrays.rows import TILE_BYTES

SLACK_BYTES = 1 << 20

# Tiles stay in the fast caches, and have enough rows that the cost of a call does not count.
TILE_ROWS = (256, 1024)

# On a device a call costs much, and memory little.
DEVICE_TILE_ROWS, DEVICE_TILE_BYTES = 8192, 1 << 29


def tile_rows(row_bytes: int, device: bool = False) -> int:
    """Return how many dense rows are centered together.

    >>> tile_rows(80), tile_rows(4_000), tile_rows(8_000_000)
    (1024, 256, 1)
    """
    if device:
        return min(DEVICE_TILE_ROWS, max(1, DEVICE_TILE_BYTES // row_bytes))
    fewest, most = TILE_ROWS
    rows = max(fewest, min(most, TILE_BYTES // row_bytes))
    # A power of two, so that whole tiles fill the buffer of the sketch behind them.
    rows = 1 << (rows.bit_length() - 1)
    return min(rows, max(1, TILE_BYTES // row_bytes))


class RowBuffer:
    """A block of fixed capacity that hands itself out whenever it is full.

    What it hands out depends on the rows alone and not on how they were cut into
    blocks, which is why splitting a stream is invisible. It is where its rows are: on the
    host until rows from a device come, and from then on there.

    >>> buffer = RowBuffer(2).allocate(1, np.dtype(float))
    >>> [block.ravel().tolist() for block in buffer.fill(np.array([[1.0], [2.0], [3.0]]))]
    [[1.0, 2.0]]
    >>> buffer.rows
    array([[3.]])
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._storage: Array = np.empty((0, 0))
        self._scratch: Array = np.empty((0, 0), dtype=np.float32)
        self._used = 0

    def allocate(self, n_features: int, dtype: np.dtype[Any]) -> RowBuffer:
        """Learn the shape of the rows; the room for them is made when they come."""
        self._storage = np.empty((0, n_features), dtype=dtype)
        self._scratch = np.empty((0, n_features), dtype=np.float32)
        return self

    def _room(self, capacity: int = 0) -> Array:
        """Return the storage, made large enough if it is not."""
        n_features, dtype = self._storage.shape[1], precision(self._storage)
        capacity = max(capacity, self.capacity)
        # A wrapper may ask for an answer with a few rows more than the capacity.
        slack = max(1, SLACK_BYTES // (n_features * dtype.itemsize))
        if len(self._storage) < capacity + slack:
            held = self.rows
            shape = capacity + slack, n_features
            room: Any = aligned_empty
            if on_device(held):
                room = functools.partial(empty, X=held)
            self._storage = room(shape, dtype=dtype)
            self._storage[: len(held)] = held
        return self._storage

    def settle(self, rows: Array, capacity: int = 0) -> bool:
        """Move to the device of rows that are on one, with room for at least ``capacity`` there.

        Return whether that was a move.
        """
        moves = on_device(rows) and not same_place(rows, self._storage)
        if moves:
            self._storage = like(self.rows, rows)
            self.enlarge(capacity)
        return moves

    def enlarge(self, capacity: int) -> None:
        """Take at least ``capacity`` rows before the block is full."""
        self.capacity = max(self.capacity, capacity)

    def scratch(self, n_rows: int) -> Array:
        """Return room for ``n_rows`` rows in single precision.

        It is kept, since the pages of a new array of this size cost as much as filling it.
        """
        if len(self._scratch) < n_rows:
            shape = max(n_rows, len(self._storage)), self._scratch.shape[1]
            self._scratch = aligned_empty(shape, np.dtype(np.float32))
        return self._scratch[:n_rows]

    def __getstate__(self) -> tuple[int, Array]:
        """Return the waiting rows alone, without the room for more, for copies and pickles."""
        return self.capacity, copied(self.rows)

    def __setstate__(self, state: tuple[int, Array]) -> None:
        capacity, rows = state
        self.__init__(capacity)  # type: ignore[misc]
        self.allocate(rows.shape[1], precision(rows)).settle(rows)
        self.restore(rows)

    def saved(self) -> Array:
        """Return a copy of the waiting rows in numpy, for a saved state."""
        return np.array(to_numpy(self.rows))

    @property
    def rows(self) -> Array:
        """The rows that wait, as a view."""
        return self._storage[: self._used]

    @property
    def nbytes(self) -> int:
        """Bytes for rows once there are any."""
        return int(self.capacity * self._storage.shape[1] * precision(self._storage).itemsize)

    def fill(self, rows: Array) -> Iterator[Array]:
        """Copy rows in; yield the whole block each time it is full, then start over.

        The block is a view that the caller may change and must not keep. The caller may
        give the buffer another capacity while it holds the block.
        """
        start = 0
        self.settle(rows)
        rows = like(rows, self._storage)
        while start < len(rows):
            n_copied = min(self.capacity - self._used, len(rows) - start)
            source = rows[start : start + n_copied]
            alike = precision(source) == precision(self._storage)
            if n_copied == self.capacity and on_device(source) and alike:
                # A whole block need not be copied: only wrappers on the host write into it.
                start += n_copied
                yield source
                continue
            target = self._room()[self._used :][:n_copied]
            # A view of this very place, as `lend` gives it, is there already.
            if on_device(target) or target.ctypes.data != source.ctypes.data:
                target[...] = source
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
        end = self._used + len(extra)
        storage = self._room()
        if end > len(storage):
            both: Array = joined([self.rows, like(extra, self.rows)])
            return both
        storage[self._used : end] = like(extra, storage)
        return storage[:end]

    def lend(self, n_rows: int, capacity: int = 0) -> Array:
        """Return the room of the next rows, or of as many as fit; `fill` sees what is there.

        There may be room for more than the capacity, which is then to be used before `fill`.
        """
        end = min(self._used + n_rows, max(capacity, self.capacity))
        return self._room(max(capacity, self.capacity))[self._used : end]

    def settle_blocks(self, size: int) -> Iterator[Array]:
        """Hand out all whole blocks of ``size`` rows at once, if any, which is the capacity again.

        The rows behind them wait as the first ones.
        """
        n_whole = self._used // size * size
        if n_whole:
            yield self._storage[:n_whole]
            rest = self._used - n_whole
            self._storage[:rest] = self._storage[n_whole : self._used]
            self._used = rest
        self.capacity = size

    def resize(self, capacity: int) -> None:
        """Change the capacity of an empty buffer."""
        if capacity != self.capacity:
            assert self._used == 0
            self.capacity = capacity
            self._storage = self._storage[:0]
            self._scratch = self._scratch[:0]

    def restore(self, rows: Array) -> None:
        """Hold exactly these rows; more than the capacity if it was larger on a device."""
        self.enlarge(len(rows) + 1)
        if len(rows):
            self._room()[: len(rows)] = like(rows, self._storage)
        self._used = len(rows)

    def trim(self) -> None:
        """Give back the room for more rows; it is made again when they come."""
        rows = self.rows
        if on_device(rows) or len(rows) == len(self._storage):
            return
        self._storage = aligned_empty(rows.shape, precision(rows))
        self._storage[...] = rows
        self._scratch = np.empty((0, rows.shape[1]), dtype=np.float32)

    def clear(self) -> None:
        """Forget the rows that wait."""
        self._used = 0
