"""Partial least squares on few rows that have the products of all rows.

The definitions are those of scikit-learn's cross_decomposition, with singular vectors that are not
iterated for but computed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sksketch._typing import Array
from sksketch.arrays.rounding import gamma, unit_roundoff


class Components(NamedTuple):
    """Weights, loadings and rotations of both views, one column for each component."""

    x_weights: Array
    y_weights: Array
    x_loadings: Array
    y_loadings: Array
    x_rotations: Array
    y_rotations: Array


def cross_svd(x: Array, y: Array) -> tuple[Array, Array, Array]:
    """Return the singular value decomposition of ``x' y``, with signs by the largest weight.

    Parameters
    ----------
    x, y : arrays of shape (n_rows, n_features) and (n_rows, n_features_y)
        Rows of both views.

    Returns
    -------
    tuple of three arrays
        Left vectors as columns, singular values, right vectors as columns.

    Examples
    --------
    >>> cross_svd(np.array([[-3.0, 0.0]]), np.array([[2.0]]))[1]
    array([6.])
    """
    # Few rows: the product itself would be much larger than what it is made of.
    left, right = (np.linalg.qr(part.T) if len(part) < part.shape[1] else None for part in (x, y))
    inner = (x.T if left is None else left[1]) @ (y if right is None else right[1].T)
    U, s, Vt = np.linalg.svd(inner, full_matrices=False)
    U, V = (U if left is None else left[0] @ U), (Vt.T if right is None else right[0] @ Vt.T)
    signs = np.sign(np.take_along_axis(U, np.abs(U).argmax(axis=0)[None], axis=0))
    signs = np.where(signs == 0.0, 1.0, signs)
    return U * signs, s, V * signs


def cross_error(x: Array, y: Array) -> float:
    """Bound the rounding of the singular values of ``x' y``."""
    size = float(np.linalg.norm(x)) * float(np.linalg.norm(y))
    return (gamma(8 * sum(x.shape) + 8 * y.shape[1]) + 64.0 * unit_roundoff()) * size


def deflated(x: Array, y: Array, n_components: int, mode: str) -> Components:
    """Return components by deflation, one after the other.

    Parameters
    ----------
    x, y : arrays of shape (n_rows, n_features) and (n_rows, n_features_y)
        Rows of both views.
    n_components : int
        Components.
    mode : {"regression", "canonical"}
        Whether the second view is deflated by the scores of the first or by its own.

    Returns
    -------
    Components

    Examples
    --------
    >>> rows = np.array([[2.0, 0.0], [0.0, 1.0]])
    >>> deflated(rows, rows[:, :1], 1, "regression").x_weights.ravel()
    array([1., 0.])
    """
    x, y = x.copy(), y.copy()
    small = (
        16.0 * unit_roundoff() * max(float(np.linalg.norm(x)) * float(np.linalg.norm(y)), 1e-300)
    )
    columns: list[tuple[Array, Array, Array, Array]] = []
    for _ in range(n_components):
        U, s, V = cross_svd(x, y)
        if not len(s) or s[0] <= small:
            # Nothing is left to explain.
            columns.append(tuple(np.zeros(part.shape[1]) for part in (x, y, x, y)))  # type: ignore[arg-type]
            continue
        w, v = U[:, 0], V[:, 0]
        t = x @ w
        tt = float(t @ t)
        p = x.T @ t / tt
        if mode == "regression":
            q = y.T @ t / tt
            v = q
            y -= np.outer(t, q)
        else:
            u = y @ v
            q = y.T @ u / float(u @ u)
            y -= np.outer(u, q)
        x -= np.outer(t, p)
        columns.append((w, v, p, q))
    W, V, P, Q = (np.stack(part, axis=1) for part in zip(*columns, strict=True))
    return Components(W, V, P, Q, W @ np.linalg.pinv(P.T @ W), V @ np.linalg.pinv(Q.T @ V))
