"""Many tiles of rows moved around their means at the same time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sksketch._typing import Array
from sksketch.arrays.kernels import kernels
from sksketch.arrays.parallel import in_parallel, spans
from sksketch.sketches.wrappers.running_mean import (
    RunningMean,
    middle_row,
    tile_allowance,
    tile_roundings,
)

# Columns in which the means between the tiles of a run are found together.
RUN_COLUMNS = 256


def centered_run(
    mean: RunningMean, rows: Array, size: int, weights: Array, entry_error: float, out: Array
) -> tuple[RunningMean, list[float]]:
    """Do what `centered_tile` does, to the bit, for several tiles of ``size`` rows on the host.

    Tiles are summed and moved at the same time; the means between them are a matter of columns.

    Parameters
    ----------
    mean : RunningMean
        Of the rows before.
    rows : array of shape (n_tiles * size, n_features)
        Rows.
    size : int
        Rows of a tile.
    weights : array of shape (n_tiles * size,)
        Weights, none of them zero.
    entry_error : float
        Relative error that entries have already.
    out : array of the shape of ``rows``
        Room for the rows around the places of their tiles.

    Returns
    -------
    tuple of RunningMean and list of float
        The mean after the rows, and the allowance of each tile.
    """
    n_tiles, n_features = len(rows) // size, rows.shape[1]
    loops, tiles = kernels(), spans(len(rows), size)
    columns = [(part.start, part.stop) for part in spans(n_features, RUN_COLUMNS)]
    if mean.weight == 0.0 and not mean.origin.any():
        mean = replace(mean, origin=middle_row(rows[tiles[0]]))
    origin = mean.origin
    totals, roundings = np.empty((n_tiles, 4)), np.empty((n_tiles, 7))
    grown = mean
    for t, tile in enumerate(tiles):
        gained = float(weights[tile].sum())
        totals[t] = grown.weight, gained, gained, entry_error
        roundings[t] = tile_roundings(grown, size, rows.dtype)
        grown = replace(grown, weight=grown.weight + gained, n_tiles=grown.n_tiles + 1)
    sums, centers = np.zeros((2, n_tiles, n_features))
    bounds = np.zeros((n_tiles, 4, n_features))
    held = tuple(row.copy() for row in mean.held)
    spare = tuple(np.empty(n_features) for _ in held)

    def add_up(t: int) -> None:
        loops.column_sums_inplace(sums[t], rows[tiles[t]], weights[tiles[t]], origin)

    def move(t: int) -> None:
        tile = tiles[t]
        loops.center_rows_inplace(
            out[tile], bounds[t, 3], rows[tile], weights[tile], origin, centers[t]
        )

    def place(i: int) -> None:
        loops.place_centers_inplace(centers, sums, held, totals, columns[i])

    def grow(i: int) -> None:
        loops.grown_means_inplace(
            held, spare, bounds, (sums, centers), origin, totals, roundings, columns[i]
        )

    in_parallel(add_up, n_tiles)
    in_parallel(place, len(columns))
    in_parallel(move, n_tiles)
    in_parallel(grow, len(columns))
    allowances = [
        tile_allowance(of, float(gained)) for of, gained in zip(bounds, totals[:, 1], strict=True)
    ]
    return replace(grown, held=held), allowances
