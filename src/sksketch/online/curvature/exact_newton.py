"""Online Newton with the whole curvature, where there are few columns."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from sksketch._typing import Array
from sksketch.online.curvature.kernels import curvature_kernels, layout
from sksketch.online.curvature.kernels.records import Exact, Row, Totals
from sksketch.online.curvature.learner import CurvatureLearner
from sksketch.online.curvature.problem import Problem, SketchOptions
from sksketch.online.vocabulary import Vocabulary
from sksketch.state.persistence import State


class ExactNewton(CurvatureLearner):
    """Newton steps with H = G + alpha I itself, a number for every pair of columns.

    With the squared loss one pass is ridge regression with the penalty alpha, in the units of the
    columns.

    Parameters
    ----------
    width : int
        Columns of the rows.
    problem : Problem
        The loss, and how columns are treated.
    sketch : SketchOptions, default=None
        The sketch that takes over when there are more columns than it has rows; None for never.
    """

    kind = "exact-curvature"
    version = 1
    has_few_columns = True

    def __init__(self, width: int, problem: Problem, sketch: SketchOptions | None = None) -> None:
        self._begin(problem)
        self.width, self.sketch = width, sketch
        p = width + problem.constant
        self._W, self._G = np.zeros((p, problem.n_outputs)), np.zeros((p, p))
        self._U = np.eye(p) * np.sqrt(problem.alpha)
        self._units = np.zeros((p, layout.N_CENTERED_UNITS))
        if not problem.normalize:
            self._units[:, [layout.SCALE, layout.BASE_SCALE]] = 1.0
        if problem.constant:
            scale = problem.constant_scale(exact=True)
            self._units[0, [layout.SCALE, layout.BASE_SCALE]] = scale

    @property
    def _state(self) -> Exact:
        return Exact(self._W, self._G, self._U, self._units)

    def learn_rows(self, X: Any, vocabulary: Vocabulary, targets: Array, weights: Array) -> Array:
        """Learn from rows; return the scores of each before it was learned from."""
        rows = X.toarray() if sp.issparse(X) else np.ascontiguousarray(X)
        scores = np.empty((len(rows), self.problem.n_outputs))
        own = np.ascontiguousarray(targets)
        learned = *self._state, self._counters, self._sums, self._means
        # Small beside the work: one large row can spoil the directions that later ones fall into.
        before = [array.copy() for array in learned]
        curvature_kernels().learn_exact(
            rows,
            own,
            weights,
            scores,
            self._state,
            self._counters,
            self._sums,
            self._means,
            self._task,
        )
        try:
            self._require_finite(scores, self._W, self._U)
        except ValueError:
            for array, former in zip(learned, before, strict=True):
                array[...] = former
            raise
        return scores

    def learn_row(
        self, values: Array, columns: Array, targets: Array, most: Sequence[float]
    ) -> Array | None:
        """Learn from the values of one row; return the scores that it had before.

        None leaves the learner as it was: a value exceeds ``most[0]``, a target ``most[1]``, or
        the row takes the care that `learn_rows` does.
        """
        scores = np.empty(self.problem.n_outputs)
        limits = np.array([most[0], most[1], self._comfortable])
        row = Row(values, columns, targets)
        totals = Totals(self._counters, self._sums)
        learned = curvature_kernels().learn_single(
            row, limits, self._state, totals, self._means, self._task, scores
        )
        return scores if learned else None

    def score_row(self, values: Array, columns: Array) -> Array:
        """Return the scores of one row with these values."""
        scores = np.empty(self.problem.n_outputs)
        row = Row(values, columns, scores)
        curvature_kernels().score_single(row, self._W, self._units, scores, self.problem.constant)
        return scores

    def score(self, row: Any, vocabulary: Vocabulary) -> Array:
        """Return the scores of one row."""
        dense = (row.toarray() if sp.issparse(row) else row)[0]
        return self.score_row(dense.astype(np.float64), np.arange(len(dense)))

    def own_weights(self, features: Array) -> tuple[Array, Array]:
        """Return the weights of features in their units, and the units."""
        return self._W[features], self._units[features]

    def widened(self, width: int, vocabulary: Vocabulary) -> CurvatureLearner:
        """Return the learner for more columns, which were zero in all rows before."""
        if width <= self.width:
            return self
        if self.sketch is not None and width > self.sketch.sketch_size:
            from sksketch.online.curvature.sketched_curvature import SketchedCurvature

            return SketchedCurvature.from_exact(self, self.sketch, width)
        one = ExactNewton(width, self.problem, self.sketch)
        p = len(self._W)
        one._W[:p], one._units[:p] = self._W, self._units
        one._G[:p, :p], one._U[:p, :p] = self._G, self._U
        one._counters, one._sums, one._means = self._counters, self._sums, self._means
        vocabulary.restore(np.arange(width))
        return one

    def uncentered(self, constant_scale: float) -> tuple[Array, Array]:
        """Return weights and curvature for columns counted from zero, with that constant."""
        if not self.problem.constant:
            return self._W.copy(), self._G.copy()
        scale = self._units[:, layout.SCALE]
        M = np.eye(len(scale))
        M[0, 0] = scale[0] / constant_scale
        known = scale > 0.0
        M[known, 0] += self._units[known, layout.CENTER] * scale[0] / scale[known]
        return np.linalg.solve(M.T, self._W), M @ self._G @ M.T

    def curvature(self, n_known: int) -> tuple[Array, float]:
        """Return B, a row for each direction and a column for each feature, and alpha."""
        values, V = np.linalg.eigh(self._G)
        return np.sqrt(np.maximum(values, 0.0))[:, None] * V.T, self.ridge

    def with_weights(self, W: Array) -> Self:
        """Return a learner that continues from other weights, in the units of the features."""
        one = copy.deepcopy(self)
        one._W = np.array(W)
        one._forget_regret()
        return one

    def with_outputs(self, n_outputs: int, n_known: int) -> Self:
        """Return a learner that continues with more labels."""
        one = self.with_weights(self.problem.weights_of_more(self._W, n_outputs))
        one.problem, one._means = self.problem.grown(n_outputs), np.zeros(n_outputs)
        return one

    def state(self) -> State:
        """Return weights, curvature and units."""
        arrays = {
            "counters": self._counters,
            "sums": self._sums,
            "means": self._means,
            "W": self._W,
            "G": self._G,
            "U": self._U,
            "units": self._units,
        }
        copies = {name: array.copy() for name, array in arrays.items()}
        meta = {
            "width": self.width,
            "problem": self.problem.as_meta(),
            "sketch": None if self.sketch is None else self.sketch.as_meta(),
        }
        return State(self.kind, self.version, {"facts": json.dumps(meta)}, copies)

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Build the learner that ``state`` was taken from."""
        state.require(cls.version)
        facts = json.loads(str(state.meta["facts"]))
        sketch = None if facts["sketch"] is None else SketchOptions(**facts["sketch"])
        learner = cls(facts["width"], Problem(**facts["problem"]), sketch)
        for name in ("counters", "sums", "means", "W", "G", "U", "units"):
            mine = getattr(learner, f"_{name}")
            mine[...] = state.array(name, *mine.shape)
        return learner
