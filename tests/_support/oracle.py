"""The truth about a stream, in extended precision and without a line of the package.

Every number comes with a bound on its own error, so that a test can tell a false claim from a
rounding of the oracle. Unit roundoffs u are those of numpy's long double, 2^-64 where it has 80
bits: 2048 times finer than float64, which is what rows come in.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

LD = np.longdouble
ROUNDOFF = LD(np.finfo(LD).eps) / 2
# Where long double is double, there is nothing finer to compare with.
EXTENDED = float(np.finfo(LD).eps) < 1e-18
# Half the distance from one to the next number, in float64 and relative to what eigvalsh returns.
DOUBLE = float(np.finfo(np.float64).eps)
# Rows whose products are summed before the sums are added: errors grow with rows / 256 + 256.
BLOCK_ROWS = 256
MAX_SWEEPS = 8


class Rows:
    """The rows that a sketch has seen, and the weights that they have now.

    >>> rows = Rows(1).update([[1.0], [2.0]], decay=0.5)
    >>> [float(w) for w in rows.update([[3.0]], weights=[4.0], decay=0.5).weights]
    [0.25, 0.5, 4.0]
    """

    def __init__(self, n_features):
        self.n_features = n_features
        self.n_rows = 0
        self._blocks = []
        self._factors = []

    def update(self, X, weights=None, decay=1.0):
        """Add rows; each of them lessens the weight of all earlier ones by ``decay``."""
        X = np.asarray(X, dtype=np.float64)
        w = np.ones(len(X), LD) if weights is None else np.asarray(weights).astype(LD)
        if decay != 1.0:
            w = w * LD(decay) ** np.arange(len(X) - 1, -1, -1).astype(LD)
            older = LD(decay) ** LD(len(X))
            self._factors = [factor * older for factor in self._factors]
        self._blocks.append((X, w))
        self._factors.append(LD(1.0))
        self.n_rows += len(X)
        return self

    def merge(self, other):
        """Add the rows of another stream, which ran at the same time."""
        self._blocks += other._blocks
        self._factors += other._factors
        self.n_rows += other.n_rows
        return self

    @property
    def X(self):
        """All rows, in float64."""
        return np.concatenate([np.zeros((0, self.n_features)), *(X for X, _ in self._blocks)])

    @property
    def weights(self):
        """Weight of each row."""
        parts = [w * f for (_, w), f in zip(self._blocks, self._factors, strict=True)]
        return np.concatenate([np.zeros(0, LD), *parts])

    @property
    def n_roundings(self):
        """Roundings in a weight, at most."""
        return 2 + 2 * len(self._blocks)


class Truth(NamedTuple):
    """Weighted sums over all rows, around their mean or not.

    ``gram`` is the sum of w (x - mean)(x - mean)', ``error`` bounds the spectral norm of its error
    and ``trace`` is its trace. With targets, ``cross`` is the sum of w (x - mean)(y - target_mean)
    with an error of at most ``cross_error`` in length, and ``squares`` that of the squared targets.
    """

    weight: LD
    mean: np.ndarray
    gram: np.ndarray
    trace: LD
    error: LD
    target_mean: LD = LD(0)
    cross: np.ndarray | None = None
    cross_error: LD = LD(0)
    squares: LD = LD(0)


def truth(rows, *, centered=False, targets=None):
    """Return what the rows amount to.

    The difference x - c of two numbers has a relative error of one rounding, whatever c is. So
    centering at a c close to the mean costs no digits, however far from the origin the rows are.

    >>> t = truth(Rows(1).update([[1e12], [1e12 + 1], [1e12 + 2]]), centered=True)
    >>> float(t.gram[0, 0]), float(t.mean[0]) - 1e12
    (2.0, 1.0)
    """
    X, w = rows.X, rows.weights
    weight = w.sum()
    Z, mean = _around_mean(X, w, centered)
    gram = _products(Z, w, Z)
    trace = np.trace(gram)
    terms = min(len(X), BLOCK_ROWS) + len(X) / BLOCK_ROWS + rows.n_roundings + 8
    relative = 2 * LD(terms) * ROUNDOFF
    if targets is None:
        return Truth(weight, mean, gram, trace, relative * trace)
    y = np.asarray(targets, dtype=np.float64)[:, None]
    b, target_mean = _around_mean(y, w, centered)
    squares = _products(b, w, b)[0, 0]
    cross = _products(Z, w, b)[:, 0]
    cross_error = relative * np.sqrt(trace) * np.sqrt(squares)
    return Truth(
        weight, mean, gram, trace, relative * trace, target_mean[0], cross, cross_error, squares
    )


def _around_mean(X, w, centered):
    """Return rows around their weighted mean, and the mean."""
    Z = X.astype(LD)
    total = w.sum()
    if not centered or not total > 0:
        return Z, np.zeros(X.shape[1], LD)
    first = Z[np.flatnonzero(w > 0)[0]]
    center = first + (w @ (Z - first)) / total
    around = Z - center
    # The center itself is known to one rounding, which may be more than one of what is left.
    left = (w @ around) / total
    return around - left, center + left


def _products(A, w, B):
    """Return the sum of w a b' over rows, a block of rows at a time."""
    total = np.zeros((A.shape[1], B.shape[1]), LD)
    for start in range(0, len(A), BLOCK_ROWS):
        part = slice(start, start + BLOCK_ROWS)
        total += (A[part] * w[part, None]).T @ B[part]
    return total


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


class Ridge(NamedTuple):
    """The minimiser of |y - X w|^2 + ridge |w|^2, and bounds of the error of each number.

    ``free`` is the trace of G (G + ridge)^-1, ``squares`` the sum of squared residuals.
    """

    coefficients: np.ndarray
    error: LD
    free: LD
    free_error: LD
    squares: LD
    squares_error: LD


def ridge(found, penalty):
    """Return the ridge regression of a `Truth` with targets, at a positive penalty.

    >>> found = truth(Rows(1).update([[1.0], [2.0]]), targets=[1.0, 2.0])
    >>> exact = ridge(found, 5.0)
    >>> [float(number) for number in (exact.coefficients[0], exact.free, exact.squares)]
    [0.5, 0.5, 1.25]
    """
    G, c = found.gram, found.cross
    M = G + LD(penalty) * np.eye(len(G), dtype=LD)
    x = solve(M, c)
    length = np.sqrt(x @ x)
    residual = c - M @ x
    spread = (np.trace(M) * length + np.sqrt(c @ c)) * 4 * len(G) * ROUNDOFF
    off = np.sqrt(residual @ residual) + spread + found.error * length + found.cross_error
    error = off / LD(penalty)
    values, value_error = eigenvalues(G)
    values = np.maximum(values, 0)
    free = (values / (values + LD(penalty))).sum()
    free_error = len(G) * (value_error + found.error) / LD(penalty)
    squares = found.squares - 2 * (c @ x) + x @ G @ x
    sizes = found.squares + 2 * np.abs(c) @ np.abs(x) + np.abs(x) @ np.abs(G) @ np.abs(x)
    # The minimiser is where the objective is flat, but its squares alone change with it.
    slope = 2 * LD(penalty) * length * error + (np.trace(G) + LD(penalty)) * error**2
    rounding = 8 * len(G) * ROUNDOFF * sizes + found.error * length**2
    return Ridge(
        x, error, free, free_error, squares, slope + rounding + 2 * found.cross_error * length
    )
