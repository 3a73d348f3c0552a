"""Coordinates of rows along components, and what is left of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.extmath import row_norms

from sksketch._typing import Array, Rows
from sksketch.arrays.namespace import cast, like, on_device, precision
from sksketch.arrays.rows import dense_tiles, times
from sksketch.arrays.sparse import is_sparse


def scores_of(rows: Rows, V: Array, offset: Array | None) -> Any:
    """Return the coordinates of rows, wherever they are, along the rows of V.

    Dense rows are moved before they are multiplied: far from zero, what a product leaves of their
    differences is rounding.
    """
    if offset is None:
        return times(rows, cast(V, precision(rows)).T)
    if is_sparse(rows):
        scores = times(rows, V.T)
        return scores - like(offset @ V.T, scores, precision(scores))
    if on_device(rows):
        around = cast(cast(rows, np.float64) - like(offset, rows), precision(rows))
        return times(around, V.T)
    narrow = cast(V, precision(rows)).T
    scores = np.empty((rows.shape[0], len(V)), precision(rows))
    start = 0
    for tile in dense_tiles(rows, precision(rows)):
        around = (tile - offset).astype(precision(rows), copy=False)
        scores[start : start + len(tile)] = around @ narrow
        start += len(tile)
    return scores


def sparse_scores_and_rest(rows: Rows, V: Array, offset: Array | None) -> tuple[Array, Array]:
    """Return both for sparse rows, which cannot be moved."""
    scores, norms = np.asarray(rows @ V.T), row_norms(rows, squared=True)
    if offset is not None:
        norms = norms - 2 * np.asarray(rows @ offset).ravel() + offset @ offset
        scores = scores - offset @ V.T
    return scores, np.maximum(norms - np.vecdot(scores, scores), 0.0)
