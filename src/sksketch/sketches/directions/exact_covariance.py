"""A'A itself: the oracle of tests and the right choice when its square fits."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from sksketch._typing import Array, Matrix
from sksketch.arrays.namespace import (
    like,
    on_device,
    same_place,
    to_numpy,
)
from sksketch.arrays.parallel import helped
from sksketch.arrays.products import (
    FEW_COLUMNS,
    gram_depth,
    squared_norm,
)
from sksketch.arrays.rounding import dot_error, gamma
from sksketch.arrays.rows import dense_tiles
from sksketch.sketches.base import Answer, Sketch, megabytes
from sksketch.sketches.buffer import RowBuffer
from sksketch.sketches.column_errors import ColumnErrors, ExactGram
from sksketch.sketches.directions.gram_answer import answer_of
from sksketch.sketches.directions.gram_sums import (
    block_rows,
    copy_of,
    rows_together,
    summed,
    symmetric,
    trace_of,
    with_products,
    zero_square,
)
from sksketch.sketches.forgetting import decay_factor
from sksketch.sketches.options import check_ridge
from sksketch.state.persistence import State

# Rows of a device that are added up together.
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
        self._buffer.enlarge(block_rows(n_features))
        self._buffer.allocate(n_features, dtype)

    def _take(self, rows: Matrix) -> None:
        self._cached = None
        # Sparse rows become dense a tile at a time: the tiles are small against A'A.
        for tile in dense_tiles(rows, rows.dtype) if sp.issparse(rows) else [rows]:
            self._buffer.settle(tile, DEVICE_ROWS)
            self._fill(tile)

    def _fill(self, rows: Array) -> None:
        """Let rows wait, and add up whole blocks.

        Several blocks may wait meanwhile where other threads help with them. Which rows wait at
        the end, and what is added up in which order, is the same.
        """
        size = self._block_rows()
        # Those of earlier releases may have more rows that wait.
        self._settle(size)
        self._buffer.capacity = self._n_together(len(rows))
        for block in self._buffer.fill(rows):
            self._add(block)
        self._settle(size)

    def _settle(self, size: int) -> None:
        """Add whole blocks of rows that wait, unless that is what the buffer does."""
        if self._buffer.capacity != size:
            for blocks in self._buffer.settle_blocks(size):
                self._add(blocks)

    def _block_rows(self) -> int:
        rows = self._buffer.rows
        return self._buffer.capacity if on_device(rows) else block_rows(rows.shape[1])

    def _n_together(self, n_rows: int) -> int:
        """Return how many rows may wait once ``n_rows`` more come, for threads that help."""
        size, n_features = self._block_rows(), int(self._buffer.rows.shape[1])
        few = len(self._buffer.rows) + n_rows <= size or n_features > FEW_COLUMNS
        if few or self.decay < 1.0 or on_device(self._buffer.rows) or not helped():
            return size
        return rows_together(n_features, GROUP_ROWS)

    def _add(self, block: Array) -> None:
        """Accumulate a block, and count what that may round."""
        if on_device(block) or on_device(self._accumulated) or self.decay < 1.0:
            self._close_group()
            factor = self.decay ** len(block)
            before = 0.0 if self._accumulated is None else factor * trace_of(self._accumulated)
            self._accumulated = with_products(self._accumulated, block, self.decay)
            whole = trace_of(self._accumulated)
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
            # However many blocks come at once, all sums are those of one after the other.
            size = block_rows(block.shape[1])
            start, end = 0, len(block)
            while start < end:
                n_left = max(GROUP_ROWS - self._recent_rows, 1)
                stop = min(start + -(-n_left // size) * size, end)
                self._add_recent(block[start:stop], size)
                start = stop
            return
        self._owed = 0.0

    def _add_recent(self, rows: Array, size: int) -> None:
        """Add rows to the last group of blocks of ``size`` rows."""
        self._recent = with_products(self._recent, rows, 1.0)
        self._recent_rows += len(rows)
        self._recent_depth = gram_depth(self._recent_depth, *rows.shape)
        if self._entry_error:
            for start in range(0, len(rows), size):
                self._error += self._rounded(squared_norm(rows[start : start + size]))
        if self._recent_rows >= GROUP_ROWS:
            self._close_group()

    def _close_group(self) -> None:
        """Add the last group of blocks to the sum of all."""
        if self._recent is not None:
            self._error += dot_error(self._recent_depth + 2, 1.0, trace_of(self._recent))
            self._depth = max(self._depth, self._recent_depth + 2) + 1
            self._accumulated, error = summed(self._accumulated, self._recent)
            self._error += error
        self._recent, self._recent_rows, self._recent_depth = None, 0, 0

    def _lend(self, n_rows: int) -> Array | None:
        return self._buffer.lend(n_rows, self._n_together(n_rows))

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
        return to_numpy(symmetric(self._upper()))

    def _upper(self, extra: Array | None = None) -> Array:
        """A'A with the waiting rows and ``extra``; only the upper triangle is meant."""
        return self._upper_and_error(extra)[0]

    def _upper_and_error(self, extra: Array | None, allowance: float = 0.0) -> tuple[Array, float]:
        """Return that and a bound on its error."""
        twin = type(self)(decay=self.decay)
        twin._accumulated, twin._error = copy_of(self._accumulated), self._error
        twin._recent, twin._recent_rows = copy_of(self._recent), self._recent_rows
        twin._recent_depth = self._recent_depth
        twin._owed = self._owed + allowance
        twin._entry_error = self._entry_error
        waiting = self._buffer.with_extra(extra)
        if twin._accumulated is None and twin._recent is None and not len(waiting):
            return zero_square(waiting.shape[1]), twin._owed
        if len(waiting):
            twin._add(waiting)
        twin._close_group()
        assert twin._accumulated is not None
        return twin._accumulated, twin._error + twin._owed

    @property
    def _deepest(self) -> float:
        """The depth once the waiting rows are added as well."""
        return max(self._depth, gram_depth(self._recent_depth, *self._buffer.rows.shape) + 2) + 10

    def _exact_gram(self, extra: Array | None = None) -> ExactGram | None:
        depth = self._deepest + (0 if extra is None else len(extra))
        if not math.isfinite(depth):
            return None
        C = to_numpy(symmetric(self._upper(extra)))
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
        return answer_of(symmetric(C), error, self.initial_ridge, n_rows_seen, mass_error)

    def _refusal(self, other: Self) -> str | None:
        return self._differing(other, "decay", "initial_ridge")

    def _absorb(self, other: Self) -> None:
        self._cached = None
        mine, error = self._upper_and_error(None)
        theirs, their_error = other._upper_and_error(None)
        if not same_place(mine, theirs):
            there = mine if on_device(mine) else theirs
            mine, theirs = (like(symmetric(part), there) for part in (mine, theirs))
        self._accumulated, rounding = summed(mine, theirs)
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
            total = 0.0 if sketch._accumulated is None else trace_of(sketch._accumulated)
            sketch._error = meta.get("error", gamma(meta["n_rows_seen"] + 2) * total)
        sketch.n_rows_seen = meta["n_rows_seen"]
        sketch.total_weight = meta["total_weight"]
        return sketch
