"""One-pass centering: a sketch of the rows around their mean, which is known only at the end."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from sksketch._typing import Array
from sksketch.arrays.device_sparse import on_host
from sksketch.arrays.namespace import in_order, like, on_device, precision, weighted_sum
from sksketch.arrays.rows import dense_chunks
from sksketch.arrays.sparse import SparseRows, from_sparse_arrays, is_sparse, sparse_arrays
from sksketch.exceptions import StateFormatError
from sksketch.persistence import State
from sksketch.sketches.base import Answer, Sketch
from sksketch.sketches.buffer import RowBuffer, tile_rows
from sksketch.sketches.exact import ExactCovariance
from sksketch.sketches.forgetting import age_weights
from sksketch.sketches.frequent_directions import FrequentDirections
from sksketch.sketches.sparse import SparseFrequentDirections
from sksketch.sketches.sparse_buffer import SparseRowBuffer
from sksketch.sketches.two_level import TwoLevelFrequentDirections

INNER: dict[str, type[Sketch]] = {
    kind.kind: kind
    for kind in (
        FrequentDirections,
        SparseFrequentDirections,
        TwoLevelFrequentDirections,
        ExactCovariance,
    )
}


class Centered(Sketch):
    """Wrap a sketch so that it remembers the scatter matrix of the rows around their mean.

    Parameters
    ----------
    sketch : Sketch
        An empty sketch. Its guarantees then hold for the centered rows.

    Attributes
    ----------
    mean : array of shape (n_features,)
        Mean of the rows seen so far (weighted, after forgetting), in float64.
    total_weight : float
        Sum of the weights of those rows.

    Examples
    --------
    >>> X = np.array([[1.0, 0.0], [2.0, 3.0], [6.0, 0.0]])
    >>> sketch = Centered(ExactCovariance()).update(X)
    >>> sketch.mean, sketch.summary().to_dense().round(9)
    (array([3., 1.]), array([[14., -3.],
           [-3.,  6.]]))

    Notes
    -----
    Rows wait in tiles of fixed size. Let n rows of mean m have come before a tile of k rows
    with mean u. The scatter matrix grows by E' (I - 1 1' / (n + k)) E with E = X - 1 m', and
    the symmetric root of the inner matrix is I - a 1 1' with a k = 1 - sqrt(n / (n + k)). So
    the k rows::

        x_i - c,    c = m + (1 - sqrt(n / (n + k))) (u - m)

    have exactly that growth as their Gram matrix: one row in, one row out, and nothing is ever
    subtracted from the sketch. Weights and forgetting replace the counts n and k by sums of
    weights. Shards merge with one extra row for the difference of their means.

    Sparse rows stay sparse: they wait in tiles as large as a block of the wrapped sketch, and
    the subtraction of c is left to its products, where it is a correction of rank one.
    """

    kind = "centered"
    version = 2

    def __init__(self, sketch: Sketch) -> None:
        if not isinstance(sketch, tuple(INNER.values())):
            raise TypeError(
                f"expected a sketch to wrap, got {sketch!r:.80}; "
                f"pass an empty {', '.join(kind.__name__ for kind in INNER.values())}"
            )
        if sketch.n_features is not None:
            raise ValueError("expected an empty sketch, got one with rows; wrap it before update")
        self.sketch = sketch
        self._sparse_on_device = sketch._sparse_on_device
        self.decay = sketch.decay
        self._weight = 0.0
        self._mean: Array | None = None
        self._tile = RowBuffer(1)
        self._tile_weights = RowBuffer(1)
        self._sparse = SparseRowBuffer(1, 1)
        self._cached: Answer | None = None

    @property
    def mean(self) -> Array:
        """Mean of the rows seen so far, in float64."""
        self._require_rows()
        return self._with_tile()[1]

    def _begin(self, n_features: int, dtype: np.dtype[Any]) -> None:
        super()._begin(n_features, dtype)
        self.sketch._begin(n_features, dtype)
        self._mean = np.zeros(n_features)
        rows = tile_rows(n_features * dtype.itemsize)
        self._tile = RowBuffer(rows).allocate(n_features, dtype)
        self._tile_weights = RowBuffer(rows).allocate(1, np.dtype(np.float64))
        limits = self.sketch._sparse_limits() or (1, 1)
        self._sparse = SparseRowBuffer(*limits).allocate(n_features, dtype)

    def _take(self, rows: Any) -> None:
        self._take_weighted(rows, None)

    def _take_weighted(self, rows: Any, weights: Array | None) -> None:
        self._cached = None
        if not is_sparse(rows):
            self._take_dense(rows, weights)
        elif self.sketch._sparse_limits() is None:
            rows = on_host(rows)
            start = 0
            for piece in dense_chunks(rows, rows.dtype):
                end = start + len(piece)
                self._take_dense(piece, None if weights is None else weights[start:end])
                start = end
        else:
            self._flush_dense()
            for tile, tile_weights in self._sparse.fill(rows, weights):
                self._flush(SparseRows.plain(tile), tile_weights)

    def _take_dense(self, rows: Array, weights: Array | None) -> None:
        self._flush_sparse()
        weights = np.ones(len(rows)) if weights is None else weights
        size = tile_rows(rows.shape[1] * precision(rows).itemsize, device=True)
        if self._tile.settle(rows, size):
            self._tile_weights.enlarge(size)
        rows = like(rows, self._tile.rows)
        size = self._tile.capacity
        start = 0
        while start < len(rows):
            waiting = len(self._tile.rows)
            end = start + size - waiting
            if waiting or end > len(rows) or not in_order(rows):
                tiles = self._tile.fill(rows[start:end])
                columns = self._tile_weights.fill(weights[start:end, None])
                for tile, column in zip(tiles, columns, strict=True):
                    self._flush(tile, column[:, 0], out=tile)
            else:
                # A whole tile, laid out like ours: center it on its way to where it will wait.
                out = None
                if not on_device(rows):
                    out = self.sketch._lend(size)
                    out = self._tile.lend(size) if out is None else out
                self._flush(rows[start:end], weights[start:end], out)
            start = end

    def _flush(self, tile: Array | SparseRows, weights: Array, out: Array | None = None) -> None:
        centered, self._mean, self._weight = self._centered(tile, weights, out)
        self.sketch.n_rows_seen += len(tile)
        self.sketch._take(centered)

    def _flush_dense(self) -> None:
        if len(self._tile.rows):
            self._flush(self._tile.rows, self._tile_weights.rows[:, 0], out=self._tile.rows)
            self._tile.clear()
            self._tile_weights.clear()

    def _flush_sparse(self) -> None:
        if len(self._sparse):
            self._flush(SparseRows.plain(self._sparse.rows), self._sparse.weights)
            self._sparse.clear()

    def _shrink_waiting(self) -> None:
        self._cached = None
        self._flush_dense()
        self._flush_sparse()
        self.sketch.compact()

    def _centered(
        self, tile: Array | SparseRows, weights: Array, out: Array | None = None
    ) -> tuple[Array | SparseRows, Array, float]:
        """Return the tile's rows for the sketch, and the mean and weight after them."""
        assert self._mean is not None
        current = weights * age_weights(len(tile), self.decay)
        gained = float(current.sum())
        before = self._weight * self.decay ** len(tile)
        if gained == 0.0:
            # Still so many rows: they age the earlier ones.
            nothing = np.zeros(len(tile))
            zeros = tile.scaled(nothing) if isinstance(tile, SparseRows) else 0 * tile
            return zeros, self._mean, before
        if isinstance(tile, SparseRows):
            total = tile.weighted_sum(current)
        else:
            total = weighted_sum(tile, current)
        step = total / gained - self._mean
        center = self._mean + (1.0 - np.sqrt(before / (before + gained))) * step
        mean = self._mean + gained / (before + gained) * step
        roots = None if (weights == 1.0).all() else np.sqrt(weights)
        if isinstance(tile, SparseRows):
            centered = SparseRows(tile.sparse, np.ones(len(tile)), center)
            return centered if roots is None else centered.scaled(roots), mean, before + gained
        if on_device(tile):
            out = tile - like(center, tile, precision(tile))
        else:
            out = np.empty_like(tile) if out is None else out
            np.subtract(tile, center, out=out, casting="same_kind")
        if roots is not None:
            out *= like(roots[:, None], tile, precision(tile))
        return out, mean, before + gained

    def _with_tile(self) -> tuple[Array | SparseRows | None, Array, float]:
        """Return the waiting tile, centered, and the mean and weight with it."""
        assert self._mean is not None
        if len(self._sparse):
            return self._centered(SparseRows.plain(self._sparse.rows), self._sparse.weights)
        if len(self._tile.rows):
            return self._centered(self._tile.rows, self._tile_weights.rows[:, 0])
        return None, self._mean, self._weight

    def fresh(self) -> Self:
        """Return an empty sketch with the same options."""
        return type(self)(self.sketch.fresh())

    def for_shard(self, index: int, n_shards: int) -> Self:
        """Return an empty sketch for one of many parts of the rows."""
        return type(self)(self.sketch.for_shard(index, n_shards))

    def _refusal(self, other: Self) -> str | None:
        if type(self.sketch) is not type(other.sketch):
            return "the wrapped sketches are of different kinds; wrap the same kind"
        return self.sketch._refusal(other.sketch)

    def _absorb(self, other: Self) -> None:
        self._cached = None
        self._flush_dense()
        self._flush_sparse()
        theirs = other.sketch.copy()
        rows, mean, weight = other._with_tile()
        if rows is not None:
            theirs.n_rows_seen += len(rows)
            theirs._take(rows)
        self.sketch.merge(theirs)
        assert self._mean is not None
        if self._weight > 0 and weight > 0:
            both = self._weight + weight
            gap = mean - self._mean
            between = self.sketch.fresh()
            dtype = precision(self._tile.rows)
            between._begin(len(gap), dtype)
            scaled = np.sqrt(self._weight * weight / both) * gap
            between._take(scaled[None].astype(dtype))
            self.sketch.merge(between)
            self._mean = self._mean + weight / both * gap
        elif weight > 0:
            self._mean = mean
        self._weight += weight

    def _answer(self, extra: Any = None) -> Answer:
        if extra is not None:
            raise ValueError("a centered sketch can not be wrapped again")
        if self._cached is None:
            self._require_rows()
            self._cached = self.sketch._answer(self._with_tile()[0])
        return self._cached

    @property
    def sketch_size(self) -> int | None:
        """Rows that the wrapped sketch keeps, if it has such a limit."""
        return getattr(self.sketch, "sketch_size", None)

    def _plan(self) -> str:
        return f"Centered in one pass; {self.sketch.plan()}"

    def state(self) -> State:
        """Return the wrapped sketch's state, the mean and the waiting tile."""
        meta = {
            "n_rows_seen": self.n_rows_seen,
            "n_features": self.n_features,
            "dtype": None if self.dtype is None else str(self.dtype),
            "total_weight": self.total_weight,
            "flushed_weight": self._weight,
        }
        arrays = {}
        if self._mean is not None:
            arrays = {
                "mean": self._mean.copy(),
                "tile": self._tile.saved(),
                "tile_weights": self._tile_weights.saved(),
            }
        if len(self._sparse):
            arrays |= sparse_arrays("sparse", self._sparse.rows)
            arrays["sparse_weights"] = self._sparse.weights.copy()
        return State(self.kind, self.version, meta, arrays).with_inner(
            "sketch", self.sketch.state()
        )

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Build a sketch that goes on where ``state`` was taken."""
        cls._check_kind(state)
        meta: Any = state.meta
        inner = state.inner("sketch")
        if inner.kind not in INNER:
            raise StateFormatError(
                f"a centered {inner.kind!r} is not known to this release; upgrade sksketch"
            )
        sketch = INNER[inner.kind].from_state(inner)
        centered = cls(sketch.fresh())
        if (n_features := meta["n_features"]) is not None:
            centered._begin(n_features, np.dtype(meta["dtype"]))
            centered._mean = state.arrays["mean"]
            centered._tile.restore(state.arrays["tile"])
            centered._tile_weights.restore(state.arrays["tile_weights"])
            if "sparse_data" in state.arrays:
                rows = from_sparse_arrays("sparse", state.arrays, n_features)
                centered._sparse.restore(rows, state.arrays["sparse_weights"])
        centered.sketch = sketch
        centered._weight = meta["flushed_weight"]
        centered.total_weight = meta["total_weight"]
        centered.n_rows_seen = meta["n_rows_seen"]
        return centered
