"""The truth about a stream, in extended precision and without a line of the package.

Every number comes with a bound on its own error, so that a test can tell a false claim from a
rounding of the oracle. Unit roundoffs u are those of numpy's long double, 2^-64 where it has 80
bits: 2048 times finer than float64, which is what rows come in.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from _support.extended import LD, ROUNDOFF, eigenvalues, solve

# Rows whose products are summed before the sums are added: errors grow with rows / 256 + 256.
BLOCK_ROWS = 256


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


def truth(rows, *, centered=False, targets=None, units=None):
    """Return what the rows amount to, with columns divided by ``units`` if there are any.

    The difference x - c of two numbers has a relative error of one rounding, whatever c is. So
    centering at a c close to the mean costs no digits, however far from the origin the rows are.

    >>> t = truth(Rows(1).update([[1e12], [1e12 + 1], [1e12 + 2]]), centered=True)
    >>> float(t.gram[0, 0]), float(t.mean[0]) - 1e12
    (2.0, 1.0)
    """
    X, w = rows.X, rows.weights
    weight = w.sum()
    Z, mean = _around_mean(X, w, centered)
    if units is not None:
        Z, mean = Z / units.astype(LD), mean / units.astype(LD)
    gram = _products(Z, w, Z)
    trace = np.trace(gram)
    terms = min(len(X), BLOCK_ROWS) + len(X) / BLOCK_ROWS + rows.n_roundings + 12
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
    if not np.isfinite(x).all():
        # A penalty that even these numbers do not resolve: nothing is known then.
        nothing = LD(np.inf)
        return Ridge(np.zeros_like(c), nothing, LD(0), nothing, LD(0), nothing)
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
