"""Oja's rule for the leading directions of the curvature, at the cost of the non-zeros."""

from __future__ import annotations

import numpy as np

from sksketch._typing import Array
from sksketch.arrays.kernels.jit import jit
from sksketch.online.kernels.baselines import cholesky_inplace, gather
from sksketch.online.kernels.layout import ALPHA, STEPS, USED, WORN
from sksketch.online.kernels.losses import meet_row
from sksketch.online.kernels.records import Batch, LossRule, OjaState, Totals

# Entries of F^-1, and rows, after which F is multiplied out.
_WORN_OUT, _FRESH_FOR = 1e4, 4096


@jit
def learn_oja(
    batch: Batch,
    start: int,
    state: OjaState,
    totals: Totals,
    loss: LossRule,
) -> int:
    """Oja's rule: H = V' diag(u eigenvalues) V + alpha I after u rows, with V = F Z orthonormal.

    Feature rows are [Z_1j .. Z_mj | wbar_j] and the weights wbar + Z'beta. Adding gamma p r' to
    V, with p = V r, makes VV' = I + (2 gamma + gamma^2 |r|^2) pp', whose Cholesky factor makes V
    orthonormal again: it goes into F, while Z gains F^-1 gamma p r'. Stops after a row that lets
    F^-1 grow large, and returns the number of rows done.
    """
    indptr, ids, data, targets, weights, scores = batch
    (rows, F, inverse, eigenvalues, beta), (counters, sums) = state, totals
    m = len(F)
    b, Vx, moved, p_row = np.empty(rows.shape[1]), np.empty(m), np.empty(m), np.empty(m)
    A, L, a = np.empty((m, m)), np.zeros((m, m)), np.empty(m)
    for i in range(start, len(targets)):
        first, last = indptr[i], indptr[i + 1]
        norm2 = gather(indptr, ids, data, i, rows, b)
        raw = b[m]
        for r in range(m):
            raw += beta[r] * b[r]
        scores[i] = raw
        if weights[i] == 0.0:
            continue
        n_before = counters[USED]
        over, slope, c = meet_row(raw, targets[i], weights[i], norm2, totals, loss)
        if over == 0.0 and slope == 0.0:
            continue
        alpha = sums[ALPHA]
        for r in range(m):
            Vx[r] = 0.0
            for k in range(m):
                Vx[r] += F[r, k] * b[k]
        if over != 0.0:
            q = norm2
            for r in range(m):
                size = n_before * eigenvalues[r]
                moved[r] = size / (size + alpha) * Vx[r]
                q -= moved[r] * Vx[r]
            move = -over / max(q, 2.2e-16 * norm2)
            for k in range(m):
                for r in range(m):
                    beta[k] -= move * F[r, k] * moved[r]
            for p in range(first, last):
                rows[ids[p], m] += move * data[p]
        if slope == 0.0:
            continue
        u = counters[USED]
        gamma = 1.0 / u
        twist = 2.0 * gamma + gamma * gamma * c * c * norm2
        for r in range(m):
            p_row[r] = c * Vx[r]
            eigenvalues[r] += gamma * (p_row[r] * p_row[r] - eigenvalues[r])
        for r in range(m):
            for k in range(r + 1):
                A[r, k] = twist * p_row[r] * p_row[k]
        cholesky_inplace(A, L, m, 1.0)
        back = 0.0
        for r in range(m):
            a[r] = 0.0
            for k in range(m):
                a[r] += inverse[r, k] * gamma * p_row[k]
            back += c * a[r] * beta[r]
            Vx[r] += gamma * c * norm2 * p_row[r]
        largest = 0.0
        # F = L^-1 F, and V x likewise; F^-1 = F^-1 L.
        for r in range(m):
            for k in range(r):
                part = L[r, k]
                Vx[r] -= part * Vx[k]
                for j in range(m):
                    F[r, j] -= part * F[k, j]
            Vx[r] /= L[r, r]
            for j in range(m):
                F[r, j] /= L[r, r]
        for r in range(m):
            for j in range(m):
                total = 0.0
                for k in range(j, m):
                    total += inverse[r, k] * L[k, j]
                inverse[r, j] = total
                largest = max(largest, abs(total))
        inner = 0.0
        for r in range(m):
            size = u * eigenvalues[r]
            moved[r] = size / (size + alpha) * Vx[r]
            inner += moved[r] * Vx[r]
        pull = weights[i] * slope
        move = -pull / alpha
        sums[STEPS] += pull * pull * max(norm2 - inner, 0.0) / alpha
        for k in range(m):
            for r in range(m):
                beta[k] -= move * F[r, k] * moved[r]
        for p in range(first, last):
            for r in range(m):
                rows[ids[p], r] += a[r] * (c * data[p])
            rows[ids[p], m] += (move - back) * data[p]
        if largest > _WORN_OUT or u % _FRESH_FOR == 0:
            counters[WORN] = 1
            return i + 1
    return len(targets)


@jit
def turn_rows(rows: Array, n: int, F: Array, beta: Array) -> None:
    """Add Z'beta to wbar and multiply Z by F, feature by feature."""
    m = len(F)
    turned = np.empty(m)
    for i in range(n):
        for r in range(m):
            rows[i, m] += rows[i, r] * beta[r]
        for r in range(m):
            turned[r] = 0.0
            for k in range(m):
                turned[r] += F[r, k] * rows[i, k]
        for r in range(m):
            rows[i, r] = turned[r]
