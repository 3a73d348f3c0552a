"""Frequent Directions learners on sparse rows: features are brought up to date when touched.

The curvature is B'B + alpha I and the weights are w = wbar + B'beta. Feature j has the feature
row ``[B_1j .. B_ell,j | wbar_j]``. A shrink multiplies all feature rows by one small matrix, and
so a feature that is not touched only remembers its *version*, the number of shrinks it has seen.
When it is needed again it is multiplied by the product of the maps that it missed, which a table
of partial products makes short.

Names follow the algorithm: N rows of buffer, ell of them kept by a shrink, D columns of a feature
row with its padding, S versions in an epoch, after which all features are brought up to date.
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
    LIMIT,
    LOSS,
    NORM2,
    NOW,
    RIDGE,
    SLACK,
    SPAN,
    STEPS,
    USED,
    T,
)
from sksketch.online.kernels.losses import loss_slope, loss_value, note_reach, step_weights
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
    indptr: Array,
    ids: Array,
    data: Array,
    targets: Array,
    weights: Array,
    scores: Array,
    start: int,
    R: Array,
    place: Array,
    C: Array,
    Cp: Array,
    cached: Array,
    pend_start: Array,
    pend_slot: Array,
    pend_value: Array,
    K: Array,
    L: Array,
    beta: Array,
    u: Array,
    maps: Array,
    counters: Array,
    sums: Array,
    S: int,
    ell: int,
    first_reduced: int,
    raises_ridge: bool,
    loss: int,
    knee: float,
    grows: bool,
    n_features: int,
    pauses: bool,
) -> int:
    """Learn from the rows after the first ``start``, one after the other.

    The raw score of each row before it was learned from goes to ``scores``. Stops before a row
    for which the cache or the list of pending entries is too small, or after a shrink if it
    ``pauses`` there, and returns the number of the next row.

    For each row x with target y and weight s, with v = x - B'(K + alpha I)^-1 Bx = alpha H^-1 x::

        z = w'x clipped to the limit             the projection moves w along v
        r = sqrt((mu + eta) s) l'(z) x           a new row of B
        w -= s l'(z) H^-1 x                      the step moves w along v as well
    """
    N, D = len(K), C.shape[1]
    n_rows = len(targets)
    b, Bx, e, h = np.empty((1, D + Cp.shape[1])), np.empty(N), np.empty(N), np.empty(N)
    width = (N + 3) // 4 * 4
    A, V, values, W = np.empty((N, width)), np.empty((N, width)), np.empty(N), np.empty((N, D))
    T_map, whole = np.empty((D, D)), np.empty((D, D))
    work, spare = np.empty((4, width)), np.empty((2, D))
    order, bins = np.empty((2, len(C)), np.int32), np.empty(S + 4, np.int64)
    slots = np.empty(len(ids), np.int32)
    loaded = start
    for i in range(start, n_rows):
        first, last = indptr[i], indptr[i + 1]
        k = counters[USED]
        if i >= loaded:
            # The features of all rows before the next shrink, whatever they turn out to do.
            stop = min(n_rows, i + N - k)
            loaded += load_rows(
                *(indptr, ids, slots, i, stop, R, place, C, Cp, cached, maps, counters),
                *(order, bins, spare, S),
            )
            if loaded == i:
                return i
        pending = max(k - ell, 0)
        if k >= ell and pend_start[pending] + last - first > len(pend_slot):
            return i
        project_rows(first, last, slots, data, C, Cp, pending, b)
        raw = b[0, ell]
        for r in range(k):
            Bx[r] = b[0, r] if r < ell else b[0, D + r - ell]
            raw += beta[r] * Bx[r]
        scores[i] = raw
        y, weight = targets[i], weights[i]
        if weight == 0.0:
            continue
        counters[T] += 1
        limit = before = sums[LIMIT]
        z = min(max(raw, -limit), limit)
        sums[LOSS] += weight * loss_value(loss, z, y, knee)
        if grows:
            limit = max(limit, abs(y))
            sums[LIMIT] = limit
        slope = loss_slope(loss, z, y, knee)
        over = raw - z
        norm2 = 0.0
        for p in range(first, last):
            norm2 += data[p] * data[p]
        if norm2 == 0.0 or (slope == 0.0 and over == 0.0):
            continue
        note_reach(sums, norm2, over, slope, before, limit)
        mu, eta = step_weights(loss, counters[T], limit, knee, grows)
        c = math.sqrt((mu + eta) * weight) * slope
        if sums[ALPHA] == 0.0:
            sums[ALPHA] = c * c * norm2
            sums[RIDGE] = sums[ALPHA]
        alpha = sums[ALPHA]
        squares = solve_inplace(L, k, counters[KEPT], Bx, e, h)
        q = max(norm2 - squares, 2.2e-16 * norm2)
        if not norm2 - squares > 2.2e-16 * norm2:
            # Rounding has taken over the curvature; no regret is certain from here on.
            sums[STEPS] = math.inf
        pull = weight * slope
        move = -over / q
        grown = alpha + c * c * q
        if slope != 0.0:
            for r in range(k):
                K[k, r] = c * Bx[r]
                L[k, r] = c * e[r]
            K[k, k] = c * c * norm2
            L[k, k] = math.sqrt(grown)
            if k < ell:
                for p in range(first, last):
                    C[slots[p], k] = c * data[p]
            else:
                at = pend_start[pending]
                for p in range(first, last):
                    slot = slots[p]
                    Cp[slot, pending] = c * data[p]
                    pend_slot[at] = slot
                    pend_value[at] = c * data[p]
                    at += 1
                pend_start[pending + 1] = at
            beta[k] = 0.0
            counters[USED] = k + 1
            sums[SLACK] += 2.0 * eta * weight * slope * slope * limit * limit
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
        cut = shrink_buffer(
            *(R, place, C, cached, pend_start, pend_slot, pend_value, K, L, beta, u, Bx, maps),
            *(
                counters,
                sums,
                first_reduced,
                raises_ridge,
                ell,
                A,
                V,
                values,
                W,
                T_map,
                work,
                spare,
                S,
            ),
        )
        # A sum of terms of both signs, with what rounding can have taken from it.
        length2 = max(sums[NORM2], 0.0) + 2.2e-16 * (counters[T] + 64) * sums[SPAN]
        sums[DRIFT] += cut
        sums[DRIFT + 1] += cut * math.sqrt(length2)
        sums[DRIFT + 2] += cut * length2
        # The step under the new curvature, whose K is diagonal.
        alpha = sums[ALPHA]
        inner = 0.0
        for r in range(ell):
            h[r] = Bx[r] / (K[r, r] + alpha)
            inner += h[r] * Bx[r]
        move = -pull / alpha
        sums[STEPS] += pull * pull * max(norm2 - inner, 0.0) / alpha
        for p in range(first, last):
            R[ids[p], ell] += move * data[p]
        _move(sums, u, beta, h, Bx, ell, move, reached, norm2, alpha)
        loaded = i + 1
        if counters[NOW] == S:
            flush(R, place, n_features, maps, S, spare, whole)
            counters[NOW] = 0
        if pauses:
            return i + 1
    return n_rows


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
    features: Array,
    R: Array,
    place: Array,
    C: Array,
    Cp: Array,
    beta: Array,
    maps: Array,
    counters: Array,
    S: int,
    ell: int,
    out: Array,
) -> None:
    """Write the weights of some features; changes nothing.

    A feature row r of version s has the weight r M [beta; 1], where M leads from s to now, so
    one vector M [beta; 1] serves all features of a version.
    """
    D, now, k = C.shape[1], counters[NOW], counters[USED]
    vectors, known = np.empty((now + 1, D)), np.zeros(now + 1, np.bool_)
    spare = np.empty(D)
    nodes = np.empty(64, np.int64)
    for n in range(len(features)):
        feature = features[n]
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
            for j in range(D):
                vectors[version, j] = beta[j] if j < ell else 0.0
            vectors[version, ell] = 1.0
            n_nodes, level = 0, 0
            while True:
                node = node_of(version, now, S, level)
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
                        spare[i] += maps[nodes[m] * D + i, j] * vectors[version, j]
                for i in range(D):
                    vectors[version, i] = spare[i]
        for j in range(D):
            total += R[feature, j] * vectors[version, j]
        out[n] = total
