"""Sums over rows and targets as they are accumulated, and as they are read."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp

from sksketch._typing import Array, Matrix
from sksketch.arrays.namespace import like, on_device, squared_norms, to_numpy
from sksketch.arrays.parallel import scratch
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


class MomentShift(NamedTuple):
    """Additions to moments for rows of which it is not known if they belong to them.

    Half of their own moments, and as much to the errors as the other half can be. ``columns`` and
    ``targets`` are bounds on the lengths of their columns.
    """

    weight: float
    n_rows: int
    mean: Array
    target_mean: Array
    cross: Array
    squares: Array
    mean_error: float
    target_mean_error: Array
    cross_error: Array
    squares_error: Array
    columns: Array
    targets: Array

    @classmethod
    def none(cls, n_features: int, n_targets: int) -> Self:
        """Return the shift of no rows."""
        x, y = np.zeros(n_features), np.zeros(n_targets)
        return cls(0.0, 0, x, y, np.zeros((n_features, n_targets)), y, 0.0, y, y, y, x, y)

    def adding(self, cross: Array, error: Array, squares: Array, largest: float) -> Self:
        """Return the shift with half of a cross moment and of the squares of targets.

        ``largest`` bounds the eigenvalues of the Gram matrix of the same rows.
        """
        unknown = 0.5 * np.sqrt(largest * squares) * (1.0 + 1e-9)
        return self._replace(
            cross=self.cross + 0.5 * cross,
            squares=self.squares + 0.5 * squares,
            cross_error=self.cross_error + unknown + error,
            squares_error=self.squares_error + 0.5 * squares * (1.0 + 1e-9),
        )

    def applied(self, moments: Moments) -> Moments:
        """Return moments with this added."""
        rho = max(moments.roundings, gamma(1))
        g = gamma(8)
        return moments._replace(
            weight=moments.weight + self.weight,
            n_rows=moments.n_rows + self.n_rows,
            mean=moments.mean + self.mean,
            target_mean=moments.target_mean + self.target_mean,
            cross=moments.cross + self.cross,
            squares=moments.squares + self.squares,
            mean_error=moments.mean_error + self.mean_error,
            target_mean_error=moments.target_mean_error + self.target_mean_error,
            cross_error=moments.cross_error
            + self.cross_error
            + g * np.linalg.norm(moments.cross, axis=0),
            squares_error=moments.squares_error + self.squares_error + g * moments.squares,
            # So that entry by entry the errors are at least half of columns times targets.
            roundings=rho,
            offsets=moments.offsets + self.columns / (2.0 * rho),
            target_sizes=moments.target_sizes + self.targets,
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


def gain(sums: Sums, rows: Matrix, wide: Array, out: Array | None = None) -> Sums | None:
    """Return what a tile adds to sums, around their origins; None if it has no weight."""
    weights = wide[:, -1]
    plain = bool((weights == 1.0).all())
    gained = float(len(wide) if plain else weights.sum())
    if gained == 0.0:
        return None
    off = wide[:, :-1] - sums.target_origin
    weighted = off if plain else off * weights[:, None]
    squares = np.vecdot(off.T, weighted.T)
    lost = len(wide) * UNDERFLOW * (True if squares.all() else off.any(axis=0))
    right = np.empty_like(wide)
    right[:, :-1], right[:, -1] = weighted, weights
    products, energy = _around(rows, right, sums.origin, plain, out)
    # Squares that underflow, and the rounding of these sums.
    roundings = 1.0 + gamma(wide.shape[0] * rows.shape[1] + 4)
    energy = (energy + rows.shape[0] * rows.shape[1] * UNDERFLOW) * roundings
    # Sparse rows are summed around zero and moved then.
    shifted = bool(sp.issparse(rows) and sums.origin.any())
    return Sums(
        weight=gained,
        n_rows=len(wide) if plain else int(np.count_nonzero(weights)),
        depth=len(wide),
        energy=energy,
        origin=sums.origin,
        target_origin=sums.target_origin,
        row_sum=products[:, -1],
        target_sum=weights @ off,
        cross=products[:, :-1],
        squares=squares,
        target_energy=(squares + lost) * roundings,
        shifts=gained * sums.origin**2 if shifted else np.zeros(1),
    )


def plus(sums: Sums, gain: Sums | None) -> Sums:
    """Return sums with those of a tile added."""
    if gain is None:
        return sums
    depth = max(sums.depth, gain.depth) + 1
    return added(sums, gain)._replace(depth=depth)


def added(kept: Sums, other: Sums) -> Sums:
    """Return the sums of two parts around one origin, but for the depth."""
    added = {
        name: getattr(kept, name) + getattr(other, name)
        for name in Sums._fields
        if name not in ("depth", "origin", "target_origin")
    }
    return kept._replace(**added)


def _around(
    rows: Any, right: Array, origin: Array, plain: bool, out: Array | None
) -> tuple[Array, float]:
    """Return the products of rows around the origin with ``right``, and a bound of their energy.

    The last column of ``right`` is the weights; ``plain`` says that all are one.
    """
    moves, weights = bool(origin.any()), right[:, -1]
    if sp.issparse(rows):
        products = np.asarray(rows.T @ right)
        entries = np.repeat(weights, np.diff(rows.indptr))
        energy = float(np.vdot(rows.data, entries * rows.data))
        if moves:
            products -= np.outer(origin, right.sum(axis=0))
            energy = (math.sqrt(energy) + _norm(origin) * math.sqrt(weights.sum())) ** 2
        return products, energy
    if on_device(rows):
        rows = rows - like(origin, rows) if moves else rows
        return to_numpy(rows.T @ like(right, rows)), float(squared_norms(rows) @ weights)
    if moves:
        rows = np.subtract(
            rows, origin, out=scratch(rows.shape, rows.dtype) if out is None else out
        )
    energy = np.vdot(rows, rows) if plain else np.vecdot(rows, rows) @ weights
    return rows.T @ right, float(energy)


def moved(sums: Sums, origin: Array, target_origin: Array) -> Sums:
    """Return the same sums around another origin."""
    gap, target_gap = sums.origin - origin, sums.target_origin - target_origin
    if not (gap.any() or target_gap.any()):
        return sums
    target_sum = sums.target_sum + sums.weight * target_gap
    root = math.sqrt(sums.weight)
    return sums._replace(
        depth=sums.depth + 4,
        energy=(math.sqrt(sums.energy) + root * _norm(gap)) ** 2,
        row_sum=sums.row_sum + sums.weight * gap,
        target_sum=target_sum,
        cross=sums.cross + np.outer(sums.row_sum, target_gap) + np.outer(gap, target_sum),
        squares=sums.squares + target_gap * (sums.target_sum + target_sum),
        target_energy=(np.sqrt(sums.target_energy) + root * np.abs(target_gap)) ** 2,
        shifts=(np.sqrt(sums.shifts) + root * np.abs(gap)) ** 2,
    )


def _norm(x: Array) -> float:
    return float(np.linalg.norm(x))
