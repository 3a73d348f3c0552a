"""The one base of all estimators: parameters to a state and back, names, roll-back, callbacks."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from sksketch._typing import Array, PathLike
from sksketch.exceptions import NotMergeableError
from sksketch.models import scikit_learn
from sksketch.models.constraints import Constraints, check_parameters
from sksketch.models.parameters import parameters_of, with_parameters
from sksketch.sketches import Sketch
from sksketch.state.guard import own, put_doors, shallow_copy
from sksketch.state.persistence import State, write_state

#: What runners run: an estimator, of scikit-learn or ours, or a sketch.
Model: TypeAlias = BaseEstimator | Sketch


@put_doors
class Estimator(BaseEstimator, ABC):
    """Base of every estimator: all but its own work.

    A subclass names its ``kind``, the attribute that only a fitted one has (``_fitted``) and what
    its parameters may be (``_constraints``); `_learned` and `_recall` save and bring back what it
    has learned. Answers that are read from that are computed `_once`.
    """

    kind: ClassVar[str]
    version: ClassVar[int] = 2
    _fitted: ClassVar[str]
    _constraints: ClassVar[Constraints]
    # Where rows are learned one by one, the limit of threads is set where BLAS is called.
    _learns_with_blas: ClassVar[bool] = True
    n_features_in_: int
    feature_names_in_: Array
    # How well rows were predicted that had been kept apart, as `rate` found it.
    holdout_quality_: dict[str, float]
    _answers: dict[str, Any]

    def __init_subclass__(cls, **options: object) -> None:
        put_doors(cls)
        super().__init_subclass__(**options)

    def __setstate__(self, state: object) -> None:
        # A buffer beside the pickle, or a map of its file, belongs to others as well.
        super().__setstate__(own(state, {}))

    def __copy__(self) -> Self:
        return shallow_copy(self)

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # Parameters

    def _check_params(self) -> None:
        """Refuse parameters that mean nothing, each by itself and together."""
        check_parameters(self.get_params(deep=False), self._constraints)
        self._check_together()

    def _check_together(self) -> None:
        """Refuse parameters that make no sense beside each other."""

    def set_callbacks(self, *callbacks: object) -> Self:
        """Set the callbacks that are called for every fit, and for every block of `fit_stream`.

        Parameters
        ----------
        *callbacks : callbacks of scikit-learn
            Such as ``sklearn.callback.ProgressBar()``; none removes those that were set.

        Returns
        -------
        self
            This estimator.
        """
        scikit_learn.set_callbacks(self, *callbacks)
        return self

    # Answers

    def __setattr__(self, name: str, value: object) -> None:
        # Answers are read with the parameters as they are. Without this, what they are after
        # `set_params` would depend on whether somebody had looked before.
        if name[0] != "_" and name[-1] != "_" and "_answers" in self.__dict__:
            self.__dict__["_answers"] = {}
        elif name == "_answers":
            # What other rows said was about the model before.
            self.__dict__.pop("holdout_quality_", None)
        super().__setattr__(name, value)

    def _once(self, name: str, compute: Callable[[], Any]) -> Any:
        """Compute an answer at its first read after an update, and remember it."""
        if self._fitted not in self.__dict__:
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r} before fit"
            )
        # Those of now: what another thread learns meanwhile begins new ones.
        answers = self._answers
        if name not in answers:
            answers[name] = compute()
        return answers[name]

    def _require_fitted(self) -> None:
        check_is_fitted(self, self._fitted)

    # Parts of the rows

    def shard_template(self) -> Self:
        """Return an unfitted copy for parts of the rows, or say why they cannot be merged.

        Returns
        -------
        Estimator
            The template, with a fixed seed, which all parts share.
        """
        return self._template()

    def _template(self) -> Self:
        raise NotMergeableError(
            f"{type(self).__name__} cannot learn parts of the rows apart; use fit_stream, which "
            "takes one part after the other"
        )

    def for_shard(self, index: int, n_shards: int) -> Self:
        """Return a copy of this template for one of many parts of the rows.

        Parameters
        ----------
        index : int
            Number of the part, from 0 on.
        n_shards : int
            Parts in all.

        Returns
        -------
        Estimator
            The copy, not fitted.
        """
        return self._part(index, n_shards)

    def _part(self, index: int, n_shards: int) -> Self:
        return self.shard_template()

    def compact(self) -> None:
        """Make the state small, before it travels."""

    def merge(self, other: Self) -> Self:
        """Add what another estimator has learned from other rows of the same columns.

        Parameters
        ----------
        other : estimator of the same class
            It is left as it was.

        Returns
        -------
        self
            This estimator.
        """
        self._check_alike(other)
        with or_as_before(self):
            self._absorb(other)
            self._answers = {}
        return self

    def _absorb(self, other: Self) -> None:
        """Add what another one of the same class and columns has learned."""
        raise NotMergeableError(
            f"{type(self).__name__} cannot be merged; learn from the rows of both in one run"
        )

    def _check_alike(self, other: object) -> None:
        """Refuse to merge what is of another class, not fitted, or of other columns."""
        if type(other) is not type(self):
            raise NotMergeableError(
                f"cannot merge a {type(other).__name__} into a {type(self).__name__}; "
                "fit both as the same kind of estimator"
            )
        check_is_fitted(other, self._fitted)
        names = getattr(self, "feature_names_in_", None)
        theirs = getattr(other, "feature_names_in_", None)
        if names is not None and theirs is not None and list(names) != list(theirs):
            raise NotMergeableError(
                f"cannot merge estimators of the columns {list(names)[:5]} and "
                f"{list(theirs)[:5]}; fit both on the same columns in the same order"
            )

    def _take_columns(self, n_features: int, names: Iterable[str] | None = None) -> None:
        """Take over the number of columns and, where they have some, their names."""
        self.n_features_in_ = n_features
        if names is not None:
            self.feature_names_in_ = np.asarray(list(names), dtype=object)

    # Saving

    def save(self, path: PathLike) -> None:
        """Write the fitted estimator to one file, atomically; `sksketch.load` reads it.

        Parameters
        ----------
        path : str or path-like
            Where to; a file that is there is replaced.
        """
        write_state(self.state(), path)

    def state(self) -> State:
        """Return the parameters and all that was learned, as plain data.

        Returns
        -------
        State
            Plain data, which `from_state` takes.
        """
        if not hasattr(self, self._fitted):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet; call fit first")
        facts: dict[str, Any] = {"n_features_in": self.n_features_in_}
        if hasattr(self, "feature_names_in_"):
            facts["feature_names"] = json.dumps(list(self.feature_names_in_))
        if hasattr(self, "holdout_quality_"):
            facts["holdout_quality"] = json.dumps(self.holdout_quality_)
        state = State(self.kind, self.version, facts, {})
        return self._learned(with_parameters(state, self._saved_params()))

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Build the estimator that ``state`` was taken from.

        Parameters
        ----------
        state : State
            Of this or an earlier release.

        Returns
        -------
        Estimator
            The estimator, fitted.
        """
        state.require(cls.version)
        estimator = cls(**cls._parameters_of(state))
        names = state.meta.get("feature_names")
        n_features = state.count("n_features_in")
        estimator._take_columns(n_features, None if names is None else json.loads(str(names)))
        estimator._answers = {}
        estimator._recall(state)
        if (quality := state.meta.get("holdout_quality")) is not None:
            estimator.holdout_quality_ = json.loads(str(quality))
        return estimator

    @classmethod
    def _parameters_of(cls, state: State) -> dict[str, Any]:
        return parameters_of(state)

    def _saved_params(self) -> dict[str, Any]:
        """Return the parameters that a file has; a generator is saved as a seed."""
        params: dict[str, Any] = self.get_params(deep=False)
        return params

    @abstractmethod
    def _learned(self, state: State) -> State:
        """Return ``state`` with all that was learned stored in it."""

    @abstractmethod
    def _recall(self, state: State) -> None:
        """Take back what `_learned` has stored."""


@contextmanager
def or_as_before(estimator: object, undo: Iterable[Callable[[], None]] = ()) -> Iterator[None]:
    """Bring back what an estimator had learned before if the body fails.

    Parameters
    ----------
    estimator : estimator
        Its attributes are put back; what they hold is expected to be replaced, not changed.
    undo : callables
        Called after a failure, for what is changed in place all the same.
    """
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        for step in undo:
            step()
        raise


def forget(model: Model) -> None:
    """Bring an estimator back to its parameters and settings, and a sketch to nothing."""
    kept = _parameters(model)
    # The number of a part is no more learned than a parameter.
    settings = (*scikit_learn.SETTINGS, "_shard")
    for name in list(vars(model)):
        if name not in kept and not name.startswith(settings):
            delattr(model, name)


def put(restored: Model, model: Model) -> None:
    """Give ``model`` everything that ``restored`` has, except parameters: it has those."""
    kept = _parameters(model)
    forget(model)
    vars(model).update({k: v for k, v in vars(restored).items() if k not in kept})


def _parameters(model: Model) -> set[str]:
    return set() if isinstance(model, Sketch) else set(model.get_params(deep=False))
