"""Estimators that own one sketch: taking rows in, merging, and what is read from it on demand.

What is read is in units of the columns, ``_read()`` and all that comes of it; ``_unit()`` takes it
back to the user's. The sketch is of rows in units only where it does not keep A'A.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Self

import numpy as np

from sksketch._typing import Array, Rows, RowsLike
from sksketch.arrays.rows import as_rows
from sksketch.arrays.sparse import in_units
from sksketch.exceptions import NotMergeableError
from sksketch.models.base import Estimator, or_as_before
from sksketch.models.checks import check_ageless, checked_rows, one_each
from sksketch.models.forgetting import check_parts, plain_window
from sksketch.models.intake import FirstRows, Intake, Units
from sksketch.models.runner import fit_dask, is_dask
from sksketch.models.scikit_learn import Callbacks
from sksketch.models.standardized import Deviations, keeps_gram
from sksketch.sketches import Certificate, Sketch, SlidingWindow, load_sketch
from sksketch.sketches.base import Answer
from sksketch.sketches.directions.gram_answer import answer_in_units
from sksketch.state.persistence import State


class SketchEstimator(Estimator):
    """An estimator that owns one sketch; everything else is read from it on demand."""

    _fitted = "_sketch"
    _sketch: Sketch
    # What rows are divided by on their way in, and those that wait for it.
    _intake = Intake()
    # Names of what the first rows tell beside their columns, as plain numbers.
    _facts: ClassVar[tuple[str, ...]] = ()
    # Number of this part and of all parts, while parts of a table are learned apart.
    _shard: tuple[int, int] | None = None
    # Of the rows that are being learned.
    _times: object = None

    def new_sketch(self, n_features: int) -> Sketch:
        """Return an empty sketch for rows of ``n_features`` columns, as the parameters ask.

        Parameters
        ----------
        n_features : int
            Columns.

        Returns
        -------
        Sketch
            The sketch, without rows.
        """
        self._check_params()
        return self._sketch_for(n_features)

    @abstractmethod
    def _sketch_for(self, n_features: int) -> Sketch:
        """Return an empty sketch, as the parameters ask, which make sense."""

    def _units(self) -> Units:
        """Return how columns are measured: not at all."""
        return Deviations(False)

    @property
    def sketch_(self) -> Sketch:
        """The sketch that remembers the rows, with a window those in it."""
        if "_sketch" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute 'sketch_'")
        sketch = self._sketch
        if self._intake.waiting:
            sketch = self._once("sketch_", self._with_waiting)
        return sketch._read() if isinstance(sketch, SlidingWindow) else sketch

    @sketch_.setter
    def sketch_(self, sketch: Sketch) -> None:
        self._sketch = sketch

    def _with_waiting(self) -> Sketch:
        """Return the sketch with the rows that wait, in units that are those of them so far."""
        sketch, waiting = self._sketch.copy(), FirstRows.joined(self._intake.waiting)
        self._give_in_units(sketch, waiting, self._units().scale_of(waiting))
        return sketch

    def fit(
        self,
        X: RowsLike,
        y: RowsLike | None = None,
        sample_weight: RowsLike | None = None,
        times: object = None,
    ) -> Self:
        """Learn from all rows of ``X``, forgetting what was learned before.

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
        if is_dask(X):
            return fit_dask(self, X, y, sample_weight)
        with or_as_before(self), self._at(times):
            rows, targets = self._checked(X, y, reset=True)
            sample_weight = one_each(sample_weight, rows.shape[0])
            self._check_enough(rows)
            if sample_weight is not None and not np.asarray(sample_weight).any():
                raise ValueError("all sample weights are zero, expected some rows to count")
            with Callbacks(self).running("fit"):
                sketch = self.new_sketch(rows.shape[1])
                self._look(sketch, rows, sample_weight)
                self._update(sketch, rows, targets, sample_weight)
        return self

    def partial_fit(
        self,
        X: RowsLike,
        y: RowsLike | None = None,
        sample_weight: RowsLike | None = None,
        times: object = None,
    ) -> Self:
        """Learn from one more block of rows, of any size.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.
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
        first = self._fitted not in self.__dict__
        if is_dask(X):
            if first:
                return fit_dask(self, X, y, sample_weight)
            return self.merge(fit_dask(self._beside(), X, y, sample_weight))
        with or_as_before(self), self._at(times):
            rows, targets = self._checked(X, y, reset=first)
            sample_weight = one_each(sample_weight, rows.shape[0])
            sketch = self._begun(rows.shape[1]) if first else self._sketch
            self._update(sketch, rows, targets, sample_weight)
        return self

    @contextmanager
    def _at(self, times: object) -> Iterator[None]:
        """Let the rows that are learned meanwhile have times."""
        if times is not None and getattr(self, "window", None) is None:
            raise ValueError("got times, which only a window of the last rows uses; give window=")
        if times is None:
            yield
            return
        self._times = times
        yield
        del self._times

    def _begun(self, n_features: int) -> Sketch:
        """Return an empty sketch, for this part of the rows if they are in parts."""
        sketch = self.new_sketch(n_features)
        return sketch if self._shard is None else sketch.for_shard(*self._shard)

    def _checked(self, X: RowsLike, y: RowsLike | None, reset: bool) -> tuple[Any, Any]:
        """Return rows and, where they are used, targets, as arrays."""
        # The sketch checks for NaN and infinity itself, in the pass that it needs anyway.
        return checked_rows(self, self._placed(X), reset=reset, all_finite=False), None

    def _placed(self, X: RowsLike) -> Any:
        """Return rows where they are to be worked on: where they are."""
        return X

    def _rows(self, X: RowsLike) -> Any:
        """Return rows for a fitted model, checked in full."""
        self._require_fitted()
        return checked_rows(self, self._placed(X), reset=False)

    def _check_enough(self, rows: Rows) -> None:
        """Refuse rows that ``fit`` cannot learn from at all."""

    def _look(self, sketch: Sketch, rows: Rows, sample_weight: RowsLike | None) -> None:
        """Take the units of all rows before `fit` learns from them."""
        units, self._intake = self._units(), Intake()
        if units.are_for(sketch):
            found = FirstRows.of(as_rows(rows), None, sample_weight)
            self._intake = Intake(units.scale_of(found))

    def _update(
        self, sketch: Sketch, rows: Rows, targets: Array | None, sample_weight: RowsLike | None
    ) -> None:
        units = self._units()
        units.check(self._intake, sketch)
        if units.are_for(sketch):
            self._take(sketch, FirstRows.of(as_rows(rows), targets, sample_weight))
        else:
            self._give(sketch, rows, targets, sample_weight)
            self._intake = units.beside(self._intake, sketch, rows, sample_weight)
        self._sketch, self._answers = sketch, {}

    def _take(self, sketch: Sketch, rows: FirstRows) -> None:
        """Let a sketch take rows in units, or keep them until there are enough to have some."""
        if self._times is not None:
            rows.check()
            raise ValueError(
                "standardize needs the units of columns before the first row of a window with "
                "times; take sketch='exact', which reads them from the window"
            )

        def give(found: FirstRows, scale: Array) -> None:
            self._give_in_units(sketch, found, scale)

        self._intake = self._intake.take(rows, self._units(), give)

    def _give_in_units(self, sketch: Sketch, rows: FirstRows, scale: Array) -> None:
        """Let a sketch take rows in, divided by units."""
        sketch._round(self._units().rounding(rows))
        self._give(sketch, in_units(rows.X, scale), rows.targets, rows.weights)

    def _give(
        self, sketch: Sketch, rows: Rows, targets: Array | None, sample_weight: RowsLike | None
    ) -> None:
        """Let a sketch take rows in."""
        sketch.update(rows, weights=sample_weight, **self._timed())

    def _timed(self) -> dict[str, Any]:
        """Return the times of the rows as an option of `Sketch.update`, if they have some."""
        return {} if self._times is None else {"times": self._times}

    def reading(self, sketch: Sketch, feature_names: Iterable[str] | None = None) -> Self:
        """Return a copy that has learned what a sketch has seen.

        Parameters
        ----------
        sketch : Sketch
            One that `new_sketch` might have given, with rows; it is copied.
        feature_names : sequence of str, default=None
            Names of its columns.

        Returns
        -------
        SketchEstimator
            The copy, fitted.
        """
        twin = type(self)(**self.get_params(deep=False))
        assert sketch.n_features is not None
        twin._take_columns(sketch.n_features, feature_names)
        twin.sketch_, twin._answers = copy.deepcopy(sketch), {}
        return twin

    # Parts of the rows

    def _template(self) -> Self:
        params = self.get_params(deep=False)
        check_parts(params.get("window"), params.get("half_life"))
        for value in params.values():
            if isinstance(value, Sketch):
                check_ageless(value)
        return type(self)(**params)

    def _beside(self) -> Self:
        """Return an unfitted copy for other rows, to be merged into this one."""
        twin = self.shard_template()
        twin._intake = self._intake.units_alone()
        return twin

    def _part(self, index: int, n_shards: int) -> Self:
        twin = type(self)(**self.get_params(deep=False))
        twin._shard, twin._intake = (index, n_shards), self._intake.units_alone()
        return twin

    def compact(self) -> None:
        """Shrink the rows that wait in the sketch, before its state travels."""
        self._sketch.compact()

    def _absorb(self, other: Self) -> None:
        if "_sketch" not in self.__dict__:
            self._sketch = other._sketch.fresh()
            self._take_columns(other.n_features_in_, getattr(other, "feature_names_in_", None))
            self._intake = other._intake.units_alone()
            self.__dict__.update({name: getattr(other, name) for name in self._facts})
        self._units().check_alike(self._sketch, other._units(), other._sketch)
        if self._units().are_for(self._sketch):
            self._absorb_in_units(other)
            return
        n_before = self._sketch.n_rows_seen
        self._intake = self._intake.with_columns_of(other._intake, n_before)
        self._sketch.merge(other._sketch)

    def _absorb_in_units(self, other: Self) -> None:
        mine, theirs = self._intake, other._intake
        if mine.scale is None and theirs.scale is not None:
            # Rows that wait take the units that the other has.
            self._sketch.merge(other._sketch)
            self._intake = theirs.units_alone()
            waiting = mine.waiting
        elif theirs.waiting:
            waiting = theirs.waiting
        elif np.array_equal(mine.scale, theirs.scale):  # type: ignore[arg-type]
            self._sketch.merge(other._sketch)
            waiting = ()
        else:
            raise NotMergeableError(self._units().difference(mine.scale, theirs.scale))
        if waiting:
            self._take(self._sketch, FirstRows.joined(waiting))

    # Answers

    def _unit(self) -> Array | None:
        """Return the units of the columns that answers are in; None for the user's."""
        units = self._units()
        if not units.are_of_answers(self._intake):
            return None
        unit: Array = self._once("unit", lambda: units.of_answers(self._intake, self._sketch))
        return unit

    def _unit_of_sketch(self) -> Array | float:
        """Return the units of the rows that the sketch has taken."""
        unit = self._unit()
        return 1.0 if unit is None or keeps_gram(self._sketch) else unit

    def _read(self) -> Answer:
        """Return the summary and certificate of the rows in units."""

        def read() -> Answer:
            unit = self._unit()
            if unit is None or not keeps_gram(self._sketch):
                return self.sketch_._answer()
            return answer_in_units(self.sketch_, unit)

        answer: Answer = self._once("read", read)
        return answer

    @property
    def n_samples_seen_(self) -> int:
        """Rows learned from."""
        return int(self._once("n_samples_seen_", lambda: self.sketch_.n_rows_seen))

    @property
    def certificate_(self) -> Certificate:
        """Certificate: what is certain about the rows, with its error bounds; print it."""
        certificate: Certificate = self._once("certificate_", lambda: self._read().certificate)
        return certificate

    @property
    def plan_(self) -> str:
        """One sentence: how the rows are remembered, why, and in how much memory."""
        return str(self._once("plan_", self._plan))

    def _plan(self) -> str:
        intake = self._intake
        plan = (self.sketch_ if intake.waiting else self._sketch).plan()
        if self._unit() is None:
            return plan
        if keeps_gram(self._sketch):
            return f"{plan} Columns are divided by their standard deviations when it is read."
        n_rows = intake.n_waiting or intake.n_rows
        whose = f"the first {n_rows:,} rows" if n_rows else "all rows"
        return f"{plan} Columns are divided by the standard deviations of {whose} on their way in."

    # Saving

    def _saved_params(self) -> dict[str, Any]:
        params = super()._saved_params()
        if "window" in params:
            params["window"] = plain_window(params["window"])
        return params

    def _learned(self, state: State) -> State:
        facts = {name.strip("_"): getattr(self, name) for name in self._facts}
        state = state.with_inner("sketch", self._sketch.state()).with_more(facts, {})
        return self._intake.stored(state, self._units())

    def _recall(self, state: State) -> None:
        self._sketch = load_sketch(state.inner("sketch"))
        self.__dict__.update({name: state.meta[name.strip("_")] for name in self._facts})
        n_columns = self._sketch.n_features or self.n_features_in_
        self._intake = Intake.of_state(state, self._units(), n_columns)
