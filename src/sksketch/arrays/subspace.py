"""Leading eigenvectors of a matrix that is seen through few products with blocks of vectors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from sksketch._typing import Array
from sksketch.arrays.namespace import like, namespace, to_numpy


def block_krylov(
    apply: Callable[[Any], Any], start: Array, n_products: int, rank: int
) -> tuple[Any, Any]:
    """Return the leading eigenvalues and vectors that a block Krylov space has.

    Let S be an orthonormal basis of [start, A start, ..., A^(n_products - 1) start]. The
    products give A S, so S'AS and (AS)'(AS) = S'A^2 S are known, and the vectors A S c with
    S'A^2 S c = mu S'A S c are the best in span(A S): a power more than Rayleigh-Ritz in
    span(S) has, for the same products. For a positive semidefinite A the mu are never above
    its largest eigenvalue.

    Parameters
    ----------
    apply : callable
        Maps W (d, b) to A W, of any array library.
    start : array of shape (d, b)
    n_products : int
        Products with the matrix, at least one.
    rank : int
        Vectors wanted; fewer come back if the matrix has no more.

    Returns
    -------
    eigenvalues : numpy array of shape (rank,)
    vectors : array of shape (d, rank)
        Orthonormal columns, largest eigenvalue first.

    Examples
    --------
    >>> A = np.diag([5.0, 3.0, 1.0, 0.1])
    >>> start = np.random.default_rng(0).standard_normal((4, 2))
    >>> block_krylov(lambda W: A @ W, start, 2, rank=2)[0].round(6)
    array([5., 3.])
    """
    xp = namespace(start)
    Q = orthonormal(start)
    basis, images = [], []
    for step in range(n_products):
        image = apply(Q)
        basis.append(Q)
        images.append(image)
        if step + 1 < n_products:
            Q = orthonormal(against(image, basis))
            if not Q.shape[1]:
                break
    return ritz_of_images(xp.concat(basis, axis=1), xp.concat(images, axis=1), rank)


def ritz_of_images(S: Array, AS: Array, rank: int) -> tuple[Any, Any]:
    """Return the best eigenvalues and vectors in the span of the images A S.

    See `block_krylov`; ``S`` has orthonormal columns.
    """
    first = to_numpy(S.T @ AS)
    values, C = symmetric_pencil(to_numpy(AS.T @ AS), (first + first.T) / 2.0, rank)
    vectors = orthonormal(AS @ like(C, S, C.dtype))
    return values[: vectors.shape[1]], vectors


def against(W: Array, basis: list[Any]) -> Any:
    """Return ``W`` without its parts along orthonormal columns; twice, because of rounding."""
    for _ in range(2):
        for B in basis:
            W = W - B @ (B.T @ W)
    return W


def orthonormal(W: Array) -> Any:
    """Return orthonormal columns that span those of ``W``, without those that add nothing.

    >>> orthonormal(np.array([[2.0, 4.0], [0.0, 0.0]])).shape
    (2, 1)
    """
    xp = namespace(W)
    Q, R = xp.linalg.qr(W)
    lengths = np.abs(np.diag(to_numpy(R)))
    if lengths.size and lengths.min() > 1e-6 * lengths.max():
        return Q
    U, s, _ = xp.linalg.svd(W, full_matrices=False)
    lengths = to_numpy(s)
    keep = int((lengths > max(lengths.max(initial=0.0) * 1e-12, 0.0)).sum())
    return U[:, :keep]


def symmetric_pencil(Q: Array, P: Array, rank: int) -> tuple[Any, Any]:
    """Return the largest mu with Q c = mu P c, and their c with c'Pc = 1, as numpy arrays.

    Both matrices are symmetric and P has no negative eigenvalues but by rounding; where it has
    none at all, there are no solutions.

    >>> symmetric_pencil(np.diag([4.0, 6.0]), np.diag([2.0, 1.0]), 1)[0]
    array([6.])
    """
    weights, U = np.linalg.eigh(P)
    keep = weights > max(float(weights[-1]), 0.0) * 1e-12
    W = U[:, keep] / np.sqrt(weights[keep])
    values, C = np.linalg.eigh(W.T @ Q @ W)
    return values[::-1][:rank], (W @ C)[:, ::-1][:, :rank]


def inverse_square_root(N: Array) -> Any:
    """Return N^(-1/2) of a symmetric positive matrix, small eigenvalues raised to 1e-12 of all."""
    values, U = np.linalg.eigh(N)
    floor = max(float(np.abs(values).max(initial=0.0)) * 1e-12, math.ulp(0.0))
    return (U / np.sqrt(np.maximum(values, floor))) @ U.T
