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

from sksketch._typing import Array, Matrix
from sksketch.arrays.kernels import kernels
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
from sksketch.arrays.products import squared_norm
from sksketch.arrays.rounding import SINGLE_UNDERFLOW, gamma, perturbed_gram, unit_roundoff
from sksketch.arrays.sparse import SparseRows
from sksketch.sketches.column_errors import ColumnErrors
from sksketch.state.persistence import State

# Roundings of a weight: a power, a product, a sum of many in pairs, and a root.
WEIGHT_ROUNDINGS = 40

# Stands for ages of rows that do not age.
NO_AGES = np.empty(0)

# Rows of what a mean holds, by the names that a saved state has for them.
MEAN_ROWS = ("total", "carry", "squares", "errors", "scatter_sizes", "scatter_errors")


@dataclass(frozen=True, eq=False)
class RunningMean:
    """The weighted mean of rows as a sum around an origin, and what rounding did to it.

    Parameters
    ----------
    weight : float
        Sum of the weights.
    origin : array of shape (n_features,)
        A point near the rows, in float64: exact, since any will do.
    held : tuple of six arrays of shape (n_features,)
        The sum of ``weight * (row - origin)``; what its last bits could not hold; squares of the
        rows around their mean, NaN where they are not known; bounds on what the sum is off by;
        and the two arrays of the `ColumnErrors` that centering has made in the scatter matrix.
    flat : float
        The last number of those.
    n_tiles : int
        Tiles so far: each may have rounded ``weight`` once.
    """

    weight: float
    origin: Array
    held: tuple[Array, ...]
    flat: float = 0.0
    n_tiles: int = 0

    @classmethod
    def empty(cls, n_features: int) -> RunningMean:
        """Return the mean of no rows."""
        return cls(0.0, np.zeros(n_features), tuple(np.zeros((6, n_features))))

    @property
    def squares(self) -> Array:
        """Squares of the rows around their mean, by column; NaN where they are not known."""
        return self.held[2]

    @property
    def scatter(self) -> ColumnErrors:
        """Bounds on what centering has done to the scatter matrix."""
        return ColumnErrors(self.held[4], self.held[5], self.flat)

    @functools.cached_property
    def from_origin(self) -> Array:
        """The mean less the origin."""
        total: Array = self.held[0] + self.held[1]
        return total / self.weight if self.weight > 0 else 0.0 * total

    @property
    def value(self) -> Array:
        """The mean."""
        return self.origin + self.from_origin

    @property
    def weight_error(self) -> float:
        """Relative error of the weight; whole numbers add without any."""
        exact = self.weight.is_integer() and self.weight < 2.0**53
        return 0.0 if exact else gamma(self.n_tiles + WEIGHT_ROUNDINGS)

    @functools.cached_property
    def from_origin_errors(self) -> Array:
        """Bounds on the errors of `from_origin`."""
        if self.weight == 0.0:
            return self.held[3]
        relative = gamma(4) + self.weight_error
        return np.asarray(self.held[3] / self.weight + relative * np.abs(self.from_origin))

    def aged(self, factor: float) -> RunningMean:
        """Return the mean after the weight of all rows was multiplied by ``factor``."""
        if factor == 1.0:
            return self
        held = tuple(factor * row for row in self.held)
        held[3][...] += gamma(WEIGHT_ROUNDINGS) * np.abs(held[0])
        return replace(self, weight=self.weight * factor, held=held, flat=self.flat * factor)

    def allowing(self, scatter: ColumnErrors) -> RunningMean:
        """Return the mean with more errors of the scatter matrix."""
        sizes, errors = self.held[4] + scatter.sizes, self.held[5] + scatter.errors
        held = (*self.held[:4], sizes, errors)
        return replace(self, held=held, flat=self.flat + scatter.flat)

    def grown(
        self, weight: float, sums: Array, squares: Array, errors: Array, n_tiles: int = 1
    ) -> RunningMean:
        """Return the mean with ``sums`` of differences to the origin added."""
        before, carry = self.held[:2]
        total = before + sums
        # What the sum could not hold (Knuth's two-sum).
        shifted = total - before
        carry = carry + ((before - (total - shifted)) + (sums - shifted))
        held = (total, carry, self.held[2] + squares, self.held[3] + errors, *self.held[4:])
        weight, n_tiles = self.weight + weight, self.n_tiles + n_tiles
        return replace(self, weight=weight, held=held, n_tiles=n_tiles)

    def merged(self, other: RunningMean) -> tuple[RunningMean, Array, Array]:
        """Return the mean of both, the step between the two means, and its errors."""
        apart = other.origin - self.origin
        gap = (other.from_origin - self.from_origin) + apart
        rounding = gamma(3) * (np.abs(apart) + np.abs(other.from_origin) + np.abs(gap))
        errors = self.from_origin_errors + other.from_origin_errors + rounding
        if self.weight == 0.0 or other.weight == 0.0:
            return (other if self.weight == 0.0 else self), gap, errors
        share = self.weight * other.weight / (self.weight + other.weight)
        sums = (other.held[0] + other.held[1]) + other.weight * apart
        moved = other.held[3] + other.weight * rounding
        squares = other.squares + share * gap**2
        both = self.grown(other.weight, sums, squares, moved, other.n_tiles + 1)
        return both.allowing(other.scatter), gap, errors


class Tile(NamedTuple):
    """Rows for a sketch, the mean with them, and what rounding may have done to the scatter."""

    rows: Any
    mean: RunningMean
    allowance: float


def centered_tile(
    mean: RunningMean,
    tile: Matrix,
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
        # Rows without weight still age the earlier ones.
        zeros = tile.scaled(0.0 * weights) if isinstance(tile, SparseRows) else 0 * tile
        return Tile(zeros, mean, 0.0)
    if isinstance(tile, SparseRows):
        return _sparse_tile(mean, tile, weights, current, gained, entry_error)
    if mean.weight == 0.0 and not mean.origin.any():
        mean = replace(mean, origin=middle_row(tile))
    # Arrays of their own: rows of one would be a power of two apart, and share lines of a cache.
    held = tuple([np.empty(len(mean.origin)) for _ in mean.held])
    bounds = np.empty((4, len(mean.origin)))
    plain = gained if ages is None else float(weights.sum())
    totals = mean.weight, gained, plain, entry_error
    roundings = tile_roundings(mean, len(tile), precision(tile))
    if on_device(tile):
        rows = _device_tile(mean, tile, (current, weights, ages), (held, bounds), totals, roundings)
    else:
        rows = np.empty(tile.shape, tile.dtype) if out is None else out
        ages = NO_AGES if ages is None else ages
        each = current, weights, ages
        kernels().center_tile_inplace(
            rows, held, bounds, mean.held, tile, mean.origin, each, totals, roundings
        )
    grown = RunningMean(mean.weight + gained, mean.origin, held, mean.flat, mean.n_tiles + 1)
    return Tile(rows, grown, tile_allowance(bounds, gained))


def tile_allowance(bounds: Array, gained: float) -> float:
    """Return what to allow for a tile whose kernel found those bounds."""
    entries, apart, off, energy = np.sqrt(bounds.sum(axis=1)).tolist()
    allowance = perturbed_gram(energy, entries * (1.0 + 1e-9))
    return allowance + _moved_gram(gained, apart, off)


def _device_tile(
    mean: RunningMean,
    tile: Array,
    weights: tuple[Array, Array, Array | None],
    grown: tuple[tuple[Array, ...], Array],
    totals: tuple[float, ...],
    roundings: tuple[float, ...],
) -> Array:
    """Do for rows on a device what `center_tile_inplace` does; sums of columns come to the host."""
    (current, plain, ages), (held, bounds) = weights, grown
    sums, center, squares = _column_sums(tile, current, mean.origin), 0.0 * mean.origin, bounds[3]
    kernels().place_center_inplace(center, sums, mean.held, totals)
    squares[...] = 0.0
    rows: Array = empty(tile.shape, tile, precision(tile))
    for part in _parts(tile):
        moved = (cast(tile[part], np.float64) - like(mean.origin, tile)) - like(center, tile)
        moved = moved * like(np.sqrt(plain[part])[:, None], tile)
        squares += weighted_sum(moved * moved, np.ones(len(moved)))
        rows[part] = cast(moved, precision(tile))
    aged = squares if ages is None else _column_sums(rows, ages, 0.0 * center, squared=True)
    columns = sums, squares, aged, center, mean.origin
    kernels().grown_mean_inplace(held, tuple(bounds[:3]), mean.held, columns, totals, roundings)
    return rows


def tile_roundings(mean: RunningMean, n_rows: int, dtype: np.dtype[Any]) -> tuple[float, ...]:
    """Return the relative errors that `grown_mean_inplace` counts with.

    They are those of a tile's sums, of its entries around the center and before that, of the
    mean, of the inputs of the center and of weights; the loss by underflow comes last.
    """
    underflow = SINGLE_UNDERFLOW if dtype == np.float32 else 0.0
    weights = mean.weight_error + gamma(WEIGHT_ROUNDINGS)
    entries = gamma(5) + unit_roundoff(dtype)
    return (
        *(gamma(n_rows + 12), entries, unit_roundoff(), gamma(4) + mean.weight_error),
        *(gamma(8), weights, underflow),
    )


def _sparse_tile(
    mean: RunningMean,
    tile: SparseRows,
    weights: Array,
    current: Array,
    gained: float,
    entry_error: float,
) -> Tile:
    """Return sparse rows with a center that is left to their products to subtract."""
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
    root = math.sqrt(mean.weight / (mean.weight + gained))
    apart = root * _length(own - mean.from_origin)
    weight_error = mean.weight_error + gamma(WEIGHT_ROUNDINGS)
    off = root * _length(mean.from_origin_errors) + (1.0 - root) * error / gained
    off += gamma(8) * (_length(own) + _length(step)) + unit_roundoff() * _length(center)
    allowance += _moved_gram(gained, apart, off + weight_error * apart)
    squares = tile.squared().weighted_sum(current) - center * (2.0 * plain - gained * center)
    grown = mean.grown(gained, sums, np.maximum(squares, 0.0), errors)
    return Tile(rows, replace(grown, flat=grown.flat + allowance), allowance)


def _center(mean: RunningMean, own: Array, gained: float) -> Array:
    """Return c less the origin, for a tile whose own mean is ``own`` from there."""
    root = math.sqrt(mean.weight / (mean.weight + gained))
    moved: Array = own + root * (mean.from_origin - own)
    return moved


def _moved_gram(gained: float, apart: float, off: float) -> float:
    """Bound what a center that is off does to the scatter matrix of a tile of that weight.

    The tile's mean is ``apart`` from the center.
    """
    return 1.02 * gained * perturbed_gram(apart, off)


def middle_row(tile: Array) -> Array:
    """Return the row that is nearest to the mean of all of them.

    A row, so that columns which never change are zero around it.
    """
    double = cast(tile, np.float64)
    xp = namespace(double)
    apart = double - xp.mean(double, axis=0)
    nearest = int(xp.argmin(xp.sum(apart * apart, axis=1)))
    return np.array(to_numpy(double[nearest]))


def _column_sums(rows: Array, weights: Array, origin: Array, squared: bool = False) -> Array:
    """Return the sum of ``weights * (rows - origin)``, or of squares, of rows on a device."""
    total = np.zeros(rows.shape[1])
    for part in _parts(rows):
        moved = cast(rows[part], np.float64) - like(origin, rows)
        total += weighted_sum(moved * moved if squared else moved, weights[part])
    return total


def _parts(rows: Array) -> list[slice]:
    """Return segments of rows on a device that are few enough to be made float64."""
    step = max(1, DEVICE_ENTRIES // max(int(rows.shape[1]), 1))
    return [slice(start, start + step) for start in range(0, len(rows), step)]


def _length(vector: Array) -> float:
    return math.sqrt(float(vector @ vector)) * (1.0 + 1e-9)


def mean_of(state: State) -> RunningMean:
    """Return the mean that a state holds."""
    meta: Any = state.meta
    weight = float(meta["flushed_weight"])
    n_features: int = meta["n_features"]
    if "origin" in state.arrays:
        # The first states with an origin know no more of the errors than their length.
        first = "errors" not in state.arrays
        blank = np.zeros(n_features)
        known = dict.fromkeys(MEAN_ROWS[3:], blank) if first else {}
        known |= {name: state.array(name, n_features) for name in MEAN_ROWS if name not in known}
        if first:
            known["errors"] = np.full(n_features, float(meta["mean_error"]))
        held = tuple(known[name] for name in MEAN_ROWS)
        flat = math.inf if first else meta["scatter_flat"]
        return RunningMean(weight, state.array("origin", n_features), held, flat, meta["n_tiles"])
    # Earlier releases kept the mean alone, which was a sum of all rows.
    mean = np.asarray(state.array("mean", n_features), dtype=np.float64)
    blank, unknown = np.zeros(n_features), np.full(n_features, np.nan)
    errors = gamma(meta["n_rows_seen"] + 1) * weight * np.abs(mean)
    return RunningMean(weight, mean, (blank, blank, unknown, errors, blank, blank), math.inf)
