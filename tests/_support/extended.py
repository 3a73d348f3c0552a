"""Linear algebra of small symmetric matrices in extended precision, with bounds on its own error.

Unit roundoffs are those of numpy's long double, 2^-64 where it has 80 bits.
"""

from __future__ import annotations

import numpy as np

LD = np.longdouble
ROUNDOFF = LD(np.finfo(LD).eps) / 2
# Where long double is double, there is nothing finer to compare with.
EXTENDED = float(np.finfo(LD).eps) < 1e-18
# Distance from one to the next number in float64.
DOUBLE = float(np.finfo(np.float64).eps)
MAX_SWEEPS = 8


def operator(components, eigenvalues, ridge=0.0):
    """Return components' diag(eigenvalues) components + ridge I, dense.

    >>> operator(np.eye(2)[:1], np.array([3.0]), 1.0).astype(float)
    array([[4., 0.],
           [0., 1.]])
    """
    V = np.asarray(components).astype(LD)
    return (V.T * np.asarray(eigenvalues).astype(LD)) @ V + LD(ridge) * np.eye(V.shape[1], dtype=LD)


def double_eigenvalues(G):
    """Return eigenvalues, largest first, of a float64 solver, and a bound on their error.

    Good for differences such as A'A - K, which are formed in extended precision before.
    """
    scale = np.abs(G).max(initial=LD(0))
    if scale == 0:
        return np.zeros(len(G), LD), LD(0)
    values = np.linalg.eigvalsh((G / scale).astype(np.float64))[::-1].astype(LD)
    return values * scale, 4 * len(G) * LD(DOUBLE) * np.abs(values).max() * scale


def spectral_norm(D):
    """Return the largest absolute eigenvalue of a symmetric matrix, and a bound on its error."""
    values, error = double_eigenvalues(D)
    return np.abs(values).max(initial=LD(0)), error


def eigenvalues(G):
    """Return eigenvalues in extended precision, largest first, and a bound on their error.

    A float64 solver turns G nearly diagonal; cyclic Jacobi sweeps, half of the columns at a time,
    do the rest. By Weyl's inequality what is left off the diagonal bounds the error.

    >>> values, error = eigenvalues(np.array([[2.0, 1.0], [1.0, 2.0]]).astype(LD))
    >>> [float(v) for v in values], float(error) < 1e-16
    ([3.0, 1.0], True)
    """
    n = len(G)
    scale = np.abs(G).max(initial=LD(0))
    if scale == 0:
        return np.zeros(n, LD), LD(0)
    G = G / scale
    V = np.linalg.eigh(G.astype(np.float64))[1].astype(LD)
    for _ in range(2):
        V = V @ (3 * np.eye(n, dtype=LD) - V.T @ V) / 2
    M = V.T @ G @ V
    M = (M + M.T) / 2
    norm = np.abs(M.diagonal()).max()
    for _ in range(MAX_SWEEPS):
        if _off_diagonal(M) <= n * ROUNDOFF * norm:
            break
        M = _sweep(M)
    error = _off_diagonal(M) + 40 * n * ROUNDOFF * norm
    return np.sort(M.diagonal())[::-1] * scale, error * scale


def _off_diagonal(M):
    return np.sqrt(((M - np.diag(M.diagonal())) ** 2).sum())


def _sweep(M):
    """Return M after one rotation of every pair of columns, of disjoint pairs at once."""
    n = len(M)
    players = np.arange(n + n % 2)
    for _ in range(len(players) - 1):
        first, second = players[: len(players) // 2], players[len(players) // 2 :][::-1]
        real = (first < n) & (second < n)
        M = _rotated(M, first[real], second[real])
        players = np.concatenate([players[:1], players[-1:], players[1:-1]])
    return M


def _rotated(M, p, q):
    """Return M after the rotations that make its entries (p, q) zero."""
    apart = M[q, q] - M[p, p]
    off = M[p, q]
    # Where nothing is to be done, one in the denominator avoids 0 / 0.
    size = np.abs(apart) + np.sqrt(apart**2 + 4 * off**2) + (off == 0)
    tangent = np.where(apart < 0, -2, 2) * off / size
    c = 1 / np.sqrt(1 + tangent**2)
    s = tangent * c
    columns = M.copy()
    columns[:, p], columns[:, q] = c * M[:, p] - s * M[:, q], s * M[:, p] + c * M[:, q]
    rows = columns.copy()
    rows[p], rows[q] = (
        c[:, None] * columns[p] - s[:, None] * columns[q],
        s[:, None] * columns[p] + c[:, None] * columns[q],
    )
    return rows


def orthonormal(components):
    """Return orthonormal rows; the first k span what the first k given ones do.

    >>> orthonormal([[2.0, 0.0], [1.0, 1.0]]).astype(float)
    array([[1., 0.],
           [0., 1.]])
    """
    Q = np.asarray(components).astype(LD)
    for i in range(len(Q)):
        for _ in range(2):
            Q[i] -= (Q[:i] @ Q[i]) @ Q[:i]
            length = np.sqrt(Q[i] @ Q[i])
            Q[i] = Q[i] / length if length > 0 else 0
    return Q


def captured(G, components):
    """Return the energy of A in the span of the first k components, for every k."""
    Q = orthonormal(components)
    return np.cumsum(((Q @ G) * Q).sum(axis=1))


def solve(M, b):
    """Return x with M x = b for a symmetric M: elimination with pivots, and one refinement.

    >>> solve(np.array([[4.0, 2.0], [2.0, 3.0]]), np.array([8.0, 8.0])).astype(float)
    array([1., 2.])
    """
    M, b = np.asarray(M).astype(LD), np.asarray(b).astype(LD)
    x = _eliminated(M, b)
    return x + _eliminated(M, b - M @ x)


def _eliminated(M, b):
    A = np.column_stack([M, b])
    n = len(M)
    for k in range(n):
        pivot = k + int(np.argmax(np.abs(A[k:, k])))
        if pivot != k:
            A[[k, pivot]] = A[[pivot, k]]
        A[k + 1 :] -= np.outer(A[k + 1 :, k] / A[k, k], A[k])
    x = np.zeros(n, LD)
    for k in reversed(range(n)):
        x[k] = (A[k, n] - A[k, k + 1 : n] @ x[k + 1 :]) / A[k, k]
    return x
