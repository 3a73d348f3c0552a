"""What the sketch-backed estimators share: taking rows in, merging, saving, lazy read-outs."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from sksketch._typing import Array, PathLike
from sksketch.exceptions import NotMergeableError
from sksketch.models.callbacks import Callbacks, CallbackSupport
from sksketch.models.checks import check_ageless, checked_rows
from sksketch.models.lazy import LazyAnswers
from sksketch.models.runner import fit_dask, is_dask
from sksketch.sketches import Certificate, Sketch, load_sketch
from sksketch.state.guard import Guarded
from sksketch.state.persistence import State, write_state

_COLUMNS = ("n_features_in_", "feature_names_in_")


class SketchEstimator(Guarded, LazyAnswers, CallbackSupport, BaseEstimator, ABC):
    """An estimator that owns one sketch; everything else is read from it on demand."""

    kind: ClassVar[str]
    version: ClassVar[int] = 1
    # Parameters that are lists of numbers.
    _array_params: ClassVar[tuple[str, ...]] = ()
    sketch_: Sketch
    n_features_in_: int
    feature_names_in_: Array
    # Number of this part and of all parts, while parts of a table are learned apart.
    _shard: tuple[int, int] | None = None

    @abstractmethod
    def _new_sketch(self, n_features: int) -> Sketch:
        """Return an empty sketch for that many columns, from the parameters."""

    def _shard_template(self) -> Self:
        """Return an unfitted copy for parts of the rows."""
        params = self.get_params(deep=False)
        for value in params.values():
            if isinstance(value, Sketch):
                check_ageless(value)
        return type(self)(**params)

    def _for_shard(self, index: int, n_shards: int) -> Self:
        """Return a copy of the template for one of many parts of the rows."""
        twin = type(self)(**self.get_params(deep=False))
        twin._shard = (index, n_shards)
        return twin

    def _compact(self) -> None:
        """Shrink what waits, before the state travels."""
        self.sketch_.compact()

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from all rows of ``X``, forgetting what was learned before.

        Parameters
        ----------
        X : array-like, sparse matrix or dask collection of shape (n_samples, n_features)
            Rows; those of dask are learned where they lie, see `fit_dask`.
        y : ignored
            Present for scikit-learn's pipelines.
        sample_weight : array-like of shape (n_samples,), optional
            Each row counts as so many copies of itself.

        Returns
        -------
        self
        """
        if is_dask(X):
            return fit_dask(self, X, y, sample_weight)
        columns = {name: vars(self)[name] for name in _COLUMNS if name in vars(self)}
        try:
            rows, targets = self._checked(X, y, reset=True)
            self._check_enough(rows)
            if sample_weight is not None and not np.asarray(sample_weight).any():
                raise ValueError("all sample weights are zero, expected some rows to count")
            with Callbacks(self).running("fit"):
                self._update(self._new_sketch(rows.shape[1]), rows, targets, sample_weight)
        except BaseException:
            # The former fit stands, so its columns must stand as well.
            for name in _COLUMNS:
                self.__dict__.pop(name, None)
            self.__dict__.update(columns)
            raise
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Go on learning from one more block of rows, of any size.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.
        y : ignored
            Present for scikit-learn's pipelines.
        sample_weight : array-like of shape (n_samples,), optional
            Each row counts as so many copies of itself.

        Returns
        -------
        self
        """
        first = not hasattr(self, "sketch_")
        if is_dask(X):
            if first:
                return fit_dask(self, X, y, sample_weight)
            return self.merge(fit_dask(self._shard_template(), X, y, sample_weight))
        rows, targets = self._checked(X, y, reset=first)
        sketch = self._begun(rows.shape[1]) if first else self.sketch_
        self._update(sketch, rows, targets, sample_weight)
        return self

    def _begun(self, n_features: int) -> Sketch:
        """Return an empty sketch, for this part of the rows if they are in parts."""
        sketch = self._new_sketch(n_features)
        return sketch if self._shard is None else sketch.for_shard(*self._shard)

    def _checked(self, X: Any, y: Any, reset: bool) -> tuple[Any, Any]:
        """Return rows and, where they are used, targets, as arrays."""
        # The sketch checks for NaN and infinity itself, in the pass that it needs anyway.
        return checked_rows(self, self._placed(X), reset=reset, all_finite=False), None

    def _placed(self, X: Any) -> Any:
        """Return rows where they are to be worked on: where they are."""
        return X

    def _rows(self, X: Any) -> Any:
        """Return rows for a fitted model, checked in full."""
        check_is_fitted(self, "sketch_")
        return checked_rows(self, self._placed(X), reset=False)

    def _check_enough(self, rows: Any) -> None:
        """Refuse rows that ``fit`` can not learn from at all."""

    def _update(self, sketch: Sketch, rows: Any, targets: Any, sample_weight: Any) -> None:
        sketch.update(rows, weights=sample_weight)
        self.sketch_ = sketch
        self._answers = {}

    def merge(self, other: Self) -> Self:
        """Add what another estimator has learned from other rows of the same columns.

        Parameters
        ----------
        other : estimator of the same class
            It is left as it was.

        Returns
        -------
        self
        """
        check_is_fitted(other, "sketch_")
        if type(other) is not type(self):
            raise NotMergeableError(
                f"cannot merge a {type(other).__name__} into a {type(self).__name__}; "
                "fit both as the same kind of estimator"
            )
        if not hasattr(self, "sketch_"):
            self.sketch_ = other.sketch_.fresh()
            self.n_features_in_ = other.n_features_in_
            if hasattr(other, "feature_names_in_"):
                self.feature_names_in_ = other.feature_names_in_
        names = getattr(self, "feature_names_in_", None)
        theirs = getattr(other, "feature_names_in_", None)
        if names is not None and theirs is not None and list(names) != list(theirs):
            raise NotMergeableError(
                f"cannot merge estimators of the columns {list(names)[:5]} and "
                f"{list(theirs)[:5]}; fit both on the same columns in the same order"
            )
        self.sketch_.merge(other.sketch_)
        self._answers = {}
        return self

    def _once(self, name: str, compute: Any) -> Any:
        """Compute an answer at its first read after an update, and remember it."""
        if "sketch_" not in self.__dict__:
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r} before fit"
            )
        # Those of now: what another thread learns meanwhile begins new ones.
        answers = self._answers
        if name not in answers:
            answers[name] = compute()
        return answers[name]

    @property
    def n_samples_seen_(self) -> int:
        """Rows learned from."""
        return int(self._once("n_samples_seen_", lambda: self.sketch_.n_rows_seen))

    @property
    def certificate_(self) -> Certificate:
        """What is certain about the rows, with its error bounds; print it."""
        certificate: Certificate = self._once("certificate_", lambda: self.sketch_.certificate())
        return certificate

    @property
    def plan_(self) -> str:
        """One sentence: how the rows are remembered, why, and in how much memory."""
        return str(self._once("plan_", lambda: self.sketch_.plan()))

    def save(self, path: PathLike) -> None:
        """Write the fitted estimator to one file, atomically; `sksketch.load` reads it."""
        check_is_fitted(self, "sketch_")
        write_state(self.state(), path)

    def state(self) -> State:
        """Return the parameters and the sketch's state, as plain data."""
        if not hasattr(self, "sketch_"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet; call fit first")
        params = self.get_params(deep=False)
        arrays = {name: np.asarray(params.pop(name), np.float64) for name in self._array_params}
        meta = {f"param.{k}": v for k, v in params.items() if not isinstance(v, Sketch)}
        meta["n_features_in"] = self.n_features_in_
        if hasattr(self, "feature_names_in_"):
            meta["feature_names"] = json.dumps(list(self.feature_names_in_))
        state = State(self.kind, self.version, meta, arrays)
        state = state.with_inner("sketch", self.sketch_.state())
        for name, value in params.items():
            if isinstance(value, Sketch):
                state = state.with_inner(f"template_{name}", value.fresh().state())
        return state

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Build the estimator that ``state`` was taken from."""
        state.require(cls.version)
        meta: Any = state.meta
        params = {
            name.removeprefix("param."): value
            for name, value in meta.items()
            if name.startswith("param.")
        }
        # A sketch given as a parameter was stored beside the others, empty.
        for name in cls().get_params(deep=False):
            if f"template_{name}.kind" in meta:
                params[name] = load_sketch(state.inner(f"template_{name}"))
        params |= {name: state.arrays[name].tolist() for name in cls._array_params}
        estimator = cls(**params)
        estimator.sketch_ = load_sketch(state.inner("sketch"))
        estimator.n_features_in_ = meta["n_features_in"]
        if "feature_names" in meta:
            names = json.loads(meta["feature_names"])
            estimator.feature_names_in_ = np.asarray(names, dtype=object)
        estimator._answers = {}
        return estimator
