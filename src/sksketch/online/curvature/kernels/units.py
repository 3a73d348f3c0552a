"""Units of the columns: powers of two, so that a change of units changes no digit."""

from __future__ import annotations

import math

from sksketch.arrays.kernels.jit import jit
from sksketch.online.curvature.kernels.layout import FIRST_ROWS, MOST_RISE, REACH


@jit
def power_below(value: float) -> float:
    """Return the largest power of two that is not above a positive value.

    >>> power_below(5.0), power_below(4.0)
    (4.0, 4.0)
    """
    return math.ldexp(1.0, math.frexp(value)[1] - 1)


@jit
def power_above(value: float) -> float:
    """Return the smallest power of two that is not below a positive value.

    >>> power_above(5.0), power_above(4.0)
    (8.0, 4.0)
    """
    below = power_below(value)
    return below if below == value else 2.0 * below


@jit
def raised(base: float, size: float, n_rows: int) -> float:
    """Return the scale of a column for a value that far out, after that many rows.

    >>> raised(1.0, 1000.0, 1), raised(1.0, 1000.0, 1000)
    (256.0, 2.0)
    """
    wanted = power_above(size / REACH)
    return wanted if n_rows < FIRST_ROWS else min(wanted, MOST_RISE * base)


@jit
def scale_of(base: float, lost: float, alpha: float) -> float:
    """Return what to divide a column by, so that the ridge alpha holds for it what it should.

    That is alpha base^2 for the column's own scale and, beside it, the curvature lost to shrinks.
    It is a power of the root of two, and the base where nothing is lost.

    >>> scale_of(2.0, 0.0, 1.0), scale_of(2.0, 12.0, 1.0)
    (2.0, 4.0)
    """
    return math.sqrt(power_above(base * base + lost / alpha))


@jit
def deviation(sum_: float, squares: float, n_rows: int) -> tuple[float, float]:
    """Return the mean and the standard deviation of values, from their sums.

    >>> deviation(6.0, 20.0, 2)
    (3.0, 1.0)
    """
    mean = sum_ / n_rows
    variance = squares / n_rows - mean * mean
    # Where rounding is all that is left of the difference, nothing varies.
    if variance <= 1e-14 * squares / n_rows:
        return mean, 0.0
    return mean, math.sqrt(variance)
