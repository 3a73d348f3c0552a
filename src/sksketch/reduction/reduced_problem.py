"""Learning on few coordinates: the model in the original columns, and how far it is from the best.

With U the map to coordinates, s the shares of the rows and a the dual variables of the reduced
problem, the gap to the best model of all columns is at most that of the full dual at the same a::

    F(w) - F(best) <= F(w) - D(a),    D(a) = -sum_i s_i l*(-a_i) - |X'(s a)|^2 / (2 ridge)

because a is feasible for both duals. For orthonormal U and w = U v this is the reduced gap plus
|(I - U U') X'(s a)|^2 / (2 ridge).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.special

from sksketch._typing import Array
from sksketch.reduction.dual import Solution, solve, solve_softmax, solve_squares
from sksketch.reduction.dual_losses import DualLoss
from sksketch.reduction.residual import Blocks, combination
from sksketch.reduction.subspace import LinearMap

# Methods on a subspace of the data, and those that take the model back by its dual variables.
SUBSPACE, RECOVERED = ("nor", "nordr"), ("nordr", "rpdr", "dsrr")

# Original columns times models that are worked on at a time.
WORK_BYTES = 1 << 28


@dataclass(frozen=True)
class ReducedModel:
    """Models in the original columns, and their certificates.

    ``coef`` has shape (n_models, n_features), ``reduced`` (n_models, n_coordinates), ``dual``
    (n_models, n_rows) and ``scores``, the predictions, (n_rows, n_models). The gaps have one
    number for each model, or a single one for the models of a softmax.
    """

    coef: Array
    intercept: Array
    reduced: Array
    dual: Array
    gaps: Array
    gap_bounds: Array
    a_priori_bounds: Array
    n_passes: int
    scores: Array


@dataclass(frozen=True)
class ReducedProblem:
    """A regularized linear model on the coordinates of rows.

    Parameters
    ----------
    method : str
        "nor" and "rp" take the model back by the map, the others by the dual variables.
    loss : str
        Of `DualLoss`, or "softmax".
    tolerance : float
        tau of "dsrr".
    blocks : callable
        Gives the rows in the original columns.
    linear : LinearMap
        To the coordinates; with orthonormal columns for "nor".
    coordinates : float64 array of shape (n_rows, n_coordinates)
        Those of the rows, and a column of ones if ``intercept``.
    targets : array of shape (n_rows, n_models), or (n_rows,) for "softmax"
        Numbers, signs, or the codes of classes.
    shares : array of shape (n_rows,)
        Weights of the rows in the mean loss.
    left_out : float
        Bound on the squared spectral norm of what the map leaves of the weighted rows, over
        their total weight; infinity where it is not orthonormal.
    intercept : bool
    """

    method: str
    loss: str
    tolerance: float
    blocks: Blocks
    linear: LinearMap
    coordinates: Array
    targets: Array
    shares: Array
    left_out: float
    intercept: bool

    def solve(
        self,
        ridge: float,
        *,
        tol: float,
        max_passes: int,
        seed: int,
        start: ReducedModel | None = None,
    ) -> ReducedModel:
        """Solve to a duality gap of ``tol``, take the models back and certify them."""
        found = self._solutions(ridge, tol, max_passes, seed, start)
        models = np.column_stack([solution.model for solution in found])
        dual = np.column_stack([solution.dual for solution in found])
        gaps = np.array([solution.gap for solution in found])
        n_features, n_models = self.linear.n_features, models.shape[1]
        coef = np.empty((n_models, n_features))
        intercept = np.zeros(n_models)
        outside = np.zeros(n_models)
        penalty = np.zeros(n_models)
        scores = self.coordinates @ models
        if self.method in RECOVERED:
            scores = np.zeros_like(scores)
        for part in self._groups(n_features, n_models):
            pull = combination(self.blocks, self.shares[:, None] * dual[:, part])
            ones = self.shares @ dual[:, part] if self.intercept else np.zeros(pull.shape[1])
            body = models[:-1, part] if self.intercept else models[:, part]
            if self.method in RECOVERED:
                columns, intercept[part] = pull / ridge, ones / ridge
                scores[:, part] = self._predictions(columns) + intercept[part]
            else:
                columns = self.linear.lift(body)
                intercept[part] = models[-1, part] if self.intercept else 0.0
            coef[part] = columns.T
            if self.method == "nor":
                inside = self.coordinates.T @ (self.shares[:, None] * dual[:, part])
                rest = pull - self.linear.lift(inside[: self.linear.n_components])
                outside[part] = (rest**2).sum(axis=0) / (2 * ridge)
            else:
                own = (columns**2).sum(axis=0) + intercept[part] ** 2
                theirs = (pull**2).sum(axis=0) + ones**2
                penalty[part] = 0.5 * ridge * own + theirs / (2 * ridge)
        bounds = gaps + self._joined(outside)
        if self.method != "nor":
            bounds = self._losses_and_conjugates(scores, dual) + self._joined(penalty)
        return ReducedModel(
            coef,
            intercept,
            np.ascontiguousarray(models.T),
            np.ascontiguousarray(dual.T),
            gaps,
            np.maximum(bounds, 0.0),
            gaps + self._mean_squares() * self.left_out / (2 * ridge),
            max(solution.n_passes for solution in found),
            scores,
        )

    def _solutions(
        self, ridge: float, tol: float, max_passes: int, seed: int, start: ReducedModel | None
    ) -> list[Solution]:
        X, shares = self.coordinates, self.shares
        if self.loss == "softmax":
            n_classes = int(self.targets.max()) + 1
            first = None if start is None else np.ascontiguousarray(start.reduced.T)
            options: dict[str, Any] = {"tol": tol, "max_passes": max_passes, "start": first}
            return [solve_softmax(X, self.targets, shares, ridge, n_classes=n_classes, **options)]
        loss = DualLoss(self.loss, self.tolerance if self.method == "dsrr" else 0.0)
        if self.loss == "squared" and loss.tolerance == 0.0:
            return solve_squares(X, self.targets, shares, ridge)
        options = {"tol": tol, "max_passes": max_passes, "seed": seed}
        return [
            solve(
                loss, X, y, shares, ridge, start=None if start is None else start.dual[k], **options
            )
            for k, y in enumerate(np.ascontiguousarray(self.targets.T))
        ]

    @staticmethod
    def _groups(n_features: int, n_models: int) -> Iterator[slice]:
        step = max(1, WORK_BYTES // (8 * n_features))
        for first in range(0, n_models, step):
            yield slice(first, min(first + step, n_models))

    def _predictions(self, columns: Array) -> Array:
        return np.concatenate([np.asarray(rows @ columns) for rows, _ in self.blocks()])

    def _joined(self, parts: Array) -> Array:
        """Return numbers of models as numbers of problems: a softmax is one."""
        return parts.sum(keepdims=True) if self.loss == "softmax" else parts

    def _losses_and_conjugates(self, scores: Array, dual: Array) -> Array:
        """Return the weighted sums of l(z) + l*(-a) for predictions and dual variables."""
        if self.loss == "softmax":
            rows = np.arange(len(self.targets))
            logs = scipy.special.log_softmax(scores, axis=1)
            probabilities = -dual
            probabilities[rows, self.targets] += 1.0
            conjugates = scipy.special.xlogy(probabilities, probabilities).sum(axis=1)
            return np.array([self.shares @ (conjugates - logs[rows, self.targets])])
        loss = DualLoss(self.loss)
        return np.array(
            [
                self.shares @ (loss.value(z, y) + loss.conjugate(a, y))
                for z, a, y in zip(scores.T, dual.T, self.targets.T, strict=True)
            ]
        )

    def _mean_squares(self) -> Array:
        """Return G^2 of each problem: the mean square that dual variables can have."""
        if self.loss == "softmax":
            return np.array([2.0 * self.shares.sum()])
        loss = DualLoss(self.loss)
        return np.array([loss.mean_square(y, self.shares) for y in self.targets.T])


def coded(targets: Array, scores: Array) -> tuple[Array, Array]:
    """Return numbers of the classes of rows, as they are and as scores have them.

    >>> coded(np.array([[1.0], [-1.0]]), np.array([[0.5], [0.1]]))
    (array([1, 0]), array([1, 1]))
    """
    if targets.ndim == 1:
        return targets, scores.argmax(axis=1)
    if targets.shape[1] == 1:
        return (targets[:, 0] > 0).astype(int), (scores[:, 0] > 0).astype(int)
    return targets.argmax(axis=1), scores.argmax(axis=1)
