"""Losses of a prediction: their value and slope, for the loops that learn row by row."""

from __future__ import annotations

import math

from sksketch._typing import Array
from sksketch.arrays.kernels.jit import jit
from sksketch.online.kernels.layout import (
    ABSOLUTE,
    ALPHA,
    HINGE,
    HUBER,
    LIMIT,
    LOGISTIC,
    LOSS,
    REACH,
    RIDGE,
    SLACK,
    SQUARED,
    USED,
    T,
)
from sksketch.online.kernels.records import LossRule, Totals


@jit
def loss_value(kind: int, z: float, y: float, knee: float) -> float:
    """Return the loss of predicting ``z`` where ``y`` is right.

    >>> loss_value(SQUARED, 0.5, 1.0, 1.0), loss_value(HINGE, 0.5, -1.0, 1.0)
    (0.25, 1.5)
    """
    gap = z - y
    if kind == SQUARED:
        return gap * gap
    if kind == LOGISTIC:
        margin = y * z
        if margin > 0.0:
            return math.log1p(math.exp(-margin))
        return -margin + math.log1p(math.exp(margin))
    if kind == HINGE:
        return max(0.0, 1.0 - y * z)
    if kind == ABSOLUTE:
        return abs(gap)
    if abs(gap) <= knee:
        return 0.5 * gap * gap
    return knee * (abs(gap) - 0.5 * knee)


@jit
def loss_slope(kind: int, z: float, y: float, knee: float) -> float:
    """Return the derivative of the loss in ``z``, or a subgradient.

    >>> loss_slope(SQUARED, 0.5, 1.0, 1.0), loss_slope(ABSOLUTE, 2.0, 1.0, 1.0)
    (-1.0, 1.0)
    """
    gap = z - y
    if kind == SQUARED:
        return 2.0 * gap
    if kind == LOGISTIC:
        return -y / (1.0 + math.exp(min(y * z, 700.0)))
    if kind == HINGE:
        return -y if y * z < 1.0 else 0.0
    if kind == ABSOLUTE:
        return 0.0 if gap == 0.0 else math.copysign(1.0, gap)
    return gap if abs(gap) <= knee else math.copysign(knee, gap)


@jit
def note_reach(
    sums: Array, norm2: float, over: float, slope: float, before: float, limit: float
) -> None:
    """Remember how long a row was beside the limits that a comparator has to keep in its round."""
    length = math.sqrt(norm2)
    if over != 0.0:
        reach = length / before if before > 0.0 else math.inf
        sums[REACH] = max(sums[REACH], reach)
    if slope != 0.0:
        reach = length / limit if limit > 0.0 else math.inf
        sums[REACH + 1] = max(sums[REACH + 1], reach)


@jit
def step_weights(kind: int, t: int, limit: float, knee: float, scaled: bool) -> tuple[float, float]:
    """Return mu, which bounds the curvature of a loss for predictions up to ``limit``, and eta_t.

    ``scaled`` measures eta in the units of the targets, so that scaling them changes nothing.

    >>> step_weights(SQUARED, 4, 1.0, 1.0, False), step_weights(HINGE, 4, 1.0, 1.0, False)
    ((0.125, 0.25), (0.0, 0.5))
    """
    unit = 1.0
    if scaled and limit > 0.0:
        unit = limit * (limit if kind == SQUARED else (knee if kind == HUBER else 1.0))
    if kind == SQUARED:
        # Targets are within the limit, or within the knee if that is larger: labels are 1 and -1.
        widest = limit + max(limit, knee)
        return 0.5 / (widest * widest) if widest > 0.0 else 0.0, 1.0 / (t * unit)
    if kind == LOGISTIC:
        return 0.5 * min(1.0 / (8.0 * limit), math.exp(-limit)), 1.0 / (t * unit)
    return 0.0, 1.0 / (math.sqrt(t) * unit)


@jit
def meet_row(
    raw: float, y: float, weight: float, norm2: float, totals: Totals, loss: LossRule
) -> tuple[float, float, float]:
    """Pay for a prediction; return by how much it is over the limit, the slope and the scale c.

    c x is the row that the curvature gains. Slope and excess of zero mean nothing to learn.
    """
    (kind, knee, grows), (counters, sums) = loss, totals
    counters[T] += 1
    limit = before = sums[LIMIT]
    z = min(max(raw, -limit), limit)
    sums[LOSS] += weight * loss_value(kind, z, y, knee)
    if grows:
        limit = max(limit, abs(y))
        sums[LIMIT] = limit
    slope, over = loss_slope(kind, z, y, knee), raw - z
    if norm2 == 0.0:
        return 0.0, 0.0, 0.0
    note_reach(sums, norm2, over, slope, before, limit)
    mu, eta = step_weights(kind, counters[T], limit, knee, grows)
    c = math.sqrt((mu + eta) * weight) * slope
    if slope != 0.0:
        counters[USED] += 1
        sums[SLACK] += 2.0 * eta * weight * slope * slope * limit * limit
        if sums[ALPHA] == 0.0:
            sums[ALPHA] = c * c * norm2
            sums[RIDGE] = sums[ALPHA]
    return over, slope, c
