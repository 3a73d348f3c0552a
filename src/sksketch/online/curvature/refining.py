"""From the weights of one pass to those with the least loss and penalty, by more passes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from sksketch._typing import Array
from sksketch.arrays.threads import one_blas_thread
from sksketch.online.curvature.exact_newton import ExactNewton
from sksketch.online.curvature.kernels import layout
from sksketch.online.curvature.learner import CurvatureLearner
from sksketch.online.descent import descend
from sksketch.online.learner import OnlineLearner
from sksketch.online.vocabulary import Vocabulary

BLOCK_ROWS = 8192
# Entries of the rows whose curvature is held in memory.
SAMPLE_ENTRIES = 1 << 22
# Corners of a loss are rounded off over this part of their scale.
ROUNDED = {"hinge": 0.5, "absolute": 0.01}


class Coordinates:
    """Rows in the units of a learner's columns, with the intercept behind them.

    Parameters
    ----------
    learner : CurvatureLearner
        One that has seen all columns.
    vocabulary : Vocabulary
        Numbers of the columns.
    """

    def __init__(self, learner: CurvatureLearner, vocabulary: Vocabulary) -> None:
        self.learner, self.vocabulary = learner, vocabulary
        self.lead = int(learner.problem.constant)
        self.own, self.units = learner.own_weights(np.arange(vocabulary.size))
        scale = self.units[self.lead :, layout.SCALE]
        self.inverse = np.divide(1.0, scale, where=scale > 0.0, out=np.zeros(len(scale)))
        self.center = self.units[self.lead :, layout.CENTER]
        self.constant = float(self.units[0, layout.SCALE]) if self.lead else 1.0

    def blocks(self, X: Any, targets: Array, weights: Array) -> Iterator[tuple[Any, Array, Array]]:
        """Give the rows in these coordinates."""
        columns = self.vocabulary.columns()
        for start in range(0, X.shape[0], BLOCK_ROWS):
            part = slice(start, start + BLOCK_ROWS)
            if sp.issparse(X):
                rows = sp.csr_array(X[part])[:, columns] @ sp.diags_array(self.inverse)
                if self.center.any():
                    rows = rows.toarray() - self.center * self.inverse
            else:
                rows = (X[part][:, columns] - self.center) * self.inverse
            yield rows, targets[part], weights[part]

    def weights(self) -> Array:
        """Return the learner's weights, a row for each output."""
        return self._behind(self.own.T, 1.0 / self.constant)

    def of_learner(self, W: Array) -> Array:
        """Return weights as the learner takes them."""
        if not self.lead:
            return W.T
        return np.vstack([W.T[-1:] * self.constant, W.T[:-1]])

    def ridge(self) -> Array:
        """Return the penalty of each coordinate: alpha times the squared scale it is about."""
        # The intercept is in the user's units, the others in those of their columns.
        own = self.units[:, layout.BASE_SCALE] * np.append(np.ones(self.lead), self.inverse)
        own[own == 0.0] = 1.0
        penalties = self.learner.problem.alpha * own[None, :] ** 2
        return np.asarray(self._behind(penalties, 1.0)[0])

    def precondition(self) -> Any:
        """Return the function that multiplies rows by H^-1."""
        B, alpha = self.learner.curvature(self.vocabulary.size)
        B = self._behind(B, self.constant)
        inverse = np.full(B.shape[1], 1.0 / alpha)
        if self.lead:
            inverse[-1] = 1.0 / (alpha * self.constant**2)
        inner = np.linalg.inv(np.eye(len(B)) + (B * inverse) @ B.T)

        def solve(G: Array) -> Array:
            g = G * inverse
            return np.asarray(g - ((g @ B.T) @ inner @ B) * inverse)

        return solve

    def _behind(self, rows: Array, factor: float) -> Array:
        """Return rows with the constant, which is their first column, times a factor behind."""
        if not self.lead:
            return rows
        return np.hstack([rows[:, 1:], factor * rows[:, :1]])


def refined(
    learners: Sequence[OnlineLearner],
    vocabulary: Vocabulary,
    rows: tuple[Any, Array, Array],
    max_passes: int,
) -> list[OnlineLearner]:
    """Return the one learner of all outputs with the weights of least loss and penalty."""
    (X, targets, weights), (learner,) = rows, learners
    assert isinstance(learner, CurvatureLearner)
    problem = learner.problem
    solved = problem.loss == "squared" and isinstance(learner, ExactNewton)
    # Hinge losses of several labels fall while the labels they predict get worse on the way.
    apart = problem.loss == "hinge" and problem.n_outputs > 1
    if solved or apart or max_passes < 1:
        return [learner]
    own = Coordinates(learner, vocabulary)
    counted = weights > 0.0
    if not counted.all():
        X, targets, weights = X[counted], targets[counted], weights[counted]
    knee = problem.knee or 1.0
    if problem.loss in ROUNDED:
        unit = learner.mean_residual if problem.loss == "absolute" else 1.0
        knee = ROUNDED[problem.loss] * max(unit, 1e-300)
    with one_blas_thread():
        found = descend(
            lambda: own.blocks(X, targets, weights),
            own.weights(),
            loss=problem.loss,
            ridge=own.ridge(),
            precondition=own.precondition(),
            max_passes=max_passes,
            knee=knee,
            sample_rows=_sample_rows(X),
        )
    return [learner.with_weights(own.of_learner(found.weights))]


def _sample_rows(X: Any) -> int:
    entries = X.nnz / max(X.shape[0], 1) if sp.issparse(X) else X.shape[1]
    return int(min(8192, SAMPLE_ENTRIES / max(entries, 1.0)))
