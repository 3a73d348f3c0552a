"""The buffer of the sketch: its small matrices, its shrinks, and what shrinks take by column.

Robust Frequent Directions makes up for what a shrink takes by a larger ridge. In the units of the
columns that is done for each by itself: the curvature that a column has lost is kept and counts
as ridge of that column, so that the diagonal of H stays that of all rows so far.
"""

from __future__ import annotations

import math

import numpy as np

from sksketch._typing import Array
from sksketch.arrays.kernels.jit import jit
from sksketch.online.curvature.kernels.layout import (
    ALPHA,
    BASE_SCALE,
    CACHED,
    KEPT,
    LOST,
    NOW,
    SCALE,
    SHRINKAGE,
    USED,
)
from sksketch.online.curvature.kernels.records import Sketch, Task
from sksketch.online.curvature.kernels.units import scale_of
from sksketch.online.kernels.copying import copy_rows_inplace
from sksketch.online.kernels.layout import OWN_EIGEN_ROWS
from sksketch.online.kernels.records import Features, Maps, Pending, ShrinkRule
from sksketch.online.kernels.shrink_maps import flush, pair_times_map, push_map
from sksketch.online.kernels.simd import add4, load4, store4
from sksketch.online.kernels.small_eigen import eigen_inplace


@jit
def factor_inplace(L: Array, K: Array, k: int, alpha: float) -> None:
    """Write the lower factor of K + alpha I, from the lower triangle of K."""
    for i in range(k):
        for j in range(i + 1):
            total = K[i, j] + alpha if i == j else K[i, j]
            for r in range(j):
                total -= L[i, r] * L[j, r]
            if i == j:
                # No pivot is below the ridge; half of it bounds what rounding leaves of a huge row.
                L[i, i] = math.sqrt(max(total, 0.5 * alpha))
            else:
                L[i, j] = total / L[j, j]


@jit
def downdate_inplace(L: Array, x: Array, k: int, alpha: float) -> None:
    """Make L the factor of LL' - x x', which is at least alpha I; ``x`` is used up."""
    for j in range(k):
        if x[j] == 0.0:
            continue
        s = x[j] / L[j, j]
        c = math.sqrt(max(1.0 - s * s, 0.5 * alpha / (L[j, j] * L[j, j])))
        L[j, j] *= c
        for i in range(j + 1, k):
            L[i, j] = (L[i, j] - s * x[i]) / c
            x[i] = c * x[i] - s * L[i, j]


@jit
def note_losses(features: Features, units: Array, start: int, stop: int, ell: int) -> None:
    """Add to each feature of these slots what the shrinks it missed have taken from it."""
    R, C, place = features.rows, features.cache, features.place
    for slot in range(start, stop):
        feature = features.cached[slot]
        if place[feature, 0] < 0:
            continue
        lost = _squares(R, feature, ell) - _squares(C, slot, ell)
        scale = units[feature, SCALE]
        units[feature, LOST] += max(lost, 0.0) * scale * scale


@jit
def flush_noting_losses(
    features: Features, units: Array, maps: Maps, spare: Array, ell: int
) -> None:
    """Bring all features to the end of the epoch, and note what they lose by it."""
    R, n = features.rows, features.n_known
    before = np.empty(n)
    for feature in range(n):
        before[feature] = _squares(R, feature, ell)
    flush(features, maps, spare)
    for feature in range(n):
        if features.place[feature, 0] >= 0:
            lost = before[feature] - _squares(R, feature, ell)
            scale = units[feature, SCALE]
            units[feature, LOST] += max(lost, 0.0) * scale * scale


@jit
def _squares(A: Array, i: int, n: int) -> float:
    """Return the sum of squares of the first ``n`` numbers of a row, as four sums side by side."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    r = 0
    while r + 4 <= n:
        a += A[i, r] * A[i, r]
        b += A[i, r + 1] * A[i, r + 1]
        c += A[i, r + 2] * A[i, r + 2]
        d += A[i, r + 3] * A[i, r + 3]
        r += 4
    while r < n:
        a += A[i, r] * A[i, r]
        r += 1
    return (a + b) + (c + d)


@jit
def shrink(
    features: Features,
    units: Array,
    pending: Pending,
    sketch: Sketch,
    maps: Maps,
    totals: tuple[Array, Array],
    rule: ShrinkRule,
    task: Task,
    spare: Array,
) -> float:
    """Drop to ell rows, fold B'beta into the weights, and return the cut."""
    (counters, sums), ell = totals, rule.kept
    K, L, beta, reached = sketch.K, sketch.L, sketch.beta, sketch.reached
    C, N, n_cached = features.cache, len(K), counters[CACHED]
    D, n_outputs = C.shape[1], beta.shape[1]
    values, W = np.empty(N), np.zeros((N, D))
    cut = _mixing(K, beta, rule, values, W)
    sums[SHRINKAGE] += cut
    compensates = rule.raises_ridge and task.normalizes
    if rule.raises_ridge and not task.normalizes:
        sums[ALPHA] += 0.5 * cut
    before = np.empty(n_cached if compensates else 0)
    for slot in range(len(before)):
        before[slot] = _squares(C, slot, ell) + _squares(features.pending, slot, N - ell)
    T_map = np.zeros((D, D))
    copy_rows_inplace(T_map, W, ell)
    for c in range(n_outputs):
        T_map[ell + c, ell + c] = 1.0
    for slot in range(0, n_cached, 2):
        pair_times_map(C, slot, min(slot + 1, n_cached - 1), T_map, 0, spare)
    for row in range(ell, N):
        for p in range(pending.start[row - ell], pending.start[row - ell + 1]):
            slot = pending.slot[p]
            value = features.pending[slot, row - ell]
            for j in range(0, D, 4):
                store4(C, slot, j, add4(load4(C, slot, j), value, load4(W, row, j)))
    mixed = np.zeros((ell, n_outputs))
    for row in range(N):
        for i in range(ell):
            for c in range(n_outputs):
                mixed[i, c] += W[row, i] * reached[row, c]
    K[:], L[:], beta[:], reached[:] = 0.0, 0.0, 0.0, 0.0
    for i in range(ell):
        K[i, i] = values[i]
        for c in range(n_outputs):
            reached[i, c] = mixed[i, c]
    counters[KEPT] = ell
    if compensates and _refresh_units(features, units, before, K, sums[ALPHA], ell):
        counters[KEPT] = 0
    factor_inplace(L, K, ell, sums[ALPHA])
    now = counters[NOW]
    for slot in range(n_cached):
        feature = features.cached[slot]
        for j in range(0, D, 4):
            store4(features.rows, feature, j, load4(C, slot, j))
        features.place[feature, 0] = now + 1
        features.place[feature, 1] = -1
    counters[CACHED] = 0
    push_map(maps.table, T_map, now, maps.versions, spare)
    counters[NOW] = now + 1
    counters[USED] = ell
    pending.start[0] = 0
    return cut


@jit
def _refresh_units(
    features: Features, units: Array, before: Array, K: Array, alpha: float, ell: int
) -> bool:
    """Note what the features of the cache have lost, and scale them; return whether K changed."""
    C, changed = features.cache, False
    D, per_alpha = C.shape[1], 1.0 / alpha
    more = np.zeros((D, D))
    for slot in range(len(before)):
        unit = units[features.cached[slot]]
        scale = unit[SCALE]
        if scale == 0.0:
            continue
        square = scale * scale
        unit[LOST] += max(before[slot] - _squares(C, slot, ell), 0.0) * square
        held = unit[BASE_SCALE] * unit[BASE_SCALE] + unit[LOST] * per_alpha
        if held <= square and 2.0 * held > square:
            # The power of two above is still the same.
            continue
        new = scale_of(unit[BASE_SCALE], unit[LOST], alpha)
        changed, ratio = True, scale / new
        unit[SCALE] = new
        for i in range(ell):
            f = (ratio * ratio - 1.0) * C[slot, i]
            for j in range(0, i + 1, 4):
                store4(more, i, j, add4(load4(more, i, j), f, load4(C, slot, j)))
        for r in range(ell):
            C[slot, r] *= ratio
        for c in range(ell, D):
            C[slot, c] /= ratio
    for i in range(ell):
        for j in range(i + 1):
            K[i, j] += more[i, j]
    return changed


@jit
def _mixing(K: Array, beta: Array, rule: ShrinkRule, values: Array, W: Array) -> float:
    """Write the kept eigenvalues and the matrix whose columns mix rows into kept ones.

    Its next columns are beta, and the rest is zero. Returns the cut.
    """
    N, ell = len(K), rule.kept
    width = (N + 3) // 4 * 4
    V = np.empty((N, width))
    if N <= OWN_EIGEN_ROWS:
        A = np.zeros((N, width))
        for i in range(N):
            for j in range(i + 1):
                A[i, j] = K[i, j]
                A[j, i] = K[i, j]
        eigen_inplace(A, V, values, np.empty((4, width)))
    else:
        found, vectors = np.linalg.eigh(K)
        for i in range(N):
            values[i] = found[N - 1 - i]
            for j in range(N):
                V[i, j] = vectors[j, N - 1 - i]
    cut = max(values[ell], 0.0)
    for i in range(ell):
        left = values[i] - cut if i >= rule.first_reduced else values[i]
        negligible = values[i] <= 1e-14 * values[0] or left <= 0.0
        root = 0.0 if negligible else math.sqrt(left / values[i])
        values[i] = 0.0 if negligible else left
        for j in range(N):
            W[j, i] = V[i, j] * root
    for j in range(N):
        for c in range(beta.shape[1]):
            W[j, ell + c] = beta[j, c]
    return float(cut)
