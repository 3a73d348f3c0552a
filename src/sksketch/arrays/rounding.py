"""Bounds on what finite precision does to a result: the one place for allowances.

The model is the standard one (Higham 2002, Accuracy and Stability, sections 2.2 and 3.1): an
operation returns the true result times 1 + e with |e| <= u, the unit roundoff, or is off by no
more than the smallest number where it underflows. A sum of n products in any order, with or
without fused steps, at once or in blocks, is then off by at most gamma(n) times the sum of
the absolute values. Nothing here is measured, except the two constants of single
precision at the end.
"""

from __future__ import annotations

import functools
import math

import numpy as np
import numpy.typing as npt

# What 10^12 operations can lose by underflow: as many times the smallest number above zero.
UNDERFLOW = 5e-312

# The length of what 10^12 entries can lose by it when they are narrowed to single precision.
SINGLE_UNDERFLOW = 1e-39

# Roundings in the error of a small eigenproblem or factorization of order n, per unit of n. The
# analysis of LAPACK (Users' Guide, section 4.7) gives a modestly growing function of n; errors
# are smaller than one rounding times n by far in all that is known of these routines.
EIGEN_ROUNDINGS = 2.0

# Matrices of a norm below 1e-146 or above its inverse are scaled by LAPACK before they are solved,
# and their eigenvalues are scaled back. Counted for all, so that bounds scale with the rows.
SCALE_ROUNDINGS = 8.0


@functools.cache
def unit_roundoff(dtype: npt.DTypeLike = np.float64) -> float:
    """Return half the distance from one to the next number.

    >>> unit_roundoff() == 2.0**-53, unit_roundoff(np.float32) == 2.0**-24
    (True, True)
    """
    return float(np.finfo(dtype).eps) / 2.0


def gamma(n: float, dtype: object = np.float64) -> float:
    """Return n u / (1 - n u): the relative error of n roundings, whichever way they go.

    >>> gamma(3) == 3 * 2.0**-53 / (1 - 3 * 2.0**-53)
    True
    """
    nu = n * unit_roundoff(dtype)
    return nu / (1.0 - nu) if nu < 1.0 else math.inf


def dot_error(n: float, x: float, y: float, dtype: object = np.float64) -> float:
    """Bound the error of matrix products whose sums have n terms.

    For X'Y, or any part of it, where n counts the rows of both and x, y are bounds on their
    Frobenius norms, the spectral norm of the error is at most this.

    >>> dot_error(10, 2.0, 3.0) <= 7 * 10 * 2.0**-53
    True
    """
    return _error(gamma(n, dtype) * x * y)


def eigen_error(order: int, norm: float) -> float:
    """Bound what a symmetric eigenproblem of that order and norm loses, in float64."""
    return _error(gamma(EIGEN_ROUNDINGS * order + SCALE_ROUNDINGS) * norm)


def perturbed_gram(norm: float, error: float) -> float:
    """Bound the change of E'E where E, of that norm, changes by a matrix of norm ``error``.

    >>> perturbed_gram(2.0, 0.5)
    2.25
    """
    return _error((2.0 * norm + error) * error)


def _error(amount: float) -> float:
    """Return the error with what underflow adds; numbers that are all zero lose nothing."""
    return amount + UNDERFLOW if amount > 0.0 else 0.0


# Roundings of single precision, of the length of the projected rows, in a projection of this many
# rows. Measured, not proved: one in most rows, ten where all products of a long sum have the same
# sign, and several times that only where all of them are equal, so that nothing is cut.
SINGLE_ROUNDINGS, SINGLE_ROWS = 32.0, 1 << 14

# Single precision perturbs a product with rows by about this much of their largest eigenvalue,
# of which few probes may see only half. Measured as well.
SINGLE_NOISE = 4e-6


def single_error(n_rows: int) -> float:
    """Return the relative error to allow for where ``n_rows`` rows are projected in float32.

    What can happen at most grows with the rows, and would leave nothing of the advantage of
    single precision. This is what happens; certificates say that they rest on it.
    """
    return SINGLE_ROUNDINGS * max(1.0, n_rows / SINGLE_ROWS) * float(np.finfo(np.float32).eps)
