"""How much of the rows a subspace leaves out: bounds on the spectral norm of the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from sksketch._typing import Array
from sksketch.arrays.krylov import top_eigenvalue
from sksketch.arrays.random import stream
from sksketch.learners.subspace import LinearMap
from sksketch.streams import RowSource

# Of the upper bound.
FAILURE_PROBABILITY = 1e-6
N_PROBES, DEPTH = 8, 4
# Probes are so few that together they take no more than this.
PROBE_BYTES = 1 << 28
# Rows of another precision are converted in pieces of this size.
PIECE_BYTES = 1 << 24

# Blocks of rows and the weight of each row; the rows come again at each call.
Blocks = Callable[[], Iterable[tuple[Any, Array]]]


def spectral_error(
    blocks: Blocks, basis: LinearMap, squared_norm: float, seed: int
) -> tuple[float, float]:
    """Bound the largest eigenvalue of X'X outside of the basis from both sides.

    Parameters
    ----------
    blocks : callable
        Gives the rows, each counted with its weight.
    basis : LinearMap
        With orthonormal columns U.
    squared_norm : float
        Sum of the squared entries of the weighted rows.
    seed : int
        Chooses the probes.

    Returns
    -------
    lower, upper : float
        ``|X (I - U U')|_2^2`` is at least ``lower``, and at most ``upper`` with probability
        ``1 - FAILURE_PROBABILITY``.
    """
    n_features = basis.n_features
    n_rows = sum(len(weights) for _, weights in blocks())
    n_probes = int(np.clip(PROBE_BYTES // (8 * n_features), 2, N_PROBES))

    def by_columns(W: Array) -> Array:
        outside = _outside(basis, W.T)
        image = np.zeros_like(outside)
        for rows, weights in blocks():
            image += rows.T @ (weights[:, None] * (rows @ outside))
        return np.ascontiguousarray(_outside(basis, image).T)

    def by_rows(W: Array) -> Array:
        roots = np.sqrt(np.concatenate([weights for _, weights in blocks()]))
        outside = _outside(basis, combination(blocks, (W * roots).T))
        images = [np.asarray(rows @ outside) for rows, _ in blocks()]
        return np.ascontiguousarray(np.concatenate(images).T * roots)

    # X'X and X X' have the same eigenvalues; take the smaller.
    apply, width = (by_rows, n_rows) if n_rows < n_features else (by_columns, n_features)
    probes = stream(seed, "residual").standard_normal((min(n_probes, width), width))
    top = top_eigenvalue(apply, probes, FAILURE_PROBABILITY, DEPTH)
    # What a projection that takes all of the rows leaves of them is rounding.
    rounding = (16 * float(np.finfo(np.float64).eps)) ** 2 * n_features * squared_norm
    upper = min((np.sqrt(top.upper) + np.sqrt(rounding)) ** 2, squared_norm)
    return max(min(top.estimate * (1 - 1e-9) - rounding, upper), 0.0), float(upper)


def _outside(basis: LinearMap, columns: Array) -> Array:
    """Return (I - U U') times some columns."""
    return np.asarray(columns - basis.lift(basis.project(np.ascontiguousarray(columns.T)).T))


def combination(blocks: Blocks, coefficients: Array) -> Array:
    """Return X' c for the columns c of coefficients; the weights of the rows do not count.

    >>> combination(lambda: [(np.eye(2), np.ones(2))], np.array([[1.0], [2.0]]))
    array([[1.],
           [2.]])
    """
    total, start = None, 0
    for rows, weights in blocks():
        image = np.asarray(rows.T @ coefficients[start : start + len(weights)])
        total = image if total is None else total + image
        start += len(weights)
    assert total is not None
    return total


def projected(blocks: Blocks, basis: LinearMap, n_extra: int = 0) -> Array:
    """Return the coordinates of all rows in float64, with ``n_extra`` columns of ones."""
    parts = [basis.project(rows) for rows, _ in blocks()]
    if n_extra:
        parts = [np.column_stack([part, np.ones((len(part), n_extra))]) for part in parts]
    whole = parts[0] if len(parts) == 1 else np.concatenate(parts)
    return np.ascontiguousarray(whole, dtype=np.float64)


def from_source(source: RowSource, weights: Array | None = None) -> Blocks:
    """Return rows that are read again at each call, all of weight one unless told."""

    def blocks() -> Iterator[tuple[Any, Array]]:
        start = 0
        for rows, _ in source.blocks():
            stop = start + rows.shape[0]
            kept = sp.csr_array(rows) if sp.issparse(rows) else rows.astype(np.float64)
            yield kept, np.ones(stop - start) if weights is None else weights[start:stop]
            start = stop

    return blocks


def in_memory(rows: Any, weights: Array) -> Blocks:
    """Return rows in memory as blocks of float64, sparse ones and those that are so as one."""
    if sp.issparse(rows) or rows.dtype == np.float64:
        return lambda: [(rows, weights)]
    starts = range(0, len(rows), max(1, PIECE_BYTES // (8 * rows.shape[1])))

    def pieces() -> Iterator[tuple[Any, Array]]:
        for start in starts:
            part = slice(start, start + starts.step)
            yield rows[part].astype(np.float64), weights[part]

    return pieces
