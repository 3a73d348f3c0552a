"""The features of the rows between two shrinks: their rows, up to date, side by side."""

from __future__ import annotations

from sksketch._typing import Array
from sksketch.arrays.kernels.jit import jit
from sksketch.arrays.kernels.layout import CACHED, NOW
from sksketch.arrays.kernels.shrink_maps import catch_up


@jit
def load_rows(
    indptr: Array,
    ids: Array,
    start: int,
    stop: int,
    R: Array,
    place: Array,
    C: Array,
    Cp: Array,
    cached: Array,
    maps: Array,
    counters: Array,
    order: Array,
    bins: Array,
    spare: Array,
    S: int,
) -> int:
    """Bring the features of some rows into the cache and return how many rows it had room for.

    Slots are given in the order of the rows. Catching up goes by version, so that a map is
    used many times while it is close.
    """
    now = counters[NOW]
    n_before = counters[CACHED]
    n_cached = n_before
    loaded = 0
    for i in range(start, stop):
        if n_cached + indptr[i + 1] - indptr[i] > len(C):
            break
        loaded += 1
        for p in range(indptr[i], indptr[i + 1]):
            feature = ids[p]
            if place[feature, 1] < 0:
                place[feature, 1] = n_cached
                cached[n_cached] = feature
                n_cached += 1
    counters[CACHED] = n_cached
    if n_cached == n_before:
        return loaded
    for v in range(now + 3):
        bins[v] = 0
    for slot in range(n_before, n_cached):
        bins[place[cached[slot], 0] + 2] += 1
    for v in range(1, now + 3):
        bins[v] += bins[v - 1]
    for slot in range(n_before, n_cached):
        v = place[cached[slot], 0] + 1
        order[bins[v]] = slot
        bins[v] += 1
    for slot in range(n_before, n_cached):
        for j in range(Cp.shape[1]):
            Cp[slot, j] = 0.0
    n, n_new = 0, n_cached - n_before
    while n < n_new:
        slot = order[n]
        version = place[cached[slot], 0]
        n += 1
        if version < 0:
            for j in range(C.shape[1]):
                C[slot, j] = 0.0
            continue
        other = slot
        if n < n_new and place[cached[order[n]], 0] == version:
            other = order[n]
            n += 1
        catch_up(R, cached[slot], cached[other], version, now, S, maps, C, slot, other, spare)
    return loaded


@jit
def project_rows(
    indptr: Array,
    ids: Array,
    data: Array,
    i: int,
    place: Array,
    C: Array,
    Cp: Array,
    b: Array,
    ell: int,
) -> float:
    """Write Bx for row ``i`` to ``b`` and return wbar'x; the row's features are in the cache."""
    D, Dp = C.shape[1], Cp.shape[1]
    for j in range(len(b)):
        b[j] = 0.0
    p, stop = indptr[i], indptr[i + 1]
    # b has the kept rows, then wbar, then padding to D, then the pending rows.
    while p + 4 <= stop:
        s0, s1, s2, s3 = (
            place[ids[p], 1],
            place[ids[p + 1], 1],
            place[ids[p + 2], 1],
            place[ids[p + 3], 1],
        )
        x0, x1, x2, x3 = data[p], data[p + 1], data[p + 2], data[p + 3]
        for j in range(D):
            b[j] += x0 * C[s0, j] + x1 * C[s1, j] + x2 * C[s2, j] + x3 * C[s3, j]
        for j in range(Dp):
            b[D + j] += x0 * Cp[s0, j] + x1 * Cp[s1, j] + x2 * Cp[s2, j] + x3 * Cp[s3, j]
        p += 4
    while p < stop:
        s0, x0 = place[ids[p], 1], data[p]
        for j in range(D):
            b[j] += x0 * C[s0, j]
        for j in range(Dp):
            b[D + j] += x0 * Cp[s0, j]
        p += 1
    return float(b[ell])
