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
    slots: Array,
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

    Slots are given in the order of the rows, and written beside the features. Catching up goes
    by version, so that a map is used many times while it is close.
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
            slot = place[feature, 1]
            if slot < 0:
                slot = n_cached
                place[feature, 1] = slot
                cached[slot] = feature
                n_cached += 1
            slots[p] = slot
    counters[CACHED] = n_cached
    if n_cached == n_before:
        return loaded
    for v in range(now + 3):
        bins[v] = 0
    # One pass over memory that is far away; all others are over what this one brings close.
    for slot in range(n_before, n_cached):
        feature = cached[slot]
        version = place[feature, 0]
        order[1, slot] = version
        bins[version + 2] += 1
        for j in range(C.shape[1]):
            C[slot, j] = R[feature, j] if version >= 0 else 0.0
        for j in range(Cp.shape[1]):
            Cp[slot, j] = 0.0
    for v in range(1, now + 3):
        bins[v] += bins[v - 1]
    for slot in range(n_before, n_cached):
        v = order[1, slot] + 1
        order[0, bins[v]] = slot
        bins[v] += 1
    # Behind those that were never touched, which need nothing.
    n, n_new = bins[0], n_cached - n_before
    while n < n_new:
        slot = order[0, n]
        version = order[1, slot]
        n += 1
        other = slot
        if n < n_new and order[1, order[0, n]] == version:
            other = order[0, n]
            n += 1
        catch_up(C, slot, other, version, now, S, maps, spare)
    return loaded


@jit
def project_rows(
    first: int, last: int, slots: Array, data: Array, C: Array, Cp: Array, b: Array, ell: int
) -> float:
    """Write Bx to ``b`` and return wbar'x, for the row of these entries."""
    D, Dp = C.shape[1], Cp.shape[1]
    for j in range(len(b)):
        b[j] = 0.0
    p = first
    # b has the kept rows, then wbar, then padding to D, then the pending rows.
    while p + 4 <= last:
        s0, s1, s2, s3 = slots[p], slots[p + 1], slots[p + 2], slots[p + 3]
        x0, x1, x2, x3 = data[p], data[p + 1], data[p + 2], data[p + 3]
        for j in range(D):
            b[j] += x0 * C[s0, j] + x1 * C[s1, j] + x2 * C[s2, j] + x3 * C[s3, j]
        for j in range(Dp):
            b[D + j] += x0 * Cp[s0, j] + x1 * Cp[s1, j] + x2 * Cp[s2, j] + x3 * Cp[s3, j]
        p += 4
    while p < last:
        s0, x0 = slots[p], data[p]
        for j in range(D):
            b[j] += x0 * C[s0, j]
        for j in range(Dp):
            b[D + j] += x0 * Cp[s0, j]
        p += 1
    return float(b[ell])
