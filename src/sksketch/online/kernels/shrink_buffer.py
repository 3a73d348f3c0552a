"""One shrink of the buffer: the small eigenproblem, and what it does to everything else."""

from __future__ import annotations

import math

import numpy as np

from sksketch._typing import Array
from sksketch.arrays.kernels.jit import jit
from sksketch.online.kernels.layout import ALPHA, CACHED, KEPT, NOW, SHRINKAGE, USED
from sksketch.online.kernels.shrink_maps import pair_times_map, push_map
from sksketch.online.kernels.simd import add4, load4, store4
from sksketch.online.kernels.small_eigen import eigen_inplace

# Above this many rows LAPACK is faster.
_OWN_EIGEN_ROWS = 100


@jit
def shrink_buffer(
    R: Array,
    place: Array,
    C: Array,
    cached: Array,
    pend_start: Array,
    pend_slot: Array,
    pend_value: Array,
    K: Array,
    L: Array,
    beta: Array,
    u: Array,
    b: Array,
    maps: Array,
    counters: Array,
    sums: Array,
    first_reduced: int,
    raises_ridge: bool,
    ell: int,
    A: Array,
    V: Array,
    values: Array,
    W: Array,
    T_map: Array,
    work: Array,
    spare: Array,
    S: int,
) -> float:
    """Drop to ell rows, fold B'beta into wbar, and return the cut. ``b`` and ``u`` follow."""
    N, D = len(K), C.shape[1]
    if N <= _OWN_EIGEN_ROWS:
        for i in range(N):
            for j in range(N, A.shape[1]):
                A[i, j] = 0.0
            for j in range(i + 1):
                A[i, j] = K[i, j]
                A[j, i] = K[i, j]
        eigen_inplace(A, V, values, work)
    else:
        found, vectors = np.linalg.eigh(K)
        for i in range(N):
            values[i] = found[N - 1 - i]
            for j in range(N):
                V[i, j] = vectors[j, N - 1 - i]
    cut = max(values[ell], 0.0)
    for i in range(ell):
        left = values[i] - cut if i >= first_reduced else values[i]
        negligible = values[i] <= 1e-14 * values[0] or left <= 0.0
        root = 0.0 if negligible else math.sqrt(left / values[i])
        values[i] = 0.0 if negligible else left
        for j in range(N):
            W[j, i] = V[i, j] * root
    for j in range(N):
        W[j, ell] = beta[j]
        for i in range(ell + 1, D):
            W[j, i] = 0.0
    if raises_ridge:
        sums[ALPHA] += 0.5 * cut
    sums[SHRINKAGE] += cut
    # The map of all feature rows: the kept rows mix by W, and wbar takes in B'beta.
    for i in range(D):
        for j in range(D):
            T_map[i, j] = W[i, j] if i < ell else 0.0
    T_map[ell, ell] = 1.0
    n_cached = counters[CACHED]
    for slot in range(0, n_cached, 2):
        pair_times_map(C, slot, min(slot + 1, n_cached - 1), T_map, 0, spare)
    for row in range(ell, N):
        for p in range(pend_start[row - ell], pend_start[row - ell + 1]):
            slot, value = pend_slot[p], pend_value[p]
            for j in range(0, D, 4):
                store4(C, slot, j, add4(load4(C, slot, j), value, load4(W, row, j)))
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
        feature = cached[slot]
        for j in range(0, D, 4):
            store4(R, feature, j, load4(C, slot, j))
        place[feature, 0] = now + 1
        place[feature, 1] = -1
    counters[CACHED] = 0
    push_map(maps, T_map, now, S, spare)
    counters[NOW] = now + 1
    counters[USED] = ell
    counters[KEPT] = ell
    pend_start[0] = 0
    return float(cut)
