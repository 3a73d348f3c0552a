"""Sums of rows' products: squares whose upper triangle alone is meant."""

from __future__ import annotations

import numpy as np

from sksketch._typing import Array
from sksketch.arrays.linalg import aligned_empty
from sksketch.arrays.namespace import cast, copied, like, namespace, on_device
from sksketch.arrays.products import FEW_COLUMNS, add_gram_inplace, group_rows
from sksketch.arrays.rounding import gamma
from sksketch.sketches.buffer import tile_rows
from sksketch.sketches.forgetting import aged

# Rows that wait, of many columns: enough for all cores to have a part of their product. Of few
# columns a group of rows waits, or several where other threads help.
BUFFER_BYTES, BUFFER_ROWS, MOST_ROWS = 16 << 20, 512, 4096


def block_rows(n_features: int) -> int:
    """Return how many rows are added up together."""
    if n_features <= FEW_COLUMNS:
        return group_rows(n_features)
    # Whole tiles of a wrapper, which centers them on their way here.
    rows, tile = min(BUFFER_BYTES // (8 * n_features), MOST_ROWS), tile_rows(8 * n_features)
    return max(rows // tile * tile, BUFFER_ROWS // tile * tile, tile)


def rows_together(n_features: int, most: int) -> int:
    """Return how many rows of few columns may wait for several threads, at most about ``most``."""
    size = block_rows(n_features)
    return max(1, min(BUFFER_BYTES // (8 * n_features), most) // size) * size


def trace_of(C: Array) -> float:
    """Return the trace, which is the sum of squares of all entries of the rows."""
    return float(namespace(C).linalg.trace(C))


def copy_of(C: Array | None) -> Array | None:
    """Return a square of one's own to add to, in Fortran order on the host."""
    if C is None or on_device(C):
        return None if C is None else copied(C)
    return C.copy(order="F")


def summed(total: Array | None, part: Array) -> tuple[Array, float]:
    """Return the sum, which may be the first one changed, and a bound on its rounding."""
    if total is None:
        return part, 0.0
    total += part
    return total, gamma(1) * trace_of(total)


def symmetric(upper: Array) -> Array:
    """Return both triangles; on a device they are there."""
    if on_device(upper):
        return upper
    return np.asarray(np.triu(upper) + np.triu(upper, 1).T)


def zero_square(n_features: int) -> Array:
    """Return zeros in Fortran order, which BLAS updates without a copy."""
    C = aligned_empty((n_features, n_features), np.dtype(np.float64)).T
    C[...] = 0.0
    return C


def with_products(C: Array | None, rows: Array, decay: float) -> Array:
    """Return ``C``, changed in place, with ``rows' rows`` in its upper triangle, in float64.

    On a device, where there is no such product, in both triangles.
    """
    X = aged(cast(rows, np.float64), decay)
    if on_device(X) or on_device(C):
        X = X if C is None or not on_device(C) else like(X, C)
        product: Array = X.T @ X
        return product if C is None else like(symmetric(C), X) * decay ** len(rows) + product
    C = zero_square(X.shape[1]) if C is None else C
    add_gram_inplace(C, X, decay ** len(rows))
    return C
