"""Rows on their way into a window: their times, targets and energies."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from sksketch._typing import Array
from sksketch.arrays.rows import dense_tiles
from sksketch.sketches.base import Sketch
from sksketch.sketches.targets import as_targets
from sksketch.sketches.windows.history import History
from sksketch.sketches.windows.times import as_times, check_order
from sksketch.sketches.wrappers.regression import Regression


def checked_times(times: object, n_rows: int, history: History) -> tuple[Array, str | None]:
    """Return times as numbers in order, zeros where none are needed, and what they are."""
    if times is None:
        if history.duration is not None:
            raise ValueError(
                "a window of a duration needs the time of each row; pass times, or give the "
                "window as a number of rows"
            )
        values, clock = np.zeros(n_rows), None
    else:
        values, clock = as_times(times, n_rows)
    if not history.n_total:
        check_order(values, None, str(clock))
    elif clock != history.clock:
        raise ValueError(
            f"got {clock or 'nothing'} as times, expected {history.clock or 'nothing'} as with "
            "the first rows; give the same with every block"
        )
    else:
        check_order(values, history.latest, str(clock))
    return values, clock


def columns_of(
    targets: object, n_rows: int, template: Sketch
) -> tuple[Array, tuple[int, ...] | None]:
    """Return targets as columns, and the shape of those of one row."""
    if targets is None:
        return np.zeros((n_rows, 0)), None
    if not isinstance(template, Regression):
        raise TypeError(
            f"a window of {type(template).__name__} takes no targets; wrap a Regression"
        )
    values = as_targets(targets, None, n_rows, np.dtype(np.float64))
    return np.asarray(values.reshape(n_rows, -1)), values.shape[1:]


def first_row(rows: Any) -> Array:
    """Return the first row in float64, dense."""
    row = rows[:1]
    row = np.array(row.toarray() if sp.issparse(row) else row, dtype=np.float64)
    return np.ravel(row)


def squares_around(rows: Any, origin: Array) -> Array:
    """Return the squared distances of rows from a point, each the same whatever comes with it.

    >>> squares_around(np.eye(2), np.array([1.0, 0.0]))
    array([0., 2.])
    """
    if sp.issparse(rows):
        double = rows.astype(np.float64)
        squares = double.multiply(double).sum(axis=1) - 2.0 * (double @ origin)
        return np.asarray(np.maximum(np.asarray(squares).ravel() + origin @ origin, 0.0))
    moved = (tile - origin for tile in dense_tiles(rows, np.dtype(np.float64)))
    return np.concatenate([np.vecdot(tile, tile) for tile in moved])
