r"""Ratios of two covariances that samples of one distribution do not have.

The allowance of `differences` for samples is one number for all directions, so the largest
variance hides what happens in the others. Here each direction is measured by its own variance.
For n independent rows x = C^(1/2) z of a Gaussian distribution of d columns, the singular values
of Z / sqrt(n) lie between 1 - s and 1 + s, s = sqrt(d / n) + sqrt(2 t / n), each side except with
probability exp(-t) [1]_. So with probability 1 - 2 exp(-t) for either sample, in every direction v
at once::

    v'S_b v / v'S_a v <= (1 + s_b)^2 / (1 - s_a)^2

and what exceeds this is a change. Two things are added to both sides of a ratio, which brings it
nearer to one: the bound on the error of either matrix, on the side that hides a change; and a
tenth of the mean variance, so that rare values of a column of little variance, which are far from
Gaussian, do not count. Heavier tails are allowed for as in `differences`.

References
----------
.. [1] Davidson, K. R. and Szarek, S. J. (2001). "Local operator theory, random matrices and Banach
   spaces". Handbook of the Geometry of Banach Spaces 1, Theorem II.13.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import scipy.linalg

from sksketch._typing import Array
from sksketch.arrays.rounding import gamma
from sksketch.time.states import PerRow

# Variances below this part of the mean one count as much as that.
FLOOR = 0.1


class Ratios(NamedTuple):
    """Directions in which the variance changed by more than samples explain."""

    directions: Array
    changes: Array

    @classmethod
    def none(cls, n_features: int) -> Ratios:
        """Return no directions."""
        return cls(np.empty((0, n_features)), np.empty(0))


def sample_limits(state: PerRow, chance: float, kurtosis: float) -> tuple[float, float]:
    """Return how much smaller and larger than the true one any variance of a sample may be.

    Except with probability ``chance``.
    """
    n = state.n_effective
    if n <= 0:
        return 0.0, math.inf
    s = math.sqrt(state.n_features / n) + math.sqrt(2.0 * math.log(2.0 / chance) / n)
    spread = math.sqrt((kurtosis - 1.0) / 2.0)
    low = 1.0 - spread * (1.0 - (1.0 - min(s, 1.0)) ** 2)
    return max(low, 0.0), 1.0 + spread * ((1.0 + s) ** 2 - 1.0)


def changed_ratios(a: PerRow, b: PerRow, error: float, chance: float, kurtosis: float) -> Ratios:
    """Return the directions in which one variance is too many times the other.

    Parameters
    ----------
    a, b : PerRow
    error : float
        Bound on the error of either matrix.
    chance : float
        With which there may be one for two samples of one distribution.
    kurtosis : float
        Largest kurtosis of the rows in any direction.
    """
    d = a.n_features
    limits = [sample_limits(state, chance / 2.0, kurtosis) for state in (a, b)]
    floor = FLOOR * 0.5 * (a.trace + b.trace) / d
    stacked = np.concatenate([a.components, b.components])
    if not (min(limits[0][0], limits[1][0]) > 0.0 and floor > 0.0 and len(stacked)):
        return Ratios.none(d)
    basis = np.linalg.qr(stacked.T)[0].T
    inside = [_inside(state, basis) for state in (a, b)]
    found = [
        _beyond(inside[below], inside[above], limits[above][1] / limits[below][0], error, floor)
        for below, above in ((0, 1), (1, 0))
    ]
    small = np.concatenate(found)
    if not len(small):
        return Ratios.none(d)
    small /= np.linalg.norm(small, axis=1, keepdims=True)
    changes = np.vecdot(small @ (inside[1] - inside[0]), small)
    order = np.argsort(-np.abs(changes), kind="stable")
    return Ratios((small @ basis)[order], changes[order])


def _inside(state: PerRow, basis: Array) -> Array:
    """Return the matrix of a state in a basis."""
    C = state.components @ basis.T
    S = (C.T * state.eigenvalues) @ C
    S[np.diag_indices_from(S)] += state.ridge
    return np.asarray(0.5 * (S + S.T))


def _beyond(below: Array, above: Array, limit: float, error: float, floor: float) -> Array:
    """Return directions in which one matrix is more than ``limit`` times the other, as rows."""
    identity = np.eye(len(below))
    base = below + (error + floor) * identity
    top = above + (floor - error) * identity
    ratios, vectors = scipy.linalg.eigh(top, base)
    # Without the floor the base could be singular; this is what its roundings can change.
    condition = float(np.trace(base)) / (error + floor)
    slack = 1.0 + gamma(16 * len(base) + 64) * condition
    return np.asarray(vectors.T[ratios > limit * slack])
