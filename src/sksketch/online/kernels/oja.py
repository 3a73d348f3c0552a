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
        _multiply(F, b, Vx)
        if over != 0.0:
            _damp(n_before, eigenvalues, alpha, Vx, moved)
            q = norm2
            for r in range(m):
                q -= moved[r] * Vx[r]
            move = -over / max(q, 2.2e-16 * norm2)
            _move_beta(beta, F, moved, move)
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
        _factor_twist(p_row, twist, A, L)
        back = 0.0
        for r in range(m):
            a[r] = _weighted(inverse[r], gamma, p_row)
            back += c * a[r] * beta[r]
            Vx[r] += gamma * c * norm2 * p_row[r]
        largest = _turn(L, F, inverse, Vx)
        _damp(u, eigenvalues, alpha, Vx, moved)
        inner = 0.0
        for r in range(m):
            inner += moved[r] * Vx[r]
        pull = weights[i] * slope
        move = -pull / alpha
        sums[STEPS] += pull * pull * max(norm2 - inner, 0.0) / alpha
        _move_beta(beta, F, moved, move)
        for p in range(first, last):
            for r in range(m):
                rows[ids[p], r] += a[r] * (c * data[p])
            rows[ids[p], m] += (move - back) * data[p]
        if largest > _WORN_OUT or u % _FRESH_FOR == 0:
            counters[WORN] = 1
            return i + 1
    return len(targets)


@jit
def _multiply(F: Array, b: Array, out: Array) -> None:
    """Write ``F b`` to ``out``; ``b`` may be longer."""
    for r in range(len(F)):
        out[r] = 0.0
        for k in range(len(F)):
            out[r] += F[r, k] * b[k]


@jit
def _weighted(row: Array, gamma: float, p_row: Array) -> float:
    total = 0.0
    for k in range(len(p_row)):
        total += row[k] * gamma * p_row[k]
    return total


@jit
def _damp(u: int, eigenvalues: Array, alpha: float, Vx: Array, moved: Array) -> None:
    """Write what the curvature takes from each direction's share of a row to ``moved``."""
    for r in range(len(Vx)):
        size = u * eigenvalues[r]
        moved[r] = size / (size + alpha) * Vx[r]


@jit
def _factor_twist(p_row: Array, twist: float, A: Array, L: Array) -> None:
    """Write the Cholesky factor of ``I + twist p p'`` to ``L``; ``A`` is scratch."""
    m = len(p_row)
    for r in range(m):
        for k in range(r + 1):
            A[r, k] = twist * p_row[r] * p_row[k]
    cholesky_inplace(A, L, m, 1.0)


@jit
def _turn(L: Array, F: Array, inverse: Array, Vx: Array) -> float:
    """Let F = L^-1 F, V x likewise, F^-1 = F^-1 L; return the largest entry of the latter."""
    m, largest = len(F), 0.0
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
    return largest


@jit
def _move_beta(beta: Array, F: Array, moved: Array, move: float) -> None:
    """Subtract ``move F'moved`` from ``beta``."""
    for k in range(len(beta)):
        for r in range(len(beta)):
            beta[k] -= move * F[r, k] * moved[r]


@jit
def turn_rows(rows: Array, n: int, F: Array, beta: Array) -> None:
    """Add Z'beta to wbar and multiply Z by F, feature by feature."""
    m = len(F)
    turned = np.empty(m)
    for i in range(n):
        for r in range(m):
            rows[i, m] += rows[i, r] * beta[r]
        _multiply(F, rows[i], turned)
        for r in range(m):
            rows[i, r] = turned[r]
