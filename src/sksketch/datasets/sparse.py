"""Sparse rows of random signs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from sksketch._typing import Array
from sksketch.arrays.random import stream
from sksketch.datasets.dense import TILE_ENTRIES
from sksketch.streams import Block, reblock

# Ghashami, Liberty and Phillips (2016), section 5: the head has this many columns for each
# non-zero of a row, and an entry falls there with this probability.
HEAD_COLUMNS, HEAD_PROBABILITY = 1.5, 0.9


class SparseSignRows:
    """Sparse rows of random signs, most of them in the first columns.

    A row has exactly ``nnz_per_row`` entries of 1 or -1. The place of an entry
    is in the head, the first ``1.5 * nnz_per_row`` columns, with probability
    0.9, and otherwise in the tail, uniform inside either; a place that is taken
    is drawn again. These are the synthetic data of Ghashami, Liberty and
    Phillips (2016), KDD, section 5. Rows are a function of seed, position,
    ``n_features`` and ``nnz_per_row``.

    Parameters
    ----------
    n_rows, n_features : int
        Shape of the matrix.
    nnz_per_row : int, default=100
        Entries of a row; the head they need must leave a tail.
    seed : int, default=0
        Chooses the rows.
    batch_rows : int, default=None
        Rows of a block; by default about half a million entries.

    See Also
    --------
    GaussianRows : Dense rows of a given spectrum.
    SparseFrequentDirections : The sketch whose paper has these rows.

    Examples
    --------
    >>> source = SparseSignRows(1000, 200, nnz_per_row=4, batch_rows=300)
    >>> [block.X.shape[0] for block in source.blocks()]
    [300, 300, 300, 100]
    >>> X = source.rows(0, 1000)
    >>> X.nnz, X[:, :6].nnz > 0.8 * X.nnz
    (4000, True)
    """

    def __init__(
        self,
        n_rows: int,
        n_features: int,
        *,
        nnz_per_row: int = 100,
        seed: int = 0,
        batch_rows: int | None = None,
    ) -> None:
        self._n_head = int(HEAD_COLUMNS * nnz_per_row)
        if n_rows < 0 or nnz_per_row < 1 or self._n_head >= n_features:
            raise ValueError(
                f"cannot draw {n_rows} rows with {nnz_per_row} of {n_features} entries; give "
                f"n_rows >= 0, at least one entry and more than {self._n_head} columns"
            )
        if batch_rows is not None and batch_rows < 1:
            raise ValueError(f"batch_rows is {batch_rows}; give at least 1")
        self.n_rows, self.n_features = n_rows, n_features
        self.nnz_per_row = nnz_per_row
        self.seed = seed
        self._tile_rows = max(1, TILE_ENTRIES // nnz_per_row)
        self.batch_rows = batch_rows or self._tile_rows

    def blocks(self) -> Iterator[Block]:
        """Yield the rows in order, starting over at each call."""
        return reblock(map(Block, self._tiles(0, self.n_rows)), self.batch_rows)

    def rows(self, start: int, stop: int) -> Any:
        """Return the rows from ``start`` to before ``stop`` as a CSR array."""
        stop = min(stop, self.n_rows)
        if not 0 <= start <= stop:
            raise ValueError(
                f"rows {start} to {stop} are not among {self.n_rows}; give 0 <= start <= stop"
            )
        empty = sp.csr_array((0, self.n_features))
        return sp.vstack([empty, *self._tiles(start, stop)], format="csr")

    def _tiles(self, start: int, stop: int) -> Iterator[Any]:
        for tile in range(start // self._tile_rows, -(-stop // self._tile_rows)):
            origin = tile * self._tile_rows
            yield self._tile(tile)[max(start - origin, 0) : stop - origin]

    def _tile(self, tile: int) -> Any:
        generator = stream(self.seed, "sparse rows", tile)
        shape = (self._tile_rows, self.nnz_per_row)
        places = self._draw(generator, self._tile_rows * self.nnz_per_row).reshape(shape)
        unfinished = np.arange(self._tile_rows)
        while len(unfinished):
            rows = np.sort(places[unfinished], axis=1)
            taken = np.zeros(rows.shape, dtype=bool)
            taken[:, 1:] = rows[:, 1:] == rows[:, :-1]
            rows[taken] = self._draw(generator, int(taken.sum()))
            places[unfinished] = rows
            unfinished = unfinished[taken.any(axis=1)]
        signs = generator.choice(np.array([-1.0, 1.0]), places.size)
        starts = np.arange(self._tile_rows + 1, dtype=places.dtype) * self.nnz_per_row
        return sp.csr_array((signs, places.ravel(), starts), (self._tile_rows, self.n_features))

    def _draw(self, generator: np.random.Generator, size: int) -> Array:
        """Return places of entries, drawn without a look at each other."""
        head = generator.integers(0, self._n_head, size, dtype=np.int32)
        tail = generator.integers(self._n_head, self.n_features, size, dtype=np.int32)
        return np.where(generator.random(size) < HEAD_PROBABILITY, head, tail)
