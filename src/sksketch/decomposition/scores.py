"""Coordinates of rows along components, and what is left of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.extmath import row_norms

from sksketch._typing import Array, Rows
from sksketch.arrays.namespace import cast, like, on_device, precision
from sksketch.arrays.rows import dense_tiles, times
from sksketch.arrays.sparse import in_units, is_sparse


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


def scores_and_rest(
    rows: Any, V: Array, offset: Array | None, unit: Array | None
) -> tuple[Array, Array]:
    """Return scores in float64, and the squared distance of each row from its projection."""
    if is_sparse(rows):
        rows = rows.astype(np.float64)
        if unit is not None:
            rows, offset = in_units(rows, unit), None if offset is None else offset / unit
        return _sparse_scores_and_rest(rows, V, offset)
    scores, rest = np.empty((len(rows), len(V))), np.empty(len(rows))
    start = 0
    for tile in dense_tiles(rows, np.dtype(np.float64)):
        part = slice(start, start + len(tile))
        # The mean first: differences of large squares would have no digits left.
        around = tile if offset is None else tile - offset
        around = around if unit is None else around / unit
        scores[part] = around @ V.T
        outside = around - scores[part] @ V
        rest[part] = np.vecdot(outside, outside)
        start = part.stop
    return scores, rest


def _sparse_scores_and_rest(rows: Rows, V: Array, offset: Array | None) -> tuple[Array, Array]:
    """Return both for sparse rows, which cannot be moved."""
    scores, norms = np.asarray(rows @ V.T), row_norms(rows, squared=True)
    if offset is not None:
        norms = norms - 2 * np.asarray(rows @ offset).ravel() + offset @ offset
        scores = scores - offset @ V.T
    return scores, np.maximum(norms - np.vecdot(scores, scores), 0.0)
