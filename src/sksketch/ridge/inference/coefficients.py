"""Coefficients of least squares as the answer of an estimator, with their bounds."""

from __future__ import annotations

import numpy as np

from sksketch._typing import Array
from sksketch.arrays.rounding import gamma
from sksketch.ridge.inference.least_squares import Fit, Problem
from sksketch.ridge.solution import RidgeSolution


def certified(fit: Fit, problem: Problem, unit: Array | None) -> tuple[RidgeSolution, Array] | None:
    """Return the solution in units of the columns, and its intercepts.

    Parameters
    ----------
    fit : Fit
        The solution for the user's columns.
    problem : Problem
        What it solves.
    unit : array of shape (n_features,) or None
        Units of the columns.

    Returns
    -------
    tuple of RidgeSolution and array, or None
        None where columns depend on others: many solutions are as good.
    """
    if len(fit.dependent):
        return None
    first, d = int(problem.intercept), len(problem.least)
    lengths = np.sqrt(np.maximum(np.diagonal(problem.products.high)[:d], 0.0))
    units = np.ones(d) if unit is None else unit
    coefficients = fit.coef[first:] * units[:, None]
    off = fit.coef_errors[first:] * units[:, None] * (1.0 + gamma(8))
    off = off + gamma(2) * np.abs(coefficients)
    slack = 1.0 + gamma(d + 8)
    scales = np.where(lengths > 0.0, lengths / units, 1.0)
    scaled = np.linalg.norm(off * scales[:, None], axis=0) * slack
    absolute = np.linalg.norm(off, axis=0) * slack
    shortest = np.linalg.norm(coefficients, axis=0) / slack - absolute
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.where(shortest > 0.0, absolute / shortest, np.inf)
    relative = np.where(absolute == 0.0, 0.0, relative)
    # Columns are as long as their scales: the rows move predictions by no more than the sum.
    image = np.sqrt(d) * scaled
    bound = float(relative.max())
    solution = RidgeSolution(coefficients, bound, absolute, image, scales, scaled)
    return solution, fit.coef[0] if first else np.zeros(problem.n_targets)
