"""One-pass centering: a sketch of the rows around their mean, which is known only at the end."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np

from sksketch._typing import Array, Matrix
from sksketch.arrays.device_sparse import on_host
from sksketch.arrays.namespace import in_order, like, on_device, precision
from sksketch.arrays.parallel import helped
from sksketch.arrays.rounding import gamma, perturbed_gram, unit_roundoff
from sksketch.arrays.rows import dense_tiles
from sksketch.arrays.sparse import SparseRows, from_sparse_arrays, is_sparse, sparse_arrays
from sksketch.exceptions import StateFormatError
from sksketch.sketches.base import Answer, Sketch
from sksketch.sketches.buffer import RowBuffer, tile_rows
from sksketch.sketches.column_errors import ColumnErrors, ExactGram
from sksketch.sketches.directions.exact_covariance import ExactCovariance
from sksketch.sketches.directions.frequent_directions import FrequentDirections
from sksketch.sketches.directions.sparse_frequent_directions import SparseFrequentDirections
from sksketch.sketches.directions.two_level_frequent_directions import TwoLevelFrequentDirections
from sksketch.sketches.forgetting import age_weights
from sksketch.sketches.sparse_buffer import SparseRowBuffer
from sksketch.sketches.wrappers.centered_run import centered_run
from sksketch.sketches.wrappers.running_mean import (
    MEAN_ROWS,
    RunningMean,
    Tile,
    centered_tile,
    mean_of,
)
from sksketch.state.persistence import State

_KINDS = FrequentDirections, SparseFrequentDirections, TwoLevelFrequentDirections, ExactCovariance
INNER: dict[str, type[Sketch]] = {kind.kind: kind for kind in _KINDS}


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

    See Also
    --------
    StreamingPCA : The estimator that reads its components.
    Regression : Also keeps products with targets.

    Notes
    -----
    Rows wait in tiles of fixed size. Let n rows of mean m have come before a tile of k rows
    with mean u. The scatter matrix grows by E' (I - 1 1' / (n + k)) E with E = X - 1 m', and
    the symmetric root of the inner matrix is I - a 1 1' with a k = 1 - sqrt(n / (n + k)). So
    the k rows (see `running_mean` for their arithmetic, which counts its roundings)::

        x_i - c,    c = m + (1 - sqrt(n / (n + k))) (u - m)

    have exactly that growth as their Gram matrix: one row in, one row out, and nothing is ever
    subtracted from the sketch. Weights and forgetting replace the counts n and k by sums of
    weights. Shards merge with one extra row for the difference of their means.

    Sparse rows stay sparse: they wait in tiles as large as a block of the wrapped sketch, and
    the subtraction of c is left to its products, where it is a correction of rank one.

    Examples
    --------
    >>> X = np.array([[1.0, 0.0], [2.0, 3.0], [6.0, 0.0]])
    >>> sketch = Centered(ExactCovariance()).update(X)
    >>> sketch.mean, sketch.summary().to_dense().round(9)
    (array([3., 1.]), array([[14., -3.],
           [-3.,  6.]]))
    """

    kind = "centered"
    version = 3

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
        self._mean = RunningMean.empty(0)
        self._tile = RowBuffer(1)
        self._tile_weights = RowBuffer(1)
        self._sparse = SparseRowBuffer(1, 1)
        self._cached: Answer | None = None

    @property
    def mean(self) -> Array:
        """Mean of the rows seen so far, in float64."""
        self._require_rows()
        return self._with_tile().mean.value

    @property
    def mean_error(self) -> float:
        """Bound on the length of what rounding has put between `mean` and the mean of the rows."""
        self._require_rows()
        mean = self._with_tile().mean
        return float(np.linalg.norm(mean.from_origin_errors + unit_roundoff() * np.abs(mean.value)))

    @property
    def column_squares(self) -> Array:
        """Sum of the squared differences to the mean for each column (weighted), in float64.

        NaN where an earlier release has saved a sketch without them.
        """
        self._require_rows()
        return self._with_tile().mean.squares

    def _working_dtype(self, dtype: np.dtype[Any], n_features: int) -> np.dtype[Any]:
        return self.sketch._working_dtype(dtype, n_features)

    def _begin(self, n_features: int, dtype: np.dtype[Any]) -> None:
        super()._begin(n_features, dtype)
        self.sketch._begin(n_features, dtype)
        self._mean = RunningMean.empty(n_features)
        rows = tile_rows(n_features * dtype.itemsize)
        self._tile = RowBuffer(rows).allocate(n_features, dtype)
        self._tile_weights = RowBuffer(rows).allocate(1, np.dtype(np.float64))
        limits = self.sketch._sparse_limits() or (1, 1)
        self._sparse = SparseRowBuffer(*limits).allocate(n_features, dtype)

    def _allow(self, amount: float) -> None:
        self._cached = None
        self.sketch._allow(amount)

    def _take(self, rows: Matrix) -> None:
        self._take_weighted(rows, None)

    def _take_weighted(self, rows: Matrix, weights: Array | None) -> None:
        self._cached = None
        if not is_sparse(rows):
            self._take_dense(rows, weights)
        elif self.sketch._sparse_limits() is None:
            rows = on_host(rows)
            start = 0
            for tile in dense_tiles(rows, rows.dtype):
                end = start + len(tile)
                self._take_dense(tile, None if weights is None else weights[start:end])
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
                    self._flush(tile, column[:, 0], self._room(tile))
            elif (end := self._take_run(rows, weights, start)) == start:
                # A whole tile, laid out like ours, need not be copied first.
                end, tile = start + size, rows[start : start + size]
                self._flush(tile, weights[start:end], self._room(tile))
            start = end

    def _take_run(self, rows: Array, weights: Array, start: int) -> int:
        """Take as many whole tiles as the sketch has room for; return where the next one starts."""
        size = self._tile.capacity
        together = self.decay == 1.0 and not on_device(rows) and helped()
        room = self.sketch._lend((len(rows) - start) // size * size) if together else None
        n_rows = 0 if room is None else len(room) // size * size
        part = slice(start, start + n_rows)
        if room is None or n_rows < 2 * size or not weights[part].all():
            return start
        tiles = rows[part], size, weights[part], self._entry_error, room[:n_rows]
        self._mean, allowances = centered_run(self._mean, *tiles)
        self.sketch.n_rows_seen += n_rows
        for allowance in allowances:
            self.sketch._allow(allowance)
        self.sketch._take(room[:n_rows])
        return part.stop

    def _room(self, tile: Array) -> Array | None:
        """Return where the rows of a tile will wait, to center them on their way there."""
        if on_device(tile):
            return None
        room = self.sketch._lend(len(tile))
        return self._tile.lend(len(tile)) if room is None or len(room) < len(tile) else room

    def _flush(self, tile: Array | SparseRows, weights: Array, out: Array | None = None) -> None:
        centered, self._mean, allowance = self._centered(tile, weights, out)
        self.sketch.n_rows_seen += len(tile)
        self.sketch._allow(allowance)
        self.sketch._take(centered)
        if self.decay < 1.0:
            # A sketch may have shrunk in the middle of the tile, and aged what was allowed.
            self.sketch._allow(allowance)

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

    def _centered(self, tile: Array | SparseRows, weights: Array, out: Array | None = None) -> Tile:
        """Return the tile's rows for the sketch, and the mean after them."""
        ages = age_weights(len(tile), self.decay) if self.decay < 1.0 else None
        mean = self._mean.aged(self.decay ** len(tile))
        return centered_tile(mean, tile, weights, ages, self._entry_error, out)

    def _with_tile(self) -> Tile:
        """Return the waiting tile, centered, and the mean with it."""
        if len(self._sparse):
            return self._centered(SparseRows.plain(self._sparse.rows), self._sparse.weights)
        if len(self._tile.rows):
            return self._centered(self._tile.rows, self._tile_weights.rows[:, 0])
        return Tile(None, self._mean, 0.0)

    def fresh(self) -> Self:
        """Return an empty sketch with the same options.

        Returns
        -------
        Sketch
            An empty sketch of the same class.
        """
        return type(self)(self.sketch.fresh())

    def for_shard(self, index: int, n_shards: int) -> Self:
        """Return an empty sketch for one of many parts of the rows.

        Parameters
        ----------
        index : int
            Number of the part, from 0 on.
        n_shards : int
            Number of all parts.

        Returns
        -------
        Sketch
            An empty sketch for that part.
        """
        return type(self)(self.sketch.for_shard(index, n_shards))

    def _refusal(self, other: Self) -> str | None:
        if type(self.sketch) is not type(other.sketch):
            return "the wrapped sketches are of different kinds; wrap the same kind"
        return self.sketch._refusal(other.sketch)

    def _absorb(self, other: Self) -> None:
        self._cached = None
        self._flush_dense()
        self._flush_sparse()
        theirs = other.sketch
        rows, their_mean, allowance = other._with_tile()
        if rows is not None:
            theirs = theirs.copy()
            theirs.n_rows_seen += len(rows)
            theirs._allow(allowance)
            theirs._take(rows)
        self.sketch.merge(theirs)
        mine = self._mean
        self._mean, gap, errors = mine.merged(their_mean)
        if mine.weight > 0 and their_mean.weight > 0:
            root = math.sqrt(mine.weight * their_mean.weight / self._mean.weight)
            self._take_between(root * gap, root * errors)

    def _take_between(self, row: Array, errors: Array) -> None:
        """Add the one row that the difference of two means stands for."""
        between = self.sketch.fresh()
        dtype = precision(self._tile.rows)
        between._begin(len(row), dtype)
        off = errors + (gamma(64) + unit_roundoff(dtype)) * np.abs(row)
        between._allow(perturbed_gram(float(np.linalg.norm(row)), float(np.linalg.norm(off))))
        between._take(row[None].astype(dtype))
        self.sketch.merge(between)
        self._mean = self._mean.allowing(ColumnErrors(row**2, off**2))

    def _exact_gram(self, extra: Array | None = None) -> ExactGram | None:
        tile = self._with_tile()
        found = self.sketch._exact_gram(tile.rows)
        return None if found is None else found.allowing(tile.mean.scatter)

    def _answer(self, extra: Matrix | None = None, allowance: float = 0.0) -> Answer:
        if extra is not None:
            raise ValueError("a centered sketch cannot be wrapped again")
        if self._cached is None:
            self._require_rows()
            tile = self._with_tile()
            self._cached = self.sketch._answer(tile.rows, tile.allowance)
        return self._cached

    @property
    def sketch_size(self) -> int | None:
        """Rows that the wrapped sketch keeps, if it has such a limit."""
        return getattr(self.sketch, "sketch_size", None)

    def _plan(self) -> str:
        return f"Centered in one pass; {self.sketch.plan()}"

    def state(self) -> State:
        """Return the wrapped sketch's state, the mean and the waiting tile.

        Returns
        -------
        State
            Plain values and arrays, as `save` writes them.
        """
        meta = {
            "n_rows_seen": self.n_rows_seen,
            "n_features": self.n_features,
            "dtype": None if self.dtype is None else str(self.dtype),
            "total_weight": self.total_weight,
            "flushed_weight": self._mean.weight,
            "n_tiles": self._mean.n_tiles,
            "scatter_flat": self._mean.flat,
            "entry_error": self._entry_error,
        }
        arrays = {}
        if self.n_features is not None:
            arrays = {n: row.copy() for n, row in zip(MEAN_ROWS, self._mean.held, strict=True)}
            arrays["origin"] = self._mean.origin.copy()
            arrays["tile"] = self._tile.saved()
            arrays["tile_weights"] = self._tile_weights.saved()
        if len(self._sparse):
            arrays |= sparse_arrays("sparse", self._sparse.rows)
            arrays["sparse_weights"] = self._sparse.weights.copy()
        return State(self.kind, self.version, meta, arrays).with_inner(
            "sketch", self.sketch.state()
        )

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Build a sketch that continues where ``state`` was taken.

        Parameters
        ----------
        state : State
            What `state` returned, or what was read from a file.

        Returns
        -------
        Sketch
            A sketch that continues where ``state`` was taken.
        """
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
            centered._mean = mean_of(state)
            centered._tile.restore(state.array("tile", None, n_features))
            centered._tile_weights.restore(state.array("tile_weights", None, 1))
            if "sparse_data" in state.arrays:
                rows = from_sparse_arrays("sparse", state.arrays, n_features)
                centered._sparse.restore(rows, state.arrays["sparse_weights"])
        centered.sketch = sketch
        centered.total_weight = meta["total_weight"]
        centered._entry_error = meta.get("entry_error", 0.0)
        centered.n_rows_seen = meta["n_rows_seen"]
        return centered
