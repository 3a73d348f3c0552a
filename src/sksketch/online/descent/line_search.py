"""The length of a step, from the objective at a few of them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sksketch._typing import Array

# Lengths that a pass tries; the gradient is taken at the first. Powers of two, so that a
# direction that is tried again at another length leads to the very same weights.
STEPS = np.array([1.0, 0.5, 0.25, 0.125, 0.03125, 2.0])
# A whole step must lower the objective by this share of what its slope promises (Armijo) ...
PROMISED = 1e-4
# ... and by this share of what the best of the other lengths would.
OF_THE_BEST = 0.5
LONGEST, SHORTEST = 2.0**10, 2.0**-40


@dataclass(frozen=True)
class Known:
    """The best that is known of a line: a length, and the objective there.

    Parameters
    ----------
    step : float, default=0.0
        Length, in directions.
    objective : float, default=math.inf
        Objective there; ``inf`` where nothing is known to be below the one at 0.
    """

    step: float = 0.0
    objective: float = math.inf


def is_good(objective: float, tried: Array, slope: float, known: Known) -> bool:
    """Return whether the whole step should be made.

    Parameters
    ----------
    objective : float
        The objective at 0.
    tried : array of shape (n_steps,)
        The objective at each of `STEPS`.
    slope : float
        Derivative along the direction at 0, below 0.
    known : Known
        What earlier trials of the direction have found.

    Returns
    -------
    bool
        Whether it should be made: after an earlier trial if it is no worse than that one.

    Examples
    --------
    >>> parabola = (STEPS - 0.75) ** 2
    >>> is_good(0.75**2, parabola, -1.5, Known())
    True
    >>> is_good(0.1**2, (STEPS - 0.1) ** 2, -0.2, Known())
    False
    """
    gained = objective - float(tried[0])
    if known.objective < objective:
        return float(tried[0]) <= known.objective
    return gained > 0.0 and gained >= max(
        -PROMISED * slope, OF_THE_BEST * (objective - float(tried.min()))
    )


def next_length(objective: float, tried: Array, newton: float, known: Known) -> tuple[float, Known]:
    """Return the length to try the direction at, and the best known of it at that length.

    Parameters
    ----------
    objective : float
        The objective at 0.
    tried : array of shape (n_steps,)
        The objective at each of `STEPS`.
    newton : float
        The length at which the slope would vanish, were the curvature the same everywhere.
    known : Known
        What earlier trials of the direction have found.

    Returns
    -------
    step : float
        A power of two.
    known : Known
        The best of all trials, in units of the new length.

    Examples
    --------
    >>> next_length(1.0, np.array([3.0, 0.5, 0.7, 0.8, 0.9, 9.0]), 0.4, Known())
    (0.5, Known(step=1.0, objective=0.5))
    >>> next_length(1.0, np.full(6, 2.0), 1e-3, Known())
    (0.0009765625, Known(step=0.0, objective=inf))
    """
    best = int(tried.argmin())
    step = float(STEPS[best])
    if tried[best] < min(objective, known.objective):
        known = Known(step, float(tried[best]))
        # At the end of the grid the curvature knows better how far it is.
        if step == STEPS.max():
            step = _power_of_two(max(newton, step))
        elif step == STEPS.min():
            step = _power_of_two(min(newton, step))
    elif known.objective < objective:
        step = known.step
    else:
        step = _power_of_two(min(newton, 0.5 * float(STEPS.min())))
    return step, Known(known.step / step, known.objective)


def _power_of_two(length: float) -> float:
    return float(2.0 ** round(math.log2(min(max(length, SHORTEST), LONGEST))))
