"""Sparse Frequent Directions: sparse rows wait by the thousand, and a flush never fills them in."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from sksketch._typing import Array, Matrix
from sksketch.arrays.device_sparse import on_host
from sksketch.arrays.namespace import to_numpy
from sksketch.arrays.rounding import gamma, perturbed_gram
from sksketch.arrays.sparse import (
    SparseRows,
    from_sparse_arrays,
    is_sparse,
    nonzero_rows,
    sparse_arrays,
)
from sksketch.sketches.base import Answer, megabytes
from sksketch.sketches.directions.shrink.compression import ShrinkState
from sksketch.sketches.directions.shrink.readout import check_correction
from sksketch.sketches.directions.shrink.sparse_shrink import (
    SparseTask,
    boosted_sparse_shrink,
    dense_shrink,
)
from sksketch.sketches.directions.shrink_sketch import ShrinkSketch
from sksketch.sketches.options import check_ridge, fraction_of_one, whole_number
from sksketch.sketches.sparse_buffer import SparseRowBuffer
from sksketch.state.persistence import State

# The name that files have for `n_power_iter` since the first release.
SAVED_POWER = "option.n_power_iterations"


class SparseFrequentDirections(ShrinkSketch):
    """Frequent Directions for sparse rows, in time that follows their stored entries.

    Parameters
    ----------
    sketch_size : int
        Rows kept; l - 1 of the paper.
    correction : {"none", "half", "full", "trace", "energy"} or float, default="none"
        How the lost energy is put back when the sketch is read, as in
        `FrequentDirections`. The paper's is "none".
    initial_ridge : float, default=0.0
        The target is ``A'A + initial_ridge I``.
    buffer_nnz : int, default=None
        Stored entries that wait for a flush; by default
        ``(sketch_size + 1) * n_features``.
    buffer_rows : int, default=None
        Rows that wait for a flush; by default ``n_features``.
    n_power_iter : int, default=2
        Rounds of simultaneous iteration in a flush.
    boosted : bool, default=True
        Verify every flush, and repeat it until it is accepted. Without it, as in
        the experiments of the paper, only the lost mass bounds the error.
    max_tries : int, default=4
        Tries of one flush, each with twice the iterations.
    failure_probability : float, default=0.01
        Probability, over the whole stream, that a verified bound fails.
    seed : int, default=0
        Makes the random directions repeatable.

    See Also
    --------
    FrequentDirections : The sketch for dense rows; takes sparse ones as well.
    CountSketch : A random sketch of sparse rows of any width.

    Notes
    -----
    These are Algorithms 1 to 6 of Ghashami, Liberty and Phillips [1]_. With probability
    ``1 - failure_probability`` their Theorem 4.1 holds, with alpha = 6/41, l = sketch_size + 1
    and every rank below alpha l::

        ||A'A - B'B||_2 <= tail(rank) / (alpha l - rank)

    B'B <= A'A holds always. We depart from the paper where it leaves a choice or has a slip:
    waiting rows are flushed, on a copy, when the sketch is read; iterations are few, since
    they are verified, and orthonormalized in every round; a buffer of fewer than l rows
    goes to the dense shrink as it is; directions come by the cache line; tries are capped,
    and then rows are shrunk exactly if they are few, or the last try is kept with a bound
    of its own. Zero rows are not stored.

    References
    ----------
    .. [1] Ghashami, Liberty and Phillips (2016), "Efficient Frequent Directions Algorithm for
       Sparse Matrices", KDD, doi:10.1145/2939672.2939800.

    Examples
    --------
    >>> X = sp.random_array((2000, 300), density=0.02, rng=np.random.default_rng(0), format="csr")
    >>> sketch = SparseFrequentDirections(20).update(X[:700]).update(X[700:])
    >>> error = np.linalg.norm((X.T @ X).toarray() - sketch.summary().to_dense(), 2)
    >>> bool(error <= sketch.error_bound())
    True
    >>> sketch.n_shrinks, sketch.summary().confidence > 0.99
    (6, True)
    """

    kind = "sparse-frequent-directions"
    _sparse_on_device = True

    def __init__(
        self,
        sketch_size: int,
        *,
        correction: str | float = "none",
        initial_ridge: float = 0.0,
        buffer_nnz: int | None = None,
        buffer_rows: int | None = None,
        n_power_iter: int = 2,
        boosted: bool = True,
        max_tries: int = 4,
        failure_probability: float = 0.01,
        seed: int = 0,
    ) -> None:
        self.sketch_size = whole_number("sketch_size", sketch_size)
        self.correction = check_correction(correction)
        self.initial_ridge = check_ridge(initial_ridge)
        self.buffer_nnz = None if buffer_nnz is None else whole_number("buffer_nnz", buffer_nnz)
        self.buffer_rows = None if buffer_rows is None else whole_number("buffer_rows", buffer_rows)
        self.n_power_iter = whole_number("n_power_iter", n_power_iter, 0)
        self.boosted = bool(boosted)
        self.max_tries = whole_number("max_tries", max_tries)
        self.failure_probability = fraction_of_one("failure_probability", failure_probability)
        self.seed = int(seed)
        self._buffer = SparseRowBuffer(1, 1)
        self._held = ShrinkState.empty(0, self.sketch_size)
        self._n_tries = 0
        self._cached: tuple[ShrinkState, Answer] | None = None

    # Taking rows in

    def _begin(self, n_features: int, dtype: np.dtype[Any]) -> None:
        super()._begin(n_features, dtype)
        self._held = ShrinkState.empty(n_features, self.sketch_size)
        limits = (
            self.buffer_rows or n_features,
            self.buffer_nnz or (self.sketch_size + 1) * n_features,
        )
        self._buffer = SparseRowBuffer(*limits).allocate(n_features, dtype)

    def _allow(self, amount: float) -> None:
        self._cached = None
        self._held = self._held.allowing(amount)

    def _take(self, rows: Matrix) -> None:
        self._cached = None
        if isinstance(rows, SparseRows):
            # A wrapper has filled this block with all the rows that would have waited here.
            self._flush()
            self._held, self._n_tries = self._flushed(self._held, rows, self._n_tries)
            return
        sparse = rows if is_sparse(rows) else sp.csr_array(to_numpy(rows))
        for block, _ in self._buffer.fill(nonzero_rows(sparse)):
            full = SparseRows.plain(block)
            self._held, self._n_tries = self._flushed(self._held, full, self._n_tries)

    def _flush(self) -> None:
        self._held, self._n_tries = self._with_waiting()
        self._buffer.clear()

    def _shrink_waiting(self) -> None:
        if self._buffer.nnz > self.sketch_size * self._held.matrix.shape[1]:
            self._cached = None
            self._flush()

    def _with_waiting(self, reading: bool = False) -> tuple[ShrinkState, int]:
        """Return what `_flush` would leave, and the tries until then."""
        if not len(self._buffer):
            return self._held, self._n_tries
        waiting = SparseRows.plain(self._buffer.rows)
        return self._flushed(self._held, waiting, self._n_tries, reading)

    def _flushed(
        self, held: ShrinkState, rows: SparseRows, n_tries: int, reading: bool = False
    ) -> tuple[ShrinkState, int]:
        """Return the state after the rows as well, and the tries until then: Algorithm 2."""
        if self._entry_error:
            held = held.allowing(self._rounded(rows.all_energy))
        if rows.squared_norm == 0.0:
            return held.without(rows.squared_norm_error), n_tries
        if len(rows) <= held.sketch_size:
            return self._shrunk(_with_allowance(held, rows), _dense(rows)), n_tries
        kept, n_tries = boosted_sparse_shrink(
            SparseTask(
                rows,
                sketch_size=held.sketch_size,
                n_power_iter=self.n_power_iter,
                boosted=self.boosted,
                max_tries=self.max_tries,
                failure_probability=self.failure_probability,
                seed=self.seed,
                n_tries=n_tries,
                probes=self.correction == "energy",
                n_reads=2 * self._buffer.max_rows if reading else 0,
            )
        )
        return self._shrunk(held.with_losses_of(kept), kept.matrix), n_tries

    def _shrunk(self, held: ShrinkState, rows: Array) -> ShrinkState:
        return dense_shrink(held, rows, self.seed if self.correction == "energy" else None)

    def _sparse_limits(self) -> tuple[int, int] | None:
        return self._buffer.max_rows, self._buffer.max_entries

    # Merging

    def _refusal(self, other: Self) -> str | None:
        names = ["initial_ridge"] + (["seed"] if self.correction == "energy" else [])
        if (reason := self._differing(other, *names)) is not None:
            return reason
        if self.correction == "energy" != other.correction:
            return 'only one of the two has the probes of correction="energy"; build both with it'
        return None

    def _absorb(self, other: Self) -> None:
        self._cached = None
        self._flush()
        theirs, their_tries = other._with_waiting()
        self._n_tries += their_tries
        held = self._held.with_losses_of(theirs)
        self._held = self._shrunk(held, theirs.matrix) if len(theirs.matrix) else held

    # Reading

    def _whole(self, extra: Any = None, allowance: float = 0.0) -> ShrinkState:
        held, n_tries = self._with_waiting(reading=True)
        if extra is not None:
            plain = not isinstance(extra, SparseRows)
            rows = SparseRows.plain(sp.csr_array(to_numpy(extra))) if plain else extra
            held, _ = self._flushed(held, rows, n_tries, reading=True)
        return held.allowing(allowance)

    @property
    def n_tries(self) -> int:
        """Sparse shrinks so far, the rejected ones included."""
        return self._n_tries

    def _plan(self) -> str:
        buffer = self._buffer
        how = "verified, probabilistic bound" if self.boosted else "not verified"
        entry = self.dtype.itemsize + 4 if self.dtype is not None else 12
        kept = self.sketch_size * self._held.matrix.shape[1] * 8
        memory = megabytes(buffer.max_entries * entry + buffer.max_rows * 16 + 6 * kept)
        return (
            f"SparseFrequentDirections({self.sketch_size}) on {self._require_rows()} columns: "
            f"flushes {buffer.max_rows} rows or {buffer.max_entries} stored entries by "
            f"{self.n_power_iter} rounds of simultaneous iteration ({how}), "
            f"in at most about {memory}."
        )

    # Saving

    _OPTIONS = (
        *("sketch_size", "correction", "initial_ridge", "buffer_nnz", "buffer_rows"),
        *("n_power_iter", "boosted", "max_tries", "failure_probability", "seed"),
    )

    def state(self) -> State:
        """Return the kept rows, the waiting rows, the ledger and the options.

        Returns
        -------
        State
            Plain values and arrays, as `save` writes them.
        """
        meta = self._facts() | {"n_tries": self._n_tries}
        meta[SAVED_POWER] = meta.pop("option.n_power_iter")
        meta |= self._held.numbers()
        arrays = self._held.arrays()
        if len(self._buffer):
            arrays |= sparse_arrays("sparse", self._buffer.rows)
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
        meta: Any = dict(state.meta)
        meta["option.n_power_iter"] = meta.pop(SAVED_POWER)
        sketch = cls._from_facts(meta)
        if (n_features := sketch.n_features) is not None:
            sketch._held = ShrinkState.from_plain(meta, state.arrays)
            if "sparse_data" in state.arrays:
                sketch._buffer.restore(from_sparse_arrays("sparse", state.arrays, n_features))
        sketch._n_tries = meta["n_tries"]
        return sketch


def _dense(rows: SparseRows) -> Array:
    """Return the few rows of a buffer that is smaller than the sketch, in float64."""
    dense: Array = on_host(rows.sparse).toarray().astype(np.float64)
    return dense - np.outer(rows.scale, rows.center) if rows.centered else dense


def _with_allowance(held: ShrinkState, rows: SparseRows) -> ShrinkState:
    """Return the state with an allowance for the roundings of subtracting a center."""
    if not rows.centered:
        return held
    energy = rows.all_energy
    return held.allowing(perturbed_gram(math.sqrt(energy), gamma(3) * math.sqrt(energy)))
