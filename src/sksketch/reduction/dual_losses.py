"""Losses with their conjugates, for learning in the dual with a gap that can be read off.

A loss l(z) of a prediction z has the conjugate l*; with the dual variable a = -l'(z)::

    l(z) + l*(-a) + a z >= 0

and the weighted sum of these is the duality gap.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.special

from sksketch._typing import Array

# Curvature of the conjugates that are parts of lines and squares.
CURVATURES = {"hinge": 0.0, "squared_hinge": 0.5, "squared": 1.0, "absolute": 0.0}


@dataclass(frozen=True)
class DualLoss:
    """A loss of predictions z where y is right.

    Parameters
    ----------
    name : str
        "hinge": max(0, 1 - y z); "squared_hinge": its square; "squared": (z - y)^2 / 2;
        "absolute": abs(z - y); "logistic": log(1 + exp(-y z)).
    tolerance : float
        tau of dual-sparse recovery: the loss is the least of l(z + u) for abs(u) <= tau, which
        adds tau abs(a) to the conjugate.

    Examples
    --------
    >>> DualLoss("hinge").value(np.array([0.5, 2.0]), np.array([1.0, 1.0]))
    array([0.5, 0. ])
    >>> DualLoss("absolute", tolerance=1.0).value(np.array([3.0]), np.array([0.0]))
    array([2.])
    """

    name: str
    tolerance: float = 0.0

    @property
    def curvature(self) -> float:
        """Second derivative of the conjugate where it is smooth; not for "logistic"."""
        return CURVATURES[self.name]

    def bounds(self, y: Array) -> tuple[Array, Array]:
        """Return the least and the largest dual variable of each row."""
        if self.name == "squared":
            return np.full(len(y), -np.inf), np.full(len(y), np.inf)
        if self.name == "absolute":
            return np.full(len(y), -1.0), np.ones(len(y))
        largest = np.inf if self.name == "squared_hinge" else 1.0
        return np.where(y < 0, -largest, 0.0), np.where(y > 0, largest, 0.0)

    def smoothed(self, z: Array, y: Array, smoothing: float) -> tuple[Array, Array]:
        """Return dual variables of the loss with a rounder conjugate, and how fast they fall.

        Adding smoothing / 2 a^2 to the conjugate makes the dual variable a continuous function
        of z, with the slope -1 / (curvature + smoothing) or 0. "logistic" is smooth as it is.
        """
        if self.name == "logistic":
            p = scipy.special.expit(-(y * z + self.tolerance))
            return np.asarray(y * p), np.asarray(p * (1.0 - p))
        low, high = self.bounds(y)
        steepness = self.curvature + smoothing
        beyond = np.maximum(np.abs(y - z) - self.tolerance, 0.0)
        free = np.copysign(beyond, y - z) / steepness
        a = np.clip(free, low, high)
        return a, np.where((a == free) & (beyond > 0), 1.0 / steepness, 0.0)

    def value(self, z: Array, y: Array) -> Array:
        """Return the loss of each prediction."""
        if self.name == "logistic":
            return np.logaddexp(0.0, -(y * z + self.tolerance))
        if self.name in ("squared", "absolute"):
            excess = np.maximum(np.abs(z - y) - self.tolerance, 0.0)
            return np.asarray(excess if self.name == "absolute" else 0.5 * excess**2)
        excess = np.maximum(1.0 - self.tolerance - y * z, 0.0)
        return np.asarray(excess if self.name == "hinge" else excess**2)

    def conjugate(self, a: Array, y: Array) -> Array:
        """Return l*(-a) of each dual variable."""
        size = np.abs(a)
        if self.name == "logistic":
            entropy = scipy.special.xlogy(size, size) + scipy.special.xlog1py(1 - size, -size)
            return np.asarray(entropy + self.tolerance * size)
        return np.asarray(0.5 * self.curvature * a * a - y * a + self.tolerance * size)

    def mean_square(self, y: Array, shares: Array) -> float:
        """Bound the weighted mean of the squared dual variables at a reduced optimum.

        It is G^2 where the loss has slopes up to G. The squared losses have none, but there the
        mean is at most 2 or 4 times the mean loss, which is at most that of predicting zero.
        """
        if self.name in ("hinge", "logistic", "absolute"):
            return float(shares.sum())
        at_zero = float(shares @ self.value(np.zeros(len(y)), y))
        return (4.0 if self.name == "squared_hinge" else 2.0) * at_zero
