"""New centers and scales for all columns of a sketch, where every row has every column."""

from __future__ import annotations

import math

import numpy as np

from sksketch._typing import Array
from sksketch.arrays.kernels.jit import jit
from sksketch.online.curvature.kernels.buffer import factor_inplace
from sksketch.online.curvature.kernels.layout import (
    ALPHA,
    BASE_SCALE,
    CACHED,
    CENTER,
    COUNTED,
    KEPT,
    LOST,
    ORIGIN,
    SCALE,
    SQUARES,
    SUM,
    USED,
)
from sksketch.online.curvature.kernels.records import Sketch, Task
from sksketch.online.curvature.kernels.units import deviation, power_below, scale_of
from sksketch.online.kernels.lazy_shrink import solve_inplace
from sksketch.online.kernels.records import Features, Pending


@jit
def recenter_sketch(
    features: Features,
    units: Array,
    pending: Pending,
    sketch: Sketch,
    totals: tuple[Array, Array],
    task: Task,
    ell: int,
) -> None:
    """Move the centers to the means, and the scales to the standard deviations, of recent rows.

    Both are changes of coordinates for the rows of B and the weights; a scale changes the ridge
    as well, which pulls the weights.
    """
    (counters, sums), k, p = totals, totals[0][USED], features.n_known
    alpha, n_outputs = sums[ALPHA], sketch.beta.shape[1]
    B, W = _read_all(features, sketch.beta, k, ell, counters[CACHED] > 0)
    forces = np.zeros((p, n_outputs))
    # Those since the last time, half of all: no outlier is remembered for long.
    n_rows = counters[COUNTED] // 2 if counters[COUNTED] > 4 else counters[COUNTED]
    for j in range(int(task.constant), p):
        unit = units[j]
        if unit[SCALE] == 0.0:
            continue
        mean, spread = deviation(unit[SUM], unit[SQUARES], n_rows)
        unit[SUM] = unit[SQUARES] = 0.0
        if task.constant:
            shift = (unit[ORIGIN] + mean) - unit[CENTER]
            f = shift / unit[SCALE] * units[0, SCALE]
            for r in range(k):
                B[j, r] -= f * B[0, r]
            for c in range(n_outputs):
                W[0, c] += f * W[j, c]
            unit[CENTER] += shift
        else:
            spread = math.sqrt(spread * spread + mean * mean)
        if spread == 0.0 or power_below(spread) == unit[BASE_SCALE]:
            continue
        base = power_below(spread)
        scale = scale_of(base, unit[LOST], alpha)
        ratio = unit[SCALE] / scale
        for r in range(k):
            B[j, r] *= ratio
        for c in range(n_outputs):
            W[j, c] /= ratio
            more = base * base - unit[BASE_SCALE] * unit[BASE_SCALE]
            forces[j, c] = more / (scale * scale) * W[j, c]
        unit[BASE_SCALE], unit[SCALE] = base, scale
    _pull_back(B, W, forces, sketch, k, alpha)
    counters[KEPT] = 0
    _write_all(B, W, features, pending, k, ell, counters[CACHED] > 0)


@jit
def _read_all(
    features: Features, beta: Array, k: int, ell: int, cached: bool
) -> tuple[Array, Array]:
    """Return B' and W of all features, which are all in the cache or all up to date outside."""
    p, n_outputs = features.n_known, beta.shape[1]
    B, W = np.zeros((p, k)), np.zeros((p, n_outputs))
    for j in range(p):
        slot = features.place[j, 1]
        for r in range(min(k, ell)):
            B[j, r] = features.cache[slot, r] if cached else features.rows[j, r]
        for r in range(ell, k):
            B[j, r] = features.pending[slot, r - ell]
        for c in range(n_outputs):
            W[j, c] = features.cache[slot, ell + c] if cached else features.rows[j, ell + c]
            for r in range(k):
                W[j, c] += beta[r, c] * B[j, r]
    return B, W


@jit
def _pull_back(B: Array, W: Array, forces: Array, sketch: Sketch, k: int, alpha: float) -> None:
    """Measure K anew, move W by -alpha H^-1 times the forces, and fold beta into W."""
    K, L, p, n_outputs = sketch.K, sketch.L, len(B), W.shape[1]
    for i in range(k):
        for j in range(i + 1):
            total = 0.0
            for f in range(p):
                total += B[f, i] * B[f, j]
            K[i, j] = total
    factor_inplace(L, K, k, alpha)
    b, e, h = np.empty(k), np.empty(k), np.empty(k)
    for c in range(n_outputs):
        for r in range(k):
            b[r] = 0.0
            sketch.beta[r, c] = 0.0
        for j in range(p):
            for r in range(k):
                b[r] += B[j, r] * forces[j, c]
        solve_inplace(L, k, 0, b, e, h)
        for j in range(p):
            W[j, c] -= forces[j, c]
            for r in range(k):
                W[j, c] += B[j, r] * h[r]


@jit
def _write_all(
    B: Array, W: Array, features: Features, pending: Pending, k: int, ell: int, cached: bool
) -> None:
    """Write B' and W back to where `_read_all` found them, and list the pending entries anew."""
    p = len(B)
    for j in range(p):
        slot = features.place[j, 1]
        for r in range(min(k, ell)):
            if cached:
                features.cache[slot, r] = B[j, r]
            else:
                features.rows[j, r] = B[j, r]
        for r in range(ell, k):
            features.pending[slot, r - ell] = B[j, r]
        for c in range(W.shape[1]):
            if cached:
                features.cache[slot, ell + c] = W[j, c]
            else:
                features.rows[j, ell + c] = W[j, c]
    for r in range(ell, k):
        at = pending.start[r - ell]
        for j in range(p):
            if B[j, r] != 0.0:
                pending.slot[at] = features.place[j, 1]
                at += 1
        pending.start[r - ell + 1] = at
