"""Two-level Frequent Directions: what a small sketch loses goes to a second one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from sksketch._typing import Array, Matrix
from sksketch.arrays.namespace import cast, like, namespace, precision
from sksketch.arrays.products import squared_norm
from sksketch.arrays.random import stream
from sksketch.arrays.rounding import gamma
from sksketch.arrays.rows import dense_tiles, squared_row_norms
from sksketch.arrays.sparse import nonzero_rows
from sksketch.low_rank import LowRankPlusRidge
from sksketch.sketches import planning
from sksketch.sketches.base import Answer, megabytes
from sksketch.sketches.buffer import RowBuffer
from sksketch.sketches.certificate import certify
from sksketch.sketches.directions.frequent_directions import FrequentDirections
from sksketch.sketches.directions.shrink.compression import ShrinkState
from sksketch.sketches.directions.shrink.readout import read_out
from sksketch.sketches.directions.shrink.sparse_shrink import dense_shrink
from sksketch.sketches.directions.shrink.split_shrink import split_shrink
from sksketch.sketches.directions.shrink_sketch import ShrinkSketch
from sksketch.sketches.options import above, check_ridge, whole_number
from sksketch.state.persistence import State

# Rows of the first level for each direction that is wanted: Huang (2018), ICML, section 3.
FIRST_LEVEL = 3

# Rows that the second level samples, as a multiple of its size, each time that the energy it
# has been given grows by a factor of e.
SAMPLING_RATE = 4.0


class TwoLevelFrequentDirections(ShrinkSketch):
    """A small Frequent Directions, and a second one for the energy that it removes.

    Parameters
    ----------
    sketch_size : int
        Rows kept by both levels together; more than ``3 * rank``.
    rank : int
        Directions that are wanted. The first level keeps ``3 * rank`` rows, the second
        the others.
    sample : bool, default=False
        Whether the second level takes a sample of the removed rows, scaled so that it is
        unbiased, instead of all of them. Faster, with a weaker certificate.
    initial_ridge : float, default=0.0
        The target is ``A'A + initial_ridge I``.
    buffer_rows : int, default=None
        Rows that the first level holds before a shrink, the kept ones included.
    seed : int, default=0
        Makes the sample repeatable; give shards different ones.

    See Also
    --------
    FrequentDirections : The sketch of one level.
    SparseFrequentDirections : The variant for sparse rows.

    Notes
    -----
    After Huang [1]_, as used by Shi and Phillips [2]_. A shrink of the first level by
    ``cut`` removes the energy of the rows ``sqrt(min(s_i^2, cut)) v_i'``, which go to the
    second level, so with B and Q the kept rows of the two::

        0 <= A'A - B'B - Q'Q <= shrinkage_2 I
        shrinkage_2 <= (3 rank + 1) / ((2 rank + 1) (size_2 + 1)) tail(rank)

    where size_2 = sketch_size - 3 rank. We depart in that sampling is an option. With it
    no bound on the sampled rows is certain, and the certificate rests on both parts of the
    difference: R'R - Q'Q, R the removed rows, is at most the larger of the norm of Q'Q,
    which is known, and all that the first level cut.

    References
    ----------
    .. [1] Huang (2018), "Near Optimal Frequent Directions for Sketching Dense and Sparse
       Matrices", ICML, PMLR 80.
    .. [2] Shi and Phillips (2021), "A Deterministic Streaming Sketch for Ridge Regression",
       AISTATS, PMLR 130.

    Examples
    --------
    >>> X = np.random.default_rng(0).standard_normal((500, 40)) / np.arange(1, 41)
    >>> sketch = TwoLevelFrequentDirections(12, rank=2).update(X[:300]).update(X[300:])
    >>> error = np.linalg.norm(X.T @ X - sketch.summary().to_dense(), 2)
    >>> tail = np.sum(np.linalg.svd(X, compute_uv=False)[2:] ** 2)
    >>> bool(error <= sketch.error_bound() <= 7 / (5 * 7) * tail)
    True
    """

    kind = "two-level-frequent-directions"

    def __init__(
        self,
        sketch_size: int,
        *,
        rank: int,
        sample: bool = False,
        initial_ridge: float = 0.0,
        buffer_rows: int | None = None,
        seed: int = 0,
    ) -> None:
        self.sketch_size = whole_number("sketch_size", sketch_size)
        self.rank = whole_number("rank", rank)
        first = FIRST_LEVEL * self.rank
        if first >= self.sketch_size:
            raise ValueError(
                f"sketch_size must exceed {FIRST_LEVEL} * rank, got {sketch_size} and rank {rank}"
            )
        self.sample = bool(sample)
        self.initial_ridge = check_ridge(initial_ridge)
        self.buffer_rows = above("buffer_rows", buffer_rows, f"{FIRST_LEVEL} * rank", first)
        self.seed = int(seed)
        self._buffer = RowBuffer(1)
        self._first = ShrinkState.empty(0, first)
        self._second = FrequentDirections(
            self.sketch_size - first, correction="none", solver="exact"
        )
        self._cached: tuple[ShrinkState, Answer] | None = None

    # Taking rows in

    def _begin(self, n_features: int, dtype: np.dtype[Any]) -> None:
        super()._begin(n_features, dtype)
        size = self._first.sketch_size
        if self.buffer_rows is None:
            n_new = planning.rows_between_shrinks("exact", size, n_features * dtype.itemsize)
        else:
            n_new = self.buffer_rows - size
        self._buffer = RowBuffer(n_new).allocate(n_features, dtype)
        self._first = ShrinkState.empty(n_features, size)
        self._second._begin(n_features, dtype)

    def _allow(self, amount: float) -> None:
        self._cached = None
        self._first = self._first.allowing(amount)

    def _take(self, rows: Matrix) -> None:
        self._cached = None
        if sp.issparse(rows):
            tiles = dense_tiles(nonzero_rows(rows), rows.dtype)
        else:
            tiles = iter([rows[namespace(rows).any(rows != 0, axis=1)]])
        for tile in tiles:
            for block in self._buffer.fill(tile):
                self._first, removed = self._split(block)
                self._second._take(removed)

    def _split(self, block: Array) -> tuple[ShrinkState, Array]:
        """Return the first level after the rows as well, and the rows for the second."""
        first, removed = split_shrink(self._first, block)
        if self._entry_error:
            first = first.allowing(self._rounded(squared_norm(block)))
        return first, self._sampled(first, removed) if self.sample else removed

    def _sampled(self, first: ShrinkState, removed: Array) -> Array:
        """Return a sample of the removed rows with their Gram matrix as its mean."""
        if not len(removed):
            return removed
        energies = squared_row_norms(removed, np.dtype(np.float64))
        share = first.lost_mass / self._second.sketch_size
        chances = np.minimum(1.0, SAMPLING_RATE * energies / share) if share > 0 else energies
        draws = stream(self.seed, "second level", first.ledger.n_shrinks).random(len(energies))
        keep = np.flatnonzero(draws < chances)
        roots = like(np.sqrt(chances[keep, None]), removed)
        scaled: Array = cast(removed[like(keep, removed)] / roots, precision(removed))
        return scaled

    # Merging

    def _refusal(self, other: Self) -> str | None:
        return self._differing(other, "rank", "sample", "initial_ridge")

    def _absorb(self, other: Self) -> None:
        # Kept and waiting rows are rows like any others; what shrinking them removes comes to
        # the second level after its own merge.
        self._second.merge(other._second)
        theirs = cast(other._first.matrix, self.dtype)
        rounded = cast(theirs, np.float64)
        self._first = self._first.with_losses_of(replace(other._first, matrix=rounded))
        if self.dtype == np.float32:
            # To wait with rows in single precision, others have to be rounded.
            self._round(gamma(1, np.float32))
        self._take(cast(other._buffer.rows, self.dtype))
        self._take(theirs)

    # Reading

    def _whole(self, extra: Matrix | None = None, allowance: float = 0.0) -> ShrinkState:
        return self._read(extra, allowance)[0]

    def _read(
        self, extra: Matrix | None = None, allowance: float = 0.0
    ) -> tuple[ShrinkState, Answer]:
        if extra is not None:
            return self._with_rows(extra, allowance)._read()
        if self._cached is None:
            self._require_rows()
            first, removed = self._first, None
            if len(self._buffer.rows):
                first, removed = self._split(self._buffer.rows)
            first = first.beside(first.eigenvalues)
            second = self._second._whole(removed)
            second = second.beside(second.eigenvalues)
            held = _joined(first, second, self.sample)
            read = self._sampled_answer if self.sample else self._certain_answer
            self._cached = held, read(held, first, second)
        return self._cached

    def _certain_answer(self, held: ShrinkState, first: ShrinkState, second: ShrinkState) -> Answer:
        return read_out(
            held,
            correction="none",
            initial_ridge=self.initial_ridge,
            n_rows_seen=self.n_rows_seen,
        )

    def _sampled_answer(self, held: ShrinkState, first: ShrinkState, second: ShrinkState) -> Answer:
        """Read both levels when only the first is a bound on anything."""
        total = held.ledger.squared_norm
        rounding = held.ledger.allowance
        given = float(second.eigenvalues.max(initial=0.0))
        taken = min(first.ledger.shrinkage, first.lost_mass + first.mass_error)
        bound = max(given, taken) + rounding
        n_features = held.matrix.shape[1]
        trace = (abs(total - squared_norm(held.matrix)) - held.mass_error) / n_features
        lengths = np.sqrt(held.eigenvalues)[:, None]
        summary = LowRankPlusRidge(
            held.matrix / lengths,
            held.eigenvalues,
            ridge=self.initial_ridge,
            error_bound=bound,
            n_rows_seen=self.n_rows_seen,
            squared_norm=total,
        )
        certificate = certify(
            held.eigenvalues,
            lost=(0.0, taken + rounding),
            lost_mass=first.lost_mass + first.mass_error,
            allowance=given + rounding,
            spectral_error=(min(max(trace - rounding, 0.0), bound), bound),
            squared_norm=total,
            n_rows_seen=self.n_rows_seen,
            confidence=1.0,
        )
        return Answer(summary, certificate)

    @property
    def n_shrinks(self) -> int:
        """Shrinks of the first level so far."""
        return self._first.ledger.n_shrinks

    def _plan(self) -> str:
        second = self._second
        memory = megabytes(2.0 * (self._buffer.nbytes + second._buffer.nbytes))
        how = "a sample of the energy they lose" if self.sample else "all the energy they lose"
        return (
            f"TwoLevelFrequentDirections({self.sketch_size}) on {self._require_rows()} columns: "
            f"{self._first.sketch_size} rows for the leading directions and "
            f"{second.sketch_size} for {how}, in about {memory}."
        )

    # Saving

    _OPTIONS = ("sketch_size", "rank", "sample", "initial_ridge", "buffer_rows", "seed")

    def state(self) -> State:
        """Return the rows and ledgers of both levels, the waiting rows and the options.

        Returns
        -------
        State
            Plain values and arrays, as `save` writes them.
        """
        meta = self._facts()
        meta |= self._first.numbers()
        arrays = self._first.arrays()
        if self.n_features is not None:
            arrays["buffer"] = self._buffer.saved()
        state = State(self.kind, self.version, meta, arrays)
        return state.with_inner("second", self._second.state())

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
        sketch = cls._from_facts(meta)
        if sketch.n_features is not None:
            sketch._first = ShrinkState.from_plain(meta, state.arrays)
            sketch._buffer.restore(state.array("buffer", None, sketch.n_features))
            sketch._second = FrequentDirections.from_state(state.inner("second"))
        return sketch


def _joined(first: ShrinkState, second: ShrinkState, sampled: bool) -> ShrinkState:
    """Return the kept rows of both levels as one state, with the loss of both."""
    rows = np.concatenate([first.matrix, second.matrix])
    empty = ShrinkState.empty(rows.shape[1], max(len(rows), 1))
    both = dense_shrink(empty, rows)
    # A'A is B'B and the removed rows. What the second level lost of these is all that is lost, if
    # it saw them all, and it is no more than there was to lose.
    lost = first.ledger.shrinkage
    ledger = replace(
        second.ledger,
        squared_norm=first.ledger.squared_norm,
        shrinkage=lost if sampled else min(lost, second.ledger.shrinkage),
        allowance=first.ledger.allowance + second.ledger.allowance + both.ledger.allowance,
        mass_error=first.ledger.mass_error,
    )
    return replace(both, ledger=ledger)
