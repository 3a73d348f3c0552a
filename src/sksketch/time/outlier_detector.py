"""Rows that do not fit: distances from what is usual in a stream, with a threshold of its own."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from sklearn.base import OutlierMixin

from sksketch._typing import Array, OneRow, Rows, RowsLike
from sksketch.arrays.rows import as_rows, as_weights
from sksketch.exceptions import NotMergeableError
from sksketch.models import forgetting, standardized
from sksketch.models.base import or_as_before
from sksketch.models.checks import host_rows, learn_one, one_row
from sksketch.models.constraints import FLAG, NOTHING, Constraints, number, whole
from sksketch.models.intake import FirstRows
from sksketch.models.runner import is_dask, lazy
from sksketch.models.sketched import SketchEstimator
from sksketch.sketches import Centered, Sketch, SlidingWindow
from sksketch.sketches.windows.incoming import checked_times
from sksketch.state.persistence import State
from sksketch.time.distances import Distances, sketch_for_distances
from sksketch.time.progress import Places, Progress, cut_times, repeated


class StreamingOutlierDetector(OutlierMixin, SketchEstimator):
    """Outliers of a stream: rows far from the others along and outside of their main directions.

    Parameters
    ----------
    n_components : int, default=None
        Directions in which a row is measured by the variance there; outside of them it is by the
        average variance outside. By default as many as are certain, which is all where the
        covariance is kept.
    contamination : float, default=0.01
        Part of the rows that are outliers, in (0, 0.5].
    window : int, str or timedelta, default=None
        Learn from the last rows alone: that number of them, or those of a length of time such as
        "7d", for which `partial_fit` takes their ``times``. See `SlidingWindow`.
    half_life : float, default=None
        Forget by and by: a row counts half after that number of others.
    robust : bool, default=False
        Whether rows that are outliers when they come are left out of learning.

    Attributes
    ----------
    offset_ : float
        Threshold of `score_samples`: rows below it are outliers.
    offset_rank_error_ : float
        Bound on what the part of scores below ``offset_`` is off by, from the quantile sketch.
    n_flagged_ : int
        Rows that were outliers when they came.
    scale_ : array of shape (n_features,)
        Standard deviation of each column, by which it is divided.
    certificate_ : Certificate
        What is certain about the covariance of the rows divided by exactly ``scale_``.
    plan_ : str
        One sentence: how the rows are remembered, why, and in how much memory.
    sketch_ : Sketch
        What remembers the rows.
    n_samples_seen_ : int
        Rows learned from.
    n_features_in_ : int
        Columns of the rows.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of the columns, where the rows have names.

    See Also
    --------
    compare : What changed in all rows together.
    StreamingPCA : The directions themselves.
    sklearn.ensemble.IsolationForest : For rows that fit in memory.

    Notes
    -----
    The score is minus the squared Mahalanobis distance by a covariance of low rank plus ridge, in
    units of the columns. After `fit` the threshold is of the scores of the same rows. With
    `partial_fit` every row is scored before it is learned, in tiles of 256 and by what was usual
    when the tile began; what is usual is read anew each time there are a quarter more rows. The
    last half to three quarters of these scores make the threshold, by a deterministic sketch [1]_.
    A row counts there as often as its weight says, if weights are whole, else once.

    References
    ----------
    .. [1] Manku, G. S., Rajagopalan, S. and Lindsay, B. G. (1998). "Approximate Medians and other
       Quantiles in One Pass and with Limited Memory". SIGMOD. doi:10.1145/276304.276342

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((1000, 4))
    >>> X[7] = [0.0, 0.0, 9.0, 0.0]
    >>> detector = StreamingOutlierDetector(contamination=0.002).fit(X)
    >>> int(detector.score_samples(X).argmin()), int(detector.contributions(X)[7].argmin())
    (7, 2)
    >>> detector.predict(X[6:9])
    array([ 1, -1,  1])
    """

    kind = "streaming-outlier-detector"
    _constraints: ClassVar[Constraints] = {
        "n_components": (whole(1), NOTHING),
        "contamination": (number(0.0, 0.5, bounds="(]"),),
        "robust": (FLAG,),
        **forgetting.CONSTRAINTS,
    }
    _progress: Progress
    _clock: str | None = None
    _at_once = False

    learn_one = learn_one

    # Distances that do not depend on units.
    standardize = True
    _units = standardized.units_of
    scale_ = property(standardized.scale_)
    is_of_plain_rows = property(standardized.is_of_plain_rows)
    n_passes = property(standardized.n_passes)
    pilot_rows = property(standardized.pilot_rows)
    measure_first = standardized.measure_first
    take_pilot = standardized.take_pilot
    end_pass = standardized.end_pass

    def __init__(
        self,
        n_components: int | None = None,
        *,
        contamination: float = 0.01,
        window: object = None,
        half_life: float | None = None,
        robust: bool = False,
    ) -> None:
        self.n_components = n_components
        self.contamination = contamination
        self.window = window
        self.half_life = half_life
        self.robust = robust

    def _check_together(self) -> None:
        forgetting.check_forgetting(self.window, self.half_life, "auto")

    def _sketch_for(self, n_features: int) -> Sketch:
        inner = sketch_for_distances(n_features, self.n_components, self.window, self.half_life)
        return forgetting.windowed(Centered(inner), self.window, n_features)

    # Learning

    def fit(
        self,
        X: RowsLike,
        y: RowsLike | None = None,
        sample_weight: RowsLike | None = None,
        times: object = None,
    ) -> Self:
        """Learn what is usual from all rows of ``X``, and a threshold from their scores.

        Parameters
        ----------
        X : array-like, sparse matrix or dask collection of shape (n_samples, n_features)
            Rows; those of dask are learned where they lie, see `fit_dask`.
        y : ignored
            Present for scikit-learn's pipelines.
        sample_weight : array-like of shape (n_samples,), default=None
            Row ``i`` counts as ``sample_weight[i]`` copies.
        times : array-like of shape (n_samples,), default=None
            Times of the rows, in order: for a window that is a length of time.

        Returns
        -------
        self
            This estimator.
        """
        with or_as_before(self):
            self._progress, self._clock = self._fresh_progress(), None
            # Scores on the way would be replaced by those of the end.
            self._at_once = not (self.robust or is_dask(X))
            super().fit(X, y, sample_weight, times)
            self._at_once = False
            if is_dask(X):
                return self
            self._close(everything=True)
            rows = self._rows(host_rows(X))
            places = Places.of(times, rows.shape[0], 0)
            self._clock = places.clock
            scores = -self._now().squared(rows)
            weights = as_weights(sample_weight, rows.shape[0])
            self._progress.history = self._fresh_progress().history
            self._progress.history.add(*repeated(weights, scores, places.values))
            self._answers = {}
        return self

    def _fresh_progress(self) -> Progress:
        self._check_params()
        return Progress.of(self.window, self.half_life)

    def _update(
        self, sketch: Sketch, rows: Rows, targets: Array | None, sample_weight: RowsLike | None
    ) -> None:
        self._progress = self.__dict__.get("_progress") or self._fresh_progress()
        if self._intake.measuring or self._at_once:
            super()._update(sketch, rows, targets, sample_weight)
            self._progress.n_scored += rows.shape[0] if self._at_once else 0
            return
        weights = as_weights(sample_weight, rows.shape[0])
        block = FirstRows.of(as_rows(host_rows(rows)), None, weights)
        block.check()
        start, n_rows, times = 0, block.X.shape[0], self._times
        if isinstance(sketch, SlidingWindow):
            # All of them, before the first tile is learned.
            checked_times(times, n_rows, sketch._history)
        progress = self._progress
        places = Places.of(times, n_rows, progress.n_rows)
        progress.check_after(places)
        self._clock = places.clock
        try:
            while start < n_rows:
                # What is not left out by its score is learned at once until that is looked at.
                stop = min(start + progress.room_until_read, n_rows)
                if self.robust:
                    self._sketch = sketch
                else:
                    self._times = None if times is None else cut_times(times, start, stop)
                    part = block.part(start, stop)
                    super()._update(sketch, part.X, None, part.weights)
                while start < stop:
                    end = min(start + progress.room, stop)
                    progress.wait(block.part(start, end), places.part(slice(start, end)))
                    if not progress.room:
                        self._close()
                    start = end
        finally:
            self._times = times
        self._answers = {}

    def _close(self, everything: bool = False) -> None:
        """Score the tile that waits, by what was usual before it; learn from it if that is left."""
        progress = self._progress
        if progress.n_pending == 0:
            progress.now_usual(self._read_usual())
            return
        first = progress.usual is None
        tile, usual = progress.close(self.contamination)
        if self.robust and usual.any():
            weights = None if tile.rows.weights is None else tile.rows.weights[usual]
            with self._at(tile.places.part(usual).times):
                super()._update(self._sketch, tile.rows.X[usual], None, weights)
        self._answers = {}
        if progress.is_due or everything:
            progress.now_usual(self._read_usual())
        if first and not everything:
            progress.add_by(tile, self._now())

    def _now(self) -> Distances:
        """Return the distances by all rows that were learned."""
        found: Distances = self._once("distances", self._read_usual)
        return found

    def _read_usual(self) -> Distances:
        sketch: Any = self.sketch_
        mean = sketch.mean * self._unit_of_sketch()
        return Distances.read(sketch, self._read(), mean, self.scale_, self.n_components)

    def _scores(self) -> Any:
        return self._progress.scores(self._now)

    @property
    def offset_(self) -> float:
        """Threshold of `score_samples`: rows below it are outliers."""
        return float(self._once("offset_", lambda: self._scores().quantile(self.contamination)))

    @property
    def offset_rank_error_(self) -> float:
        """Bound on what the part of scores below ``offset_`` is off by."""
        return float(self._once("rank_error", lambda: self._scores().rank_error))

    @property
    def n_flagged_(self) -> int:
        """Rows that were outliers when they came."""
        return int(self._once("n_flagged_", lambda: self._progress.flagged))

    @lazy
    def score_samples(self, X: RowsLike) -> Array:
        """Return minus the squared distance of each row from what is usual.

        Parameters
        ----------
        X : array-like, sparse matrix or dask collection of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        array of shape (n_samples,)
            The lower, the more of an outlier.
        """
        rows = self._rows(host_rows(X))
        return -self._now().squared(rows)

    @lazy
    def contributions(self, X: RowsLike) -> Array:
        """Return what each column adds to the score of each row.

        Parameters
        ----------
        X : array-like, sparse matrix or dask collection of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        array of shape (n_samples, n_features)
            Sums over columns are `score_samples`; the lowest say what makes a row an outlier.
        """
        rows = self._rows(host_rows(X))
        return -self._now().contributions(rows)

    def decision_function(self, X: RowsLike) -> Array:
        """Return the score of each row less the threshold.

        Parameters
        ----------
        X : array-like, sparse matrix or dask collection of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        array of shape (n_samples,)
            Negative for outliers.
        """
        return self.score_samples(X) - self.offset_

    def predict(self, X: RowsLike) -> Array:
        """Return -1 for outliers and 1 for the others.

        Parameters
        ----------
        X : array-like, sparse matrix or dask collection of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        array of shape (n_samples,)
            Of integers.
        """
        return 1 - 2 * (self.decision_function(X) < 0.0)

    def score_one(self, x: OneRow) -> float:
        """Return the anomaly score of one row: its squared distance from what is usual.

        Parameters
        ----------
        x : mapping of names to numbers, or array-like of shape (n_features,)
            The row.

        Returns
        -------
        float
            The higher, the more of an outlier, as in River; 0 before the first row.
        """
        if self._fitted not in self.__dict__:
            return 0.0
        return float(self._now().squared(one_row(self, x))[0])

    def _absorb(self, other: Self) -> None:
        if self.robust != other.robust:
            raise NotMergeableError("only one of the two is robust; fit both alike")
        mine = self.__dict__.get("_progress", other._progress).history
        theirs = other._progress.history
        if (mine.part, mine.decay) != (theirs.part, theirs.decay):
            raise NotMergeableError("the two have other windows or half-lives; fit both alike")
        if self.robust and (self._clock or other._clock):
            raise NotMergeableError(
                "a robust detector learns from rows in the order of their times; learn all in one"
            )
        super()._absorb(other)
        progress = self.__dict__.get("_progress") or self._fresh_progress()
        self._progress = progress.merged(other._progress, by_rows=self._clock is None)
        self._answers = {}
        if self._progress.room <= 0:
            self._progress.now_usual(self._read_usual())
            self._close()

    def _learned(self, state: State) -> State:
        return self._progress.saved_in(super()._learned(state)).with_more(
            {"clock": self._clock}, {}
        )

    def _recall(self, state: State) -> None:
        super()._recall(state)
        meta: Any = state.meta
        self._clock = meta["clock"]
        self._progress = self._fresh_progress().restore(state, self._clock)
