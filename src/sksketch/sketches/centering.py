"""The mean of a stream, and tiles of rows around the point that makes one pass enough.

Let n rows of mean m have come before a tile of k rows with mean u. Moving the tile's rows by ::

    c = m + (1 - r) (u - m),    r = sqrt(n / (n + k))

gives rows whose Gram matrix is exactly what the scatter matrix around the mean grows by (see
`Centered`). Everything here is counted from a fixed *origin*, one of the first rows, so that no
number is large because rows are far from zero: x - origin is rounded relative to itself, and
the sums are of such differences.

What roundings are left changes the scatter matrix by no more than an allowance, which comes
with every tile. If c is off by d, and the tile has weight k::

    k |c' d' + d c'' + d d'|  <=  2 k |u - c| |d| + k |d|^2

and an entry that is off by a rounding of itself adds `perturbed_gram`. All of it is known column
by column as well (`ColumnErrors`), so that a column in small units is not charged for the
roundings of one in large units.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from sksketch._typing import Array
from sksketch.arrays.kernels import kernels
from sksketch.arrays.linalg import squared_norm
from sksketch.arrays.namespace import (
    DEVICE_ENTRIES,
    cast,
    empty,
    like,
    namespace,
    on_device,
    precision,
    to_numpy,
    weighted_sum,
)
from sksketch.arrays.rounding import SINGLE_UNDERFLOW, gamma, perturbed_gram, unit_roundoff
from sksketch.arrays.sparse import SparseRows
from sksketch.sketches.column_errors import ColumnErrors

# Roundings of a weight: a power, a product, a sum of many in pairs, and a root.
WEIGHT_ROUNDINGS = 40


@dataclass(frozen=True, eq=False)
class RunningMean:
    """The weighted mean of rows as a sum around an origin, and what rounding did to it.

    Parameters
    ----------
    weight : float
        Sum of the weights.
    origin : array of shape (n_features,)
        A point near the rows, in float64: exact, since any will do.
    total, carry : arrays of shape (n_features,)
        The sum of ``weight * (row - origin)`` and what its last bits could not hold.
    squares : array of shape (n_features,)
        Squares of the rows around their mean, by column; NaN where they are not known.
    errors : array of shape (n_features,)
        Bounds on what ``total + carry`` is off by.
    scatter : ColumnErrors
        Bounds on what centering has done to the scatter matrix.
    n_tiles : int
        Tiles so far: each may have rounded ``weight`` once.
    """

    weight: float
    origin: Array
    total: Array
    carry: Array
    squares: Array
    errors: Array
    scatter: ColumnErrors
    n_tiles: int = 0

    @classmethod
    def empty(cls, n_features: int) -> RunningMean:
        """Return the mean of no rows."""
        origin, total, carry, squares, errors = np.zeros((5, n_features))
        none = ColumnErrors.none(n_features)
        return cls(0.0, origin, total, carry, squares, errors, none)

    @functools.cached_property
    def from_origin(self) -> Array:
        """The mean less the origin."""
        return (self.total + self.carry) / self.weight if self.weight > 0 else 0.0 * self.total

    @property
    def value(self) -> Array:
        """The mean."""
        return self.origin + self.from_origin

    @property
    def _weight_error(self) -> float:
        """Relative error of the weight; whole numbers add without any."""
        exact = self.weight.is_integer() and self.weight < 2.0**53
        return 0.0 if exact else gamma(self.n_tiles + WEIGHT_ROUNDINGS)

    @functools.cached_property
    def from_origin_errors(self) -> Array:
        """Bounds on the errors of `from_origin`."""
        if self.weight == 0.0:
            return self.errors
        relative = gamma(4) + self._weight_error
        return self.errors / self.weight + relative * np.abs(self.from_origin)

    def aged(self, factor: float) -> RunningMean:
        """Return the mean after the weight of all rows was multiplied by ``factor``."""
        if factor == 1.0:
            return self
        return replace(
            self,
            weight=self.weight * factor,
            total=self.total * factor,
            carry=self.carry * factor,
            squares=self.squares * factor,
            errors=factor * (self.errors + gamma(WEIGHT_ROUNDINGS) * np.abs(self.total)),
            scatter=self.scatter.scaled(factor),
        )

    def grown(
        self,
        weight: float,
        sums: Array,
        squares: Array,
        errors: Array,
        scatter: ColumnErrors,
        n_tiles: int = 1,
    ) -> RunningMean:
        """Return the mean with ``sums`` of differences to the origin added."""
        total = self.total + sums
        # What the sum could not hold (Knuth's two-sum).
        shifted = total - self.total
        rest = (self.total - (total - shifted)) + (sums - shifted)
        return RunningMean(
            self.weight + weight,
            self.origin,
            total,
            self.carry + rest,
            self.squares + squares,
            self.errors + errors,
            self.scatter + scatter,
            self.n_tiles + n_tiles,
        )

    def merged(self, other: RunningMean) -> tuple[RunningMean, Array, Array]:
        """Return the mean of both, the step between the two means, and its errors."""
        apart = other.origin - self.origin
        gap = (other.from_origin - self.from_origin) + apart
        rounding = gamma(3) * (np.abs(apart) + np.abs(other.from_origin) + np.abs(gap))
        errors = self.from_origin_errors + other.from_origin_errors + rounding
        if self.weight == 0.0 or other.weight == 0.0:
            return (other if self.weight == 0.0 else self), gap, errors
        share = self.weight * other.weight / (self.weight + other.weight)
        sums = (other.total + other.carry) + other.weight * apart
        moved = other.errors + other.weight * rounding
        squares = other.squares + share * gap**2
        both = self.grown(
            other.weight, sums, squares, moved, other.scatter, n_tiles=other.n_tiles + 1
        )
        return both, gap, errors


class Tile(NamedTuple):
    """Rows for a sketch, the mean with them, and what rounding may have done to the scatter."""

    rows: Any
    mean: RunningMean
    allowance: float


def centered_tile(
    mean: RunningMean,
    tile: Any,
    weights: Array,
    ages: Array | None,
    entry_error: float = 0.0,
    out: Array | None = None,
) -> Tile:
    """Return the rows of a tile for a sketch of the scatter matrix.

    Parameters
    ----------
    mean : RunningMean
        Of the rows before, as old as they are once the last row of the tile has come.
    tile : array or SparseRows
        Rows.
    weights, ages : arrays of shape (n_rows,)
        Each row is scaled by the root of its weight; its age, which a sketch deals with itself,
        counts in the mean. None where rows do not age.
    entry_error : float
        Relative error that entries of the tile have already.
    out : array, optional
        Room for the rows; it may be the tile itself.
    """
    current = weights if ages is None else weights * ages
    gained = float(current.sum())
    if gained == 0.0:
        # Still so many rows: they age the earlier ones.
        zeros = tile.scaled(0.0 * weights) if isinstance(tile, SparseRows) else 0 * tile
        return Tile(zeros, mean, 0.0)
    if isinstance(tile, SparseRows):
        return _sparse_tile(mean, tile, weights, current, gained, entry_error)
    if mean.weight == 0.0 and not mean.origin.any():
        mean = replace(mean, origin=_middle_row(tile))
    sums = _column_sums(tile, current, mean.origin)
    own = sums / gained
    center = _center(mean, own, gained)
    rows, squares = _moved(tile, weights, mean.origin, center, out)
    energy = float(squares.sum())
    lengths, root = np.sqrt(squares), math.sqrt(float(weights.sum()))
    spread = lengths + root * np.abs(center)
    errors = (gamma(len(tile) + 12) * math.sqrt(gained)) * spread
    entries = unit_roundoff() * spread + (gamma(5) + unit_roundoff(precision(rows))) * lengths
    if precision(rows) == np.float32:
        entries += SINGLE_UNDERFLOW
    if entry_error:
        far = spread + root * np.abs(mean.origin)
        entries += 2.0 * entry_error * far
        errors += 2.0 * entry_error * math.sqrt(gained) * far
    if ages is not None:
        squares = _column_sums(rows, ages, 0.0 * center, squared=True)
    apart, off = _center_errors(mean, own, gained, center, errors)
    allowance = perturbed_gram(math.sqrt(energy), _length(entries))
    allowance += _moved_gram(gained, apart, off)
    scatter = ColumnErrors(lengths**2 + gained * apart**2, entries**2 + 1.01 * gained * off**2)
    return Tile(rows, mean.grown(gained, sums, squares, errors, scatter), allowance)


def _sparse_tile(
    mean: RunningMean,
    tile: SparseRows,
    weights: Array,
    current: Array,
    gained: float,
    entry_error: float,
) -> Tile:
    """Return sparse rows with a centre that is left to their products to subtract."""
    plain = tile.weighted_sum(current)
    sums = plain - gained * mean.origin
    own = sums / gained
    step = _center(mean, own, gained)
    center = mean.origin + step
    stored = math.sqrt(squared_norm(tile.scaled(np.sqrt(weights)).sparse.data[None]))
    spread = stored + math.sqrt(gained) * _length(mean.origin)
    error = gamma(len(tile) + 12) * math.sqrt(gained) * spread
    rows = SparseRows(tile.sparse, np.ones(len(tile)), center)
    allowance = 0.0
    if entry_error:
        error += 2.0 * entry_error * math.sqrt(gained) * stored
        allowance = perturbed_gram(spread, 2.0 * entry_error * stored)
    if (weights != 1.0).any():
        rows = rows.scaled(np.sqrt(weights))
        away = stored + math.sqrt(float(weights.sum())) * _length(center)
        entries = (gamma(4) + unit_roundoff(rows.dtype)) * away
        allowance += perturbed_gram(away, entries)
    # The length of all errors together bounds each of them.
    errors = np.full(len(center), error)
    apart, off = _center_errors(mean, own, gained, step, errors, np.abs(center))
    allowance += _moved_gram(gained, apart, off)
    squares = tile.squared().weighted_sum(current) - center * (2.0 * plain - gained * center)
    scatter = replace(ColumnErrors.none(len(center)), flat=allowance)
    squares = np.maximum(squares, 0.0)
    return Tile(rows, mean.grown(gained, sums, squares, errors, scatter), allowance)


def _center(mean: RunningMean, own: Array, gained: float) -> Array:
    """Return c less the origin, for a tile whose own mean is ``own`` from there."""
    root = math.sqrt(mean.weight / (mean.weight + gained))
    moved: Array = own + root * (mean.from_origin - own)
    return moved


def _center_errors(
    mean: RunningMean,
    own: Array,
    gained: float,
    center: Array,
    errors: Array,
    far: Array | float = 0.0,
) -> tuple[Array, Array]:
    """Return how far a tile's mean is from its centre, and what that centre is off by.

    ``errors`` are those of the tile's sums, ``far`` the centre where it is counted from zero.
    """
    root = math.sqrt(mean.weight / (mean.weight + gained))
    apart = root * np.abs(own - mean.from_origin)
    weights = mean._weight_error + gamma(WEIGHT_ROUNDINGS)
    off = root * mean.from_origin_errors + ((1.0 - root) / gained) * errors
    off += gamma(8) * (np.abs(own) + np.abs(center)) + unit_roundoff() * far + weights * apart
    return apart, off


def _moved_gram(gained: float, apart: Array, off: Array) -> float:
    """Bound what a centre that is off does to the scatter matrix of a tile of that weight."""
    return 1.01 * gained * perturbed_gram(_length(apart), _length(off))


def _middle_row(tile: Array) -> Array:
    """Return the row that is nearest to the mean of all of them.

    A row, so that columns which never change are zero around it.
    """
    double = cast(tile, np.float64)
    xp = namespace(double)
    apart = double - xp.mean(double, axis=0)
    nearest = int(xp.argmin(xp.sum(apart * apart, axis=1)))
    return np.array(to_numpy(double[nearest]))


def _column_sums(rows: Array, weights: Array, origin: Array, squared: bool = False) -> Array:
    """Return the sum of ``weights * (rows - origin)``, or of squares, in float64."""
    if not on_device(rows):
        sums = np.zeros(rows.shape[1])
        source = np.square(rows, dtype=np.float64) if squared else rows
        kernels().column_sums_inplace(sums, np.ascontiguousarray(source), weights, origin)
        return sums
    total = np.zeros(rows.shape[1])
    for part in _parts(rows):
        moved = cast(rows[part], np.float64) - like(origin, rows)
        total += weighted_sum(moved * moved if squared else moved, weights[part])
    return total


def _moved(
    tile: Array, weights: Array, origin: Array, center: Array, out: Array | None
) -> tuple[Array, Array]:
    """Return the tile's rows around the centre, with their weights, and their squares by column."""
    squares = np.zeros(tile.shape[1])
    if not on_device(tile):
        out = np.empty(tile.shape, tile.dtype) if out is None else out
        kernels().center_rows_inplace(out, squares, tile, weights, origin, center)
        return out, squares
    rows = empty(tile.shape, tile, precision(tile))
    for part in _parts(tile):
        moved = (cast(tile[part], np.float64) - like(origin, tile)) - like(center, tile)
        moved = moved * like(np.sqrt(weights[part])[:, None], tile)
        squares += weighted_sum(moved * moved, np.ones(len(moved)))
        rows[part] = cast(moved, precision(tile))
    return rows, squares


def _parts(rows: Array) -> list[slice]:
    """Return stretches of rows on a device that are few enough to be made float64."""
    step = max(1, DEVICE_ENTRIES // max(int(rows.shape[1]), 1))
    return [slice(start, start + step) for start in range(0, len(rows), step)]


def _length(vector: Array) -> float:
    return math.sqrt(float(vector @ vector)) * (1.0 + 1e-9)
