"""Ridge regression read from a sketch of the rows and their cross moment with the targets.

With K the operator that a sketch stands for, E = A'A - K, c = A'b and r the ridge::

    x_hat = (K + r I)^-1 c          x = (A'A + r I)^-1 c

No row is needed, so every r can be asked of one pass (Shi and Phillips (2021), Algorithms 1 to
3, with r kept out of the state).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sksketch._typing import Array
from sksketch.arrays.linalg import eigh_descending
from sksketch.low_rank import LowRankPlusRidge
from sksketch.sketches.cross_moments import Moments


@dataclass(frozen=True, eq=False)
class RidgeSolution:
    """Coefficients at one ridge, and how far they can be from those of the exact covariance.

    Parameters
    ----------
    coefficients : array of shape (n_features, n_targets)
        x_hat, one column for each target.
    relative_bound : float
        Bound on ``|x_hat - x| / |x|`` for every target; ``inf`` if none is certified.
    absolute_bounds : array of shape (n_targets,)
        Bounds on ``|x_hat - x|``.
    """

    coefficients: Array
    relative_bound: float
    absolute_bounds: Array


def solve_summary(summary: LowRankPlusRidge, cross: Array, ridge: float) -> RidgeSolution:
    """Solve with the operator of a sketch.

    Notes
    -----
    x_hat - x = (K + r)^-1 E x = (A'A + r)^-1 E x_hat up to sign, so with D the error bound of the
    summary and k its least eigenvalue, the relative error is at most D / (k + r) (Lemma 1 of the
    paper) and the absolute one at most D |x_hat| / max(r, k + r - D). The second also bounds the
    first, and for robust FD, where k is D, it gives the paper's bound.

    Examples
    --------
    >>> summary = LowRankPlusRidge(np.eye(2)[:1], np.array([3.0]), ridge=1.0, error_bound=1.0)
    >>> solution = solve_summary(summary, np.array([[4.0], [2.0]]), ridge=1.0)
    >>> solution.coefficients.ravel(), solution.relative_bound
    (array([0.8, 1. ]), 0.5)
    """
    shifted = summary.with_ridge(summary.ridge + ridge)
    coefficients = shifted.solve(cross)
    least = summary.ridge
    if summary.rank == summary.n_features:
        least += float(summary.eigenvalues[-1])
    D = summary.error_bound
    lengths = np.linalg.norm(coefficients, axis=0)
    floor = max(ridge, least + ridge - D)
    if D == 0.0:
        return RidgeSolution(coefficients, 0.0, np.zeros(len(lengths)))
    if not math.isfinite(D) or least + ridge <= 0.0:
        return RidgeSolution(coefficients, math.inf, np.full(len(lengths), math.inf))
    relative = D / (least + ridge)
    per_length = D / floor if floor > 0 else math.inf
    if per_length < 1:
        relative = min(relative, per_length / (1 - per_length))
    return RidgeSolution(coefficients, relative, np.minimum(per_length, np.inf) * lengths)


class ProjectedRidge:
    """Ridge on the rows S A and targets S b of a linear sketch, for any number of ridges.

    Solved on the smaller side of S A; nothing is as large as columns squared.

    Parameters
    ----------
    matrix : array of shape (sketch_size, n_features)
        S A.
    targets : array of shape (sketch_size, n_targets)
        S b.
    ones : array of shape (sketch_size,), optional
        S 1; given, an intercept is fitted without penalty.

    Examples
    --------
    >>> A = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
    >>> model = ProjectedRidge(A, A @ np.array([[1.0], [2.0]]))
    >>> model.solve(0.0)[0].round(9).ravel()
    array([1., 2.])
    """

    def __init__(self, matrix: Array, targets: Array, ones: Array | None = None) -> None:
        self._C = matrix.astype(np.float64)
        self._b = targets.astype(np.float64)
        self._u = None if ones is None or not ones.any() else ones.astype(np.float64)
        self._raw = self._C, self._b
        if self._u is not None:
            # Without penalty the intercept takes all that lies along S 1.
            unit = self._u / np.linalg.norm(self._u)
            self._C = self._C - np.outer(unit, unit @ self._C)
            self._b = self._b - np.outer(unit, unit @ self._b)
        if len(self._C) > self._C.shape[1]:
            U, singular_values, _ = np.linalg.svd(self._C, full_matrices=False)
            values = singular_values**2
        else:
            values, U = eigh_descending(self._C @ self._C.T)
        keep = values > len(values) * np.finfo(np.float64).eps * max(values[0], 0.0)
        self._values, self._U = values[keep], U[:, keep]

    def solve(self, ridge: float) -> tuple[Array, Array]:
        """Return coefficients of shape (n_features, n_targets) and intercepts."""
        small = (self._U.T @ self._b) / (self._values + ridge)[:, None]
        coefficients = self._C.T @ (self._U @ small)
        if self._u is None:
            return coefficients, np.zeros(self._b.shape[1])
        C, b = self._raw
        intercepts = self._u @ (b - C @ coefficients) / (self._u @ self._u)
        return coefficients, intercepts


def squared_error_interval(
    summary: LowRankPlusRidge, moments: Moments, coefficients: Array
) -> tuple[Array, Array]:
    """Return bounds on the sum of squared training residuals of the coefficients, per target.

    |A x - b|^2 = x'A'A x - 2 c'x + b'b, of which only the first term is known through K.
    """
    quadratic = np.vecdot(coefficients.T, (summary @ coefficients).T)
    middle = quadratic - 2.0 * np.vecdot(moments.cross.T, coefficients.T) + moments.squares
    slack = summary.error_bound * np.vecdot(coefficients.T, coefficients.T)
    return np.maximum(middle - slack, 0.0), np.maximum(middle + slack, 0.0)


def effective_dimension(summary: LowRankPlusRidge, ridge: float) -> float:
    """Return the trace of K (K + ridge I)^-1: how many columns a ridge leaves free.

    >>> effective_dimension(LowRankPlusRidge(np.eye(3)[:1], np.array([3.0])), ridge=1.0)
    0.75
    """
    inside = summary.eigenvalues + summary.ridge
    outside = summary.n_features - summary.rank
    free = float((inside / (inside + ridge)).sum())
    if summary.ridge > 0:
        free += outside * summary.ridge / (summary.ridge + ridge)
    return free
