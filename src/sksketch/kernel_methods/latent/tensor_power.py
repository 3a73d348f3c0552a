"""Orthogonal decomposition of a symmetric third-order tensor by power steps with deflation."""

from __future__ import annotations

import numpy as np

from sksketch._typing import Array
from sksketch.arrays.random import stream


def tensor_power(
    T: Array, seed: int = 0, *, n_restarts: int = 20, n_steps: int = 50
) -> tuple[Array, Array]:
    """Return values and unit vectors with T ~ sum_h values_h v_h (x) v_h (x) v_h.

    Each vector is the fixed point of v <- T(., v, v) / |T(., v, v)| with the largest value
    T(v, v, v) over all random starts, which is then taken off the tensor (Anandkumar et al.
    2014, algorithm 1). The vectors are orthogonal if the tensor has such a decomposition.

    Parameters
    ----------
    T : array of shape (k, k, k)
        A symmetric tensor.
    seed : int
        Seed of the starts.
    n_restarts : int
        Starts for each vector.
    n_steps : int
        Steps from each start, and again from the best end.

    Returns
    -------
    values : array of shape (k,)
        In the order found; they fall, but for errors of the tensor.
    vectors : array of shape (k, k)
        One in each column.

    Examples
    --------
    >>> Q = np.linalg.qr(np.array([[2.0, 1.0], [1.0, -1.0]]))[0]
    >>> T = np.einsum("h,ih,jh,kh->ijk", [3.0, 1.5], Q, Q, Q)
    >>> values, vectors = tensor_power(T)
    >>> values.round(6), bool(np.allclose(np.abs(vectors), np.abs(Q)))
    (array([3. , 1.5]), True)
    """
    k = len(T)
    rest = np.array(T, dtype=np.float64)
    values, vectors = np.empty(k), np.empty((k, k))
    for h in range(k):
        V = _unit(stream(seed, "tensor-power", h).standard_normal((n_restarts, k)))
        V = _steps(rest, V, n_steps)
        best = int(np.argmax(_values(rest, V)))
        v = _steps(rest, V[best : best + 1], n_steps)
        values[h] = _values(rest, v)[0]
        vectors[:, h] = v[0]
        rest -= values[h] * np.einsum("i,j,k->ijk", v[0], v[0], v[0])
    return values, vectors


def symmetrized(T: Array) -> Array:
    """Return the mean of a third-order tensor over the six orders of its axes."""
    orders = ((0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0))
    total = np.zeros_like(T)
    for order in orders:
        total += T.transpose(order)
    return total / len(orders)


def _steps(T: Array, V: Array, n_steps: int) -> Array:
    for _ in range(n_steps):
        V = _unit(_products(T, V))
    return V


def _products(T: Array, V: Array) -> Array:
    """Return T(., v, v) for each row v."""
    found: Array = np.einsum("rj,rij->ri", V, np.tensordot(V, T, axes=(1, 2)), optimize=False)
    return found


def _values(T: Array, V: Array) -> Array:
    found: Array = (V * _products(T, V)).sum(axis=1)
    return found


def _unit(V: Array) -> Array:
    lengths = np.linalg.norm(V, axis=1, keepdims=True)
    unit: Array = V / np.where(lengths > 0, lengths, 1.0)
    return unit
