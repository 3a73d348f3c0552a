"""Ridge regression with coefficients that are not negative, read from the operator of a sketch."""

from __future__ import annotations

import math

import numpy as np
import scipy.optimize

from sksketch._typing import Array
from sksketch.arrays.rounding import gamma
from sksketch.low_rank import LowRankPlusRidge
from sksketch.ridge.solution import RidgeSolution, apply_error, floors, rounding_level

# The problem of more columns would be too large to solve at once.
MOST_COLUMNS = 4096


def solve_nonnegative(
    summary: LowRankPlusRidge, cross: Array, ridge: float, cross_error: Array | None = None
) -> RidgeSolution:
    """Return the x >= 0 with the least x'(K + ridge I) x - 2 c'x, for each target.

    Parameters
    ----------
    summary : LowRankPlusRidge
        K, with the bound D on its distance to A'A.
    cross : array of shape (n_features, n_targets)
        A'b as it was computed.
    ridge : float
        Penalty.
    cross_error : array of shape (n_targets,), default=None
        Bounds on the length of the error of each column of ``cross``; zero if not given.

    Notes
    -----
    With G'G = K + r and x_0 the answer without the constraint, this is the x >= 0 with the least
    |G (x - x_0)|, which `scipy.optimize.nnls` finds. Let g = (K + r) x_hat - c_hat, and q be g
    where x_hat is positive and min(g, 0) elsewhere: x_hat is the exact answer for c_hat + q. Of
    two such problems each answer is no better than its own, so with M = A'A + r, E = A'A - K::

        (x_hat - x)' M (x_hat - x)  <=  (E x_hat + q + dc)' (x_hat - x)

    The error is at most (D |x_hat| + |q| + |dc|) / l, with l the least eigenvalue of M, as without
    the constraint, see `solve_summary`; and |A (x_hat - x)| at most that times the root of l.

    Examples
    --------
    >>> summary = LowRankPlusRidge(np.eye(2), np.array([3.0, 1.0]), error_bound=0.0)
    >>> solve_nonnegative(summary, np.array([[4.0], [-2.0]]), ridge=1.0).coefficients.ravel()
    array([1., 0.])
    """
    if summary.n_features > MOST_COLUMNS:
        raise ValueError(
            f"positive=True solves for at most {MOST_COLUMNS} columns, got {summary.n_features}; "
            "set positive=False, or learn from fewer columns"
        )
    shifted = summary.with_ridge(summary.ridge + ridge)
    free = shifted.solve(cross, floor=rounding_level(summary))
    G = np.sqrt(shifted.eigenvalues)[:, None] * shifted.components
    if shifted.ridge > 0.0:
        G = np.vstack([G, math.sqrt(shifted.ridge) * np.eye(summary.n_features)])
    targets = (G @ free).T
    steps = 30 * summary.n_features
    found = [scipy.optimize.nnls(G, target, maxiter=steps)[0] for target in targets]
    return _bounded(np.array(found).T, summary, cross, ridge, cross_error)


def _bounded(
    x: Array, summary: LowRankPlusRidge, cross: Array, ridge: float, cross_error: Array | None
) -> RidgeSolution:
    """Return coefficients that are not negative with the bounds on their error."""
    shifted = summary.with_ridge(summary.ridge + ridge)
    lengths = np.linalg.norm(x, axis=0)
    D, floor, least = summary.error_bound, *floors(summary, ridge)
    if not math.isfinite(D) or least <= 0.0:
        nothing = np.full(len(lengths), math.inf)
        return RidgeSolution(x, math.inf, nothing, nothing)
    gradient = shifted @ x - cross
    other = np.linalg.norm(np.where(x > 0.0, gradient, np.minimum(gradient, 0.0)), axis=0)
    other = other + apply_error(shifted, lengths) + 2.0 * gamma(2) * np.linalg.norm(cross, axis=0)
    other = other + (0.0 if cross_error is None else cross_error)
    off = (D * lengths + other) * (1.0 + gamma(summary.n_features + 32))
    with np.errstate(divide="ignore", invalid="ignore"):
        absolute = np.where(off > 0.0, off / max(floor, 0.0) + gamma(4) * lengths, 0.0)
        image = np.where(off > 0.0, off / math.sqrt(max(floor, 0.0)), 0.0)
        shortest = lengths * (1.0 - gamma(summary.n_features + 2)) - absolute
        relative = np.where(shortest > 0.0, absolute / shortest * (1.0 + gamma(32)), math.inf)
    relative = np.where(off > 0.0, relative, 0.0)
    return RidgeSolution(x, float(relative.max()), absolute, image)
