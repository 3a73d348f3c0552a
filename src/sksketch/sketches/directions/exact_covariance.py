"""A'A itself: the oracle of tests and the right choice when its square fits."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from sksketch._typing import Array, Matrix
from sksketch.arrays.linalg import aligned_empty
from sksketch.arrays.namespace import (
    cast,
    copied,
    like,
    namespace,
    on_device,
    same_place,
    to_numpy,
)
from sksketch.arrays.products import add_gram_inplace, gram_depth, squared_norm
from sksketch.arrays.rounding import dot_error, gamma
from sksketch.arrays.rows import dense_tiles
from sksketch.sketches.base import Answer, Sketch, megabytes
from sksketch.sketches.buffer import RowBuffer, tile_rows
from sksketch.sketches.column_errors import ColumnErrors, ExactGram
from sksketch.sketches.directions.gram_answer import answer_of
from sksketch.sketches.forgetting import aged, decay_factor
from sksketch.sketches.options import check_ridge
from sksketch.state.persistence import State

# Rows that wait: enough for all cores to have a part of their product, and no fewer than ...
BUFFER_BYTES, BUFFER_ROWS, MOST_ROWS = 16 << 20, 512, 4096
DEVICE_ROWS = 4096

# Rows whose products are summed before the sum of all is touched: in whatever order BLAS adds,
# the error grows with this number and with the number of such groups, not with their product.
GROUP_ROWS = 8192


class ExactCovariance(Sketch):
    """A'A itself, without any error but rounding, in O(n_features^2) memory.

    Whatever comes in is accumulated in float64.

    Parameters
    ----------
    initial_ridge : float, default=0.0
        The target is ``A'A + initial_ridge I``.
    decay : float, default=None
        Factor in (0, 1] by which each new row lessens the weight of all earlier ones.
    half_life : float, default=None
        The same as a number of rows after which a row counts half.

    See Also
    --------
    FrequentDirections : Sketch in memory that is linear in the columns.
    Centered : The same around the mean of the rows.

    Examples
    --------
    >>> X = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> sketch = ExactCovariance().update(X)
    >>> sketch.summary().to_dense().round(9)
    array([[10., 14.],
           [14., 20.]])
    >>> bool(sketch.error_bound() < 1e-12)
    True
    """

    kind = "exact-covariance"
    version = 2

    def __init__(
        self,
        *,
        initial_ridge: float = 0.0,
        decay: float | None = None,
        half_life: float | None = None,
    ) -> None:
        self.initial_ridge = check_ridge(initial_ridge)
        self.decay = decay_factor(decay, half_life)
        self._buffer = RowBuffer(1)
        self._accumulated: Array | None = None
        # The last groups' worth of blocks, on the host and without forgetting.
        self._recent: Array | None = None
        self._recent_rows = 0
        # Roundings that a term of those has met at most.
        self._recent_depth = 0
        # Bound on the error of what is accumulated, and what is allowed for rows that wait.
        self._error = self._owed = 0.0
        # Bound on what the trace is off by, beyond that error.
        self._mass_error = 0.0
        # Roundings that a term of an accumulated sum has met at most.
        self._depth = 0.0
        self._cached: Answer | None = None

    def _working_dtype(self, dtype: np.dtype[Any], n_features: int) -> np.dtype[Any]:
        return np.dtype(np.float64)

    def _allow(self, amount: float) -> None:
        self._cached = None
        self._owed += amount

    def _begin(self, n_features: int, dtype: np.dtype[Any]) -> None:
        super()._begin(n_features, dtype)
        # Whole tiles of a wrapper, which centers them on their way here.
        rows = min(BUFFER_BYTES // (n_features * dtype.itemsize), MOST_ROWS)
        tile = tile_rows(n_features * dtype.itemsize)
        self._buffer.enlarge(max(rows // tile * tile, BUFFER_ROWS // tile * tile, tile))
        self._buffer.allocate(n_features, dtype)

    def _take(self, rows: Matrix) -> None:
        self._cached = None
        # Sparse rows become dense a tile at a time: the tiles are small against A'A.
        for tile in dense_tiles(rows, rows.dtype) if sp.issparse(rows) else [rows]:
            self._buffer.settle(tile, DEVICE_ROWS)
            for block in self._buffer.fill(tile):
                self._add(block)

    def _add(self, block: Array) -> None:
        """Accumulate a block, and count what that may round."""
        if on_device(block) or on_device(self._accumulated) or self.decay < 1.0:
            self._close_group()
            factor = self.decay ** len(block)
            before = 0.0 if self._accumulated is None else factor * _trace(self._accumulated)
            self._accumulated = _added(self._accumulated, block, self.decay)
            whole = _trace(self._accumulated)
            aged = gamma(8) * whole if self.decay < 1.0 else 0.0
            self._error = self._error * factor + aged
            gained = whole - before
            self._error += dot_error(len(block) + 2, 1.0, gained) + self._owed
            self._error += self._rounded(max(gained, 0.0))
            # Where BLAS adds to what is there, it may do so once for each row.
            times = 2 if on_device(block) else len(block) + 2
            self._error += gamma(times) * before
            self._depth = max(self._depth + times, len(block) + 2) + 8
        else:
            self._recent = _added(self._recent, block, 1.0)
            self._recent_rows += len(block)
            self._recent_depth = gram_depth(self._recent_depth, *block.shape)
            self._error += self._owed
            if self._entry_error:
                self._error += self._rounded(squared_norm(block))
            if self._recent_rows >= GROUP_ROWS:
                self._close_group()
        self._owed = 0.0

    def _close_group(self) -> None:
        """Add the last group of blocks to the sum of all."""
        if self._recent is not None:
            self._error += dot_error(self._recent_depth + 2, 1.0, _trace(self._recent))
            self._depth = max(self._depth, self._recent_depth + 2) + 1
            self._accumulated, error = _summed(self._accumulated, self._recent)
            self._error += error
        self._recent, self._recent_rows, self._recent_depth = None, 0, 0

    def _lend(self, n_rows: int) -> Array | None:
        return self._buffer.lend(n_rows)

    def fresh(self) -> Self:
        """Return an empty sketch with the same options.

        Returns
        -------
        Sketch
            An empty sketch of the same class.
        """
        return type(self)(initial_ridge=self.initial_ridge, decay=self.decay)

    def matrix(self) -> Array:
        """Return A'A as a dense symmetric array.

        Returns
        -------
        array of shape (n_features, n_features)
            A'A in float64.
        """
        self._require_rows()
        return to_numpy(_symmetric(self._upper()))

    def _upper(self, extra: Array | None = None) -> Array:
        """A'A with the waiting rows and ``extra``; only the upper triangle is meant."""
        return self._upper_and_error(extra)[0]

    def _upper_and_error(self, extra: Array | None, allowance: float = 0.0) -> tuple[Array, float]:
        """Return that and a bound on its error."""
        twin = type(self)(decay=self.decay)
        twin._accumulated, twin._error = _copy(self._accumulated), self._error
        twin._recent, twin._recent_rows = _copy(self._recent), self._recent_rows
        twin._recent_depth = self._recent_depth
        twin._owed = self._owed + allowance
        twin._entry_error = self._entry_error
        waiting = self._buffer.with_extra(extra)
        if twin._accumulated is None and twin._recent is None and not len(waiting):
            return _zeros(waiting.shape[1]), twin._owed
        if len(waiting):
            twin._add(waiting)
        twin._close_group()
        assert twin._accumulated is not None
        return twin._accumulated, twin._error + twin._owed

    @property
    def _deepest(self) -> float:
        """The depth once the waiting rows are added as well."""
        return max(self._depth, self._recent_depth + len(self._buffer.rows) + 2) + 10

    def _exact_gram(self, extra: Array | None = None) -> ExactGram | None:
        depth = self._deepest + (0 if extra is None else len(extra))
        if not math.isfinite(depth):
            return None
        C = to_numpy(_symmetric(self._upper(extra)))
        # An entry is off by ``depth`` roundings of the product of two columns' lengths, and by
        # what weights have done to the rows, twice where those came through a merge.
        relative = gamma(depth) + 2.0 * self._entry_error * (1.0 + 1e-9)
        sizes = np.maximum(np.diagonal(C), 0.0) * (1.0 + 4.0 * relative)
        return ExactGram(C, self.initial_ridge, ColumnErrors(sizes, relative**2 * sizes))

    def _answer(self, extra: Array | None = None, allowance: float = 0.0) -> Answer:
        self._require_rows()
        if extra is not None:
            return self._solve(extra, allowance)
        if self._cached is None:
            self._cached = self._solve(None, allowance)
        return self._cached

    def _solve(self, extra: Array | None, allowance: float) -> Answer:
        C, error = self._upper_and_error(extra, allowance)
        n_rows_seen = self.n_rows_seen + (0 if extra is None else len(extra))
        mass_error = self._mass_error
        return answer_of(_symmetric(C), error, self.initial_ridge, n_rows_seen, mass_error)

    def _refusal(self, other: Self) -> str | None:
        return self._differing(other, "decay", "initial_ridge")

    def _absorb(self, other: Self) -> None:
        self._cached = None
        mine, error = self._upper_and_error(None)
        theirs, their_error = other._upper_and_error(None)
        if not same_place(mine, theirs):
            there = mine if on_device(mine) else theirs
            mine, theirs = (like(_symmetric(part), there) for part in (mine, theirs))
        self._accumulated, rounding = _summed(mine, theirs)
        self._error = error + their_error + rounding
        self._mass_error += other._mass_error
        self._depth = max(self._deepest, other._deepest) + 1
        self._recent, self._recent_rows, self._recent_depth = None, 0, 0
        self._owed = 0.0
        self._buffer.clear()

    def _plan(self) -> str:
        n_features = self._require_rows()
        return (
            f"ExactCovariance: accumulates A'A of {n_features} columns in float64 "
            f"in {megabytes(16 * n_features**2 + self._buffer.nbytes)}."
        )

    def state(self) -> State:
        """Return the accumulated matrix, the buffered rows and the counters.

        Returns
        -------
        State
            Plain values and arrays, as `save` writes them.
        """
        meta = {
            "initial_ridge": self.initial_ridge,
            "decay": self.decay,
            "n_rows_seen": self.n_rows_seen,
            "total_weight": self.total_weight,
            "n_features": self.n_features,
            "dtype": None if self.dtype is None else str(self.dtype),
            "error": self._error,
            "entry_error": self._entry_error,
            "owed": self._owed,
            "depth": self._depth,
            "recent_rows": self._recent_rows,
            "recent_depth": self._recent_depth,
        }
        if self._mass_error:
            meta["mass_error"] = self._mass_error
        arrays = {}
        if self.n_features is not None:
            arrays["buffer"] = self._buffer.saved()
        if self._accumulated is not None:
            arrays["accumulated"] = to_numpy(self._accumulated).T.copy()
        if self._recent is not None:
            arrays["recent"] = self._recent.T.copy()
        return State(self.kind, self.version, meta, arrays)

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
        sketch = cls(initial_ridge=meta["initial_ridge"], decay=meta["decay"])
        if meta["n_features"] is not None:
            sketch._begin(meta["n_features"], np.dtype(np.float64))
            sketch._buffer.restore(state.array("buffer", None, sketch.n_features))
            for name in ("accumulated", "recent"):
                if name in state.arrays:
                    held = state.array(name, sketch.n_features, sketch.n_features)
                    held = held.astype(np.float64, order="C", copy=False).T
                    setattr(sketch, f"_{name}", held)
            sketch._recent_rows = meta.get("recent_rows", 0)
            sketch._recent_depth = meta.get("recent_depth", sketch._recent_rows)
            sketch._owed = meta.get("owed", 0.0)
            sketch._mass_error = meta.get("mass_error", 0.0)
            sketch._depth = meta.get("depth", math.inf)
            sketch._entry_error = meta.get("entry_error", 0.0)
            # Earlier releases added every block to the sum of all and did not count.
            total = 0.0 if sketch._accumulated is None else _trace(sketch._accumulated)
            sketch._error = meta.get("error", gamma(meta["n_rows_seen"] + 2) * total)
        sketch.n_rows_seen = meta["n_rows_seen"]
        sketch.total_weight = meta["total_weight"]
        return sketch


def _trace(C: Array) -> float:
    return float(namespace(C).linalg.trace(C))


def _copy(C: Array | None) -> Array | None:
    if C is None or on_device(C):
        return None if C is None else copied(C)
    return C.copy(order="F")


def _summed(total: Array | None, part: Array) -> tuple[Array, float]:
    """Return the sum, which may be the first one changed, and a bound on its rounding."""
    if total is None:
        return part, 0.0
    total += part
    return total, gamma(1) * _trace(total)


def _symmetric(upper: Array) -> Array:
    if on_device(upper):
        return upper
    return np.asarray(np.triu(upper) + np.triu(upper, 1).T)


def _zeros(n_features: int) -> Array:
    # Fortran order is what BLAS updates without a copy.
    C = aligned_empty((n_features, n_features), np.dtype(np.float64)).T
    C[...] = 0.0
    return C


def _added(C: Array | None, rows: Array, decay: float) -> Array:
    """Return ``C``, changed in place, with ``rows' rows`` in its upper triangle, in float64.

    On a device, where there is no such product, in both triangles.
    """
    X = aged(cast(rows, np.float64), decay)
    if on_device(X) or on_device(C):
        X = X if C is None or not on_device(C) else like(X, C)
        product: Array = X.T @ X
        return product if C is None else like(_symmetric(C), X) * decay ** len(rows) + product
    C = _zeros(X.shape[1]) if C is None else C
    add_gram_inplace(C, X, decay ** len(rows))
    return C
