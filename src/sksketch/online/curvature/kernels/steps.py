"""Steps that never overshoot: where a row pulls its scores, and the curvature it has on the way.

A row x with weight s moves the weights along v = H^-1 x, where H is the curvature before it, and
with q = x'v its score goes from z to the z' that minimizes::

    s l(z') + (z' - z)^2 / (2 q)

It is a Newton step with the curvature h that the slope of the loss has, on average, between z and
z': H + h x x' takes the weights there. h is l'' for the squared loss, where this is recursive
least squares, and does not vanish for the others where a prediction was wrong and certain.
"""

from __future__ import annotations

import math

import numpy as np

from sksketch._typing import Array
from sksketch.arrays.kernels.jit import jit
from sksketch.online.curvature.kernels.layout import (
    ABSOLUTE,
    HINGE,
    HUBER,
    LOGISTIC,
    SOFTMAX,
    SQUARED,
)
from sksketch.online.kernels.copying import copy_inplace


@jit
def loss_of(kind: int, knee: float, z: Array, y: Array) -> float:
    """Return the loss of the scores ``z`` where ``y`` is right, summed over the outputs.

    >>> loss_of(SQUARED, 0.0, np.array([0.5]), np.array([1.0]))
    0.25
    """
    total = 0.0
    if kind == SOFTMAX:
        top, right = z[0], 0.0
        for c in range(len(z)):
            top = max(top, z[c])
            right += z[c] * y[c]
        for c in range(len(z)):
            total += math.exp(z[c] - top)
        return float(top + math.log(total) - right)
    for c in range(len(z)):
        gap, margin = abs(z[c] - y[c]), z[c] * y[c]
        if kind == SQUARED:
            total += gap * gap
        elif kind == LOGISTIC:
            total += math.log1p(math.exp(-abs(margin))) + max(-margin, 0.0)
        elif kind == HINGE:
            total += max(0.0, 1.0 - margin)
        elif kind == ABSOLUTE:
            total += gap
        else:
            total += 0.5 * gap * gap if gap <= knee else knee * (gap - 0.5 * knee)
    return total


@jit
def pull(
    kind: int, knee: float, z: Array, y: Array, weight: float, q: float, slopes: Array
) -> float:
    """Write by how much of v each output moves, with its sign, and return the curvature h.

    ``knee`` is that of Huber's loss, and the mean residual so far for the absolute one. A
    curvature and slopes of zero mean that there is nothing to learn.
    """
    if kind == LOGISTIC:
        return _pull_logistic(z, y, weight, q, slopes)
    if kind == SOFTMAX:
        return _pull_softmax(z, y, weight, q, slopes)
    h = 0.0
    for c in range(len(z)):
        slopes[c], own = _slope_and_weight(kind, knee, z[c], y[c])
        h = max(h, weight * own)
    # One curvature for all outputs, at least that of each.
    for c in range(len(z)):
        slopes[c] *= weight / (1.0 + h * q)
    return h


@jit
def _slope_and_weight(kind: int, knee: float, z: float, y: float) -> tuple[float, float]:
    """Return l'(z), and the curvature of a parabola that touches the loss there from above."""
    gap = z - y
    if kind == SQUARED:
        return gap, 1.0
    if kind == HINGE:
        short = 1.0 - y * z
        return (0.0, 0.0) if short <= 0.0 else (-y, 0.5 / max(short, 1.0))
    size = abs(gap)
    if kind == HUBER:
        return (gap, 1.0) if size <= knee else (math.copysign(knee, gap), knee / size)
    # Beside the mean residual one that happens to be tiny is not taken for certainty.
    return (0.0, 0.0) if size == 0.0 else (math.copysign(1.0, gap), 1.0 / (size + knee))


@jit
def _pull_logistic(z: Array, y: Array, weight: float, q: float, slopes: Array) -> float:
    """Do it for the logistic loss, whose margin m grows by d = Q/(1 + exp(m + d)).

    In u = log d the equation u + log(1 + exp(m + d)) = log Q is convex, and Newton's method comes
    down to its solution from any point above.
    """
    margin, Q = y[0] * z[0], weight * q
    before = 1.0 / (1.0 + math.exp(min(margin, 700.0)))
    d = min(Q * before, max(1.0, math.log1p(Q) - margin))
    if not d > 0.0:
        slopes[0] = -y[0] * weight * before
        return weight * before * (1.0 - before)
    u, goal = math.log(d), math.log(Q)
    for _ in range(40):
        m = margin + d
        tail = math.exp(-abs(m))
        rest = 1.0 / (1.0 + tail) if m > 0.0 else tail / (1.0 + tail)
        step = (u + max(m, 0.0) + math.log1p(tail) - goal) / (1.0 + d * rest)
        u -= step
        d = math.exp(u)
        if abs(step) <= 1e-15:
            break
    slopes[0] = -y[0] * d / q
    if d < 1.0:
        # (before - after)/d without a difference of close numbers.
        return weight * (1.0 - before) * math.expm1(d) / Q
    return float(weight * (before - d / Q) / d)


@jit
def _probabilities(z: Array, p: Array) -> float:
    """Write the softmax of ``z``, and return the logarithm of the sum of exponentials."""
    top, total = z[0], 0.0
    for c in range(1, len(z)):
        top = max(top, z[c])
    for c in range(len(z)):
        p[c] = math.exp(z[c] - top)
        total += p[c]
    for c in range(len(z)):
        p[c] /= total
    return float(top + math.log(total))


@jit
def _cost(new: Array, z: Array, y: Array, Q: float, spare: Array) -> float:
    total = _probabilities(new, spare)
    for c in range(len(z)):
        total += 0.5 * (new[c] - z[c]) ** 2 / Q - y[c] * new[c]
    return total


@jit
def _pull_softmax(z: Array, y: Array, weight: float, q: float, slopes: Array) -> float:
    """Do it for the softmax: Newton steps on its few scores, whose matrix is diagonal + p p'."""
    n, Q = len(z), weight * q
    before, p, spare = np.empty(n), np.empty(n), np.empty(n)
    new, trial, step = z.copy(), np.empty(n), np.empty(n)
    _probabilities(z, before)
    if Q > 0.0:
        cost = _cost(new, z, y, Q, spare)
        for _ in range(50):
            _probabilities(new, p)
            along, inner, largest = 0.0, 0.0, 0.0
            for c in range(n):
                slopes[c] = (new[c] - z[c]) / Q + p[c] - y[c]
                largest = max(largest, abs(slopes[c]))
                step[c] = slopes[c] / (1.0 / Q + p[c])
                along += p[c] * step[c]
                inner += p[c] * p[c] / (1.0 / Q + p[c])
            if largest <= 1e-14:
                break
            gain = 0.0
            for c in range(n):
                step[c] += along / (1.0 - inner) * p[c] / (1.0 / Q + p[c])
                gain += step[c] * slopes[c]
            length, found = 1.0, cost
            for _ in range(40):
                for c in range(n):
                    trial[c] = new[c] - length * step[c]
                found = _cost(trial, z, y, Q, spare)
                # So close to the end that the cost no longer shows it, Newton steps are right.
                if found <= cost - 1e-4 * length * gain or gain <= 1e-10 * (1.0 + abs(cost)):
                    break
                length *= 0.5
            copy_inplace(new, trial)
            cost = found
            if gain <= 1e-24:
                break
    _probabilities(new, p)
    turned, size = 0.0, 0.0
    for c in range(n):
        after = p[c] - y[c]
        turned += (before[c] - p[c]) * after
        size += after * after
        slopes[c] = weight * after
    return weight * turned / (Q * size) if Q * size > 0.0 else 0.0
