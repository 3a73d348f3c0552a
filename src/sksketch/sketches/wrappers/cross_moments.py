"""The cross moment A'b of rows and targets, around their means or not, and its rounding."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from sksketch._typing import Array, Matrix
from sksketch.arrays.namespace import (
    in_order,
    like,
    on_device,
    precision,
    to_numpy,
)
from sksketch.arrays.parallel import in_parallel, spans
from sksketch.arrays.rounding import UNDERFLOW, gamma, unit_roundoff
from sksketch.arrays.sparse import from_sparse_arrays, sparse_arrays
from sksketch.sketches.buffer import RowBuffer, tile_rows
from sksketch.sketches.forgetting import age_weights
from sksketch.sketches.sparse_buffer import SparseRowBuffer
from sksketch.sketches.wrappers.moment_sums import Moments, Sums, added, gain, moved, plus
from sksketch.state.persistence import State

SPARSE_TILE_ROWS = 4096
# Tiles of a centered sketch that are summed at once: there is little to do for each row.
TILES = 4
NO_LIMIT = 1 << 62

# The origin is near the mean of this many rows.
ORIGIN_ROWS = 256

# Columns within this many standard deviations of zero are as well off around zero.
NEAR = 8.0

# Fields of the sums that are sums over rows, and roundings of a power and its product.
LINEAR_SUMS = (
    *("weight", "energy", "row_sum", "target_sum", "cross", "squares", "target_energy", "shifts"),
)
AGE_ROUNDINGS = 40

# Fields of the sums that are numbers.
SCALARS = ("weight", "n_rows", "depth", "energy")


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

    Sums are of x - p and y - q, where p and q are numbers of one of the first rows, near their
    mean, or zero where zero is near; for sparse rows p is zero. A difference is rounded
    relative to itself, so rows far from zero lose nothing. With s, t the sums of x - p and y - q,
    S that of their products and W the weight, the cross moment is S - s t' / W.

    *Rounding.* A term of S meets one rounding in each factor, one in the weight, and at most
    ``depth`` in additions: the rows of the largest tile and one for each tile. With g = gamma(depth
    and a few more) the error of S is entry by entry at most g times the sum of w |x - p| |y - q|,
    so by Cauchy and Schwarz a column of it is at most ``g sqrt(E F)`` long, with E and F the sums
    of w |x - p|^2 and w (y - q)^2. In the same way s is off by ``g sqrt(W E)`` and t by
    ``g sqrt(W F)``. Together, the column of the cross moment is off by at most::

        g (sqrt(E) + |s| / sqrt(W)) (sqrt(F) + |t| / sqrt(W))

    Moving a sum to another origin at a distance D multiplies nothing but adds sqrt(W) D to
    sqrt(E), for the terms it adds up are those of |x - p| + D.

    All of this holds for every column of the rows by itself. There sqrt(E) is at most the length
    of the column around its mean, sqrt(W) times the distance of that from the origin, and what
    the column was moved by, twice (`Moments.cross_errors`).
    """

    kind = "cross-moments"
    version = 2

    def __init__(
        self, n_features: int, n_targets: int, *, centered: bool, decay: float = 1.0
    ) -> None:
        self.centered, self.decay = centered, decay
        d, t = n_features, n_targets
        shapes = d, t, d, t, (d, t), t, t, d
        self._sums = Sums(0.0, 0, 0, 0.0, *(np.zeros(shape) for shape in shapes))
        rows = TILES * tile_rows(8 * n_features)
        wide = n_targets + 1
        double = np.dtype(np.float64)
        self._dense = RowBuffer(rows).allocate(n_features, double)
        self._dense_targets = RowBuffer(rows).allocate(wide, double)
        self._sparse = SparseRowBuffer(SPARSE_TILE_ROWS, NO_LIMIT).allocate(n_features, double)
        self._sparse_targets = RowBuffer(SPARSE_TILE_ROWS).allocate(wide, double)

    def update(self, rows: Matrix, targets: Array, weights: Array) -> Self:
        """Add checked rows, dense or CSR, and their targets of shape (n_rows, n_targets)."""
        wide = np.column_stack([targets, weights])
        if sp.issparse(rows):
            self._flush_dense()
            blocks = (block for block, _ in self._sparse.fill(rows))
            for block, tail in zip(blocks, self._sparse_targets.fill(wide), strict=True):
                self._sums = self._with(block, tail)
        else:
            self._flush_sparse()
            size = TILES * tile_rows(8 * rows.shape[1], device=True)
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
                    self._sums = self._with(*whole, out=whole[0])
            elif on_device(part) or self._sums.weight == 0.0 or self.decay < 1.0:
                # A whole tile, laid out like ours, need not wait.
                self._sums = self._with(part, tail)
            else:
                end = start + (len(rows) - start) // size * size
                self._add_tiles(rows[start:end], wide[start:end], size)
            start = end

    def _add_tiles(self, rows: Array, wide: Array, size: int) -> None:
        """Add whole tiles, which are summed at the same time."""
        tiles = spans(len(rows), size)
        gains = in_parallel(lambda i: gain(self._sums, rows[tiles[i]], wide[tiles[i]]), len(tiles))
        for of_tile in gains:
            self._sums = plus(self._sums, of_tile)

    def _flush_dense(self) -> None:
        if not len(self._dense.rows):
            return
        rows = self._dense.rows
        self._sums = self._with(rows, self._dense_targets.rows, out=rows)
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

    def _with(self, rows: Matrix, wide: Array, out: Array | None = None) -> Sums:
        """Return the sums after a tile of rows as well; ``out`` is room for dense ones."""
        sums, weights = self._sums, wide[:, -1]
        if self.decay < 1.0 and len(wide):
            sums, weights = self._aged(len(wide)), weights * age_weights(len(wide), self.decay)
            wide = np.column_stack([wide[:, :-1], weights])
        if self.centered and sums.weight == 0.0 and weights.any():
            origin, target_origin = _origins(rows, wide)
            sums = sums._replace(origin=origin, target_origin=target_origin)
        of_tile = gain(sums, rows, wide, out)
        if of_tile is not None and self.decay < 1.0:
            of_tile = of_tile._replace(depth=of_tile.depth + AGE_ROUNDINGS)
        return plus(sums, of_tile)

    def _aged(self, n_rows: int) -> Sums:
        """Return the sums after more rows have come."""
        sums, factor = self._sums, self.decay**n_rows
        aged = {name: getattr(sums, name) * factor for name in LINEAR_SUMS}
        return sums._replace(depth=sums.depth + AGE_ROUNDINGS, **aged)

    def _total(self) -> Sums:
        """Return the sums with the waiting rows."""
        if len(self._sparse):
            return self._with(self._sparse.rows, self._sparse_targets.rows)
        return self._with(self._dense.rows, self._dense_targets.rows)

    def read(self, entry_error: float = 0.0) -> Moments:
        """Return the moments with the waiting rows; changes nothing.

        Entries of the rows may be off by ``entry_error`` of themselves.
        """
        sums = self._total()
        W = sums.weight
        mean, target_mean = sums.row_sum / (W or 1.0), sums.target_sum / (W or 1.0)
        cross, squares = sums.cross, sums.squares
        # What the means take off has errors of its own.
        length, lengths = 0.0, np.zeros_like(squares)
        if self.centered:
            cross = cross - np.outer(mean, sums.target_sum)
            squares = np.maximum(squares - target_mean * sums.target_sum, 0.0)
            length, lengths = math.sqrt(W) * _norm(mean), math.sqrt(W) * np.abs(target_mean)
        g, u = gamma(sums.depth + 12), unit_roundoff()
        root, roots = math.sqrt(sums.energy), np.sqrt(sums.target_energy)
        away, target_away = sums.origin + mean, sums.target_origin + target_mean
        underflow = sums.n_rows * math.sqrt(len(mean)) * UNDERFLOW * (roots > 0.0)
        per_row = 1.0 / math.sqrt(W or 1.0)
        # Entries are as far from zero as the origin, and as rows from that.
        far = np.abs(sums.origin) if entry_error else 0.0
        entries = entry_error * (root + math.sqrt(W) * _norm(sums.origin)) * (1.0 + 1e-9)
        return Moments(
            W,
            away,
            target_away,
            cross,
            squares,
            sums.n_rows,
            g * (root * per_row + _norm(mean)) + u * _norm(away) + entries * per_row,
            g * (roots * per_row + np.abs(target_mean)) + u * np.abs(target_away),
            (g * (root + length) + entries) * (roots + lengths) + underflow,
            g * (roots + lengths) ** 2 + underflow,
            g + entry_error,
            2.0 * (math.sqrt(W) * (np.abs(mean) + far) + np.sqrt(sums.shifts)),
            roots + lengths,
        )

    def merge(self, other: CrossMoments) -> Self:
        """Add what another one has seen, which is left as it was."""
        mine, theirs = self._total(), other._total()
        for buffer in (self._dense, self._dense_targets, self._sparse, self._sparse_targets):
            buffer.clear()
        if mine.weight == 0.0 or theirs.weight == 0.0:
            self._sums = theirs if mine.weight == 0.0 else mine
            return self
        # The origin of the heavier part is nearer to the mean of both.
        kept, lighter = (mine, theirs) if mine.weight >= theirs.weight else (theirs, mine)
        other_sums = moved(lighter, kept.origin, kept.target_origin)
        depth = max(kept.depth, other_sums.depth) + 1
        self._sums = added(kept, other_sums)._replace(depth=depth)
        return self

    def state(self) -> State:
        """Return the sums and the waiting rows, as plain data."""
        sums = self._sums._asdict()
        meta = {"centered": self.centered} | {name: sums.pop(name) for name in SCALARS}
        meta |= {"decay": self.decay} if self.decay < 1.0 else {}
        arrays = {name: value.copy() for name, value in sums.items()}
        arrays["dense"] = self._dense.saved()
        arrays["dense_targets"] = self._dense_targets.saved()
        arrays["sparse_targets"] = self._sparse_targets.rows.copy()
        state = State(self.kind, self.version, meta, arrays)
        return state.with_more({}, sparse_arrays("sparse", self._sparse.rows))

    @classmethod
    def from_state(cls, state: State, *, squared_norm: float = 0.0, n_rows: int = 0) -> Self:
        """Build what `state` was taken from.

        States of version 1 have no bounds. What rounding did to them is estimated from
        ``squared_norm``, that of the rows around their mean, and their number ``n_rows``.
        """
        state.require(cls.version)
        arrays, meta = state.arrays, state.meta
        n_features, n_targets = state.array("cross", None, None).shape
        decay: Any = meta.get("decay", 1.0)
        moments = cls(n_features, n_targets, centered=bool(meta["centered"]), decay=decay)
        if state.version < 2:
            moments._sums = _without_bounds(state, moments.centered, squared_norm, n_rows)
        else:
            empty = moments._sums._asdict()
            numbers = {name: type(empty.pop(name))(meta[name]) for name in SCALARS}
            # The first states of this version did not say how far sums had been moved.
            known = {"shifts": np.full(n_features, math.inf)} | dict(arrays)
            whole = replace(state, arrays=known)
            saved = {name: whole.array(name, *value.shape) for name, value in empty.items()}
            moments._sums = Sums(**numbers, **saved)  # type: ignore[arg-type]
        moments._dense.restore(state.array("dense", None, n_features))
        moments._dense_targets.restore(state.array("dense_targets", None, n_targets + 1))
        moments._sparse.restore(from_sparse_arrays("sparse", arrays, n_features))
        moments._sparse_targets.restore(state.array("sparse_targets", None, n_targets + 1))
        return moments


def _origins(rows: Matrix, wide: Array) -> tuple[Array, Array]:
    """Return a point near the first rows and one near their targets, exact numbers of one row."""
    first = int(np.argmax(wide[:, -1] > 0.0))
    part = slice(first, first + ORIGIN_ROWS)
    values, weights = wide[part, :-1], wide[part, -1]
    if not sp.issparse(rows):
        values = np.hstack([to_numpy(rows[part]), values])
    share = weights / weights.sum()
    with np.errstate(over="ignore", invalid="ignore"):
        off = values - values[0]
        mean = share @ off
        off = (off - mean) ** 2
        nearest = int(np.argmin(np.where(weights > 0.0, off.sum(axis=1), np.inf)))
        # Zero does nearly as well unless it is far, and costs no subtraction.
        near = (values[0] + mean) ** 2 <= NEAR**2 * (share @ off)
        point = np.where(near, 0.0, values[nearest])
    n_targets = wide.shape[1] - 1
    if sp.issparse(rows):
        return np.zeros(rows.shape[1]), point
    return point[:-n_targets], point[-n_targets:]


def _without_bounds(state: State, centered: bool, squared_norm: float, n_rows: int) -> Sums:
    """Return the sums of a state of version 1, whose rows were around zero."""
    cross = state.array("cross", None, None)
    n_features, n_targets = cross.shape
    mean, target_mean = state.array("mean", n_features), state.array("target_mean", n_targets)
    weight, squares = float(state.meta["weight"]), state.array("squares", n_targets)  # type: ignore[arg-type]
    energy = squared_norm + weight * _norm(mean) ** 2 if centered else squared_norm
    target_energy = squares + weight * target_mean**2 if centered else squares
    origin, target_origin = mean, target_mean
    sums = np.zeros(n_features), np.zeros(n_targets)
    if not centered:
        origin, target_origin, sums = *sums, (weight * mean, weight * target_mean)
    depth = n_rows + 16
    numbers = weight, n_rows, depth, energy
    shifts = weight * mean**2
    return Sums(*numbers, origin, target_origin, *sums, cross, squares, target_energy, shifts)


def _norm(x: Array) -> float:
    return float(np.linalg.norm(x))
