"""The last rows of a stream, or those of the last days, remembered by any sketch."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from sksketch._typing import Array, Matrix
from sksketch.arrays.device_sparse import on_host
from sksketch.arrays.namespace import precision, to_numpy
from sksketch.arrays.rounding import gamma
from sksketch.arrays.rows import as_rows, as_weights, check_weighted_norms, squared_row_norms
from sksketch.sketches.base import Answer, Sketch
from sksketch.sketches.merging import refuse_mismatch
from sksketch.sketches.options import fraction_of_one, whole_number
from sksketch.sketches.targets import check_same, described
from sksketch.sketches.windows.describing import described_window
from sksketch.sketches.windows.edge import Edge, admit_edges
from sksketch.sketches.windows.history import History
from sksketch.sketches.windows.incoming import (
    checked_times,
    columns_of,
    first_row,
    squares_around,
)
from sksketch.sketches.windows.saving import restore, window_state
from sksketch.sketches.windows.templates import (
    begun,
    begun_to_read,
    check_template,
    keep_size,
    rows_that_wait,
    template_of,
    trimmed,
    working_dtype,
)
from sksketch.sketches.windows.times import as_duration
from sksketch.sketches.windows.waiting import Part, WaitingRows
from sksketch.sketches.wrappers.centered import Centered
from sksketch.sketches.wrappers.regression import Regression
from sksketch.state.persistence import State


class SlidingWindow(Sketch):
    """Wrap a sketch so that it remembers the last rows alone, with bounds for exactly these.

    Parameters
    ----------
    sketch : Sketch
        An empty sketch: `FrequentDirections`, `ExactCovariance` or another one that certifies its
        error, by itself or in `Centered` or `Regression`.
    rows : int, default=None
        The window is that number of last rows.
    duration : number, timedelta or str, default=None
        The window is the rows with times in (t - duration, t], where t is the latest time: a text
        such as "7d", or a number in the unit of the times (seconds, where times are dates).
    tol : float, default=0.05
        The bucket at the edge has at most this part of the energy of the rows after it.

    Attributes
    ----------
    n_rows_seen : int
        Rows in the window; of a bucket at the edge of a ``duration`` as if they had come evenly.
    n_rows_total : int
        Rows that have ever come.

    See Also
    --------
    Archive : States of past periods, for any range of them.
    StreamingPCA : Takes ``window`` as a parameter.

    Notes
    -----
    The newest rows are kept as they are. Older ones are in buckets, states that are joined as they
    grow old, as in an exponential histogram [1]_. Of the bucket that the edge cuts, half is taken,
    and half of its largest eigenvalue is allowed for; LM-FD [2]_ counts all of its energy.

    Windows of ``rows`` merge as parts of a table do, one after the other, others by time.

    References
    ----------
    .. [1] Datar, M., Gionis, A., Indyk, P. and Motwani, R. (2002). "Maintaining Stream Statistics
       over Sliding Windows". SIAM Journal on Computing 31(6). doi:10.1137/S0097539701398363
    .. [2] Wei, Z., Liu, X., Li, F., Shang, S., Du, X. and Wen, J.-R. (2016). "Matrix Sketching
       Over Sliding Windows". SIGMOD. doi:10.1145/2882903.2915228

    Examples
    --------
    >>> from sksketch import FrequentDirections
    >>> X = np.random.default_rng(0).standard_normal((5000, 30)) / np.arange(1, 31)
    >>> window = SlidingWindow(FrequentDirections(8, solver="exact"), rows=2000, tol=0.2)
    >>> window = window.update(X[:3000]).update(X[3000:])
    >>> last = X[-2000:]
    >>> error = np.linalg.norm(last.T @ last - window.summary().to_dense(), 2)
    >>> window.n_rows_seen, bool(error <= window.error_bound())
    (2000, True)
    """

    kind = "sliding-window"

    def __init__(
        self,
        sketch: Sketch,
        *,
        rows: int | None = None,
        duration: object = None,
        tol: float = 0.05,
    ) -> None:
        self.sketch = check_template(sketch)
        if (rows is None) == (duration is None):
            given = "neither" if rows is None else "both"
            raise ValueError(f"got {given} of rows and duration; give exactly one of them")
        self.rows = None if rows is None else whole_number("rows", rows)
        self.duration = None if duration is None else as_duration(duration)
        self.tol = fraction_of_one("tol", tol)
        self._history = History(self.rows, self.duration)
        self._origin: Array | None = None
        self._target_shape: tuple[int, ...] | None = None
        self._cached: Sketch | None = None

    def update(  # type: ignore[override]
        self,
        X: object,
        times: object = None,
        weights: object = None,
        targets: object = None,
    ) -> Self:
        """Take in a block of rows, or a single row; what they push out of the window is dropped.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_rows, n_features)
            Real, finite numbers.
        times : array-like of shape (n_rows,), default=None
            Times of the rows, none before that of the row before it: numbers or dates. A window
            of a ``duration`` needs them.
        weights : array-like of shape (n_rows,), default=None
            Each row counts as ``weights[i]`` copies of itself; in ``rows`` it is one.
        targets : array-like of shape (n_rows,) or (n_rows, n_targets), default=None
            For a window of a `Regression`.

        Returns
        -------
        self
            The sketch itself, unchanged if the block is refused.
        """
        self._require_whole()
        rows: Any = on_host(as_rows(X, n_features=self.n_features))
        rows = rows if sp.issparse(rows) else to_numpy(rows)
        counted = as_weights(weights, rows.shape[0])
        dtype = self.dtype
        if dtype is None:
            dtype = np.dtype(np.float32 if precision(rows) == np.float32 else np.float64)
            dtype = working_dtype(self.sketch, dtype, rows.shape[1])
        norms = squared_row_norms(rows, dtype)
        if counted is not None:
            check_weighted_norms(norms, counted, dtype)
        moments, clock = checked_times(times, rows.shape[0], self._history)
        columns, shape = columns_of(targets, rows.shape[0], self.sketch)
        if self.n_features is not None:
            check_same(shape, self._target_shape)
        self._interrupted = True
        self._cached = None
        if self.n_features is None:
            self._begin(rows.shape[1], dtype)
            self._history.clock, self._target_shape = clock, shape
            self._origin = first_row(rows) if self.centered else None
        if dtype == np.float32 and precision(rows) != np.float32:
            self._round(gamma(1, np.float32))
        rows = rows.astype(dtype, copy=False)
        counted = np.ones(rows.shape[0]) if counted is None else counted
        energies = counted * (norms if self._origin is None else squares_around(rows, self._origin))
        self._history.take(Part(rows, moments, counted, energies, columns), self._make)
        self._interrupted = False
        return self

    def _begin(self, n_features: int, dtype: np.dtype[Any]) -> None:
        super()._begin(n_features, dtype)
        reserve = rows_that_wait(self.sketch, n_features, self.tol, self.rows)
        self._history = History(self.rows, self.duration, self.tol, reserve)

    def _take(self, rows: Matrix) -> None:
        self.update(rows)

    def _make(self, parts: list[Part]) -> Sketch:
        """Return the sketch of some rows."""
        sketch = self._empty()
        for part in parts:
            self._feed(sketch, part)
        return trimmed(sketch)

    @property
    def _known(self) -> tuple[int, np.dtype[Any], float]:
        """Columns and precision that a new sketch has to know."""
        assert self.n_features is not None
        assert self.dtype is not None
        return self.n_features, self.dtype, self._entry_error

    def _empty(self) -> Sketch:
        return begun(self.sketch, *self._known)

    def _feed(self, sketch: Sketch, part: Part) -> None:
        """Give rows to a sketch."""
        weights = None if (part.weights == 1.0).all() else part.weights
        if self._target_shape is None:
            sketch.update(part.rows, weights)
            return
        assert isinstance(sketch, Regression)
        targets = part.targets if self._target_shape else part.targets[:, 0]
        sketch.update(part.rows, weights, targets=targets)

    # What is in the window

    def read(self) -> Sketch:
        """Return a sketch of the kind that was wrapped, of the rows in the window.

        Returns
        -------
        Sketch
            Its bounds include what the edge of the window leaves open.
        """
        return self._read().copy()

    def _read(self) -> Sketch:
        """Return that sketch, which is not to be changed."""
        self._require_rows()
        if self._cached is None:
            content = self._history.content()
            sketch, size = begun_to_read(self.sketch, *self._known)
            for bucket in content.inside:
                sketch.merge(bucket.sketch)
                keep_size(sketch, size)
            waiting = self._history.waiting.copy()
            waiting.take(content.first_waiting)
            for part in waiting:
                self._feed(sketch, part)
            if content.edges:
                admit_edges(sketch, [Edge(b.sketch, share) for b, share in content.edges])
            self._cached = sketch
        return self._cached

    def _answer(self, extra: Matrix | None = None, allowance: float = 0.0) -> Answer:
        assert extra is None
        return self._read()._answer()

    @property
    def n_rows_seen(self) -> int:  # type: ignore[override]
        """Rows in the window."""
        return 0 if self.n_features is None else self._history.counted()[0]

    @property
    def total_weight(self) -> float:  # type: ignore[override]
        """Sum of their weights."""
        return 0.0 if self.n_features is None else self._history.counted()[1]

    @property
    def centered(self) -> bool:
        """Whether the rows are remembered around their mean."""
        return bool(getattr(self.sketch, "centered", isinstance(self.sketch, Centered)))

    @property
    def n_rows_total(self) -> int:
        """Rows that have ever come."""
        return self._history.n_total

    @property
    def n_buckets(self) -> int:
        """States held, beside the rows that wait."""
        return len(self._history.buckets)

    # Merging and copies

    def fresh(self) -> Self:
        """Return an empty sketch with the same options.

        Returns
        -------
        SlidingWindow
            An empty window of the same kind.
        """
        return self._with_template(self.sketch)

    def for_shard(self, index: int, n_shards: int) -> Self:
        """Return an empty window for one of many parts of the rows.

        Parameters
        ----------
        index : int
            Number of the part, from 0 on.
        n_shards : int
            Number of all parts, in the order of their rows.

        Returns
        -------
        SlidingWindow
            An empty window for that part.
        """
        return self._with_template(self.sketch.for_shard(index, n_shards))

    def _with_template(self, sketch: Sketch) -> Self:
        return type(self)(sketch, rows=self.rows, duration=self.duration, tol=self.tol)

    def _refusal(self, other: Self) -> str | None:
        if reason := self._differing(other, "rows", "duration"):
            return reason
        if type(self.sketch) is not type(other.sketch):
            return "the wrapped sketches are of different kinds; wrap the same kind"
        if None not in (self.n_features, other.n_features):
            reason = self._history.refusal(other._history)
            if reason is None and self._target_shape != other._target_shape:
                mine, theirs = described(self._target_shape), described(other._target_shape)
                reason = f"{mine} here and {theirs} there; build both with the same targets"
            if reason is not None:
                return reason
        return self.sketch._refusal(other.sketch)

    def merge(self, other: Self) -> Self:
        """Add what another window has seen: by time, or for ``rows`` as if it had come after.

        Parameters
        ----------
        other : SlidingWindow
            With the same ``rows`` or ``duration`` and for the same columns; it is left as it was.

        Returns
        -------
        self
            The sketch itself.
        """
        refuse_mismatch(self, other)
        if other.n_features is None:
            return self
        assert other.dtype is not None
        self._interrupted = True
        self._cached = None
        if self.n_features is None:
            self._begin(other.n_features, other.dtype)
            self._history.clock, self._history.latest = other._history.clock, other._history.latest
            self._target_shape, self._origin = other._target_shape, other._origin
        elif self.dtype == np.float32 != other.dtype:
            self._round(gamma(1, np.float32))
        self._round(other._entry_error)
        self._absorb(other)
        self._interrupted = False
        return self

    def _absorb(self, other: Self) -> None:
        theirs = other.copy()._history
        waiting = WaitingRows()
        for part in theirs.waiting:
            waiting.add(part._replace(rows=part.rows.astype(self.dtype, copy=False)))
        waiting.own()
        theirs.waiting = waiting
        self._history.absorb(theirs, self._make)

    def _shrink_waiting(self) -> None:
        self._cached = None
        for bucket in self._history.buckets:
            bucket.sketch.compact()

    def _plan(self) -> str:
        n_features = self._require_rows()
        size = f"{self.rows} rows" if self.rows is not None else f"a duration of {self.duration:g}"
        return described_window(size, self._history, self._empty(), n_features)

    # Saving

    def state(self) -> State:
        """Return the options, the rows that wait and the states of all buckets.

        Returns
        -------
        State
            Plain values and arrays, as `save` writes them.
        """
        return window_state(self)

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Build a window that continues where ``state`` was taken.

        Parameters
        ----------
        state : State
            What `state` returned, or what was read from a file.

        Returns
        -------
        SlidingWindow
            A window that continues where ``state`` was taken.
        """
        cls._check_kind(state)
        meta: Any = state.meta
        options = {name: meta[name] for name in ("rows", "duration", "tol")}
        window = cls(template_of(state.inner("template")), **options)
        restore(window, state)
        return window
