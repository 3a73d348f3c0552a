"""Estimates from a sketch, with intervals that are never narrower than those of the rows."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from sksketch._typing import Array
from sksketch.arrays.rounding import gamma
from sksketch.low_rank import LowRankPlusRidge
from sksketch.ridge.exact import RidgeReader
from sksketch.ridge.inference.estimates import Asked, Estimates, coefficient_errors
from sksketch.ridge.solution import residual_dimension_interval


def sketched(reader: RidgeReader, ridge: float, asked: Asked, units: Array) -> Estimates:
    """Return estimates of a sketch.

    Parameters
    ----------
    reader : RidgeReader
        Of a sketch with an error bound.
    ridge : float
        Penalty.
    asked : Asked
        What is asked for.
    units : array of shape (n_features,)
        Units of the columns that the reader has.

    Notes
    -----
    With C = A'A, r the ridge and s2 the variance of the noise, the covariance of the coefficients
    is s2 V with V = (C + r)^-1 C (C + r)^-1. It is no larger than (C + r)^-1, and no larger than
    1 / (4 r). The sketch says that C is at least K - D, so where K + r - D is positive, V is at
    most its inverse, and 1 / r in any case. s2 is at most the largest sum of squared errors that
    the sketch allows, over the fewest degrees of freedom.
    """
    summary, moments = reader.summary, reader.moments
    first = int(reader.sketch.centered)
    n = moments.weight if asked.weights == "frequency" else float(moments.n_rows)
    solution = reader.solve(ridge)
    x = solution.coefficients
    off = coefficient_errors(reader, solution)
    least, most = residual_dimension_interval(summary, moments, ridge, first)
    moved = n - moments.weight
    least, most = least + moved, most + moved
    ends = reader.squared_error_interval(x)
    low = np.maximum(np.sqrt(ends[0]) - solution.image_bounds, 0.0) ** 2
    high = (np.sqrt(ends[1]) + solution.image_bounds) ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        middle = np.where(np.isfinite(high), 0.5 * (low + high), low)
        df = 0.5 * (least + most) if math.isfinite(least) else most
        scale = middle / df if df > 0.0 else np.full_like(middle, math.inf)
        largest = high / least if least > 0.0 else np.full_like(high, math.inf)
    estimate, bound = _forms(summary, ridge)
    coef, spread, widest = x, estimate.diagonal(), bound.diagonal()
    if first:
        mean = moments.mean
        corner = 1.0 / moments.weight
        coef = np.vstack([(moments.target_mean - mean @ x)[None], x])
        spread = np.concatenate([[corner + estimate.of(mean)], spread])
        widest = np.concatenate([[corner + bound.of(mean)], widest])
    back = np.concatenate([np.ones(first), 1.0 / units])[:, None]
    with np.errstate(invalid="ignore"):
        errors = np.nan_to_num(np.sqrt(np.outer(spread, scale)), nan=0.0, posinf=np.inf)
        widths = np.nan_to_num(np.sqrt(np.outer(widest, largest)), nan=np.inf, posinf=np.inf)
    widths = np.maximum(widths * (1.0 + 1e-9), errors)
    tss = moments.squares
    return Estimates(
        coef * back,
        np.nan_to_num(off, nan=np.inf, posinf=np.inf) * back,
        errors * back,
        widths * back,
        np.zeros((len(scale), 0, 0)),
        middle,
        tss,
        n - df - first,
        first + min(summary.n_features, max(moments.n_rows - first, 0)),
        np.zeros(0, dtype=int),
        n,
        df,
        bool(first),
        ("read from a sketch: intervals are widened by its certified error",),
        least_df=least,
    )


class _Form(NamedTuple):
    """A function of an operator: its value at each eigenvalue, and at all others."""

    components: Array
    inside: Array
    outside: float

    def diagonal(self) -> Array:
        """Return the diagonal of the function's matrix."""
        squares = self.components.astype(np.float64) ** 2
        return self._sum(self.inside @ squares, 1.0 - squares.sum(axis=0))

    def of(self, v: Array) -> float:
        """Return the quadratic form of a vector."""
        along = (self.components @ v) ** 2
        return float(self._sum(self.inside @ along, np.array(v @ v - along.sum())))

    def _sum(self, known: Array, rest: Array) -> Array:
        # What components leave of a vector; where they span all, rounding.
        if len(self.components) == self.components.shape[1]:
            return known
        return np.asarray(known + np.where(rest > 1e-12, rest * self.outside, 0.0))


def _forms(summary: LowRankPlusRidge, ridge: float) -> tuple[_Form, _Form]:
    """Return an estimate of (C + r)^-1 C (C + r)^-1 and what it can be at most."""
    values = np.append(summary.eigenvalues, 0.0) + summary.ridge
    with np.errstate(divide="ignore", invalid="ignore"):
        estimate = values / (values + ridge) ** 2
    estimate = np.nan_to_num(estimate, nan=np.inf, posinf=np.inf)
    most = np.full(len(values), 1.0 / ridge if ridge > 0.0 else math.inf)
    # Components are orthonormal to rounding.
    D = summary.error_bound * (1.0 + 1e-9) + gamma(8 * summary.n_features) * float(values[0])
    lower = values - D + ridge
    used = lower[: summary.n_features]
    if math.isfinite(D) and (used > 0.0).all():
        with np.errstate(divide="ignore"):
            most = np.where(lower > 0.0, 1.0 / lower, most)
    if ridge > 0.0:
        most = np.minimum(most, 0.25 / ridge)
    V = summary.components
    return _Form(V, estimate[:-1], float(estimate[-1])), _Form(V, most[:-1], float(most[-1]))
