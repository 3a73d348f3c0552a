"""Regularized linear models of few columns, solved to a duality gap."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.optimize
import scipy.special

from sksketch._typing import Array
from sksketch.arrays.linalg import eigh_descending
from sksketch.arrays.random import stream
from sksketch.reduction.dual_losses import DualLoss
from sksketch.reduction.kernels import dual_kernels

# The gap of rows when their turn comes is a little more than that after the pass.
LOOK = 2.0

# Passes of coordinate ascent; what they have not solved is left to Newton's method.
ASCENT_PASSES = 40

# By how much the smoothing falls from one problem to the next.
SMOOTHING_FALL = 0.2

# Halvings of a step, and the part of the first slope at which they end.
SEARCHES, ENOUGH = 40, 1e-3


@dataclass(frozen=True)
class Solution:
    """A model and the dual variables that say how good it is.

    Parameters
    ----------
    model : array of shape (n_columns,) or (n_columns, n_classes)
    dual : array of shape (n_rows,) or (n_rows, n_classes)
        Variables a, with ``model = X'(shares * a) / ridge`` at the optimum.
    gap : float
        Objective of the model minus that of the dual, which is below the least objective.
    n_passes : int
        Passes over the rows, or steps.
    """

    model: Array
    dual: Array
    gap: float
    n_passes: int


def solve(
    loss: DualLoss,
    X: Array,
    y: Array,
    shares: Array,
    ridge: float,
    *,
    tol: float,
    max_passes: int,
    seed: int = 0,
    start: Array | None = None,
) -> Solution:
    """Minimize ``sum(shares * loss(X w, y)) + ridge / 2 |w|^2``.

    Parameters
    ----------
    loss : DualLoss
    X : float64 array of shape (n_rows, n_columns), C order
    y, shares : array of shape (n_rows,)
        Targets, or signs; weights of the rows that sum to about one.
    ridge : float
        Above zero.
    tol : float
        Duality gap to reach.
    max_passes : int
        Limit; the gap of the result tells if it was enough.
    seed : int
        Chooses the order of the rows in each pass.
    start : array of shape (n_rows,), default=None
        Dual variables to start from, such as those at another ridge.

    Examples
    --------
    >>> X, y = np.array([[1.0], [-2.0]]), np.array([1.0, -1.0])
    >>> found = solve(DualLoss("hinge"), X, y, np.full(2, 0.5), 0.1, tol=1e-9, max_passes=100)
    >>> found.model.round(6), found.gap <= 1e-9
    (array([1.]), True)
    """
    if loss.name == "squared" and loss.tolerance == 0.0:
        return solve_squares(X, y[:, None], shares, ridge)[0]
    low, high = loss.bounds(y)
    a = np.zeros(len(y)) if start is None else np.clip(start, low, high)
    scales = shares / ridge
    curvatures = scales * np.vecdot(X, X)
    ascend = _ascent(loss, X, y, low, high, scales, curvatures)
    w = X.T @ (scales * a)
    active, margin = np.arange(len(y)), np.inf
    gap = np.inf
    ascents = min(max_passes, ASCENT_PASSES)
    for number in range(ascents):
        order = stream(seed, "dual ascent", number).permutation(active)
        left, steepest, n_kept = ascend(w, a, order, margin)
        active, margin = order[:n_kept], steepest
        if ridge * left <= LOOK * tol or number + 1 == ascents:
            w = X.T @ (scales * a)
            gap = duality_gap(loss, X @ w, y, shares, a)
            if gap <= tol:
                break
            # Rows that were left out may have to move after all.
            active, margin = np.arange(len(y)), np.inf
    found = Solution(w, a, gap, number + 1)
    if gap > tol and ascents < max_passes:
        return _newton(loss, X, y, shares, ridge, found, tol, max_passes)
    return found


def _newton(
    loss: DualLoss,
    X: Array,
    y: Array,
    shares: Array,
    ridge: float,
    start: Solution,
    tol: float,
    max_passes: int,
) -> Solution:
    """Solve by Newton's method on ever less smoothed losses, whose parts are squares.

    Coordinate ascent needs very many passes where rows are long against the ridge; this needs
    few. A smoothing of mu costs no more than mu / 2 times the mean square of the dual variables.
    """
    best, w, smoothing = start, start.model, 1.0
    z = X @ w
    for number in range(start.n_passes, max_passes):
        a, slopes = loss.smoothed(z, y, smoothing)
        gradient = ridge * w - X.T @ (shares * a)
        smooth_gap = duality_gap(loss, z, y, shares, a)
        distance = float(gradient @ gradient) / (2 * ridge)
        if smooth_gap + distance < best.gap:
            best = Solution(w, a, smooth_gap + distance, number + 1)
        if best.gap <= tol:
            break
        if distance <= 0.1 * max(smooth_gap, tol):
            if smooth_gap <= 0.1 * tol:
                break
            smoothing *= SMOOTHING_FALL
            continue
        moving = np.flatnonzero(slopes)
        H = (X[moving].T * (shares * slopes)[moving]) @ X[moving]
        H[np.diag_indices_from(H)] += ridge + 1e-15 * np.trace(H)
        step = -scipy.linalg.cho_solve(scipy.linalg.cho_factor(H), gradient)
        image = X @ step

        def slope(
            share: float,
            w: Array = w,
            z: Array = z,
            step: Array = step,
            image: Array = image,
            smoothing: float = smoothing,
        ) -> float:
            dual = loss.smoothed(z + share * image, y, smoothing)[0]
            return ridge * float((w + share * step) @ step) - float((shares * dual) @ image)

        share = _minimum(slope, float(gradient @ step))
        w, z = w + share * step, z + share * image
    return Solution(best.model, best.dual, best.gap, number + 1)


def _minimum(slope: Callable[[float], float], at_zero: float) -> float:
    """Return the part of a step at which a convex function is least, by its slopes."""
    low, high = 0.0, 1.0
    if slope(1.0) <= 0.0:
        return 1.0
    for _ in range(SEARCHES):
        middle = 0.5 * (low + high)
        there = slope(middle)
        if abs(there) <= ENOUGH * abs(at_zero):
            return middle
        low, high = (middle, high) if there < 0.0 else (low, middle)
    return 0.5 * (low + high)


def _ascent(
    loss: DualLoss,
    X: Array,
    y: Array,
    low: Array,
    high: Array,
    scales: Array,
    curvatures: Array,
) -> Callable[[Array, Array, Array, float], tuple[float, float, int]]:
    """Return one pass of coordinate ascent; see the kernels for what it gives back."""
    kernels: Any = dual_kernels()
    rows = kernels.DualRows(X, y, scales, curvatures)

    def logistic(w: Array, a: Array, order: Array, _: float) -> tuple[float, float, int]:
        gap = kernels.ascend_logistic(w, a, order, rows, loss.tolerance)
        return gap, np.inf, len(order)

    def piecewise(w: Array, a: Array, order: Array, margin: float) -> tuple[float, float, int]:
        form = kernels.Piecewise(low, high, loss.curvature, loss.tolerance)
        found: tuple[float, float, int] = kernels.ascend_piecewise(w, a, order, rows, form, margin)
        return found

    return logistic if loss.name == "logistic" else piecewise


def duality_gap(loss: DualLoss, z: Array, y: Array, shares: Array, a: Array) -> float:
    """Return the gap of dual variables and of the model that they make, by its predictions."""
    return max(float(shares @ (loss.value(z, y) + loss.conjugate(a, y) + a * z)), 0.0)


def solve_squares(X: Array, Y: Array, shares: Array, ridge: float) -> list[Solution]:
    """Solve least squares for each column of ``Y`` from the normal equations; see `solve`."""
    weighted = X.T * shares
    values, V = eigh_descending(weighted @ X)
    values = np.maximum(values, 0.0) + ridge
    W = V @ ((V.T @ (weighted @ Y)) / values[:, None])
    A = Y - X @ W
    # Both sides of w = X'(shares a) / ridge, which differ by rounding.
    difference = W - weighted @ A / ridge
    gaps = 0.5 * ridge * (difference**2).sum(axis=0)
    return [Solution(w, a, float(gap), 1) for w, a, gap in zip(W.T, A.T, gaps, strict=True)]


def solve_softmax(
    X: Array,
    codes: Array,
    shares: Array,
    ridge: float,
    *,
    n_classes: int,
    tol: float,
    max_passes: int,
    start: Array | None = None,
) -> Solution:
    """Minimize the weighted mean of ``log sum_k exp(z_k) - z_y`` plus ``ridge / 2 |W|_F^2``.

    Parameters
    ----------
    X : float64 array of shape (n_rows, n_columns)
    codes : integer array of shape (n_rows,)
        Number of each row's class.
    shares : array of shape (n_rows,)
    ridge : float
    n_classes : int
    tol : float
        Duality gap to reach.
    max_passes : int
        Steps of L-BFGS.
    start : array of shape (n_columns, n_classes), default=None
        Model to start from.

    Notes
    -----
    The probabilities P at any model give the dual variables A = Y - P, which are feasible, and
    the conjugate is the negative entropy of P. X'(shares A) is ridge W minus the gradient, so
    the gap costs nothing beyond the gradient.
    """
    rows, n_columns = np.arange(len(codes)), X.shape[1]
    best: list[Any] = [np.inf, np.zeros((n_columns, n_classes)), np.zeros((len(codes), n_classes))]

    def objective(flat: Array) -> tuple[float, Array]:
        W = flat.reshape(n_columns, n_classes)
        scores = X @ W
        logs = scipy.special.log_softmax(scores, axis=1)
        A = -np.exp(logs)
        A[rows, codes] += 1.0
        pull = X.T @ (shares[:, None] * A)
        loss = -float(shares @ logs[rows, codes])
        entropy = -float(shares @ (np.exp(logs) * logs).sum(axis=1))
        norms = 0.5 * ridge * float(np.vdot(W, W)) + 0.5 / ridge * float(np.vdot(pull, pull))
        gap = loss - entropy + norms
        if gap < best[0]:
            best[:] = max(gap, 0.0), W.copy(), A
        value = loss + 0.5 * ridge * float(np.vdot(W, W))
        return value, (ridge * W - pull).ravel()

    def stop(intermediate_result: Any) -> None:
        if best[0] <= tol:
            raise StopIteration

    first = np.zeros(n_columns * n_classes) if start is None else start.ravel()
    found = scipy.optimize.minimize(
        objective,
        first,
        method="L-BFGS-B",
        jac=True,
        callback=stop,
        options={"maxiter": max_passes, "maxfun": 2 * max_passes, "ftol": 0.0, "gtol": 0.0},
    )
    return Solution(best[1], best[2], float(best[0]), int(found.nit))
