"""Blocks on their way to a device: the next one is copied while one is worked on."""

from __future__ import annotations

import warnings
from collections.abc import Generator, Iterator
from contextlib import nullcontext
from types import ModuleType
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from sksketch._typing import Array, Matrix
from sksketch.arrays.namespace import find_device
from sksketch.streams.blocks import Block, joined_weights
from sksketch.streams.prefetch import read_ahead

# Bytes that are gathered on the device: every block costs it a few waits.
DEVICE_BLOCK_BYTES = 256 << 20
# A shrink takes as long as this number of copies, which run meanwhile.
BLOCKS_AHEAD = 6


class Tensor(Protocol):
    """An array that can be copied from the host while the device works."""

    def copy_(self, source: Tensor, non_blocking: bool) -> Tensor:
        """Take the numbers of another one."""

    def is_pinned(self) -> bool:
        """Return whether it is in memory that the device can read by itself."""

    def pin_memory(self) -> Tensor:
        """Return a copy in such memory."""


class Stream(Protocol):
    """A queue of copies."""

    def record_event(self) -> object:
        """Return what marks the end of the copies so far."""


def device_blocks(blocks: Iterator[Block], device: str) -> Iterator[Block]:
    """Yield the rows of the host on a device of torch, in larger blocks.

    Parameters
    ----------
    blocks : iterator of Block
        Dense rows of numpy, CSR rows, or tensors.
    device : str
        A name that torch knows: "cuda", "cuda:1", "cpu".

    Notes
    -----
    Copies run from pinned memory on a stream of their own, so that they and the work overlap.
    Rows that are in pinned memory already are read from there, others by way of it.
    """
    library, place = find_device(device)
    copies = library.cuda.Stream(place) if place.type == "cuda" else None
    for X, y, weights, done in read_ahead(_copied(library, blocks, place, copies), BLOCKS_AHEAD):
        if done is not None:
            # The work waits for the copy, and the memory for the end of the work.
            current = library.cuda.current_stream(place)
            current.wait_event(done)
            for part in _parts(X):
                part.record_stream(current)
        yield Block(X, y, weights)


def _copied(
    library: ModuleType,
    blocks: Iterator[Block],
    place: object,
    copies: Stream | None,
) -> Generator[tuple[Any, Any, Any, Any], None, None]:
    """Start one copy after the other, and give what marks the end of those that make a block."""
    move = _Mover(library, place, copies)
    # This runs in a thread of its own, so its stream is set once.
    with nullcontext() if copies is None else library.cuda.stream(copies):
        for block in blocks:
            if sp.issparse(block.X):
                yield from move.gathered()
                yield move.sparse(block.X), block.y, block.sample_weight, move.mark()
                continue
            while block.X.shape[0]:
                block = block.rows(move.take(block))
                if move.full:
                    yield from move.gathered()
        yield from move.gathered()


class _Mover:
    """Copies rows to a device, one part of rows behind the other."""

    def __init__(self, library: ModuleType, place: object, copies: Stream | None) -> None:
        self._library, self._place, self._copies = library, place, copies
        self._room: Any = None
        self._used = 0
        self._targets: list[Any] = []
        self._weights: list[tuple[int, Any]] = []

    @property
    def full(self) -> bool:
        return self._used == len(self._room)

    def mark(self) -> Any:
        """Return what is passed when all copies so far are done."""
        return None if self._copies is None else self._copies.record_event()

    def take(self, block: Block) -> int:
        """Start copying as many rows as there is room for, and say how many that is."""
        X = block.X
        part = X if isinstance(X, self._library.Tensor) else self._library.from_numpy(_writable(X))
        if self._room is None:
            n_rows = max(1, DEVICE_BLOCK_BYTES // (part.shape[1] * part.element_size()))
            shape = n_rows, part.shape[1]
            self._room = self._library.empty(shape, dtype=part.dtype, device=self._place)
        n_taken = min(len(self._room) - self._used, len(part))
        self._copy(self._room[self._used : self._used + n_taken], part[:n_taken])
        self._used += n_taken
        _, y = taken = block.rows(0, n_taken)
        if y is not None:
            self._targets.append(y)
        self._weights.append((n_taken, taken.sample_weight))
        return n_taken

    def _copy(self, target: Tensor, part: Tensor) -> None:
        target.copy_(part if self._copies is None else _pinned(part), non_blocking=True)

    def gathered(self) -> Iterator[tuple[Any, Any, Any, Any]]:
        """Yield the rows so far as a block, if there are any."""
        if self._used:
            y = np.concatenate(self._targets) if self._targets else None
            weights = joined_weights(self._weights)
            room, self._room = self._room[: self._used], None
            self._used, self._targets, self._weights = 0, [], []
            yield room, y, weights, self.mark()

    def sparse(self, X: Matrix) -> Any:
        """Return CSR rows as a sparse tensor."""
        rows = sp.csr_array(X)
        parts = rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.data
        tensors = []
        with warnings.catch_warnings():
            # It says that sparse tensors are in beta.
            warnings.simplefilter("ignore", UserWarning)
            for part in parts:
                held = self._library.from_numpy(_writable(part))
                tensors.append(self._library.empty_like(held, device=self._place))
                self._copy(tensors[-1], held)
            return self._library.sparse_csr_tensor(*tensors, size=rows.shape)


def _pinned(part: Tensor) -> Any:
    return part if part.is_pinned() else part.pin_memory()


def _writable(array: Array) -> Any:
    """Return an array that torch takes without a warning."""
    plain = np.ascontiguousarray(array)
    return plain if plain.flags.writeable else plain.copy()


def _parts(X: Any) -> list[Any]:
    """Return the tensors that rows consist of."""
    if "sparse" not in str(X.layout):
        return [X]
    return [X.crow_indices(), X.col_indices(), X.values()]
