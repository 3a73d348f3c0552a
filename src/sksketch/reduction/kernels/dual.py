"""Dual coordinate ascent: one pass over the rows, each given the best dual variable it can have.

With rows x_i of shares s_i (they sum to one), the dual of::

    min over w of  sum_i s_i l_i(x_i'w) + ridge / 2 |w|^2

has a variable a_i for each row, and w = sum_i s_i a_i x_i / ridge at its optimum.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from sksketch._typing import Array
from sksketch.arrays.kernels.jit import jit

# Steps of Newton's method for one variable; three are the rule.
MAX_STEPS = 30


class DualRows(NamedTuple):
    """Rows and targets, with s_i / ridge (``scales``) and s_i |x_i|^2 / ridge (``curvatures``)."""

    X: Array
    y: Array
    scales: Array
    curvatures: Array


class Piecewise(NamedTuple):
    """A loss of linear and square parts, by the bounds of its dual variables."""

    low: Array
    high: Array
    curvature: float
    tolerance: float


@jit
def ascend_piecewise(
    w: Array, a: Array, order: Array, rows: DualRows, loss: Piecewise, margin: float
) -> tuple[float, float, int]:
    """Update the dual variables of the rows in ``order`` for a loss of linear and square parts.

    The loss of row i is the largest of ``(y_i - z) a - curvature / 2 a^2 - tolerance |a|`` for a
    between ``low[i]`` and ``high[i]``. Variables that are at a bound, and would leave it only if
    the slope of their dual changed by more than ``margin``, are dropped from ``order``: those that
    stay come first.

    Returns
    -------
    float
        Sum of s_i / ridge times what row i has of the duality gap, when its turn came.
    float
        Largest slope of the dual in a variable that was free to move.
    int
        Rows that stay.
    """
    X, y, scales, curvatures = rows
    low, high, curvature, tolerance = loss
    gap, steepest, n_kept = 0.0, 0.0, 0
    for k in range(len(order)):
        i = order[k]
        x = X[i]
        z = np.dot(x, w)
        now, q, g = a[i], curvatures[i], y[i] - z
        # Slopes of the dual to the right and to the left of the variable.
        up = g - curvature * now - (tolerance if now >= 0.0 else -tolerance)
        down = g - curvature * now - (tolerance if now > 0.0 else -tolerance)
        slack = math.inf
        if now < high[i]:
            slack = -up
        if now > low[i]:
            slack = min(slack, down)
        if slack > margin:
            continue
        steepest = max(steepest, -slack)
        order[k], order[n_kept] = order[n_kept], i
        n_kept += 1
        best = best_variable(g, low[i], high[i], curvature, tolerance)
        loss = g * best - 0.5 * curvature * best * best - tolerance * abs(best)
        gap += scales[i] * (loss - g * now + 0.5 * curvature * now * now + tolerance * abs(now))
        new = best_variable(g + q * now, low[i], high[i], curvature + q, tolerance)
        step = scales[i] * (new - now)
        if step != 0.0:
            a[i] = new
            for j in range(len(w)):
                w[j] += step * x[j]
    return gap, steepest, n_kept


@jit
def best_variable(
    slope: float, low: float, high: float, curvature: float, tolerance: float
) -> float:
    """Return the a that makes ``slope a - curvature / 2 a^2 - tolerance |a|`` largest.

    >>> best_variable(3.0, 0.0, 1.0, 4.0, 1.0), best_variable(-3.0, -2.0, 1.0, 0.0, 1.0)
    (0.5, -2.0)
    """
    beyond = max(abs(slope) - tolerance, 0.0)
    if beyond == 0.0:
        return min(max(0.0, low), high)
    size = beyond / curvature if curvature > 0.0 else math.inf
    return min(max(math.copysign(size, slope), low), high)


@jit
def ascend_logistic(w: Array, a: Array, order: Array, rows: DualRows, tolerance: float) -> float:
    """Update the dual variables of the rows in ``order`` for log(1 + exp(-y z - tolerance)).

    ``y`` are signs and a_i y_i lies between 0 and 1. Returns the sum of s_i / ridge times what
    row i has of the duality gap, when its turn came.
    """
    X, y, scales, curvatures = rows
    gap = 0.0
    for i in order:
        x = X[i]
        z = np.dot(x, w)
        sign, q = y[i], curvatures[i]
        margin, now = sign * z + tolerance, sign * a[i]
        loss = max(-margin, 0.0) + math.log1p(math.exp(-abs(margin)))
        gap += scales[i] * (loss + negative_entropy(now) + now * margin)
        # The best value is 1 / (1 + exp(-t)) with t + q / (1 + exp(-t)) = rest.
        rest = q * now - margin
        new = logistic_root(rest, q)
        step = scales[i] * sign * (new - now)
        a[i] = sign * new
        for j in range(len(w)):
            w[j] += step * x[j]
    return gap


@jit
def negative_entropy(p: float) -> float:
    """Return p log p + (1 - p) log(1 - p).

    >>> negative_entropy(0.0), round(negative_entropy(0.5), 6)
    (0.0, -0.693147)
    """
    total = 0.0
    if p > 0.0:
        total += p * math.log(p)
    if p < 1.0:
        total += (1.0 - p) * math.log1p(-p)
    return total


@jit
def logistic_root(rest: float, q: float) -> float:
    """Return p = 1 / (1 + exp(-t)) for the t with t + q p = rest.

    >>> round(logistic_root(0.0, 0.0), 6)
    0.5
    """
    low, high = rest - q, rest
    t = min(max(0.0, low), high)
    p = 0.5
    for _ in range(MAX_STEPS):
        p = 1.0 / (1.0 + math.exp(-t)) if t > -700.0 else math.exp(t)
        excess = t + q * p - rest
        if excess > 0.0:
            high = t
        else:
            low = t
        step = excess / (1.0 + q * p * (1.0 - p))
        t -= step
        if not low <= t <= high:
            t = 0.5 * (low + high)
        if abs(step) <= 1e-12 * (1.0 + abs(t)):
            break
    return 1.0 / (1.0 + math.exp(-t)) if t > -700.0 else math.exp(t)
