"""Base of the exact and the sketched learner by the curvature of the loss."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

import numpy as np
import scipy.sparse as sp

from sksketch._typing import Array
from sksketch.online.curvature.kernels import layout
from sksketch.online.curvature.kernels.records import Task
from sksketch.online.curvature.problem import Problem
from sksketch.online.learner import LARGEST, NOT_FINITE, OnlineLearner, rounded_up
from sksketch.online.vocabulary import Vocabulary

# Of the weights to compare with, and of |w| on the way: what sums of many terms may have lost.
SLACK = 1e-9


class CurvatureLearner(OnlineLearner):
    """Learns the scores of several outputs, with one curvature for all of them."""

    # Beyond this, rows as before can be too much: they are learned from by copies.
    _comfortable = 1e8
    problem: Problem
    _counters: Array
    _sums: Array
    _means: Array

    def _begin(self, problem: Problem) -> None:
        self.problem = problem
        self._counters = np.zeros(layout.N_COUNTERS, np.int64)
        self._sums = np.zeros(layout.N_SUMS)
        self._sums[[layout.ALPHA, layout.RIDGE]] = problem.alpha
        self._means = np.zeros(problem.n_outputs)

    @property
    def _task(self) -> Task:
        p = self.problem
        return Task(p.kind, p.knee, p.constant, p.normalize)

    def _forget_regret(self) -> None:
        """Give up the bound: weights that jump are paid for by no identity."""
        self._sums[layout.STEPS] = math.inf

    def _require_finite(self, scores: Array, *more: Array) -> None:
        # The bound of the regret may be infinite.
        arrays = (scores, self._sums[: layout.STEPS], *more)
        largest = max(float(np.abs(a).max(initial=0.0)) for a in arrays)
        if not largest <= LARGEST:
            raise ValueError(NOT_FINITE)
        self.strained = largest > self._comfortable

    @abstractmethod
    def learn_rows(self, X: Any, vocabulary: Vocabulary, targets: Array, weights: Array) -> Array:
        """Learn from rows; return the scores of each before it was learned from."""

    @abstractmethod
    def widened(self, width: int, vocabulary: Vocabulary) -> CurvatureLearner:
        """Return the learner for rows of that many columns."""

    @abstractmethod
    def with_outputs(self, n_outputs: int, n_known: int) -> CurvatureLearner:
        """Return a learner that continues with more labels."""

    @abstractmethod
    def with_weights(self, W: Array) -> CurvatureLearner:
        """Return a learner that continues from other weights, in the units of the features."""

    @abstractmethod
    def curvature(self, n_known: int) -> tuple[Array, float]:
        """Return B, a row for each direction and a column for each feature, and alpha."""

    @abstractmethod
    def own_weights(self, features: Array) -> tuple[Array, Array]:
        """Return the weights of features in their units, and the units; changes nothing."""

    def weights(self, features: Array) -> Array:
        """Return the weights of features in the user's units, a column for each output.

        ``features`` must begin with the constant where there is one, and have all features, for
        the intercept is that of rows that are not centered.
        """
        W, units = self.own_weights(features)
        scale = units[:, layout.SCALE]
        found = W / np.where(scale > 0.0, scale, 1.0)[:, None]
        if self.problem.constant:
            found[0] -= units[1:, layout.CENTER] @ found[1:]
        return found

    # Whether every row has every column, zeros included.
    takes_all_columns: bool = True

    def score(self, row: Any, vocabulary: Vocabulary) -> Array:
        """Return the scores of one row."""
        if self.takes_all_columns:
            constant = int(self.problem.constant)
            features, values = np.arange(vocabulary.size), np.zeros(vocabulary.size)
            values[:constant] = 1.0
            dense = (row.toarray() if sp.issparse(row) else row)[0]
            values[constant : constant + len(dense)] = dense
        else:
            features, values = vocabulary.known(row)
        W, units = self.own_weights(features)
        scale = units[:, layout.SCALE]
        known = scale > 0.0
        own = (values[known] - units[known, layout.CENTER]) / scale[known]
        return np.asarray(own @ W[known])

    @property
    def mean_residual(self) -> float:
        """Mean absolute residual so far, for the absolute loss."""
        return float(self._sums[layout.RESIDUAL] / max(self._sums[layout.WEIGHT], 1e-300))

    @property
    def ridge(self) -> float:
        """Ridge alpha of the curvature now."""
        return float(self._sums[layout.ALPHA])

    @property
    def shrinkage(self) -> float:
        """Sum of all cuts."""
        return float(self._sums[layout.SHRINKAGE])

    @property
    def loss_sum(self) -> float:
        """Sum of the losses of the predictions made before each row was learned from."""
        return float(self._sums[layout.LOSS])

    def regret_bound(
        self, norm: float, radius: float | None = None, *, within: bool = False
    ) -> float:
        """Return a bound of the regret against any weights up to that norm.

        For the squared loss every step keeps an identity. With z the score, q = x'H^-1 x before
        the row, p = z/(1 + q) the prediction that is paid for and a = w'x::

            (p - y)^2 - (a - y)^2 = |w - w_t|_H^2 before - the same after
                                    + y^2 q/(1 + q) - z^2 q/(1 + q)^2

        which the sum over the rows telescopes. A shrink of the robust sketch changes H by at most
        half its cut in any direction, the others only make it smaller. Columns with units of
        their own change H in between, and other losses have no such identity: ``inf``.
        """
        p = self.problem
        if p.loss != "squared" or p.normalize:
            return math.inf
        sums = self._sums
        bound = sums[layout.RIDGE] * norm**2 + sums[layout.STEPS]
        cuts, lengths, squares = sums[layout.DRIFT : layout.DRIFT + 3]
        if self._raises_ridge:
            away = squares + 2.0 * norm * lengths + norm**2 * cuts
            bound += 0.5 * (away if radius is None else radius**2 * cuts)
        return rounded_up(bound + SLACK * (sums[layout.LOSS] + squares))

    @property
    def _raises_ridge(self) -> bool:
        return False
