"""Sums over rows and targets as they are accumulated, and as they are read."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from sksketch._typing import Array
from sksketch.arrays.rounding import UNDERFLOW, gamma


class Moments(NamedTuple):
    """Sums over rows x with targets y around their means: the answer of `CrossMoments`.

    ``cross`` is the sum of (x - mean)(y - target_mean)', ``squares`` that of the squared targets.
    What rounding can have done to them at most: ``mean_error`` bounds the length of the error of
    the mean, ``cross_error`` that of each column of ``cross``, the others single numbers.
    ``roundings``, ``offsets``, ``target_sizes`` and ``underflow`` are what `cross_errors` needs.
    """

    weight: float
    mean: Array
    target_mean: Array
    cross: Array
    squares: Array
    n_rows: int
    mean_error: float
    target_mean_error: Array
    cross_error: Array
    squares_error: Array
    roundings: float
    offsets: Array
    target_sizes: Array
    underflow: float = UNDERFLOW

    def cross_errors(self, lengths: Array) -> Array:
        """Bound the error of every entry of ``cross``, for rows with columns of these lengths.

        Those are the lengths around the means, or from zero where products are not around means.
        """
        sizes = self.roundings * (1.0 + 1e-9) * (lengths + self.offsets)
        return np.outer(sizes, self.target_sizes) + self.n_rows * self.underflow

    def in_units(self, units: Array) -> Self:
        """Return the moments of the same rows with columns divided by exactly ``units``."""
        least = float(units.min())
        mean, cross = self.mean / units, self.cross / units[:, None]
        # Each number is divided once.
        return self._replace(
            mean=mean,
            cross=cross,
            mean_error=self.mean_error / least + gamma(2) * float(np.linalg.norm(mean)),
            cross_error=self.cross_error / least + gamma(2) * np.linalg.norm(cross, axis=0),
            roundings=self.roundings + gamma(3),
            offsets=self.offsets / units * (1.0 + gamma(2)),
            underflow=self.underflow / least,
        )


class Sums(NamedTuple):
    """Sums over rows of positive weight around a fixed ``origin`` and ``target_origin``.

    Every one of them is off by at most ``depth`` roundings of the sum of absolute values, and
    those sums are at most what ``energy`` and ``target_energy`` say (see `CrossMoments`).
    ``shifts`` are the squared lengths, by column, of what rows were moved by on their way here.
    """

    weight: float
    n_rows: int
    depth: int
    energy: float
    origin: Array
    target_origin: Array
    row_sum: Array
    target_sum: Array
    cross: Array
    squares: Array
    target_energy: Array
    shifts: Array
