"""Estimators that own one sketch: taking rows in, merging, and what is read from it on demand."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Self

import numpy as np

from sksketch._typing import Array, Rows, RowsLike
from sksketch.models.base import Estimator, or_as_before
from sksketch.models.checks import check_ageless, checked_rows
from sksketch.models.forgetting import check_parts, plain_window
from sksketch.models.runner import fit_dask, is_dask
from sksketch.models.scikit_learn import Callbacks
from sksketch.sketches import Certificate, Sketch, load_sketch
from sksketch.state.persistence import State


class SketchEstimator(Estimator):
    """An estimator that owns one sketch; everything else is read from it on demand."""

    _fitted = "sketch_"
    sketch_: Sketch
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
            sketch = self._begun(rows.shape[1]) if first else self.__dict__[self._fitted]
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
        """Look at all rows before `fit` learns from them."""

    def _update(
        self, sketch: Sketch, rows: Rows, targets: Array | None, sample_weight: RowsLike | None
    ) -> None:
        self._give(sketch, rows, targets, sample_weight)
        self.sketch_ = sketch
        self._answers = {}

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
        return self.shard_template()

    def _part(self, index: int, n_shards: int) -> Self:
        twin = type(self)(**self.get_params(deep=False))
        twin._shard = (index, n_shards)
        return twin

    def compact(self) -> None:
        """Shrink the rows that wait in the sketch, before its state travels."""
        self.sketch_.compact()

    def _absorb(self, other: Self) -> None:
        if not hasattr(self, "sketch_"):
            self.sketch_ = other.sketch_.fresh()
            self._take_columns(other.n_features_in_, getattr(other, "feature_names_in_", None))
        self.sketch_.merge(other.sketch_)

    # Answers

    @property
    def n_samples_seen_(self) -> int:
        """Rows learned from."""
        return int(self._once("n_samples_seen_", lambda: self.sketch_.n_rows_seen))

    @property
    def certificate_(self) -> Certificate:
        """Certificate: what is certain about the rows, with its error bounds; print it."""
        certificate: Certificate = self._once("certificate_", lambda: self.sketch_.certificate())
        return certificate

    @property
    def plan_(self) -> str:
        """One sentence: how the rows are remembered, why, and in how much memory."""
        return str(self._once("plan_", lambda: self.sketch_.plan()))

    # Saving

    def _saved_params(self) -> dict[str, Any]:
        params = super()._saved_params()
        if "window" in params:
            params["window"] = plain_window(params["window"])
        return params

    def _learned(self, state: State) -> State:
        return state.with_inner("sketch", self.sketch_.state())

    def _recall(self, state: State) -> None:
        self.sketch_ = load_sketch(state.inner("sketch"))
