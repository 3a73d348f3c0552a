r"""Changes between two scatter matrices that are certain, from bounds on both.

With C = K + E for either state, per row, K of low rank plus a multiple of the identity and
\|E\| <= e, the difference C_b - C_a is K_b - K_a but for e_a + e_b. So says Weyl's inequality of
each of its eigenvalues, and K_b - K_a is a small matrix in the joint span of both.

*Of the rows or of where they come from.* Two samples of one distribution are never equal. With a
``confidence`` below one, what samples differ by is allowed for as well. For independent rows of a
Gaussian distribution with covariance C, trace r \|C\| and n degrees of freedom, the sample
covariance is with probability 1 - exp(-t) within ::

    \|C\| ((1 + sqrt(r / n) + sqrt(2 t / n))^2 - 1)

of C: its expectation is at most \|C\| (2 sqrt(r / n) + r / n) [1]_, and the rest are the usual
terms of concentration, with constants on the safe side. Heavier tails are allowed for by a factor
sqrt((kurtosis - 1) / 2): the standard error of a variance, beside that of a Gaussian one.

References
----------
.. [1] Koltchinskii, V. and Lounici, K. (2017). "Concentration inequalities and moment bounds for
   sample covariance operators". Bernoulli 23(1). doi:10.3150/15-BEJ730
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import scipy.special

from sksketch._typing import Array
from sksketch.arrays.rounding import eigen_error, gamma
from sksketch.time.states import PerRow

# Of the probability to be wrong, means get this share: their tests are exact, and need little.
MEAN_SHARE = 1e-3

# Fewer rows say nothing about a variance, if values are few.
FEWEST_ROWS = 10


class Spectrum(NamedTuple):
    """Eigenvalues of a difference, largest in size first, with directions and the error of each."""

    values: Array
    directions: Array
    error: float
    # Of all directions beside these.
    outside: float

    @property
    def norm(self) -> tuple[float, float]:
        """Interval of the largest eigenvalue in size."""
        largest = max(abs(self.outside), float(abs(self.values[0])) if len(self.values) else 0.0)
        return max(largest - self.error, 0.0), largest + self.error


def difference(a: PerRow, b: PerRow) -> Spectrum:
    """Return the eigenvalues of what ``b`` has per row beyond ``a``.

    >>> from sksketch import ExactCovariance
    >>> from sksketch.time.states import per_row
    >>> states = (per_row(ExactCovariance().update(np.diag(d))) for d in ([2.0, 1.0], [1.0, 1.0]))
    >>> difference(*states).values.round(9)
    array([-1.5,  0. ])
    """
    stacked = np.concatenate([a.components, b.components])
    weights = np.concatenate([-a.eigenvalues, b.eigenvalues])
    basis = np.linalg.qr(stacked.T)[0].T if len(stacked) else stacked
    # Where the two span less than their ranks, what QR adds is orthonormal all the same.
    inside = stacked @ basis.T
    small = (inside.T * weights) @ inside
    shift = b.ridge - a.ridge
    values, vectors = np.linalg.eigh(0.5 * (small + small.T))
    values = values + shift
    order = np.argsort(-np.abs(values), kind="stable")
    size = a.trace + b.trace
    rounding = 2.0 * eigen_error(max(len(stacked), 1), size)
    rounding += gamma(8 * (stacked.shape[1] + len(stacked)) + 64) * size
    outside = shift if len(basis) < stacked.shape[1] else 0.0
    return Spectrum(
        values[order], vectors.T[order] @ basis, a.error + b.error + rounding, float(outside)
    )


def sampling_error(state: PerRow, chance: float, kurtosis: float) -> float:
    """Return how far the covariance of rows may be from that of their distribution.

    Except with probability ``chance``; infinite where there are too few rows to say anything.
    """
    n = state.n_effective
    if n <= 0:
        return math.inf
    t = math.log(1.0 / chance)
    # The norm of C itself is known from the sample, which has it to this factor.
    spread = math.sqrt((kurtosis - 1.0) / 2.0)
    least = 1.0 - spread * 2.0 * math.sqrt(2.0 * t / n)
    if least <= 0.0:
        return math.inf
    largest = state.largest / least
    rank = (state.trace / least) / largest if largest > 0 else 0.0
    factor = (1.0 + math.sqrt(rank / n) + math.sqrt(2.0 * t / n)) ** 2 - 1.0
    return spread * largest * factor


class MeanShift(NamedTuple):
    """How far the means of columns have moved.

    Parameters
    ----------
    difference, standard_error, z : arrays of shape (n_features,)
        Mean of the second state less that of the first, its standard error, and their ratio.
    error : float
        Bound on the length of what sketches and rounding have done to the difference.
    certain : array of bool of shape (n_features,)
        Where the mean moved by more than samples and errors explain.
    """

    difference: Array
    standard_error: Array
    z: Array
    error: float
    certain: Array


def mean_shift(a: PerRow, b: PerRow, chance: float | None) -> MeanShift | None:
    """Return how far means have moved; None of rows that are not centered."""
    if a.mean is None or b.mean is None:
        return None
    moved = b.mean - a.mean
    error = a.mean_error + b.mean_error
    error += gamma(4) * (float(np.linalg.norm(a.mean)) + float(np.linalg.norm(b.mean)))
    # By the degrees of freedom: variances are per row.
    parts = [
        state.diagonal * (state.n_effective + 1.0) / max(state.n_effective, 1e-300) ** 2
        for state in (a, b)
    ]
    standard = np.sqrt(parts[0] + parts[1])
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(standard > 0, moved / standard, np.where(moved == 0, 0.0, np.inf))
        z = np.copysign(np.abs(z), moved)
    if chance is None:
        certain = np.abs(moved) > error
    else:
        # Student's quantile, for all columns together.
        freedom = max(min(a.n_effective, b.n_effective), 1.0)
        share = chance * MEAN_SHARE / (2.0 * len(moved))
        quantile = -float(scipy.special.stdtrit(freedom, share))
        # Under the same variance for both: a few equal rows do not tell that there is none.
        per_row = sum((s.n_effective + 1.0) / max(s.n_effective, 1e-300) ** 2 for s in (a, b))
        pooled = np.sqrt(np.maximum(a.diagonal, b.diagonal) * per_row)
        certain = np.abs(moved) > quantile * pooled + error
        certain &= freedom >= FEWEST_ROWS
    return MeanShift(moved, standard, z, error, certain)


def principal_angles(a: PerRow, b: PerRow, k: int) -> Array:
    """Return an interval of each principal angle between the leading subspaces, in degrees.

    Davis and Kahan: a subspace that belongs to eigenvalues of K at least e above all others of C
    has an angle to that of C whose sine is at most e over the distance.
    """
    cosines = np.linalg.svd(a.components[:k] @ b.components[:k].T, compute_uv=False)
    sines = np.sqrt(np.maximum(1.0 - np.minimum(cosines, 1.0) ** 2, 0.0))
    angles = np.arctan2(sines, cosines)
    slack = sum(_angle_error(state, k) for state in (a, b)) + 1e-7
    ends = np.stack([angles - slack, angles + slack], axis=1)
    return np.degrees(np.clip(ends, 0.0, np.pi / 2))


def _angle_error(state: PerRow, k: int) -> float:
    values = state.variances(k + 1)
    if k >= state.n_features:
        return 0.0
    gap = float(values[k - 1] - values[k]) - state.error
    sine = state.error / gap if gap > 0 else 1.0
    return math.asin(min(sine, 1.0))
