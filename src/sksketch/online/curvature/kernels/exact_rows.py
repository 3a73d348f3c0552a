"""Newton steps with the whole curvature, for few columns: H = G + alpha I and its factor U'U."""

from __future__ import annotations

import math

import numpy as np

from sksketch._typing import Array
from sksketch.arrays.kernels.jit import jit
from sksketch.online.curvature.kernels.layout import (
    ABSOLUTE,
    ALPHA,
    BASE_SCALE,
    CENTER,
    LOSS,
    ORIGIN,
    REACH,
    RESIDUAL,
    SCALE,
    SQUARED,
    SQUARES,
    STEPS,
    SUM,
    WEIGHT,
    T,
)
from sksketch.online.curvature.kernels.records import Exact, Task
from sksketch.online.curvature.kernels.steps import loss_of, pull
from sksketch.online.curvature.kernels.units import deviation, power_below, raised


@jit
def factor_inplace(U: Array, G: Array, alpha: float) -> None:
    """Write the upper factor of G + alpha I."""
    p = len(G)
    for i in range(p):
        for j in range(i, p):
            U[i, j] = G[i, j]
        U[i, i] += alpha
    for k in range(p):
        # No pivot is below the ridge; half of it bounds what rounding leaves of a huge row.
        root = math.sqrt(max(U[k, k], 0.5 * alpha))
        U[k, k] = root * root
        for j in range(k, p):
            U[k, j] /= root
        for i in range(k + 1, p):
            f = U[k, i]
            if f != 0.0:
                for j in range(i, p):
                    U[i, j] -= f * U[k, j]


@jit
def solve_inplace(U: Array, e: Array, v: Array) -> float:
    """Replace ``e`` by U'^-1 e, write U^-1 of that to ``v``, and return its squared length."""
    p, squares = len(e), 0.0
    for k in range(p):
        e[k] /= U[k, k]
        f = e[k]
        squares += f * f
        for j in range(k + 1, p):
            e[j] -= f * U[k, j]
    for k in range(p - 1, -1, -1):
        total = 0.0
        for j in range(k + 1, p):
            total += U[k, j] * v[j]
        v[k] = (e[k] - total) / U[k, k]
    return squares


@jit
def add_row_inplace(U: Array, G: Array, x: Array, h: float) -> None:
    """Add h x x' to the curvature and its factor; ``x`` is used up."""
    p, root = len(x), math.sqrt(h)
    for i in range(p):
        f = h * x[i]
        if f != 0.0:
            for j in range(p):
                G[i, j] += f * x[j]
    for i in range(p):
        x[i] *= root
    for k in range(p):
        a = x[k]
        if a == 0.0:
            continue
        r = math.sqrt(U[k, k] * U[k, k] + a * a)
        c, s = U[k, k] / r, a / r
        U[k, k] = r
        for j in range(k + 1, p):
            one, two = U[k, j], x[j]
            U[k, j] = c * one + s * two
            x[j] = c * two - s * one


@jit
def _scale_column(state: Exact, j: int, base: float, alpha: float, forces: Array) -> None:
    """Give a column another scale; its weights write what the change of the ridge pulls back."""
    W, G, units = state.W, state.G, state.units
    ratio = units[j, BASE_SCALE] / base
    for i in range(len(G)):
        G[i, j] *= ratio
    for i in range(len(G)):
        G[j, i] *= ratio
    for c in range(W.shape[1]):
        # The force on a weight whose column was scaled before in this row carries over.
        W[j, c] /= ratio
        forces[j, c] = forces[j, c] * ratio + alpha * (1.0 - ratio * ratio) * W[j, c]
    units[j, BASE_SCALE] = base
    units[j, SCALE] = base


@jit
def _apply_forces(state: Exact, forces: Array, alpha: float) -> None:
    """Factor the curvature again, and move the weights by -H^-1 times the forces."""
    W, p = state.W, len(state.G)
    factor_inplace(state.U, state.G, alpha)
    e, v = np.empty(p), np.empty(p)
    for c in range(W.shape[1]):
        for j in range(p):
            e[j] = forces[j, c]
        solve_inplace(state.U, e, v)
        for j in range(p):
            W[j, c] -= v[j]


@jit
def _meet_values(state: Exact, x: Array, task: Task, alpha: float, n_rows: int) -> None:
    """Give columns their first scale or, where a value is far out, a larger one."""
    units, changed = state.units, False
    forces = np.zeros((0, 0))
    for j in range(int(task.constant), len(units)):
        value = x[j - task.constant]
        if n_rows == 0 and task.constant:
            units[j, CENTER] = value
            units[j, ORIGIN] = value
        size = abs(value - units[j, CENTER])
        if size == 0.0:
            continue
        if units[j, SCALE] == 0.0:
            units[j, SCALE] = units[j, BASE_SCALE] = power_below(size)
        elif size > REACH * units[j, BASE_SCALE]:
            if not changed:
                changed, forces = True, np.zeros(state.W.shape)
            base = raised(units[j, BASE_SCALE], size, n_rows)
            _scale_column(state, j, base, alpha, forces)
    if changed:
        _apply_forces(state, forces, alpha)


@jit
def recenter(state: Exact, task: Task, alpha: float, n_rows: int) -> None:
    """Move the centers to the means, and the scales to the standard deviations, of recent rows.

    Those are the rows since the last time, half of all: no outlier is remembered for long.
    """
    W, G, units = state.W, state.G, state.units
    forces = np.zeros(W.shape)
    for j in range(int(task.constant), len(units)):
        if units[j, SCALE] == 0.0:
            continue
        mean, spread = deviation(units[j, SUM], units[j, SQUARES], n_rows)
        units[j, SUM] = units[j, SQUARES] = 0.0
        if task.constant:
            shift = (units[j, ORIGIN] + mean) - units[j, CENTER]
            f = shift / units[j, SCALE] * units[0, SCALE]
            for i in range(len(G)):
                G[i, j] -= f * G[i, 0]
            for i in range(len(G)):
                G[j, i] -= f * G[0, i]
            for c in range(W.shape[1]):
                W[0, c] += f * W[j, c]
            units[j, CENTER] += shift
        else:
            spread = math.sqrt(spread * spread + mean * mean)
        if spread > 0.0 and power_below(spread) != units[j, BASE_SCALE]:
            _scale_column(state, j, power_below(spread), alpha, forces)
    _apply_forces(state, forces, alpha)


@jit
def learn_exact(
    X: Array,
    targets: Array,
    weights: Array,
    scores: Array,
    state: Exact,
    counters: Array,
    sums: Array,
    means: Array,
    task: Task,
) -> None:
    """Learn from dense rows one after the other, and write the scores of each before it."""
    W, G, U, units = state
    p, n_outputs, lead = len(W), W.shape[1], int(task.constant)
    x, e, v, slopes = np.empty(p), np.empty(p), np.empty(p), np.empty(n_outputs)
    for i in range(len(X)):
        weight, alpha = weights[i], sums[ALPHA]
        if task.normalizes and weight > 0.0:
            _meet_values(state, X[i], task, alpha, counters[T])
        for j in range(p):
            value = X[i, j - lead] if j >= lead else 1.0
            x[j] = (value - units[j, CENTER]) / units[j, SCALE] if units[j, SCALE] > 0.0 else 0.0
            e[j] = x[j]
        z = scores[i]
        for c in range(n_outputs):
            z[c] = 0.0
            for j in range(p):
                z[c] += W[j, c] * x[j]
        if weight == 0.0:
            continue
        counters[T] += 1
        q = solve_inplace(U, e, v)
        h = meet(z, targets[i], weight, q, slopes, sums, means, task)
        for c in range(n_outputs):
            for j in range(p):
                W[j, c] -= slopes[c] * v[j]
        if h > 0.0:
            add_row_inplace(U, G, x, h)
        if task.normalizes:
            t = counters[T]
            for j in range(lead, p):
                gap = X[i, j - lead] - units[j, ORIGIN]
                units[j, SUM] += gap
                units[j, SQUARES] += gap * gap
            if t > 2 and t & (t - 1) == 0:
                recenter(state, task, alpha, t // 2 if t > 4 else t)


@jit
def meet(
    z: Array,
    y: Array,
    weight: float,
    q: float,
    slopes: Array,
    sums: Array,
    means: Array,
    task: Task,
) -> float:
    """Pay for the scores ``z``, write the slopes of the step, and return the curvature of the row.

    The squared loss predicts as Vovk, Azoury and Warmuth: as if the row had been learned from
    with the target zero or, where offsets do not matter, the mean target so far.
    """
    kind, knee = task.kind, task.knee
    sums[WEIGHT] += weight
    if kind == ABSOLUTE:
        for c in range(len(z)):
            sums[RESIDUAL] += weight * abs(z[c] - y[c]) / len(z)
        knee = sums[RESIDUAL] / sums[WEIGHT]
    h = pull(kind, knee, z, y, weight, q, slopes)
    if kind == SQUARED:
        Q = weight * q
        for c in range(len(z)):
            sums[STEPS] += weight * Q / (1.0 + Q) * (y[c] * y[c] - z[c] * z[c] / (1.0 + Q))
            z[c] = (z[c] + Q * means[c]) / (1.0 + Q)
    sums[LOSS] += weight * loss_of(kind, knee, z, y)
    if task.normalizes and task.constant:
        for c in range(len(z)):
            means[c] += weight / sums[WEIGHT] * (y[c] - means[c])
    return h
