"""Online Newton with the whole curvature, where there are few columns."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from sksketch._typing import Array
from sksketch.online.curvature.kernels import curvature_kernels, layout
from sksketch.online.curvature.kernels.exact import Exact
from sksketch.online.curvature.learner import CurvatureLearner
from sksketch.online.curvature.problem import Problem
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
    """

    kind = "exact-curvature"
    version = 1

    def __init__(self, width: int, problem: Problem) -> None:
        self._begin(problem)
        self.width = width
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

    def learn_columns(self, X: Array, targets: Array, weights: Array) -> Array:
        """Learn from dense rows; return the scores of each before it was learned from."""
        scores = np.empty((len(X), self.problem.n_outputs))
        centered = np.ascontiguousarray(self._centered(targets, weights))
        curvature_kernels().learn_exact(
            X, centered, weights, scores, self._state, self._counters, self._sums, self._task
        )
        self._require_finite(scores, self._W, self._U)
        return scores + self._level

    def own_weights(self, features: Array) -> tuple[Array, Array]:
        """Return the weights of features in their units, and the units."""
        return self._W[features], self._units[features]

    def widen(self, width: int) -> None:
        """Let rows have more columns, which were zero in all rows before."""
        more = width - self.width
        if more <= 0:
            return
        p = len(self._W) + more
        for name in ("W", "units"):
            old = getattr(self, f"_{name}")
            setattr(self, f"_{name}", np.vstack([old, np.zeros((more, old.shape[1]))]))
        G, U = np.zeros((p, p)), np.eye(p) * np.sqrt(self.ridge)
        G[:-more, :-more], U[:-more, :-more] = self._G, self._U
        self._G, self._U, self.width = G, U, width
        if not self.problem.normalize:
            self._units[-more:, [layout.SCALE, layout.BASE_SCALE]] = 1.0

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

    def curvature(self) -> tuple[Array, float]:
        """Return a matrix B, a row for each direction, and alpha, of H = B'B + alpha I."""
        values, V = np.linalg.eigh(self._G)
        return np.sqrt(np.maximum(values, 0.0))[:, None] * V.T, self.ridge

    def take_weights(self, W: Array) -> None:
        """Replace the weights, in the units of the columns."""
        self._W[:] = W

    def state(self) -> State:
        """Return weights, curvature and units."""
        arrays = {
            "counters": self._counters,
            "sums": self._sums,
            "level": self._level,
            "W": self._W,
            "G": self._G,
            "U": self._U,
            "units": self._units,
        }
        copies = {name: array.copy() for name, array in arrays.items()}
        return State(self.kind, self.version, self.problem.as_meta() | {"width": self.width}, copies)

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Build the learner that ``state`` was taken from."""
        state.require(cls.version)
        meta: Any = dict(state.meta)
        width = meta.pop("width")
        learner = cls(width, Problem(**meta))
        for name in ("counters", "sums", "level", "W", "G", "U", "units"):
            mine = getattr(learner, f"_{name}")
            mine[...] = state.array(name, *mine.shape)
        return learner
