"""Frequent Directions learners on sparse rows: features are brought up to date when touched.

The curvature is B'B + alpha I and the weights are w = wbar + B'beta. Feature j has the feature
row ``[B_1j .. B_ell,j | wbar_j]``. A shrink multiplies all feature rows by one small matrix, and
so a feature that is not touched only remembers its *version*, the number of shrinks it has seen.
When it is needed again it is multiplied by the product of the maps that it missed, which a table
of partial products makes short. `online.reference` is the same without all of this.
"""

from __future__ import annotations

import math

import numpy as np

from sksketch._typing import Array
from sksketch.arrays.kernels.jit import jit
from sksketch.online.kernels.feature_cache import load_rows, project_rows
from sksketch.online.kernels.layout import (
    ALPHA,
    DRIFT,
    KEPT,
    NORM2,
    NOW,
    SPAN,
    STEPS,
    USED,
    T,
)
from sksketch.online.kernels.losses import meet_row
from sksketch.online.kernels.records import (
    Batch,
    Factor,
    Features,
    LossRule,
    Maps,
    Pending,
    ShrinkRule,
    Totals,
)
from sksketch.online.kernels.shrink_buffer import shrink_buffer
from sksketch.online.kernels.shrink_maps import flush, node_of


@jit
def solve_inplace(L: Array, k: int, kept: int, b: Array, e: Array, h: Array) -> float:
    """Write L^-1 b to ``e`` and L^-T e to ``h``, and return |e|^2.

    L is diagonal in its first ``kept`` rows.
    """
    squares = 0.0
    for i in range(kept):
        e[i] = b[i] / L[i, i]
    for i in range(kept, k):
        # Four sums side by side.
        s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
        j = 0
        while j + 4 <= i:
            s0 += L[i, j] * e[j]
            s1 += L[i, j + 1] * e[j + 1]
            s2 += L[i, j + 2] * e[j + 2]
            s3 += L[i, j + 3] * e[j + 3]
            j += 4
        while j < i:
            s0 += L[i, j] * e[j]
            j += 1
        e[i] = (b[i] - ((s0 + s1) + (s2 + s3))) / L[i, i]
    for i in range(k):
        squares += e[i] * e[i]
        h[i] = e[i]
    for i in range(k - 1, kept - 1, -1):
        h[i] /= L[i, i]
        step = h[i]
        for j in range(i):
            h[j] -= step * L[i, j]
    for i in range(kept):
        h[i] /= L[i, i]
    return squares


@jit
def learn_rows(
    batch: Batch,
    start: int,
    features: Features,
    pending: Pending,
    factor: Factor,
    maps: Maps,
    totals: Totals,
    loss: LossRule,
    rule: ShrinkRule,
) -> int:
    """Learn from the rows after the first ``start``, one after the other.

    Stops before a row for which the cache or the list of pending entries is too small, or after
    a shrink where the rule pauses, and returns the number of the next row.

    For each row x with target y and weight s, with v = x - B'(K + alpha I)^-1 Bx = alpha H^-1 x::

        z = w'x clipped to the limit             the projection moves w along v
        r = sqrt((mu + eta) s) l'(z) x           a new row of B
        w -= s l'(z) H^-1 x                      the step moves w along v as well
    """
    indptr, ids, data, targets, weights, scores = batch
    C, counters, sums = features.cache, totals.counters, totals.sums
    u, beta, ell, N = factor.u, factor.beta, rule.kept, len(factor.K)
    n_rows = len(targets)
    b = np.empty((1, C.shape[1] + features.pending.shape[1]))
    Bx, e, h = np.empty(N), np.empty(N), np.empty(N)
    order, bins = np.empty((2, len(C)), np.int32), np.empty(maps.versions + 4, np.int64)
    slots, spare = np.empty(len(ids), np.int32), np.empty((2, C.shape[1]))
    scratch = order, bins, spare
    loaded = start
    for i in range(start, n_rows):
        first, last, k = indptr[i], indptr[i + 1], counters[USED]
        if i >= loaded:
            # The features of all rows before the next shrink, whatever they turn out to do.
            ends = i, min(n_rows, i + N - k)
            loaded += load_rows(batch, slots, ends, features, maps, counters, scratch)
            if loaded == i:
                return i
        if k >= ell and pending.start[k - ell] + last - first > len(pending.slot):
            return i
        entries = slots[first:last], data[first:last]
        raw = _score(entries, features, beta, k, ell, b, Bx)
        scores[i] = raw
        if weights[i] == 0.0:
            continue
        norm2 = _squares(data, first, last)
        over, slope, c = meet_row(raw, targets[i], weights[i], norm2, totals, loss)
        if slope == 0.0 and over == 0.0:
            continue
        alpha, pull = sums[ALPHA], weights[i] * slope
        q = _remaining(norm2 - solve_inplace(factor.L, k, counters[KEPT], Bx, e, h), norm2, sums)
        move = -over / q
        grown = alpha + c * c * q
        if slope != 0.0:
            _append_row(entries, features, pending, factor, (Bx, e), (c, norm2, grown), k, ell)
            if k + 1 < N:
                move -= pull / grown
                sums[STEPS] += pull * pull * q / grown
        for p in range(first, last):
            C[slots[p], ell] += move * data[p]
        _move(sums, u, beta, h, Bx, k, move, raw, norm2, alpha)
        if slope == 0.0:
            continue
        reached = raw + move * q
        u[k] = c * reached
        if k + 1 < N:
            continue
        Bx[k] = c * norm2
        _note_cut(shrink_buffer(features, pending, factor, maps, totals, rule, Bx, spare), totals)
        # The step under the new curvature, whose K is diagonal.
        row = ids[first:last], data[first:last]
        _step_after_shrink(row, features.rows, factor, totals, (Bx, h), (pull, reached, norm2), ell)
        loaded = i + 1
        if counters[NOW] == maps.versions:
            flush(features, maps, spare)
            counters[NOW] = 0
        if rule.pauses:
            return i + 1
    return n_rows


@jit
def _remaining(q: float, norm2: float, sums: Array) -> float:
    """Return x'v, of which rounding must leave something."""
    if not q > 2.2e-16 * norm2:
        # Rounding has taken over the curvature; no regret is certain from here on.
        sums[STEPS] = math.inf
    return max(q, 2.2e-16 * norm2)


@jit
def _squares(data: Array, first: int, last: int) -> float:
    total = 0.0
    for p in range(first, last):
        total += data[p] * data[p]
    return total


@jit
def _score(
    entries: tuple[Array, Array],
    features: Features,
    beta: Array,
    k: int,
    ell: int,
    b: Array,
    Bx: Array,
) -> float:
    """Write Bx of a row with these slots and values, and return w'x; ``b`` is scratch."""
    slots, data = entries
    D = features.cache.shape[1]
    project_rows(slots, data, features.cache, features.pending, max(k - ell, 0), b)
    raw = b[0, ell]
    for r in range(k):
        Bx[r] = b[0, r] if r < ell else b[0, D + r - ell]
        raw += beta[r] * Bx[r]
    return float(raw)


@jit
def _append_row(
    entries: tuple[Array, Array],
    features: Features,
    pending: Pending,
    factor: Factor,
    products: tuple[Array, Array],
    sizes: tuple[float, float, float],
    k: int,
    ell: int,
) -> None:
    """Add c x as row ``k`` of B, to K and L, and to the features that it has."""
    (slots, data), (Bx, e), (c, norm2, grown) = entries, products, sizes
    K, L = factor.K, factor.L
    for r in range(k):
        K[k, r] = c * Bx[r]
        L[k, r] = c * e[r]
    K[k, k] = c * c * norm2
    L[k, k] = math.sqrt(grown)
    factor.beta[k] = 0.0
    if k < ell:
        for p in range(len(slots)):
            features.cache[slots[p], k] = c * data[p]
        return
    at = pending.start[k - ell]
    for p in range(len(slots)):
        features.pending[slots[p], k - ell] = c * data[p]
        pending.slot[at] = slots[p]
        pending.value[at] = c * data[p]
        at += 1
    pending.start[k - ell + 1] = at


@jit
def _note_cut(cut: float, totals: Totals) -> None:
    """Remember what a shrink takes, times the powers of |w|, for the bound of the regret."""
    sums = totals.sums
    # A sum of terms of both signs, with what rounding can have taken from it.
    length2 = max(sums[NORM2], 0.0) + 2.2e-16 * (totals.counters[T] + 64) * sums[SPAN]
    sums[DRIFT] += cut
    sums[DRIFT + 1] += cut * math.sqrt(length2)
    sums[DRIFT + 2] += cut * length2


@jit
def _step_after_shrink(
    row: tuple[Array, Array],
    rows: Array,
    factor: Factor,
    totals: Totals,
    products: tuple[Array, Array],
    sizes: tuple[float, float, float],
    ell: int,
) -> None:
    """Move w by -H^-1 g, where K is diagonal and all features are out of the cache."""
    (ids, data), (Bx, h), (pull, reached, norm2) = row, products, sizes
    sums, K = totals.sums, factor.K
    alpha = sums[ALPHA]
    inner = 0.0
    for r in range(ell):
        h[r] = Bx[r] / (K[r, r] + alpha)
        inner += h[r] * Bx[r]
    move = -pull / alpha
    sums[STEPS] += pull * pull * max(norm2 - inner, 0.0) / alpha
    for p in range(len(ids)):
        rows[ids[p], ell] += move * data[p]
    _move(sums, factor.u, factor.beta, h, Bx, ell, move, reached, norm2, alpha)


@jit
def _move(
    sums: Array,
    u: Array,
    beta: Array,
    h: Array,
    Bx: Array,
    k: int,
    move: float,
    score: float,
    norm2: float,
    alpha: float,
) -> None:
    """Keep beta, u = Bw and |w|^2 while w moves along v = x - B'h, of which Bv = alpha h."""
    hBx, hh, hu, size = 0.0, 0.0, 0.0, abs(score)
    for r in range(k):
        hBx += h[r] * Bx[r]
        hh += h[r] * h[r]
        hu += h[r] * u[r]
        size += abs(h[r] * u[r])
        u[r] += move * alpha * h[r]
        beta[r] -= move * h[r]
    along, length2 = score - hu, norm2 - hBx - alpha * hh
    sums[NORM2] += 2.0 * move * along + move * move * length2
    sums[SPAN] += 2.0 * abs(move) * size + move * move * (norm2 + abs(hBx) + alpha * hh)


@jit
def read_weights(
    wanted: Array,
    features: Features,
    beta: Array,
    maps: Maps,
    counters: Array,
    ell: int,
    out: Array,
) -> None:
    """Write the weights of some features; changes nothing.

    A feature row r of version s has the weight r M [beta; 1], where M leads from s to now, so
    one vector M [beta; 1] serves all features of a version.
    """
    place, C, Cp = features.place, features.cache, features.pending
    D, now, k = C.shape[1], counters[NOW], counters[USED]
    vectors, known = np.empty((now + 1, D)), np.zeros(now + 1, np.bool_)
    spare = np.empty(D)
    for n in range(len(wanted)):
        feature = wanted[n]
        version, slot = place[feature, 0], place[feature, 1]
        total = 0.0
        if slot >= 0:
            for r in range(min(k, ell)):
                total += beta[r] * C[slot, r]
            for r in range(ell, k):
                total += beta[r] * Cp[slot, r - ell]
            out[n] = total + C[slot, ell]
            continue
        if version < 0:
            out[n] = 0.0
            continue
        if not known[version]:
            known[version] = True
            _lead_to_now(vectors[version], version, now, beta, ell, maps, spare)
        for j in range(D):
            total += features.rows[feature, j] * vectors[version, j]
        out[n] = total


@jit
def _lead_to_now(
    vector: Array, version: int, now: int, beta: Array, ell: int, maps: Maps, spare: Array
) -> None:
    """Write M [beta; 1] to ``vector``, where M leads from ``version`` to ``now``."""
    D, nodes = len(vector), np.empty(64, np.int64)
    for j in range(D):
        vector[j] = beta[j] if j < ell else 0.0
    vector[ell] = 1.0
    n_nodes, level = 0, 0
    while True:
        node = node_of(version, now, maps.versions, level)
        if node == -2:
            break
        if node >= 0:
            nodes[n_nodes] = node
            n_nodes += 1
        level += 1
    for m in range(n_nodes - 1, -1, -1):
        for i in range(D):
            spare[i] = 0.0
            for j in range(D):
                spare[i] += maps.table[nodes[m] * D + i, j] * vector[j]
        for i in range(D):
            vector[i] = spare[i]
