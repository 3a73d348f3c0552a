"""What the exact and the sketched learner have in common."""

from __future__ import annotations

import math
from abc import abstractmethod

import numpy as np

from sksketch._typing import Array
from sksketch.online.curvature.kernels import layout
from sksketch.online.curvature.kernels.exact import Task
from sksketch.online.curvature.problem import Problem
from sksketch.online.learner import NOT_FINITE, OnlineLearner, rounded_up

# Of the weights to compare with, and of |w| on the way: what sums of many terms may have lost.
SLACK = 1e-9


class CurvatureLearner(OnlineLearner):
    """Learns the scores of several outputs, with one curvature for all of them."""

    problem: Problem
    _counters: Array
    _sums: Array
    # Target that counts as zero, for each output.
    _level: Array

    def _begin(self, problem: Problem) -> None:
        self.problem = problem
        self._counters = np.zeros(layout.N_COUNTERS, np.int64)
        self._sums = np.zeros(layout.N_SUMS)
        self._sums[[layout.ALPHA, layout.RIDGE]] = problem.alpha
        self._level = np.zeros(problem.n_outputs)

    @property
    def _task(self) -> Task:
        p = self.problem
        return Task(p.kind, p.knee, p.constant, p.normalize)

    def _centered(self, targets: Array, weights: Array) -> Array:
        """Return targets from the level on, which is the first one."""
        if not self.problem.centers_targets:
            return targets
        if self._counters[layout.T] == 0 and weights.any():
            self._level = targets[np.flatnonzero(weights)[0]].copy()
        return targets - self._level

    def _require_finite(self, scores: Array, *more: Array) -> None:
        arrays = (scores, self._sums, *more)
        if not all(math.isfinite(float(a.sum())) for a in arrays):
            raise ValueError(NOT_FINITE)

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
            found[0] += self._level - units[1:, layout.CENTER] @ found[1:]
        return found

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
