"""Newton steps whose curvature is a Frequent Directions sketch, for many columns.

H = B'B + alpha I in the units of the columns, and W = Wbar + B'beta. Features are brought up to
date when a row has them, as in `online.kernels.lazy_shrink`: the row of feature j is
``[B_1j .. B_ell,j | Wbar_j1 .. Wbar_jK]`` for K outputs. All outputs share the curvature.
"""

from __future__ import annotations

import math

import numpy as np

from sksketch._typing import Array
from sksketch.arrays.kernels.jit import jit
from sksketch.online.curvature.kernels.buffer import (
    downdate_inplace,
    flush_noting_losses,
    note_losses,
    shrink,
)
from sksketch.online.curvature.kernels.exact_rows import meet
from sksketch.online.curvature.kernels.layout import (
    ALPHA,
    BASE_SCALE,
    CACHED,
    CENTER,
    COUNTED,
    DRIFT,
    FIRST_ROWS,
    KEPT,
    LOST,
    NORM2,
    NOW,
    ORIGIN,
    REACH,
    SCALE,
    SQUARES,
    SUM,
    USED,
    T,
)
from sksketch.online.curvature.kernels.records import Sketch, Task, Totals
from sksketch.online.curvature.kernels.units import power_below, raised, scale_of
from sksketch.online.kernels.copying import copy_inplace
from sksketch.online.kernels.feature_cache import load_rows, project_rows
from sksketch.online.kernels.lazy_shrink import solve_inplace
from sksketch.online.kernels.records import Batch, Features, Maps, Pending, ShrinkRule


@jit
def learn_sketched(
    batch: Batch,
    start: int,
    features: Features,
    units: Array,
    pending: Pending,
    sketch: Sketch,
    maps: Maps,
    totals: Totals,
    task: Task,
    rule: ShrinkRule,
) -> int:
    """Learn from the rows after the first ``start``, one after the other.

    Stops before a row for which the cache or the list of pending entries is too small, or after
    one that is due for new centers, and returns the number of the next row.
    """
    indptr, ids, data, targets, weights, scores = batch
    counters, sums = totals
    ell, N, n_outputs = rule.kept, len(sketch.K), targets.shape[1]
    C, n_rows = features.cache, len(targets)
    b = np.empty((1, C.shape[1] + features.pending.shape[1]))
    Bx, e, h, x = np.empty(N), np.empty(N), np.empty(N), np.empty(len(ids))
    slopes, raw = np.empty(n_outputs), np.empty(n_outputs)
    order, bins = np.empty((2, len(C)), np.int32), np.empty(maps.versions + 4, np.int64)
    slots, spare = np.empty(len(ids), np.int32), np.empty((2, C.shape[1]))
    compensates = rule.raises_ridge and task.normalizes
    loaded = start
    for i in range(start, n_rows):
        first, last, k = indptr[i], indptr[i + 1], counters[USED]
        if i >= loaded:
            n_before, ends = counters[CACHED], (i, min(n_rows, i + N - k))
            loaded += load_rows(batch, slots, ends, features, maps, counters, (order, bins, spare))
            if loaded == i:
                return i
            if compensates:
                note_losses(features, units, n_before, counters[CACHED], ell)
        if k >= ell and pending.start[k - ell] + last - first > len(pending.slot):
            return i
        weight, own = weights[i], slots[first:last]
        values = x[: last - first]
        if task.normalizes and weight > 0.0:
            place = own, ids[first:last], data[first:last]
            _meet_values(place, features, units, sketch, totals, task, ell)
        norm2 = _in_units(ids[first:last], data[first:last], units, values)
        z = scores[i]
        _score(own, values, features, sketch.beta, k, ell, b, Bx, z)
        if weight == 0.0:
            continue
        counters[T] += 1
        alpha = sums[ALPHA]
        q = max(norm2 - solve_inplace(sketch.L, k, counters[KEPT], Bx, e, h), 2.2e-16 * norm2)
        copy_inplace(raw, z)
        curvature = meet(z, targets[i], weight, q / alpha, slopes, sums, sketch.means, task)
        _move(own, values, C, sketch.beta, h, slopes, (alpha, k, ell))
        if not task.normalizes:
            _follow(sketch.reached, h, Bx, k, slopes, raw, norm2, alpha, sums)
        if curvature > 0.0:
            root, grown = math.sqrt(curvature), alpha + curvature * q
            _append(own, values, features, pending, sketch, (Bx, e), (root, norm2, grown), k, ell)
            for c in range(n_outputs):
                sketch.reached[k, c] = root * (raw[c] - slopes[c] * q / alpha)
            counters[USED] = k + 1
            if k + 1 == N:
                _shrink(features, units, pending, sketch, maps, totals, rule, task, spare)
                loaded = i + 1
        if counters[COUNTED] >= 0:
            n = counters[COUNTED] = counters[COUNTED] + 1
            _count(ids[first:last], data[first:last], units)
            if n > 2 and n & (n - 1) == 0:
                return i + 1
    return n_rows


@jit
def _move(
    slots: Array,
    values: Array,
    C: Array,
    beta: Array,
    h: Array,
    slopes: Array,
    place: tuple[float, int, int],
) -> None:
    """Move the weights of all outputs along v = (x - B'h)/alpha."""
    alpha, k, ell = place
    for c in range(len(slopes)):
        move = slopes[c] / alpha
        if move == 0.0:
            continue
        for p in range(len(slots)):
            C[slots[p], ell + c] -= move * values[p]
        for r in range(k):
            beta[r, c] += move * h[r]


@jit
def _shrink(
    features: Features,
    units: Array,
    pending: Pending,
    sketch: Sketch,
    maps: Maps,
    totals: Totals,
    rule: ShrinkRule,
    task: Task,
    spare: Array,
) -> None:
    """Shrink a full buffer, note the cut for the bound of the regret, and begin a new epoch."""
    counters, sums = totals
    cut = shrink(features, units, pending, sketch, maps, totals, rule, task, spare)
    length2 = max(sums[NORM2], 0.0)
    sums[DRIFT] += cut
    sums[DRIFT + 1] += cut * math.sqrt(length2)
    sums[DRIFT + 2] += cut * length2
    if counters[NOW] == maps.versions:
        flush_noting_losses(features, units, maps, spare, rule.kept)
        counters[NOW] = 0


@jit
def _count(ids: Array, data: Array, units: Array) -> None:
    """Add the values of a row to the sums of their columns."""
    for p in range(len(ids)):
        gap = data[p] - units[ids[p], ORIGIN]
        units[ids[p], SUM] += gap
        units[ids[p], SQUARES] += gap * gap


@jit
def _in_units(ids: Array, data: Array, units: Array, values: Array) -> float:
    """Write the values of a row in the units of its columns, and return their squares' sum."""
    total = 0.0
    for p in range(len(ids)):
        scale = units[ids[p], SCALE]
        value = (data[p] - units[ids[p], CENTER]) / scale if scale > 0.0 else 0.0
        values[p] = value
        total += value * value
    return total


@jit
def _score(
    slots: Array,
    values: Array,
    features: Features,
    beta: Array,
    k: int,
    ell: int,
    b: Array,
    Bx: Array,
    z: Array,
) -> None:
    """Write Bx and the scores W'x of a row; ``b`` is scratch."""
    D = features.cache.shape[1]
    project_rows(slots, values, features.cache, features.pending, max(k - ell, 0), b)
    for r in range(k):
        Bx[r] = b[0, r] if r < ell else b[0, D + r - ell]
    for c in range(len(z)):
        total = b[0, ell + c]
        for r in range(k):
            total += beta[r, c] * Bx[r]
        z[c] = total


@jit
def _append(
    slots: Array,
    values: Array,
    features: Features,
    pending: Pending,
    sketch: Sketch,
    products: tuple[Array, Array],
    sizes: tuple[float, float, float],
    k: int,
    ell: int,
) -> None:
    """Add ``root x`` as row ``k`` of B, to K and L, and to the features that it has."""
    (Bx, e), (root, norm2, grown) = products, sizes
    for r in range(k):
        sketch.K[k, r] = root * Bx[r]
        sketch.L[k, r] = root * e[r]
    sketch.K[k, k] = root * root * norm2
    sketch.L[k, k] = math.sqrt(grown)
    for c in range(sketch.beta.shape[1]):
        sketch.beta[k, c] = 0.0
    if k < ell:
        for p in range(len(slots)):
            features.cache[slots[p], k] = root * values[p]
        return
    at = pending.start[k - ell]
    for p in range(len(slots)):
        features.pending[slots[p], k - ell] = root * values[p]
        pending.slot[at] = slots[p]
        at += 1
    pending.start[k - ell + 1] = at


@jit
def _follow(
    reached: Array,
    h: Array,
    Bx: Array,
    k: int,
    slopes: Array,
    z: Array,
    norm2: float,
    alpha: float,
    sums: Array,
) -> None:
    """Keep BW and |W|^2 while W moves along v = (x - B'h)/alpha, of which Bv = h."""
    hBx, hh = 0.0, 0.0
    for r in range(k):
        hBx += h[r] * Bx[r]
        hh += h[r] * h[r]
    length2 = max(norm2 - hBx - alpha * hh, 0.0) / (alpha * alpha)
    for c in range(len(z)):
        along = z[c]
        for r in range(k):
            along -= h[r] * reached[r, c]
            reached[r, c] -= slopes[c] * h[r]
        sums[NORM2] += slopes[c] * (slopes[c] * length2 - 2.0 * along / alpha)


@jit
def _meet_values(
    place: tuple[Array, Array, Array],
    features: Features,
    units: Array,
    sketch: Sketch,
    totals: Totals,
    task: Task,
    ell: int,
) -> None:
    """Give columns their first scale or, where a value is far out, a larger one."""
    slots, ids, data = place
    counted = totals.counters[COUNTED]
    centers, n_rows = counted == 0, counted if counted >= 0 else FIRST_ROWS
    for p in range(len(ids)):
        feature = ids[p]
        if task.constant and feature == 0:
            continue
        if centers:
            units[feature, CENTER] = units[feature, ORIGIN] = data[p]
        size = abs(data[p] - units[feature, CENTER])
        if size == 0.0:
            continue
        if units[feature, SCALE] == 0.0:
            units[feature, SCALE] = units[feature, BASE_SCALE] = power_below(size)
        elif size > REACH * units[feature, BASE_SCALE]:
            base = raised(units[feature, BASE_SCALE], size, n_rows)
            _raise_scale(slots[p], units[feature], base, features, sketch, totals, ell)


@jit
def _raise_scale(
    slot: int,
    unit: Array,
    base: float,
    features: Features,
    sketch: Sketch,
    totals: Totals,
    ell: int,
) -> None:
    """Give a feature of the cache a larger scale, and pull its weights back by the larger ridge.

    The sum of squares of the weights, each times its scale and ridge, is part of what is
    minimized. A larger scale is one more row of it, with the feature alone and the target zero.
    """
    C, Cp, k = features.cache, features.pending, totals.counters[USED]
    K, L, beta, alpha = sketch.K, sketch.L, sketch.beta, totals.sums[ALPHA]
    scale = scale_of(base, unit[LOST], alpha)
    ratio = unit[SCALE] / scale
    b, e, h = np.empty(k), np.empty(k), np.empty(k)
    for r in range(k):
        b[r] = C[slot, r] if r < ell else Cp[slot, r - ell]
    for i in range(k):
        f = (ratio * ratio - 1.0) * b[i]
        if f != 0.0:
            for j in range(i + 1):
                K[i, j] += f * b[j]
    for r in range(k):
        if r < ell:
            C[slot, r] *= ratio
        else:
            Cp[slot, r - ell] *= ratio
    shorter = math.sqrt(1.0 - ratio * ratio)
    for r in range(k):
        e[r] = shorter * b[r]
    downdate_inplace(L, e, k, alpha)
    totals.counters[KEPT] = 0
    force = (base * base - unit[BASE_SCALE] * unit[BASE_SCALE]) / (scale * scale)
    for r in range(k):
        b[r] *= ratio
    solve_inplace(L, k, 0, b, e, h)
    for c in range(beta.shape[1]):
        inner = 0.0
        for r in range(k):
            inner += beta[r, c] * b[r]
        weight = (C[slot, ell + c] + inner / ratio) / ratio
        C[slot, ell + c] = weight - inner - force * weight
        for r in range(k):
            beta[r, c] += force * weight * h[r]
    unit[BASE_SCALE], unit[SCALE] = base, scale
