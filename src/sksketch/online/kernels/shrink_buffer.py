"""One shrink of the buffer: the small eigenproblem, and what it does to everything else."""

from __future__ import annotations

import math

import numpy as np

from sksketch._typing import Array
from sksketch.arrays.kernels.jit import jit
from sksketch.online.kernels.copying import copy_rows_inplace
from sksketch.online.kernels.layout import (
    ALPHA,
    CACHED,
    KEPT,
    NOW,
    OWN_EIGEN_ROWS,
    SHRINKAGE,
    USED,
)
from sksketch.online.kernels.records import Factor, Features, Maps, Pending, ShrinkRule, Totals
from sksketch.online.kernels.shrink_maps import pair_times_map, push_map
from sksketch.online.kernels.simd import add4, load4, store4
from sksketch.online.kernels.small_eigen import eigen_inplace


@jit
def shrink_buffer(
    features: Features,
    pending: Pending,
    factor: Factor,
    maps: Maps,
    totals: Totals,
    rule: ShrinkRule,
    b: Array,
    spare: Array,
) -> float:
    """Drop to ell rows, fold B'beta into wbar, and return the cut. ``b`` and ``u`` follow."""
    K, L, beta, u = factor
    counters, sums, ell = totals.counters, totals.sums, rule.kept
    N, D = len(K), features.cache.shape[1]
    values, W = np.empty(N), np.empty((N, D))
    cut = _mixing(K, beta, rule, values, W)
    if rule.raises_ridge:
        sums[ALPHA] += 0.5 * cut
    sums[SHRINKAGE] += cut
    # The map of all feature rows: the kept rows mix by W, and wbar takes in B'beta.
    T_map = np.zeros((D, D))
    copy_rows_inplace(T_map, W, ell)
    T_map[ell, ell] = 1.0
    _map_cache(features.cache, counters[CACHED], pending, W, T_map, ell, spare)
    for i in range(ell):
        spare[0, i] = 0.0
        spare[1, i] = 0.0
    for row in range(N):
        for i in range(ell):
            spare[0, i] += W[row, i] * b[row]
            spare[1, i] += W[row, i] * u[row]
    for i in range(N):
        b[i] = spare[0, i] if i < ell else 0.0
        u[i] = spare[1, i] if i < ell else 0.0
        beta[i] = 0.0
        for j in range(N):
            K[i, j] = 0.0
            L[i, j] = 0.0
    for i in range(ell):
        K[i, i] = values[i]
        L[i, i] = math.sqrt(values[i] + sums[ALPHA])
    now = counters[NOW]
    for slot in range(counters[CACHED]):
        feature = features.cached[slot]
        for j in range(0, D, 4):
            store4(features.rows, feature, j, load4(features.cache, slot, j))
        features.place[feature, 0] = now + 1
        features.place[feature, 1] = -1
    counters[CACHED] = 0
    push_map(maps.table, T_map, now, maps.versions, spare)
    counters[NOW] = now + 1
    counters[USED] = ell
    counters[KEPT] = ell
    pending.start[0] = 0
    return float(cut)


@jit
def _mixing(K: Array, beta: Array, rule: ShrinkRule, values: Array, W: Array) -> float:
    """Write the kept eigenvalues and the matrix whose columns mix rows into kept ones.

    Its next column is beta, and the rest is zero. Returns the cut.
    """
    N, D, ell = len(K), W.shape[1], rule.kept
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
        W[j, ell] = beta[j]
        for i in range(ell + 1, D):
            W[j, i] = 0.0
    return float(cut)


@jit
def _map_cache(
    C: Array, n_cached: int, pending: Pending, W: Array, T_map: Array, ell: int, spare: Array
) -> None:
    """Multiply the cached feature rows by the map, and add what pending rows put into them."""
    for slot in range(0, n_cached, 2):
        pair_times_map(C, slot, min(slot + 1, n_cached - 1), T_map, 0, spare)
    for row in range(ell, len(W)):
        for p in range(pending.start[row - ell], pending.start[row - ell + 1]):
            slot, value = pending.slot[p], pending.value[p]
            for j in range(0, C.shape[1], 4):
                store4(C, slot, j, add4(load4(C, slot, j), value, load4(W, row, j)))
