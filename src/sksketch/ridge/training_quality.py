"""How good a ridge regression predicts the rows that it was learned from, from its sketch alone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sksketch._typing import Array
from sksketch.models.quality import r2
from sksketch.ridge.exact import RidgeReader


class TrainingQuality(NamedTuple):
    """Numbers of each target.

    ``r2`` and ``rmse`` are estimates inside ``r2_intervals`` and what follows from them;
    ``baseline_rmse`` is that of the mean target.
    """

    r2: Array
    rmse: Array
    baseline_rmse: Array
    r2_intervals: Array


def training_quality(
    reader: RidgeReader, coefficients: Array, intercepts: Array
) -> TrainingQuality:
    """Return what the sums of squares of rows and targets say about a model.

    Parameters
    ----------
    reader : RidgeReader
        Of the rows and targets.
    coefficients : array of shape (n_features, n_targets)
        In the units of the reader.
    intercepts : array of shape (n_targets,)
        Those of a model of a linear sketch.

    Returns
    -------
    TrainingQuality

    Notes
    -----
    The sum of squared residuals is certified where the sketch is: see `squared_error_interval`.
    """
    moments, sketch = reader.moments, reader.sketch
    weight = moments.weight or 1.0
    around = moments.squares
    if not sketch.centered:
        around = np.maximum(around - weight * moments.target_mean**2, 0.0)
    if sketch.linear:
        low, high = np.zeros_like(around), np.full_like(around, np.inf)
        matrix, targets, ones = sketch.projected()
        errors = ((matrix @ coefficients + np.outer(ones, intercepts) - targets) ** 2).sum(axis=0)
    else:
        low, high = reader.squared_error_interval(coefficients)
        errors = np.where(np.isfinite(high), 0.5 * (low + high), low)
    off = moments.squares_error * (1.0 + 1e-9)
    ends = r2(high, np.maximum(around - off, 0.0)), r2(low, around + off)
    intervals = np.stack(ends, axis=1)
    return TrainingQuality(
        r2(errors, around), np.sqrt(errors / weight), np.sqrt(around / weight), intervals
    )
