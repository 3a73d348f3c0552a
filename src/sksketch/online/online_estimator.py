"""Base of the online classifier and the online regressor."""

from __future__ import annotations

import copy
import json
import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from operator import attrgetter, gt
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_classifier, is_regressor
from sklearn.utils import check_random_state

from sksketch._keys import ONLINE_METHODS
from sksketch._typing import Array, OneRow, Rows, RowsLike
from sksketch.arrays.rows import laid_out
from sksketch.exceptions import NotMergeableError
from sksketch.models.base import Estimator, or_as_before
from sksketch.models.checks import host_rows, validated
from sksketch.models.constraints import FLAG, NOTHING, Constraints, number, one_of, whole
from sksketch.models.scikit_learn import Callbacks
from sksketch.online import learning
from sksketch.online.catalog import (
    BY_LOSS,
    CURVATURES,
    new_curvature_learner,
    new_learner,
)
from sksketch.online.checks import (
    check_size,
    check_together,
    checked_weights,
    largest_of,
    need_no_check,
    refuse_dask,
    running_sum,
)
from sksketch.online.constant import ConstantBaseline
from sksketch.online.curvature.refining import refined
from sksketch.online.gradient.unridged_newton import RULES
from sksketch.online.learner import NOT_FINITE, OnlineLearner, RowLearner
from sksketch.online.named_columns import NamedColumns, row_of_known_names, row_of_numbers
from sksketch.online.plain_rows import scores_of_plain
from sksketch.online.vocabulary import Vocabulary
from sksketch.state.persistence import State

# Rows, targets and weights are expected to be this many times as large as those before.
LEAP = 2.0
is_strained = attrgetter("strained")


class OnlineEstimator(Estimator):
    """An estimator that owns one online learner for each output, and numbers their features."""

    _fitted = "learners_"
    _learns_with_blas = False
    _shared_constraints: ClassVar[Constraints] = {
        "method": (one_of(*ONLINE_METHODS),),
        "sketch_size": (whole(2),),
        "C": (one_of("auto"), number(0.0, bounds="()")),
        "initial_ridge": (one_of("auto"), number(0.0)),
        "curvature": (one_of(*CURVATURES),),
        "normalize": (FLAG,),
        "fit_intercept": (FLAG,),
        "shuffle": (FLAG,),
        "max_passes": (whole(1),),
        "n_passes": (whole(1),),
        "null_projection": (one_of(*RULES),),
        "fraction": (number(0.0, 1.0, bounds="(]"),),
        "buffer_rows": (whole(1), NOTHING),
        "hash_size": (whole(1), NOTHING),
        "random_state": (whole(0),),
    }
    learners_: list[OnlineLearner]
    _names: NamedColumns | None
    _vocabulary: Vocabulary
    # The largest entry, target and weight that are no surprise; None before the first.
    _expected: tuple[float, ...] | None = (0.0, 0.0, 0.0)

    # Learning

    @abstractmethod
    def _targets(self, y: Array, reset: bool) -> Array:
        """Return checked targets as numbers, one column for each learner."""

    @abstractmethod
    def _predictions(self, scores: Array) -> Array:
        """Return what scores, one column for each learner, predict."""

    @abstractmethod
    def _errors(self, scores: Array, y: Rows) -> Array:
        """Return the error of each prediction."""

    def _start(self, width: int, n_outputs: int, *, dense: bool) -> None:
        """Begin with nothing learned."""
        self._vocabulary = Vocabulary(width, constant=self.fit_intercept)
        self._by_loss = self.curvature == "loss" and self.method in BY_LOSS
        if self._by_loss:
            knee = self._knee() if is_regressor(self) else None
            task = self.get_params(deep=False), n_outputs, knee
            self.learners_ = [new_curvature_learner(*task, self._vocabulary, dense=dense)]
        else:
            self.learners_ = [self._new_learner(width) for _ in range(n_outputs)]
        self._baseline = ConstantBaseline(n_outputs, labels=is_classifier(self))
        self._n_rows, self._error_sum = 0, 0.0
        self._names = None
        self._answers = {}
        self._expected = None

    def _new_learner(self, width: int) -> RowLearner:
        return new_learner(self.get_params(deep=False), width, self._knee())

    def _knee(self) -> float:
        """Return the knee of the loss: labels are 1 and -1."""
        return 1.0

    def _check_together(self) -> None:
        check_together(self.get_params(deep=False))

    def _learn(self, X: Rows, y: Rows, columns: Array, weights: Array) -> Array:
        """Learn from checked rows; return the scores that they had before.

        Numbers larger than expected, or any where a learner is strained, are learned from by
        copies, so that `_or_as_before` has the former learners to go back to.
        """
        largest = check_size(X), self._largest_target(columns), largest_of(weights)
        if self._expected is None:
            # At first there is nothing to go back to.
            self._expected = tuple(LEAP * number for number in largest)
        elif any(map(gt, largest, self._expected)) or any(map(is_strained, self.learners_)):
            self.learners_ = copy.deepcopy(self.learners_)
            pairs = zip(largest, self._expected, strict=True)
            self._expected = tuple(max(LEAP * new, old) for new, old in pairs)
        targets = self._own_targets(columns) if self._by_loss else columns
        scores = learning.learn_rows(self.learners_, self._vocabulary, X, targets, weights)
        counted = weights > 0
        errors = self._errors(scores, y)[counted]
        self._baseline = self._baseline.after(columns[counted], errors)
        self._n_rows += len(errors)
        self._error_sum = running_sum(self._error_sum, errors)
        if not math.isfinite(self._error_sum):
            raise ValueError(NOT_FINITE)
        self._answers = {}
        return scores

    def _own_targets(self, columns: Array) -> Array:
        """Return targets as a learner by the curvature of the loss takes them."""
        return columns

    def _largest_target(self, columns: Array) -> float:
        """Return the size of the largest target: labels are 1 and -1."""
        return 1.0

    def _take(self, X: RowsLike, y: RowsLike, sample_weight: RowsLike | None, reset: bool) -> Array:
        refuse_dask(self, X)
        if reset:
            self._check_params()
        rows, targets, given, weights = self._checked(X, y, sample_weight, reset)
        if reset or not hasattr(self, "learners_"):
            self._start(rows.shape[1], targets.shape[1], dense=not sp.issparse(rows))
        return self._learn(rows, given, targets, weights)

    def _checked(
        self, X: RowsLike, y: RowsLike, sample_weight: RowsLike | None, reset: bool
    ) -> tuple[Any, Array, Any, Array]:
        """Return rows, numeric targets, targets as given and weights, or raise one clear error."""
        rows, given = host_rows(X), host_rows(y)
        if reset or not need_no_check(self, rows, given):
            rows, given = validated(
                self,
                rows,
                given,
                accept_sparse="csr",
                dtype=np.float64,
                reset=reset,
                **self._y_options,
            )
        weights = checked_weights(sample_weight, rows.shape[0])
        targets = self._targets(given, reset)
        return laid_out(rows), laid_out(targets), given, self._weighted(given, weights)

    _y_options: ClassVar[dict[str, Any]] = {}

    def _weighted(self, y: Rows, weights: Array) -> Array:
        return weights

    def _fit(self, X: RowsLike, y: RowsLike, sample_weight: RowsLike | None) -> Self:
        """Learn from all rows, forgetting what was learned before."""
        with self._or_as_before(), Callbacks(self).running("fit"):
            self.__dict__.pop("classes_", None)
            refuse_dask(self, X)
            self._check_params()
            rows, targets, given, weights = self._checked(X, y, sample_weight, reset=True)
            if not (weights > 0).any():
                raise ValueError("all sample weights are zero, expected some rows to count")
            self._start(rows.shape[1], targets.shape[1], dense=not sp.issparse(rows))
            if self._by_loss:
                self._fit_by_loss(rows, targets, given, weights)
            else:
                for _ in range(self.n_passes):
                    self._learn(rows, given, targets, weights)
        return self

    def _fit_by_loss(self, X: Rows, targets: Array, y: Array, weights: Array) -> None:
        """Learn from the rows in one pass in any order, then descend to the optimum."""
        order = np.arange(X.shape[0])
        if self.shuffle:
            check_random_state(self.random_state).shuffle(order)
        self._learn(X[order], np.asarray(y)[order], targets[order], weights[order])
        rows = X, self._own_targets(targets), weights
        self.learners_ = refined(self.learners_, self._vocabulary, rows, self.max_passes - 1)

    def _or_as_before(self) -> AbstractContextManager[None]:
        """Bring back what was learned before if the body fails, and forget new features."""
        undo: list[Callable[[], None]] = []
        if (names := self.__dict__.get("_names")) is not None:
            undo.append(partial(names.forget, names.width))
        if (vocabulary := self.__dict__.get("_vocabulary")) is not None:
            undo.append(partial(vocabulary.forget, vocabulary.size, vocabulary.width))
        return or_as_before(self, undo)

    # Single rows

    def _row(self, x: OneRow, *, grow: bool) -> Any:
        """Return one checked row, from a dictionary of names or a sequence of numbers."""
        begun = hasattr(self, "learners_")
        if not isinstance(x, Mapping):
            return row_of_numbers(x, self.n_features_in_ if begun else None)
        if not begun:
            self._names = NamedColumns(self.hash_size)
        if self._names is not None:
            few = begun and self.learners_[0].has_few_columns
            return self._names.dense_row(x, grow=grow) if few else self._names.row(x, grow=grow)
        return row_of_known_names(x, getattr(self, "feature_names_in_", None))

    def _meet(self, x: OneRow, begin: Callable[[int, bool], None]) -> Any:
        """Return one row to learn from, with room for its columns; ``begin`` if it is the first."""
        first = not hasattr(self, "learners_")
        row = self._row(x, grow=True)
        if first:
            names = self.__dict__.get("_names")
            self._check_params()
            begin(row.shape[1], not sp.issparse(row))
            self._names = names
        elif row.shape[1] > self.n_features_in_:
            self.learners_ = learning.widened(self.learners_, self._vocabulary, row.shape[1])
        self.n_features_in_ = row.shape[1]
        return row

    def _scores_of_one(self, x: OneRow) -> Array:
        """Return the raw scores of one row, at the cost of its own features."""
        if (scores := scores_of_plain(self, x)) is not None:
            return scores
        row = self._row(x, grow=False)
        return learning.scores_of_row(self.learners_, self._vocabulary, row)

    # Answers

    def _weights(self) -> list[Array]:
        """Return the weights of all numbered features, for each learner."""
        weights: list[Array] = self._once(
            "weights", lambda: learning.weights_of(self.learners_, self._vocabulary)
        )
        return weights

    def _scores(self, X: RowsLike) -> Array:
        """Return raw scores, one column for each learner."""
        self._require_fitted()
        checked = validated(self, host_rows(X), accept_sparse="csr", dtype=np.float64, reset=False)
        rows = laid_out(checked)
        if sp.issparse(rows):
            return self._vocabulary.scores(rows, self._weights())
        width = rows.shape[1]
        return np.column_stack(
            [rows @ w + b for w, b in (self._vocabulary.dense(w, width) for w in self._weights())]
        )

    def _dense(self) -> tuple[Array, Array]:
        """Return coefficients and intercepts, one row for each learner."""
        dense: tuple[Array, Array] = self._once("coef_", self._read_dense)
        return dense

    def _read_dense(self) -> tuple[Array, Array]:
        found = [self._vocabulary.dense(w, self.n_features_in_) for w in self._weights()]
        return np.array([w for w, _ in found]), np.array([b for _, b in found])

    @property
    def n_samples_seen_(self) -> int:
        """Rows learned from, those of every pass."""
        return int(self._once("n_samples_seen_", lambda: self._n_rows))

    @property
    def online_error_(self) -> float:
        """Mean error of what was predicted for each row before it was learned from."""
        return self._error_sum / max(self.n_samples_seen_, 1)

    @property
    def baseline_error_(self) -> float:
        """Mean error of the mean target before each row, or of the commonest label."""
        return self._baseline.mean_error if self._baseline.n_rows == self._n_rows else math.nan

    @property
    def baseline_(self) -> Array:
        """The constant so far: the mean of each target, or the number of rows of each label."""
        return self._baseline.constant

    @property
    def online_error_curve_(self) -> Array:
        """Numbers of rows, and mean errors of the learner and the constant after as many."""
        return self._baseline.mean_errors

    @property
    def cumulative_loss_(self) -> float:
        """Sum of the losses that `regret_bound` is about; with gradients clipped to C."""
        sums = self._once("cumulative_loss_", lambda: [one.loss_sum for one in self.learners_])
        return float(sum(sums))

    def regret_bound(
        self, norm: float = 1.0, radius: float | None = None, *, within: bool = False
    ) -> Any:
        """Bound how much more the predictions cost than the best fixed weights would have.

        Parameters
        ----------
        norm : float, default=1.0
            Length of the weights to compare with, their intercept included.
        radius : float, default=None
            Bound of the distance between them and all weights on the way; by default it is
            computed from the lengths of both.
        within : bool, default=False
            With gradients the theorem is about weights whose predictions are within C, which
            ``norm`` times the length of no row may exceed; otherwise the bound is ``inf``. With
            True you vouch for the weights you mean, and no check is made.

        Returns
        -------
        float or array of shape (n_classes,)
            ``inf`` where nothing is known: with the curvature of the loss only the squared loss
            without ``normalize`` has a bound, which needs no C.
        """
        self._require_fitted()
        bounds = [
            learner.regret_bound(float(norm), radius, within=within) for learner in self.learners_
        ]
        return bounds[0] if len(bounds) == 1 else np.array(bounds)

    def merge(self, other: object) -> Self:
        """Refuse: the steps of an online learner depend on all rows before, in their order.

        Parameters
        ----------
        other : object
            Another estimator.

        Raises
        ------
        NotMergeableError
        """
        raise NotMergeableError(
            "online learners cannot be merged, because each step depends on all rows before it; "
            "learn from the rows of both in one run, or average the predictions of several"
        )

    def _template(self) -> Self:
        return self.merge(self)

    # Saving

    def _learned(self, state: State) -> State:
        facts: dict[str, Any] = {
            "n_rows": self._n_rows,
            "error_sum": self._error_sum,
            "names": None if self._names is None else self._names.as_text(),
            "by_loss": self._by_loss,
            "baseline": json.dumps(self._baseline.as_meta()),
        }
        state = learning.with_learners(state, self.learners_, self._vocabulary)
        return state.with_more(facts, {})

    @classmethod
    def _parameters_of(cls, state: State) -> dict[str, Any]:
        # Files from before there was a choice.
        return {"curvature": "gradient", "normalize": False} | super()._parameters_of(state)

    def _recall(self, state: State) -> None:
        meta: Any = state.meta
        constant = bool(self.fit_intercept)
        self.learners_, self._vocabulary = learning.learners_of(state, constant=constant)
        self._n_rows, self._error_sum = meta["n_rows"], meta["error_sum"]
        self._names = None if meta["names"] is None else NamedColumns.from_text(meta["names"])
        self._by_loss = bool(meta.get("by_loss", False))
        self._baseline = ConstantBaseline(len(self.learners_), labels=is_classifier(self))
        if "baseline" in meta:
            self._baseline = ConstantBaseline.of(json.loads(meta["baseline"]))
