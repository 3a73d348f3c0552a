"""The features of the rows between two shrinks: their rows, up to date, side by side."""

from __future__ import annotations

from sksketch._typing import Array
from sksketch.arrays.kernels.jit import jit
from sksketch.online.kernels.layout import CACHED, NOW
from sksketch.online.kernels.records import Batch, Features, Maps
from sksketch.online.kernels.shrink_maps import catch_up
from sksketch.online.kernels.simd import add4, load4, store4, zero4


@jit
def load_rows(
    batch: Batch,
    slots: Array,
    ends: tuple[int, int],
    features: Features,
    maps: Maps,
    counters: Array,
    scratch: tuple[Array, Array, Array],
) -> int:
    """Bring the features of some rows into the cache and return how many rows it had room for.

    Slots are given in the order of the rows, and written beside the features. Catching up goes
    by version, so that a map is used many times while it is close.
    """
    indptr, ids = batch.indptr, batch.ids
    R, place, C, Cp, cached = features[:5]
    order, bins, spare = scratch
    now = counters[NOW]
    n_before = counters[CACHED]
    n_cached = n_before
    loaded = 0
    for i in range(ends[0], ends[1]):
        if n_cached + indptr[i + 1] - indptr[i] > len(C):
            break
        loaded += 1
        for p in range(indptr[i], indptr[i + 1]):
            feature = ids[p]
            slot = place[feature, 1]
            # Without a branch: whether a feature is there already cannot be foreseen.
            cached[n_cached] = feature
            fresh = slot < 0
            slot = n_cached if fresh else slot
            n_cached += fresh
            place[feature, 1] = slot
            slots[p] = slot
    counters[CACHED] = n_cached
    if n_cached == n_before:
        return loaded
    for v in range(now + 3):
        bins[v] = 0
    # A loop of its own for memory that is far away, so that it is asked for many rows at once.
    for slot in range(n_before, n_cached):
        feature = cached[slot]
        for j in range(0, C.shape[1], 4):
            store4(C, slot, j, load4(R, feature, j))
    for slot in range(n_before, n_cached):
        version = place[cached[slot], 0]
        order[1, slot] = version
        bins[version + 2] += 1
        for j in range(0, Cp.shape[1], 4):
            store4(Cp, slot, j, zero4())
    for v in range(1, now + 3):
        bins[v] += bins[v - 1]
    for slot in range(n_before, n_cached):
        v = order[1, slot] + 1
        order[0, bins[v]] = slot
        bins[v] += 1
    # Behind those that were never touched, which need nothing.
    catch_up(C, order, (bins[0], n_cached - n_before), now, maps, spare)
    return loaded


@jit
def project_rows(
    slots: Array, data: Array, C: Array, pending: Array, n_pending: int, b: Array
) -> None:
    """Write Bx to ``b``, for the row with these entries.

    It has the kept rows, then wbar, then padding to the width of ``C``, then the pending rows.
    """
    D = C.shape[1]
    for j in range(0, D, 4):
        _project_four(slots, data, C, j, b, j)
    for j in range(0, n_pending, 4):
        _project_four(slots, data, pending, j, b, D + j)


@jit
def _project_four(slots: Array, data: Array, C: Array, j: int, b: Array, at: int) -> None:
    """Write the products with four columns of ``C``, as four sums side by side."""
    s, t, u, v = zero4(), zero4(), zero4(), zero4()
    p, last = 0, len(slots)
    while p + 4 <= last:
        s = add4(s, data[p], load4(C, slots[p], j))
        t = add4(t, data[p + 1], load4(C, slots[p + 1], j))
        u = add4(u, data[p + 2], load4(C, slots[p + 2], j))
        v = add4(v, data[p + 3], load4(C, slots[p + 3], j))
        p += 4
    while p < last:
        s = add4(s, data[p], load4(C, slots[p], j))
        p += 1
    store4(b, 0, at, add4(add4(s, 1.0, t), 1.0, add4(u, 1.0, v)))
