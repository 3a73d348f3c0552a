"""Online learners without a buffer: diagonal and full curvature, and random projection.

All of them move the weights along the same direction for the projection and for the step, and
touch only the features of the row, except `learn_full`, which is for few features.
"""

from __future__ import annotations

import math

import numpy as np

from sksketch._typing import Array
from sksketch.arrays.kernels.jit import jit
from sksketch.online.kernels.layout import ALPHA, STEPS, T
from sksketch.online.kernels.losses import meet_row
from sksketch.online.kernels.records import Batch, LossRule, ProjectedState, Totals


@jit
def learn_diagonal(
    batch: Batch,
    w: Array,
    G: Array,
    totals: Totals,
    adaptive: bool,
    loss: LossRule,
) -> None:
    """AdaGrad, H = diag(alpha + sqrt(G)), or gradient steps, H = alpha sqrt(t) I."""
    indptr, ids, data, targets, weights, scores = batch
    counters, sums = totals
    for i in range(len(targets)):
        first, last = indptr[i], indptr[i + 1]
        raw, norm2 = 0.0, 0.0
        for p in range(first, last):
            raw += w[ids[p]] * data[p]
            norm2 += data[p] * data[p]
        scores[i] = raw
        if weights[i] == 0.0:
            continue
        over, slope, _ = meet_row(raw, targets[i], weights[i], norm2, totals, loss)
        alpha, pull = sums[ALPHA], weights[i] * slope
        if over != 0.0:
            if adaptive:
                q = 0.0
                for p in range(first, last):
                    q += data[p] * data[p] / (alpha + math.sqrt(G[ids[p]]))
                for p in range(first, last):
                    w[ids[p]] -= over / q * data[p] / (alpha + math.sqrt(G[ids[p]]))
            else:
                for p in range(first, last):
                    w[ids[p]] -= over / norm2 * data[p]
        if slope == 0.0:
            continue
        for p in range(first, last):
            g = pull * data[p]
            G[ids[p]] += g * g
            H = alpha + math.sqrt(G[ids[p]]) if adaptive else alpha * math.sqrt(counters[T])
            w[ids[p]] -= g / H
            sums[STEPS] += g * g / H


@jit
def learn_full(
    batch: Batch,
    w: Array,
    inverse: Array,
    n: int,
    totals: Totals,
    loss: LossRule,
) -> None:
    """Full curvature: ``inverse`` is H^-1 for the first ``n`` features, times alpha_0."""
    indptr, ids, data, targets, weights, scores = batch
    sums = totals.sums
    v = np.empty(n)
    for i in range(len(targets)):
        first, last = indptr[i], indptr[i + 1]
        raw, norm2 = 0.0, 0.0
        for p in range(first, last):
            raw += w[ids[p]] * data[p]
            norm2 += data[p] * data[p]
        scores[i] = raw
        if weights[i] == 0.0:
            continue
        over, slope, c = meet_row(raw, targets[i], weights[i], norm2, totals, loss)
        if over == 0.0 and slope == 0.0:
            continue
        alpha, pull = sums[ALPHA], weights[i] * slope
        for j in range(n):
            v[j] = 0.0
        for p in range(first, last):
            x, row = data[p], ids[p]
            for j in range(n):
                v[j] += x * inverse[row, j]
        q = 0.0
        for p in range(first, last):
            q += data[p] * v[ids[p]]
        if not 2.2e-16 * norm2 < q < 1.5 * norm2:
            # Rounding has taken over the inverse; nothing is certain from here on.
            sums[STEPS] = math.inf
        # v is alpha H^-1 x before the row, and v / (1 + c^2 q / alpha) after it.
        grown = alpha + c * c * q
        move = -over / q - pull / grown
        for j in range(n):
            w[j] += move * v[j]
        if slope == 0.0:
            continue
        sums[STEPS] += pull * pull * q / grown
        shrink = c * c / grown
        for r in range(n):
            part = shrink * v[r]
            for j in range(n):
                inverse[r, j] -= part * v[j]


@jit
def cholesky_inplace(A: Array, L: Array, n: int, ridge: float) -> None:
    """Write the Cholesky factor of ``A + ridge I`` to ``L``; only the lower triangle is read."""
    for i in range(n):
        for j in range(i + 1):
            total = A[i, j] + (ridge if i == j else 0.0)
            for k in range(j):
                total -= L[i, k] * L[j, k]
            L[i, j] = math.sqrt(max(total, 1e-300)) if i == j else total / L[j, j]


@jit
def _solve(L: Array, n: int, b: Array, h: Array) -> float:
    """Write (L L')^-1 b to ``h`` and return b'h."""
    for i in range(n):
        total = b[i]
        for j in range(i):
            total -= L[i, j] * h[j]
        h[i] = total / L[i, i]
    for i in range(n - 1, -1, -1):
        h[i] /= L[i, i]
        for j in range(i):
            h[j] -= L[i, j] * h[i]
    inner = 0.0
    for i in range(n):
        inner += b[i] * h[i]
    return inner


@jit
def gather(indptr: Array, ids: Array, data: Array, i: int, rows: Array, b: Array) -> float:
    """Write the sum of x_j times the feature rows of row ``i`` to ``b`` and return |x|^2."""
    norm2 = 0.0
    for j in range(len(b)):
        b[j] = 0.0
    for p in range(indptr[i], indptr[i + 1]):
        x, row = data[p], ids[p]
        norm2 += x * x
        for j in range(len(b)):
            b[j] += x * rows[row, j]
    return norm2


@jit
def sum_of(A: Array, b: Array) -> float:
    """Return the sum of all entries, which is not finite if one of them is not."""
    total = 0.0
    for i in range(len(A)):
        for j in range(A.shape[1]):
            total += A[i, j]
    for i in range(len(b)):
        total += b[i]
    return total


@jit
def learn_projected(
    batch: Batch,
    state: ProjectedState,
    totals: Totals,
    loss: LossRule,
) -> None:
    """Random projection: B gains s r' with a random s for each row r, and H = B'B + alpha I."""
    indptr, ids, data, targets, weights, scores = batch
    (rows, K, L, beta, signs), (counters, sums) = state, totals
    m = len(K)
    b, h = np.empty(rows.shape[1]), np.empty(m)
    began = counters[T]
    for i in range(len(targets)):
        first, last = indptr[i], indptr[i + 1]
        norm2 = gather(indptr, ids, data, i, rows, b)
        raw = b[m]
        for r in range(m):
            raw += beta[r] * b[r]
        scores[i] = raw
        if weights[i] == 0.0:
            continue
        s = counters[T] - began
        over, slope, c = meet_row(raw, targets[i], weights[i], norm2, totals, loss)
        alpha = sums[ALPHA]
        if over != 0.0:
            cholesky_inplace(K, L, m, alpha)
            move = -over / max(norm2 - _solve(L, m, b, h), 2.2e-16 * norm2)
            for r in range(m):
                beta[r] -= move * h[r]
            for p in range(first, last):
                rows[ids[p], m] += move * data[p]
        if slope == 0.0:
            continue
        # B'beta changes with B, and wbar takes that back.
        back = 0.0
        for r in range(m):
            back += c * signs[s, r] * beta[r]
            for k in range(r + 1):
                K[r, k] += (
                    c * (b[r] * signs[s, k] + signs[s, r] * b[k])
                    + c * c * norm2 * signs[s, r] * signs[s, k]
                )
        for r in range(m):
            b[r] += c * norm2 * signs[s, r]
        cholesky_inplace(K, L, m, alpha)
        inner = _solve(L, m, b, h)
        move = -weights[i] * slope / alpha
        sums[STEPS] += (weights[i] * slope) ** 2 * max(norm2 - inner, 0.0) / alpha
        for r in range(m):
            beta[r] -= move * h[r]
        for p in range(first, last):
            for r in range(m):
                rows[ids[p], r] += signs[s, r] * (c * data[p])
            rows[ids[p], m] += (move - back) * data[p]
