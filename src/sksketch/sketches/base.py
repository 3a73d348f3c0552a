"""The contract of a sketch, and what all of them share: taking rows in, reading out, saving."""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from typing import Any, NamedTuple, Self

import numpy as np

from sksketch._typing import Array, Matrix
from sksketch.arrays.device_sparse import on_host
from sksketch.arrays.namespace import cast, like, on_device, precision
from sksketch.arrays.rounding import (
    SINGLE_UNDERFLOW,
    gamma,
    perturbed_gram,
    unit_roundoff,
)
from sksketch.arrays.rows import (
    as_rows,
    as_weights,
    check_weighted_norms,
    dense_tiles,
    lies_well,
    squared_row_norms,
)
from sksketch.arrays.sparse import is_sparse, scaled_rows
from sksketch.low_rank import LowRankPlusRidge
from sksketch.sketches.certificate import Certificate
from sksketch.sketches.column_errors import ExactGram
from sksketch.sketches.forgetting import accumulated_weight
from sksketch.sketches.merging import refuse_mismatch
from sksketch.sketches.savable import Savable

SINGLE_ROUNDOFF = unit_roundoff(np.float32)


class Answer(NamedTuple):
    """The summary and the certificate of a sketch at one moment."""

    summary: LowRankPlusRidge
    certificate: Certificate


class Sketch(Savable, ABC):
    """A small mergeable state that remembers A'A for the rows A it has seen.

    Every sketch keeps six laws: splitting a block is invisible, reading has no
    consequences, the bound is true at every moment and after any merges, saving is
    invisible, memory does not grow with the rows, and inputs are left alone.

    A subclass says how rows are taken in (`_take`), merged (`_absorb`), read (`_answer`)
    and saved (`state`, `from_state`); see `FrequentDirections` and `ExactCovariance`.

    See Also
    --------
    FrequentDirections : The sketch to start with.
    ExactCovariance : A'A itself, where its square fits in memory.
    make_sketch : Build a sketch by its key.
    load : Read a saved sketch.

    Examples
    --------
    >>> from sksketch import ExactCovariance
    >>> here, there = ExactCovariance().update([[1.0, 2.0]]), ExactCovariance().update([[3.0, 4.0]])
    >>> (here | there).squared_norm
    30.0
    """

    n_features: int | None = None
    n_rows_seen: int = 0
    dtype: np.dtype[Any] | None = None
    total_weight: float = 0.0
    decay: float = 1.0
    # Whether sparse rows on a device stay there; else they come to the host.
    _sparse_on_device: bool = False
    # Relative error of the entries of rows, where weights or a narrower precision rounded them.
    _entry_error: float = 0.0

    def update(self, X: object, weights: object = None) -> Self:
        """Take in a block of rows, or a single row.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_rows, n_features)
            Real, finite numbers. The first block fixes the number of columns and the
            precision: float32 stays float32, everything else becomes float64.
        weights : array-like of shape (n_rows,), default=None
            Each row counts as ``weights[i]`` copies of itself.

        Returns
        -------
        self
            The sketch itself, unchanged if the block is refused.
        """
        self._require_whole()
        rows = as_rows(X, n_features=self.n_features)
        weights = as_weights(weights, rows.shape[0])
        dtype = self.dtype
        if dtype is None:
            dtype = np.dtype(np.float32 if precision(rows) == np.float32 else np.float64)
            dtype = self._working_dtype(dtype, rows.shape[1])
        rows = rows if self._sparse_on_device else on_host(rows)
        norms = squared_row_norms(rows, dtype)
        if weights is not None:
            check_weighted_norms(norms, weights, dtype)
        self._interrupted = True
        if self.n_features is None:
            self._begin(rows.shape[1], dtype)
        self.n_rows_seen += rows.shape[0]
        counted = np.ones(rows.shape[0]) if weights is None else weights
        self.total_weight = accumulated_weight(self.total_weight, counted, self.decay)
        if dtype == np.float32 and precision(rows) != np.float32:
            self._round(gamma(1, np.float32))
        start = 0
        # Dense rows that must be converted or laid out are so tile by tile.
        ready = weights is None and not is_sparse(rows) and precision(rows) == dtype
        whole = is_sparse(rows) or (ready and not on_device(rows) and lies_well(rows))
        tiles = [rows.astype(dtype, copy=False)] if whole else dense_tiles(rows, dtype)
        for tile in tiles:
            end = start + tile.shape[0]
            self._take_weighted(tile, None if weights is None else weights[start:end])
            start = end
        self._interrupted = False
        return self

    def _take_weighted(self, rows: Matrix, weights: Array | None) -> None:
        """Add checked rows, each scaled by the root of its weight."""
        if weights is not None:
            roots = np.sqrt(weights)
            if is_sparse(rows):
                rows = scaled_rows(rows, roots)
            else:
                rows = cast(rows * like(roots[:, None], rows), precision(rows))
            # A root and a product, and the precision in which rows are kept.
            self._round(gamma(3) + unit_roundoff(precision(rows)))
        self._take(rows)

    def _round(self, relative: float) -> None:
        """Count from now on with entries of rows that are off by ``relative`` of themselves.

        What that does to A'A is allowed for where rows are compressed: in the same tiles however
        they came.
        """
        if relative >= SINGLE_ROUNDOFF > self._entry_error:
            # Once, for entries that single precision cannot hold at all.
            self._allow(SINGLE_UNDERFLOW**2)
        self._entry_error = max(self._entry_error, relative)

    def _rounded(self, energy: float) -> float:
        """Return the allowance for that in rows of this energy."""
        if self._entry_error == 0.0:
            return 0.0
        # Rows can have been rounded twice, by weights and by a merge.
        length = math.sqrt(energy)
        lost = SINGLE_UNDERFLOW if self._entry_error >= SINGLE_ROUNDOFF else 0.0
        return perturbed_gram(length, 2.0 * self._entry_error * length + lost)

    def _working_dtype(self, dtype: np.dtype[Any], n_features: int) -> np.dtype[Any]:
        """Return the precision in which rows of that precision are remembered."""
        return dtype

    def _allow(self, amount: float) -> None:
        """Widen all bounds by ``amount``: rounding changed rows that are taken next."""

    def _begin(self, n_features: int, dtype: np.dtype[Any]) -> None:
        """Learn the shape of the rows; called once, before the first of them."""
        self.n_features, self.dtype = n_features, dtype

    @abstractmethod
    def _take(self, rows: Matrix) -> None:
        """Add checked rows of the sketch's own width and precision: an array or a CSR array."""

    def _exact_gram(self, extra: Array | None = None) -> ExactGram | None:
        """Return A'A itself, with the rows of ``extra``, where that is what is remembered."""
        return None

    def _lend(self, n_rows: int) -> Array | None:
        """Return room for the next dense rows, to be filled and then taken, if there is any."""
        return None

    def _sparse_limits(self) -> tuple[int, int] | None:
        """Return how many sparse rows and stored entries make a block, for a wrapper.

        None if sparse rows are better made dense, because the sketch is larger than a block.
        """
        return None

    @abstractmethod
    def _absorb(self, other: Self) -> None:
        """Add all that ``other``, which is compatible and not empty, remembers."""

    def _refusal(self, other: Self) -> str | None:
        """Return why ``other`` cannot be merged, or None."""
        return None

    def _differing(self, other: Self, *names: str) -> str | None:
        """Return which of these options differs in ``other``, or None."""
        for name in names:
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine != theirs:
                return f"{name} is {mine!r} here and {theirs!r} there; build both with the same"
        return None

    def merge(self, other: Self) -> Self:
        """Add what another sketch has seen, as if its rows had come here.

        Parameters
        ----------
        other : Sketch
            Of the same kind and for the same columns; it is left as it was.

        Returns
        -------
        self
            The sketch itself.

        Raises
        ------
        NotMergeableError
            If the two describe different things.
        """
        refuse_mismatch(self, other)
        if other.n_features is not None:
            assert other.dtype is not None
            self._interrupted = True
            if self.n_features is None:
                self._begin(other.n_features, other.dtype)
            self._round(other._entry_error)
            self._absorb(other.copy() if other is self else other)
            self.n_rows_seen += other.n_rows_seen
            self.total_weight += other.total_weight
            self._interrupted = False
        return self

    def __or__(self, other: Self) -> Self:
        """Return a merged copy."""
        return self.copy().merge(other)

    def copy(self) -> Self:
        """Return an independent copy.

        Returns
        -------
        Sketch
            A copy that shares no memory with this one.
        """
        return copy.deepcopy(self)

    @abstractmethod
    def fresh(self) -> Self:
        """Return an empty sketch with the same options.

        Returns
        -------
        Sketch
            An empty sketch of the same class.
        """

    def for_shard(self, index: int, n_shards: int) -> Self:
        """Return an empty sketch like this one for part ``index`` of ``n_shards``, to be merged.

        Parts of one table differ where that makes their merge better: random sketches draw
        other numbers, and the probability that a bound fails is divided among them.

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
        return self.fresh()

    def compact(self) -> Self:
        """Shrink rows that wait to be shrunk, where they are more than the sketch itself.

        For a sketch that is to travel: its state becomes no larger than about twice what it
        keeps. A sketch that stays where it is has no use for it.

        Returns
        -------
        self
            The sketch itself.
        """
        self._require_whole()
        if self.n_features is not None:
            self._interrupted = True
            self._shrink_waiting()
            self._interrupted = False
        return self

    def _shrink_waiting(self) -> None:
        """Do that; a sketch in which few rows wait, or none, leaves them."""

    @abstractmethod
    def _answer(self, extra: Matrix | None = None, allowance: float = 0.0) -> Answer:
        """Read the sketch, as if the rows ``extra`` had come as well; changes nothing.

        ``allowance`` is for them, as by `_allow`.
        """

    def _with_rows(self, extra: Array, allowance: float) -> Self:
        """Return a copy that has taken more rows."""
        twin = self.copy()
        twin._allow(allowance)
        twin._take(extra)
        twin.n_rows_seen += len(extra)
        return twin

    def summary(self) -> LowRankPlusRidge:
        """Return low rank plus ridge for A'A + initial_ridge I, with its error bound.

        Returns
        -------
        LowRankPlusRidge
            The operator that stands for ``A'A + initial_ridge I``.
        """
        return self._answer().summary

    def certificate(self) -> Certificate:
        """Return everything that is certain about A'A, as a record that prints itself.

        Returns
        -------
        Certificate
            Intervals for the error, the eigenvalues and the captured energy.
        """
        return self._answer().certificate

    @property
    def squared_norm(self) -> float:
        """Sum of the squared entries of all rows seen (weighted, after forgetting)."""
        return 0.0 if self.n_features is None else self._answer().summary.squared_norm

    def error_bound(self) -> float:
        """Return the bound on ``||A'A - summary()||_2``; ``inf`` if none is certified.

        Returns
        -------
        float
            The bound, with the confidence of the `certificate`.
        """
        return self.summary().error_bound

    def plan(self) -> str:
        """Return one sentence: how the rows are remembered, why, and in how much memory.

        Returns
        -------
        str
            The sentence.
        """
        if self.n_features is None:
            return f"{type(self).__name__}: waiting for the first rows to know the columns."
        return self._plan()

    @abstractmethod
    def _plan(self) -> str:
        """Return the sentence of `plan` once the columns are known."""

    def _require_rows(self) -> int:
        """Return the number of columns, or say that there is nothing to read yet."""
        self._require_whole()
        if self.n_features is None:
            raise ValueError(
                f"this {type(self).__name__} has seen no rows yet; call update before reading it"
            )
        return self.n_features

    def __repr__(self) -> str:
        columns = "?" if self.n_features is None else self.n_features
        return f"<{type(self).__name__}: {self.n_rows_seen} rows x {columns} features>"


def megabytes(n_bytes: float) -> str:
    """Return a readable size for sentences."""
    return f"{n_bytes / 1e6:.3g} MB"
