"""The cross moment A'b of rows and targets, exact, around their means or not."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp

from sksketch._typing import Array
from sksketch.arrays.namespace import (
    in_order,
    like,
    on_device,
    precision,
    to_numpy,
    weighted_sum,
)
from sksketch.arrays.sparse import from_sparse_arrays, sparse_arrays
from sksketch.persistence import State
from sksketch.sketches.buffer import RowBuffer, tile_rows
from sksketch.sketches.sparse_buffer import SparseRowBuffer

SPARSE_TILE_ROWS = 4096
NO_LIMIT = 1 << 62


class Moments(NamedTuple):
    """What `CrossMoments` amounts to: sums over rows x with targets y, around the means.

    ``cross`` is the sum of (x - mean)(y - target_mean)', ``squares`` that of the squared targets.
    """

    weight: float
    mean: Array
    target_mean: Array
    cross: Array
    squares: Array


class CrossMoments:
    """Sums of products of rows and targets, mergeable and in O(n_features * n_targets) memory.

    Parameters
    ----------
    n_features, n_targets : int
        Columns of the rows and of the targets.
    centered : bool
        Whether products are taken around the means, which are known only at the end.

    Examples
    --------
    >>> moments = CrossMoments(2, 1, centered=True)
    >>> X, y = np.array([[1.0, 0.0], [3.0, 4.0]]), np.array([[1.0], [2.0]])
    >>> moments.update(X, y, np.ones(2)).read().cross
    array([[1.],
           [2.]])

    Notes
    -----
    Rows wait in tiles of fixed size, so that cutting a stream into other blocks changes no bit.
    A tile is added around the point c that `Centered` uses, which makes the sum exact without
    a subtraction of large numbers.
    """

    kind = "cross-moments"

    def __init__(self, n_features: int, n_targets: int, *, centered: bool) -> None:
        self.centered = centered
        zeros = np.zeros(n_features), np.zeros(n_targets), np.zeros((n_features, n_targets))
        self._sums = Moments(0.0, *zeros, np.zeros(n_targets))
        rows = tile_rows(8 * n_features)
        wide = n_targets + 1
        double = np.dtype(np.float64)
        self._dense = RowBuffer(rows).allocate(n_features, double)
        self._dense_targets = RowBuffer(rows).allocate(wide, double)
        self._sparse = SparseRowBuffer(SPARSE_TILE_ROWS, NO_LIMIT).allocate(n_features, double)
        self._sparse_targets = RowBuffer(SPARSE_TILE_ROWS).allocate(wide, double)

    def update(self, rows: Any, targets: Array, weights: Array) -> Self:
        """Add checked rows, dense or CSR, and their targets of shape (n_rows, n_targets)."""
        wide = np.column_stack([targets, weights])
        if sp.issparse(rows):
            self._flush_dense()
            blocks = (block for block, _ in self._sparse.fill(rows))
            for block, tail in zip(blocks, self._sparse_targets.fill(wide), strict=True):
                self._sums = self._with(block, tail)
        else:
            self._flush_sparse()
            size = tile_rows(8 * rows.shape[1], device=True)
            if self._dense.settle(rows, size):
                self._dense_targets.enlarge(size)
            self._add_dense(like(rows, self._dense.rows), wide)
        return self

    def _add_dense(self, rows: Array, wide: Array) -> None:
        size = self._dense.capacity
        start = 0
        while start < len(rows):
            waiting = len(self._dense.rows)
            end = start + size - waiting
            part, tail = rows[start:end], wide[start:end]
            if waiting or end > len(rows) or not in_order(part) or precision(part) != np.float64:
                tiles = self._dense.fill(part), self._dense_targets.fill(tail)
                for whole in zip(*tiles, strict=True):
                    self._sums = self._with(*whole)
            else:
                # A whole tile, laid out like ours, need not wait.
                self._sums = self._with(part, tail)
            start = end

    def _flush_dense(self) -> None:
        if not len(self._dense.rows):
            return
        self._sums = self._with(self._dense.rows, self._dense_targets.rows)
        self._dense.clear()
        self._dense_targets.clear()

    def _flush_sparse(self) -> None:
        if not len(self._sparse):
            return
        self._sums = self._with(self._sparse.rows, self._sparse_targets.rows)
        self._sparse.clear()
        self._sparse_targets.clear()

    def compact(self) -> None:
        """Add the waiting rows to the sums."""
        self._flush_dense()
        self._flush_sparse()

    def _with(self, rows: Any, wide: Array) -> Moments:
        """Return the sums after a tile of rows as well."""
        sums = self._sums
        targets, weights = wide[:, :-1], wide[:, -1]
        gained = float(weights.sum())
        if gained == 0.0:
            return sums
        total = sums.weight + gained
        step = weighted_sum(rows, weights) / gained - sums.mean
        target_step = weights @ targets / gained - sums.target_mean
        part = 1.0 - np.sqrt(sums.weight / total)
        off = targets - (sums.target_mean + part * target_step if self.centered else 0.0)
        weighted = off * weights[:, None]
        cross = to_numpy(rows.T @ like(weighted, rows)) if on_device(rows) else rows.T @ weighted
        if self.centered:
            # What is taken off is small: the targets are around their mean already.
            cross -= np.outer(sums.mean + part * step, weighted.sum(axis=0))
        return Moments(
            total,
            sums.mean + gained / total * step,
            sums.target_mean + gained / total * target_step,
            sums.cross + cross,
            sums.squares + np.vecdot(off.T, weighted.T),
        )

    def read(self) -> Moments:
        """Return the sums with the waiting rows; changes nothing."""
        if len(self._sparse):
            return self._with(self._sparse.rows, self._sparse_targets.rows)
        return self._with(self._dense.rows, self._dense_targets.rows)

    def merge(self, other: CrossMoments) -> Self:
        """Add what another one has seen, which is left as it was."""
        mine, theirs = self.read(), other.read()
        for buffer in (self._dense, self._dense_targets, self._sparse, self._sparse_targets):
            buffer.clear()
        if mine.weight == 0.0 or theirs.weight == 0.0:
            self._sums = theirs if mine.weight == 0.0 else mine
            return self
        total = mine.weight + theirs.weight
        gap, target_gap = theirs.mean - mine.mean, theirs.target_mean - mine.target_mean
        between = mine.weight * theirs.weight / total if self.centered else 0.0
        self._sums = Moments(
            total,
            mine.mean + theirs.weight / total * gap,
            mine.target_mean + theirs.weight / total * target_gap,
            mine.cross + theirs.cross + between * np.outer(gap, target_gap),
            mine.squares + theirs.squares + between * target_gap**2,
        )
        return self

    def state(self) -> State:
        """Return the sums and the waiting rows, as plain data."""
        sums = self._sums
        meta = {"centered": self.centered, "weight": sums.weight}
        arrays = {name: value.copy() for name, value in sums._asdict().items() if name != "weight"}
        arrays["dense"] = self._dense.saved()
        arrays["dense_targets"] = self._dense_targets.saved()
        arrays["sparse_targets"] = self._sparse_targets.rows.copy()
        return State(self.kind, 1, meta, arrays | sparse_arrays("sparse", self._sparse.rows))

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Build what `state` was taken from."""
        arrays, meta = state.arrays, state.meta
        n_features, n_targets = arrays["cross"].shape
        moments = cls(n_features, n_targets, centered=bool(meta["centered"]))
        sums = {name: arrays[name] for name in Moments._fields if name != "weight"}
        moments._sums = Moments(weight=float(meta["weight"]), **sums)  # type: ignore[arg-type]
        moments._dense.restore(arrays["dense"])
        moments._dense_targets.restore(arrays["dense_targets"])
        moments._sparse.restore(from_sparse_arrays("sparse", arrays, n_features))
        moments._sparse_targets.restore(arrays["sparse_targets"])
        return moments
