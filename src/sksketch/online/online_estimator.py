"""Base of the online classifier and the online regressor."""

from __future__ import annotations

import copy
import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from operator import attrgetter, gt
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import validate_data

from sksketch._typing import Array, OneRow, Rows, RowsLike
from sksketch.arrays.rows import laid_out
from sksketch.exceptions import NotMergeableError
from sksketch.models.base import Estimator, or_as_before
from sksketch.models.checks import host_rows
from sksketch.models.constraints import FLAG, NOTHING, Constraints, number, one_of, whole
from sksketch.models.runner import is_dask
from sksketch.models.scikit_learn import Callbacks
from sksketch.online.baselines import OjaNewton
from sksketch.online.catalog import METHODS, load_learner, new_learner
from sksketch.online.checks import (
    check_size,
    check_together,
    checked_weights,
    largest_of,
    need_no_check,
)
from sksketch.online.learner import NOT_FINITE, OnlineLearner
from sksketch.online.losses import Loss
from sksketch.online.named_columns import NamedColumns, row_of_known_names, row_of_numbers
from sksketch.online.unridged_newton import RULES
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
        "method": (one_of(*METHODS),),
        "sketch_size": (whole(2),),
        "C": (one_of("auto"), number(0.0, bounds="()")),
        "initial_ridge": (one_of("auto"), number(0.0)),
        "fit_intercept": (FLAG,),
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

    def _start(self, width: int, n_outputs: int) -> None:
        """Begin with nothing learned."""
        self._vocabulary = Vocabulary(width, constant=self.fit_intercept)
        self.learners_ = [self._new_learner(width) for _ in range(n_outputs)]
        self._n_rows, self._error_sum = 0, 0.0
        self._names = None
        self._answers = {}
        self._expected = None

    def _new_learner(self, width: int) -> OnlineLearner:
        p = self.get_params(deep=False)
        auto = p["C"] == "auto"
        return new_learner(
            p["method"],
            sketch_size=p["sketch_size"],
            buffer_rows=p["buffer_rows"],
            fraction=p["fraction"],
            loss=Loss(p["loss"], 0.0 if auto else float(p["C"]), auto, self._knee()),
            initial_ridge=p["initial_ridge"],
            rule=p["null_projection"],
            width=width,
            seed=p["random_state"],
        )

    def _knee(self) -> float:
        """Return the knee of the loss: labels are 1 and -1."""
        return 1.0

    def _check_together(self) -> None:
        check_together(self.get_params(deep=False))

    def _learn(self, X: Rows, y: Rows, columns: Array, weights: Array) -> Array:
        """Learn from checked rows; return the scores that they had before.

        Numbers larger than expected, or any where a learner is strained, may leave it with some
        that are not finite. They are learned from by copies, so that `_or_as_before` has the
        former learners to go back to.
        """
        largest = check_size(X), self._largest_target(columns), largest_of(weights)
        if self._expected is None:
            # At first there is nothing to go back to.
            self._expected = tuple(LEAP * number for number in largest)
        elif any(map(gt, largest, self._expected)) or any(map(is_strained, self.learners_)):
            self.learners_ = copy.deepcopy(self.learners_)
            pairs = zip(largest, self._expected, strict=True)
            self._expected = tuple(max(LEAP * new, old) for new, old in pairs)
        scores = np.empty((X.shape[0], len(self.learners_)))
        for part, rows in self._vocabulary.blocks(X):
            for k, learner in enumerate(self.learners_):
                if isinstance(learner, OjaNewton):
                    learner.meet_columns(self._vocabulary.columns(), self._vocabulary.constant)
                targets = np.ascontiguousarray(columns[part, k])
                scores[part, k] = learner.learn(rows, self._vocabulary.size, targets, weights[part])
        errors = self._errors(scores, y)[weights > 0]
        self._n_rows += len(errors)
        if len(errors):
            # One after the other, so that no order of summation depends on the blocks.
            errors[0] += self._error_sum
            self._error_sum = float(np.add.accumulate(errors)[-1])
        if not math.isfinite(self._error_sum):
            raise ValueError(NOT_FINITE)
        self._answers = {}
        return scores

    def _largest_target(self, columns: Array) -> float:
        """Return the size of the largest target: labels are 1 and -1."""
        return 1.0

    def _take(self, X: RowsLike, y: RowsLike, sample_weight: RowsLike | None, reset: bool) -> Array:
        if is_dask(X):
            # It says why not.
            self.shard_template()
        if reset:
            self._check_params()
        rows, targets, given, weights = self._checked(X, y, sample_weight, reset)
        if reset or not hasattr(self, "learners_"):
            self._start(rows.shape[1], targets.shape[1])
        return self._learn(rows, given, targets, weights)

    def _checked(
        self, X: RowsLike, y: RowsLike, sample_weight: RowsLike | None, reset: bool
    ) -> tuple[Any, Array, Any, Array]:
        """Return rows, numeric targets, targets as given and weights, or raise one clear error."""
        rows, given = host_rows(X), host_rows(y)
        if reset or not need_no_check(self, rows, given):
            rows, given = validate_data(
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
            self._take(X, y, sample_weight, reset=True)
            if not self._n_rows:
                raise ValueError("all sample weights are zero, expected some rows to count")
            for _ in range(self.n_passes - 1):
                self._take(X, y, sample_weight, reset=False)
        return self

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
            return self._names.row(x, grow=grow)
        return row_of_known_names(x, getattr(self, "feature_names_in_", None))

    def _meet(self, x: OneRow, begin: Callable[[int], None]) -> Any:
        """Return one row to learn from, with room for its columns; ``begin`` if it is the first."""
        first = not hasattr(self, "learners_")
        row = self._row(x, grow=True)
        if first:
            names = self.__dict__.get("_names")
            self._check_params()
            begin(row.shape[1])
            self._names = names
        elif row.shape[1] > self.n_features_in_:
            if any(isinstance(learner, OjaNewton) for learner in self.learners_):
                raise ValueError("method 'oja' needs all columns at the start; pass hash_size")
            self._vocabulary.widen(row.shape[1])
        self.n_features_in_ = row.shape[1]
        return row

    def _scores_of_one(self, x: OneRow) -> Array:
        """Return the raw scores of one row, at the cost of its own features."""
        features, values = self._vocabulary.known(self._row(x, grow=False))
        return np.array([[values @ learner.weights(features) for learner in self.learners_]])

    # Answers

    def _weights(self) -> list[Array]:
        """Return the weights of all numbered features, for each learner."""
        features = np.arange(self._vocabulary.size)
        weights: list[Array] = self._once(
            "weights", lambda: [learner.weights(features) for learner in self.learners_]
        )
        return weights

    def _scores(self, X: RowsLike) -> Array:
        """Return raw scores, one column for each learner."""
        self._require_fitted()
        checked = validate_data(
            self, host_rows(X), accept_sparse="csr", dtype=np.float64, reset=False
        )
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
        """Mean error of the predictions made for each row before it was learned from.

        They are what `predict` would have returned then, not clipped to C.
        """
        return self._error_sum / max(self.n_samples_seen_, 1)

    @property
    def cumulative_loss_(self) -> float:
        """Sum of the losses of the predictions made for each row, clipped to C, over all outputs.

        A learner pays for what it predicts within C, which is what `regret_bound` is about.
        """
        sums = self._once("cumulative_loss_", lambda: [one.loss_sum for one in self.learners_])
        return float(sum(sums))

    def regret_bound(
        self, norm: float = 1.0, radius: float | None = None, *, within: bool = False
    ) -> Any:
        """Bound how much more the predictions cost than the best fixed weights would have.

        The cost is `cumulative_loss_`, that of predictions clipped to C.

        Parameters
        ----------
        norm : float, default=1.0
            Length of the weights to compare with, their intercept included.
        radius : float, default=None
            Bound of the distance between them and all weights on the way; by default it is
            computed from the lengths of both.
        within : bool, default=False
            The theorem is about weights whose predictions are within C, with "auto" within the
            largest target so far. By default that is certain, because ``norm`` times the length
            of no row is more than C; otherwise the bound is ``inf``. With True you vouch that
            the predictions of the weights you mean never leave C, and no check is made.

        Returns
        -------
        float or array of shape (n_classes,)
            ``inf`` for the methods that have no bound, and where some weights of that length can
            predict more than C.
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
            Always.
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
            "width": self._vocabulary.width,
            "n_learners": len(self.learners_),
            "n_rows": self._n_rows,
            "error_sum": self._error_sum,
            "names": None if self._names is None else self._names.as_text(),
        }
        state = state.with_more(facts, {"columns": self._vocabulary.columns()})
        for k, learner in enumerate(self.learners_):
            state = state.with_inner(f"learner{k}", learner.state())
        return state

    def _recall(self, state: State) -> None:
        meta: Any = state.meta
        self._vocabulary = Vocabulary(meta["width"], constant=self.fit_intercept)
        self._vocabulary.restore(state.arrays["columns"])
        n_learners = range(meta["n_learners"])
        self.learners_ = [load_learner(state.inner(f"learner{k}")) for k in n_learners]
        self._n_rows, self._error_sum = meta["n_rows"], meta["error_sum"]
        self._names = None if meta["names"] is None else NamedColumns.from_text(meta["names"])
