"""An upper bound on the largest eigenvalue of a matrix seen only through products.

Let M be positive semidefinite with largest eigenvalue t and unit eigenvector v,
and let the rows of G (b x d) be standard normal, drawn independently of M. For
every polynomial p::

    p(t)^2 |G v|^2  =  |p(M) G' projected on v|^2  <=  |G p(M)|_2^2

and |G v|^2 is chi-squared with b degrees of freedom, so it is below its quantile
c at level q with probability q: one event, whatever polynomial we then look at.
Given x, take the p with p(x) = 1 that makes |G p(M)|_F least: the kernel
polynomial sum_j w_j pi_j with w_j = pi_j(x) / sum_i pi_i(x)^2, where the pi_j are
orthonormal for the measure that Lanczos with the inner product of matrices sees.
If x is above the largest zero of the last pi_j, all zeros of p are below x (they
interlace), so p is at least 1 on [x, inf). Hence, if |G p(M)|_2^2 <= c::

    t <= x    with probability at least 1 - q.

Any x that passes is a valid bound; we return the smallest on a grid. Van
Dorsselaer, Hochstenbach and van der Vorst (2000, SIAM J. Matrix Anal. Appl. 22(3))
bound eigenvalues by the Lanczos polynomial in the same spirit, for one vector; a
block makes c much larger, and its spectral norm (instead of the sum over vectors)
makes the left side smaller.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.special

from sksketch._typing import Array
from sksketch.arrays.namespace import cast, joined, like, namespace, precision, to_numpy

# Below this, lengths are those of vectors that have lost their digits.
SMALLEST = 1e-290

GRID = 1.0 + np.geomspace(0.01, 8.0, 96)


class TopEigenvalue(NamedTuple):
    """Verdict of block Lanczos on the largest eigenvalue of a matrix."""

    estimate: float
    upper: float
    vectors: Array


def top_eigenvalue(
    apply: Callable[[Array], Array],
    probes: Array,
    failure_probability: float,
    depth: int,
    enough: float = float("inf"),
) -> TopEigenvalue:
    """Estimate the largest eigenvalue of a positive semidefinite matrix and bound it.

    Parameters
    ----------
    apply : callable
        Maps rows W (b, d) to ``W M``.
    probes : array of shape (b, d)
        Standard normal rows, independent of the matrix.
    failure_probability : float
        Probability that the bound may fail.
    depth : int
        Products with the matrix to spend.
    enough : float
        Stop sooner once the eigenvalue is known to be above this.

    Returns
    -------
    TopEigenvalue
        ``estimate`` is the block Ritz value, never above the truth but for
        rounding; ``upper`` holds with the stated probability; ``vectors`` are the
        leading Ritz vectors as rows.

    Examples
    --------
    >>> M = np.diag([4.0, 1.0, 1.0])
    >>> probes = np.random.default_rng(0).standard_normal((2, 3))
    >>> top = top_eigenvalue(lambda W: W @ M, probes, 1e-3, depth=3)
    >>> round(top.estimate, 6), 4.0 <= top.upper < 4.1
    (4.0, True)
    """
    basis, diagonal, off_diagonal = _lanczos(apply, probes, depth, enough)
    if not diagonal:
        return TopEigenvalue(0.0, 0.0, probes[:0])
    n_blocks, block = len(basis), len(probes)
    basis_rows = joined(basis)
    double = cast(basis_rows, np.float64)
    overlap = to_numpy(double @ double.T)
    estimate, vectors = _block_ritz(overlap, diagonal, off_diagonal, block)
    ritz_vectors = like(vectors, basis_rows, precision(basis_rows)) @ basis_rows[: vectors.shape[1]]
    if n_blocks <= len(diagonal):
        # The Krylov space is invariant: every eigenvalue that the probes can see is in it.
        return TopEigenvalue(estimate, estimate * (1 + 1e-6), ritz_vectors)
    blocks = overlap.reshape(n_blocks, block, n_blocks, block)
    first = _length(probes)
    quantile = 2.0 * float(scipy.special.gammaincinv(block / 2, failure_probability))
    upper = _smallest_certified(blocks, diagonal, off_diagonal, first, quantile, estimate)
    return TopEigenvalue(estimate, upper, ritz_vectors)


def _lanczos(
    apply: Callable[[Array], Array], probes: Array, depth: int, enough: float
) -> tuple[list[Array], list[float], list[float]]:
    """Lanczos for ``W -> W M`` with the inner product of matrices; stops when exhausted."""
    basis = [probes / _length(probes)]
    diagonal: list[float] = []
    off_diagonal: list[float] = []
    rounding = 8 * float(np.finfo(precision(probes)).eps)
    for _ in range(depth):
        W = apply(basis[-1])
        length = _length(W)
        if not length > SMALLEST:
            break
        flat, Q = W.reshape(-1), joined([block.reshape(1, -1) for block in basis])
        overlaps = Q @ flat
        diagonal.append(float(overlaps[-1]))
        flat = flat - overlaps @ Q
        # Once more: what rounding has left along the basis.
        W = (flat - (Q @ flat) @ Q).reshape(W.shape)
        rest = _length(W)
        if not rest > SMALLEST:
            break
        off_diagonal.append(rest)
        basis.append(W / rest)
        if rest <= rounding * length:
            # Only rounding is left, or something smaller; as a last step it is still a bound.
            break
        if enough < np.inf and _ritz_values(diagonal, off_diagonal)[-1] > enough:
            break
    return basis, diagonal, off_diagonal


def _length(W: Array) -> float:
    return float(namespace(W).linalg.vector_norm(W))


def _ritz_values(diagonal: list[float], off_diagonal: list[float]) -> Array:
    """Return the eigenvalues of the tridiagonal matrix: the zeros of the last polynomial."""
    inner = off_diagonal[: len(diagonal) - 1]
    T = np.diag(diagonal) + np.diag(inner, 1) + np.diag(inner, -1)
    return np.asarray(np.linalg.eigvalsh(T))


def _block_ritz(
    overlap: Array, diagonal: list[float], off_diagonal: list[float], block: int
) -> tuple[float, Array]:
    """Largest Ritz value of the matrix on all probe rows' Krylov space, and coefficients."""
    steps = len(diagonal)
    size = steps * block
    T = np.zeros((len(overlap) // block, steps))
    for j in range(steps):
        T[j, j] = diagonal[j]
        if j:
            T[j - 1, j] = off_diagonal[j - 1]
        if j < len(off_diagonal):
            T[j + 1, j] = off_diagonal[j]
    projected = overlap[:size] @ np.kron(T, np.eye(block))
    projected = (projected + projected.T) / 2
    weights, U = np.linalg.eigh(overlap[:size, :size])
    keep = weights > 1e-10 * weights[-1]
    C = U[:, keep] / np.sqrt(weights[keep])
    values, vectors = np.linalg.eigh(C.T @ projected @ C)
    return max(float(values[-1]), 0.0), (C @ vectors[:, ::-1][:, :block]).T


def _smallest_certified(
    overlap: Array,
    diagonal: list[float],
    off_diagonal: list[float],
    first: float,
    quantile: float,
    estimate: float,
) -> float:
    """Smallest candidate x whose kernel polynomial passes the test, or infinity."""
    steps = len(diagonal)
    zeros = _ritz_values(diagonal, off_diagonal)
    candidates = max(estimate, float(zeros[-1])) * GRID
    pi = [np.full(len(candidates), 1.0 / first)]
    for j in range(steps):
        term = (candidates - diagonal[j]) * pi[j]
        pi.append((term - off_diagonal[j - 1] * pi[j - 1] if j else term) / off_diagonal[j])
    values = np.stack(pi)
    weights = values / (values * values).sum(axis=0)
    images = np.einsum("ix,jx,ibjc->xbc", weights, weights, overlap, optimize=True)
    passed = np.linalg.eigvalsh(images)[:, -1] <= quantile
    return float(candidates[int(passed.argmax())]) if passed.any() else float("inf")
