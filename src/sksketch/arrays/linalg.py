"""Small dense factorizations, and the products that lead to them.

Rows are samples and every factor is kept as rows, so that each product reads
memory in order. Small matrices are float64 and run on one BLAS thread: on a
busy machine two threads are slower than one. Rows may be on a device: products
and eigenvectors are computed and stay there, and numbers come back in numpy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
from scipy.linalg import lapack

from sksketch._typing import Array
from sksketch.arrays.namespace import (
    cast,
    like,
    namespace,
    on_device,
    precision,
    solve_triangular,
    squared_norms,
    to_numpy,
)
from sksketch.arrays.products import combined_rows, gram, times_rows
from sksketch.arrays.threads import one_blas_thread

ALIGNMENT = 64

# An eigenvalue below this part of the largest one is one of rounding.
RANK_RESOLUTION = 1e-14


def aligned_empty(shape: tuple[int, int], dtype: np.dtype[Any]) -> Array:
    """Return an uninitialized C-ordered array that starts on a cache line."""
    n_bytes = shape[0] * shape[1] * dtype.itemsize
    raw = np.empty(n_bytes + ALIGNMENT, dtype=np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + n_bytes].view(dtype).reshape(shape)


def eigh_descending(G: Array, n_vectors: int | None = None) -> tuple[Array, Array]:
    """Return eigenvalues, largest first, and eigenvectors as columns.

    Where only the first ``n_vectors`` are wanted there may be no others.

    >>> eigh_descending(np.diag([1.0, 3.0]))[0]
    array([3., 1.])
    """
    if on_device(G):
        xp = namespace(G)
        eigenvalues, vectors = xp.linalg.eigh(G)
        return to_numpy(eigenvalues)[::-1], xp.flip(vectors, axis=1)
    with one_blas_thread():
        found = None
        if n_vectors is not None and 0 < 2 * n_vectors <= len(G) and G.dtype == np.float64:
            found = _leading_eigh(G, n_vectors)
        eigenvalues, vectors = np.linalg.eigh(G) if found is None else found
    return eigenvalues[::-1], vectors[:, ::-1]


def _leading_eigh(G: Array, n_vectors: int) -> tuple[Array, Array] | None:
    """Return all eigenvalues and the last vectors, smallest first, or None where LAPACK fails.

    Its steps are those of ``eigh``: a tridiagonal matrix, divide and conquer, and the way back
    to the vectors of G. The last is a quarter of the whole, and is done for those wanted alone.
    """
    divide_and_conquer = getattr(lapack, "dstevd", None)
    if divide_and_conquer is None:
        # Earlier releases of scipy do not have it.
        return None
    # Room for blocks of 64 reflectors in place of one by one.
    reflectors, diagonal, beside, scales, failed = lapack.dsytrd(G.T, lower=1, lwork=64 * len(G))
    eigenvalues, vectors, failed_too = divide_and_conquer(diagonal, beside)
    if failed or failed_too:
        return None
    wanted = np.asfortranarray(vectors[:, len(G) - n_vectors :])
    below, _, failed = lapack.dormqr(
        *("L", "N", reflectors[1:, :-1], scales, wanted[1:]), lwork=64 * n_vectors
    )
    wanted[1:] = below
    return None if failed else (eigenvalues, wanted)


def thin_svd(rows: Array) -> tuple[Array, Array]:
    """Return singular values, largest first, and right singular vectors as rows.

    Accurate for directions far below the largest one, unlike a route through
    the Gram matrix. Computed in float64.

    >>> thin_svd(np.diag([1e-9, 2.0]))[0]
    array([2.e+00, 1.e-09])
    """
    if on_device(rows):
        _, values, V = namespace(rows).linalg.svd(cast(rows, np.float64), full_matrices=False)
        return to_numpy(values), V
    A = rows.astype(np.float64, copy=False)
    if len(A) < A.shape[1]:
        # The factor of the transpose is small; LAPACK would do the same later and slower.
        Q, R = scipy.linalg.qr(A.T, mode="economic", check_finite=False)
        singular_values, vectors = _small_svd(R.T)
        return singular_values, np.asarray(vectors @ Q.T)
    return _small_svd(A)


def _small_svd(A: Array) -> tuple[Array, Array]:
    if not np.isfinite(A).all():
        # LAPACK may not come back from them.
        raise np.linalg.LinAlgError("there are numbers that are not finite")
    with one_blas_thread():
        try:
            result = scipy.linalg.svd(A, full_matrices=False, check_finite=False)
        except np.linalg.LinAlgError:
            # gesdd can fail to converge where the older gesvd does not.
            result = scipy.linalg.svd(
                A, full_matrices=False, check_finite=False, lapack_driver="gesvd"
            )
    return result[1], result[2]


def orthonormal_rows(T: Array) -> Array:
    """Return orthonormal rows that span the rows of ``T``, by Cholesky QR done twice.

    Rows that depend on the others, to rounding, are left out, so the result can
    have fewer rows than ``T``. The products run in the precision of ``T`` and
    the small factors in float64.

    >>> orthonormal_rows(np.array([[3.0, 0.0], [6.0, 0.0]])).shape
    (1, 2)
    """
    for _ in range(2):
        T, factor = _factored(T)
        if not len(T):
            break
        T = combined_rows(cast(factor, precision(T)), T)
    return T


def orthonormal_parts(T: Array, n_first: int) -> tuple[Array, Array]:
    """Return the same as two groups of columns: the first ``n_first`` in float64, and the others.

    Those are orthonormal rows Y, but for roundings of the other columns in the precision of T.
    """
    T, factor = _factored(T)
    for _ in range(2):
        if not len(T):
            break
        T, factor = _factored(cast(factor, precision(T)) @ T)
        # Rows that were far from independent are only nearly orthonormal after one pass.
        if len(T) and float(namespace(factor).max(namespace(factor).abs(factor))) < 1.5:
            break
    if not len(T):
        return cast(T[:, :n_first], np.float64), T[:, n_first:]
    first = factor @ cast(T[:, :n_first], np.float64)
    return first, cast(factor, precision(T)) @ T[:, n_first:]


def _factored(T: Array) -> tuple[Array, Array]:
    """Return the rows of T that are not zero, and C in float64 with orthonormal rows C T."""
    G = gram(T)
    if on_device(G) and (found := _factor_on_device(G)) is not None:
        return T, found
    G = to_numpy(G)
    scale = np.sqrt(G.diagonal())
    if not (nonzero := scale > 0).all():
        T = T[like(np.flatnonzero(nonzero), T)]
        G, scale = G[np.ix_(nonzero, nonzero)], scale[nonzero]
    if not len(T):
        return T, G
    return T, like(_inverse_factor(G / np.outer(scale, scale)) / scale, T)


def orthonormal_columns(W: Array) -> Array:
    """Return columns that span those of ``W`` and are orthonormal but for rounding.

    Once, not twice: enough to start from. Dependent columns are left out.

    >>> orthonormal_columns(np.array([[3.0, 6.0], [0.0, 0.0]])).shape
    (2, 1)
    """
    G = to_numpy(gram(W.T))
    scale = np.sqrt(G.diagonal())
    nonzero = scale > 0
    if not nonzero.all():
        W = W[:, like(np.flatnonzero(nonzero), W)]
        G, scale = G[np.ix_(nonzero, nonzero)], scale[nonzero]
    if not len(scale):
        return W
    factor = _inverse_factor(G / np.outer(scale, scale)) / scale
    return times_rows(W, like(factor.T, W, precision(W)))


def nystrom_rows(V: Array, W: Array) -> Array:
    """Return rows Z with Z'Z <= M, from some columns V and their images W = M V.

    With M = P'P these are Y'P for Y = P V (V'W)^(-1/2), whose columns are orthonormal. Columns
    of V whose image is a rounding of the others are left out.

    >>> M = np.diag([4.0, 1.0, 0.0])
    >>> Z = nystrom_rows(np.eye(3)[:, :2], M[:, :2])
    >>> (Z.T @ Z).round(9)
    array([[4., 0., 0.],
           [0., 1., 0.],
           [0., 0., 0.]])
    """
    return nystrom(V, W, 0.0)[0]


def nystrom(V: Array, W: Array, error: float) -> tuple[Array, float]:
    """Return the rows of `nystrom_rows`, and how far above M their Z'Z can be.

    ``error`` bounds the norm D of what W is off by, for columns V that are orthonormal to rounding.
    With X = W (V'W)^-1, which is known, and f the least eigenvalue of V'W that is kept, Z'Z moves
    by at most ``D (2 |X| + |X|^2) + 2 D^2 (1 + |X|)^2 / f``.
    """
    values, U = eigh_descending(to_numpy(combined_rows(V.T, W)))
    # Around a center far away nothing may be left of any direction.
    keep = values > max(RANK_RESOLUTION * values.max(initial=0.0), 2.0 * error)
    rows = combined_rows(like((U[:, keep] / np.sqrt(values[keep])).T, W), W.T)
    if not keep.any():
        return rows, 0.0
    lengths = np.sqrt(squared_norms(rows) if on_device(rows) else np.vecdot(rows, rows))
    spread = float(np.linalg.norm(lengths / np.sqrt(values[keep])))
    over = error * (2.0 * spread + spread**2)
    return rows, over + 2.0 * (error * (1.0 + spread)) ** 2 / float(values[keep][-1])


def _factor_on_device(G: Array) -> Any:
    """Return C with ``C G C' = I`` if G is well conditioned; it need not leave its device."""
    xp = namespace(G)
    scale = xp.sqrt(xp.linalg.diagonal(G))
    try:
        L = xp.linalg.cholesky(G / (scale[:, None] * scale))
    except (RuntimeError, np.linalg.LinAlgError):
        return None
    # Where nothing is raised, numbers that are none fail this comparison.
    if not float(xp.min(xp.linalg.diagonal(L))) ** 2 > 1e-13 * len(G):
        return None
    return solve_triangular(L, like(np.eye(len(G)), G)) / scale


def _inverse_factor(G: Array) -> Array:
    """Return C with ``C G C' = I``, on the numerical range of ``G`` (unit diagonal)."""
    floor = 1e-13 * len(G)
    with one_blas_thread():
        try:
            L = np.linalg.cholesky(G)
            if L.diagonal().min() ** 2 > floor:
                eye = np.eye(len(G))
                return np.asarray(scipy.linalg.solve_triangular(L, eye, lower=True))
        except np.linalg.LinAlgError:
            pass
        eigenvalues, vectors = np.linalg.eigh(G)
    keep = eigenvalues > floor
    return np.asarray((vectors[:, keep] / np.sqrt(eigenvalues[keep])).T)
