"""Looks at all rows of a source before a reduced model is learned from them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sksketch._typing import Array
from sksketch.arrays.rows import as_rows
from sksketch.reduction.residual import kept
from sksketch.reduction.subspace import LinearMap
from sksketch.sketches.column_moments import ColumnMoments
from sksketch.streams import RowSource, reblock
from sksketch.streams.blocks import unweighted
from sksketch.streams.source_in_units import SourceInUnits

# Rows at a time whose units are found, whatever blocks they come in.
TILE_ROWS = 512


def measured(source: RowSource, watch: Callable[[int], None] | None = None) -> SourceInUnits:
    """Return rows divided by their standard deviations, which takes one look at them.

    >>> from sksketch.streams import open_rows
    >>> measured(open_rows(np.array([[0.0, 1.0], [4.0, 1.0]]))).units
    array([2., 1.])
    """
    columns = ColumnMoments.empty(source.n_features)
    for block in reblock(source.blocks(), TILE_ROWS):
        columns = columns.updated(as_rows(block.X))
        if watch is not None:
            watch(block.X.shape[0])
    return SourceInUnits(source, columns.scale())


def labels_and_coordinates(
    source: RowSource, linear: LinearMap | None, watch: Callable[[int], None] | None = None
) -> tuple[Array, Array | None]:
    """Return the labels of all rows, and their coordinates where there is a map, in one look.

    Parameters
    ----------
    source : RowSource
        With targets, and without weights.
    linear : LinearMap or None
        To the coordinates.
    watch : callable, default=None
        Gets the number of rows of every block.

    Returns
    -------
    labels : array of shape (n_rows,)
        Targets, as they are.
    coordinates : array of shape (n_rows, n_coordinates) or None
        Those of the rows.
    """
    labels, parts = [], []
    for X, y in unweighted(source.blocks(), "fit_rows"):
        labels.append(np.ravel(np.asarray(y)))
        if linear is not None:
            parts.append(linear.project(kept(X)))
        if watch is not None:
            watch(X.shape[0])
    return np.concatenate(labels), None if linear is None else np.concatenate(parts)
