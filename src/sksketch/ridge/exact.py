"""Ridge regression where A'A itself is known: columns in any units.

The error of A'A is small entry by entry, beside the lengths of the two columns. So are its
consequences, if every column is measured by its own length: with s_i^2 = (A'A)_ii + r and
S = diag(s), the matrix S^-1 (A'A + r) S^-1 has ones on its diagonal, and how near it is to a
singular one does not depend on units. A Cholesky factorization does not, either; the
eigenvectors of A'A do.
"""

from __future__ import annotations

import functools
import math

import numpy as np
import scipy.linalg

from sksketch._typing import Array
from sksketch.arrays.rounding import gamma
from sksketch.low_rank import LowRankPlusRidge
from sksketch.ridge.nonnegative import solve_nonnegative
from sksketch.ridge.solution import RidgeSolution, solve_summary, squared_error_interval
from sksketch.sketches.column_errors import ExactGram
from sksketch.sketches.directions.gram_answer import answer_in_units, gram_in_units
from sksketch.sketches.wrappers.moment_sums import Moments
from sksketch.sketches.wrappers.regression import Regression

# Steps of inverse iteration to guess the least eigenvalue, and the parts of it that are tried.
INVERSE_STEPS, PARTS = 8, (0.5, 0.1, 0.01, 1e-3)


class ExactRidge:
    """Solutions for any ridge from A'A and A'b as they were accumulated.

    Parameters
    ----------
    gram : ExactGram
        A'A and bounds on its errors.
    moments : Moments
        A'b and bounds on its errors.

    Notes
    -----
    Let x_hat be the answer, p = c_hat - (C + r) x_hat its residual, M = A'A + r, E = A'A - C and
    dc = c_hat - c. Exactly, x_hat - x = M^-1 q with q = E x_hat - p + dc, and in units of the
    columns::

        S (x_hat - x)  =  (S^-1 M S^-1)^-1  S^-1 q

    So with l a lower bound of the eigenvalues of S^-1 M S^-1, |S (x_hat - x)| <= |S^-1 q| / l,
    and |A (x_hat - x)|^2 <= (x_hat - x)' M (x_hat - x) = q' M^-1 q <= |S^-1 q|^2 / l.

    l comes from another factorization: where that of S^-1 (C + r) S^-1 - t I succeeds, that matrix
    is positive but for gamma(d + 2) times its trace (Higham 2002, theorem 10.3), whatever t was
    tried. So the eigenvalues are at least t less that, less the norm of S^-1 E S^-1.

    Examples
    --------
    >>> from sksketch.sketches import ExactCovariance, Regression
    >>> X = np.array([[1.0, 0.0], [0.0, 1e9], [1.0, 2e9]])
    >>> sketch = Regression(ExactCovariance()).update(X, targets=X @ np.array([1.0, 2e-9]))
    >>> model = ExactRidge(sketch._exact_gram(), sketch.moments())
    >>> solution = model.solve(0.0)
    >>> solution.coefficients.ravel() * np.array([1.0, 1e9]), solution.relative_bound < 1e-12
    (array([1., 2.]), True)
    """

    def __init__(self, gram: ExactGram, moments: Moments) -> None:
        self._gram, self._moments = gram, moments
        # Columns are no longer than this.
        squares = np.maximum(gram.matrix.diagonal(), 0.0) + gram.errors.diagonal()
        self._cross_errors = moments.cross_errors(np.sqrt(squares))

    def solve(self, ridge: float) -> RidgeSolution | None:
        """Return the solution, or None where A'A with that ridge may be singular."""
        C, cross = self._gram.matrix, self._moments.cross
        ridge = ridge + self._gram.ridge
        squares = np.maximum(C.diagonal(), 0.0) + ridge
        if not (squares > 0.0).all():
            return None
        s = np.sqrt(squares)[:, None]
        scaled = C / s / s.T
        np.fill_diagonal(scaled, 1.0)
        factor = _cholesky(scaled)
        if factor is None or not (least := self._least(scaled, factor, s[:, 0])):
            return None
        x, residual = np.zeros_like(cross), cross
        for _ in range(2):
            # The second time for what rounding did in the first.
            x = x + _solved(factor, residual / s) / s
            residual = cross - (C @ x + ridge * x)
        d = len(C)
        # No entry of C is larger than the product of its columns' lengths.
        rounding = s * (s.T @ np.abs(x)) + ridge * np.abs(x) + np.abs(cross)
        q = np.abs(residual) + gamma(d + 8) * rounding
        q += self._gram.errors.times(x) + self._cross_errors
        off = np.linalg.norm(q / s, axis=0) * (1.0 + gamma(d + 32))
        lengths = np.linalg.norm(x, axis=0)
        scaled_bounds = off / least + gamma(8) * np.linalg.norm(s * x, axis=0)
        absolute = off / (least * float(s.min())) + gamma(4) * lengths
        shortest = lengths * (1.0 - gamma(d + 2)) - absolute
        nothing = (q == 0.0).all(axis=0) & (lengths == 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            relative = np.where(shortest > 0.0, absolute / shortest, math.inf)
        absolute, relative = np.where(nothing, 0.0, absolute), np.where(nothing, 0.0, relative)
        bound = float(relative.max()) * (1.0 + gamma(8))
        image = off / math.sqrt(least)
        return RidgeSolution(x, bound, absolute, image, s[:, 0], scaled_bounds)

    def variance_slack(self, ridge: float) -> float:
        """Return t so that ``v' V v`` is off by at most ``t v' W v``; inf if none is certain.

        W is the inverse of A'A + r as it was accumulated and V = W A'A W. With e the norm of the
        errors of A'A in units of the columns and l its least eigenvalue there, 3 e / l, to first
        order in that.
        """
        squares = np.maximum(self._gram.matrix.diagonal(), 0.0) + ridge + self._gram.ridge
        if not (squares > 0.0).all():
            return math.inf
        s = np.sqrt(squares)[:, None]
        scaled = self._gram.matrix / s / s.T
        np.fill_diagonal(scaled, 1.0)
        factor = _cholesky(scaled)
        if factor is None or not (least := self._least(scaled, factor, s[:, 0])):
            return math.inf
        share = (self._gram.errors.norm(s[:, 0]) + gamma(4 * len(s) ** 2)) / least
        return 3.0 * share / (1.0 - share) ** 2 if share < 1.0 else math.inf

    def squared_error_interval(self, x: Array) -> tuple[Array, Array]:
        """Return bounds on the sum of squared training residuals of coefficients, per target."""
        C, moments = self._gram.matrix, self._moments
        s = np.sqrt(np.maximum(C.diagonal(), 0.0))[:, None]
        middle = np.vecdot(x.T, (C @ x).T) - 2.0 * np.vecdot(moments.cross.T, x.T) + moments.squares
        g = gamma(2 * len(C) + 8)
        rounding = (s.T @ np.abs(x))[0] ** 2 + 2.0 * np.vecdot(np.abs(moments.cross).T, np.abs(x).T)
        slack = g * (rounding + moments.squares) + moments.squares_error
        slack = slack + self._gram.errors.quadratic(x)
        slack = slack + 2.0 * np.vecdot(self._cross_errors.T, np.abs(x).T)
        slack = slack * (1.0 + g)
        return np.maximum(middle - slack, 0.0), np.maximum(middle + slack, 0.0)

    def _least(self, scaled: Array, factor: Array, s: Array) -> float:
        """Return a lower bound of the eigenvalues of S^-1 (A'A + r) S^-1; 0 if there is none."""
        d = len(scaled)
        v = np.where(np.arange(d) % 2, -1.0, 1.0)
        for _ in range(INVERSE_STEPS):
            v = _solved(factor, v / np.linalg.norm(v))
        # Forming the matrix rounds as well; its entries are at most one.
        off = 1.01 * gamma(d + 16) * d + self._gram.errors.norm(s)
        guess = 1.0 / float(np.linalg.norm(v))
        for part in PARTS:
            if guess * part <= off:
                break
            if _cholesky(scaled - guess * part * np.eye(d)) is not None:
                return guess * part - off
        return 0.0


def _cholesky(matrix: Array) -> Array | None:
    """Return the lower factor, or None if the matrix is not positive."""
    try:
        return np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return None


def _solved(factor: Array, right: Array) -> Array:
    return np.asarray(scipy.linalg.cho_solve((factor, True), right, check_finite=False))


class RidgeReader:
    """Reads coefficients from a regression sketch, for any number of ridges.

    Parameters
    ----------
    sketch : Regression
        Of rows and targets; not a linear one.
    units : array of shape (n_features,), default=None
        Columns are divided by them when the sketch, which keeps A'A itself, is read. All answers
        are about rows in these units, the coefficients as well.
    positive : bool, default=False
        Whether coefficients must not be negative.

    Examples
    --------
    >>> from sksketch.sketches import FrequentDirections, Regression
    >>> X = np.arange(12.0).reshape(6, 2)
    >>> sketch = Regression(FrequentDirections(2)).update(X, targets=X.sum(axis=1))
    >>> RidgeReader(sketch).solve(0.0).coefficients.ravel().round(6)
    array([1., 1.])
    """

    def __init__(
        self, sketch: Regression, units: Array | None = None, *, positive: bool = False
    ) -> None:
        self.sketch, self._units, self._positive = sketch, units, positive

    @functools.cached_property
    def summary(self) -> LowRankPlusRidge:
        """The operator that stands for A'A."""
        if self._units is None:
            return self.sketch.summary()
        return answer_in_units(self.sketch, self._units).summary

    @functools.cached_property
    def moments(self) -> Moments:
        """Means, cross moment and squares of rows and targets."""
        moments = self.sketch.moments()
        return moments if self._units is None else moments.in_units(self._units)

    @functools.cached_property
    def _exact(self) -> ExactRidge | None:
        if self._units is not None:
            return ExactRidge(gram_in_units(self.sketch, self._units), self.moments)
        gram = self.sketch._exact_gram()
        return None if gram is None else ExactRidge(gram, self.moments)

    def variance_slack(self, ridge: float) -> float:
        """Return what `ExactRidge.variance_slack` does; inf where A'A is not known."""
        return math.inf if self._exact is None else self._exact.variance_slack(ridge)

    def solve(self, ridge: float) -> RidgeSolution:
        """Return the coefficients at a ridge."""
        if self._positive:
            moments = self.moments
            return solve_nonnegative(self.summary, moments.cross, ridge, moments.cross_error)
        found = None if self._exact is None else self._exact.solve(ridge)
        if found is not None and math.isfinite(found.relative_bound):
            return found
        moments = self.moments
        return solve_summary(self.summary, moments.cross, ridge, moments.cross_error)

    def squared_error_interval(self, coefficients: Array) -> tuple[Array, Array]:
        """Return bounds on the sum of squared training residuals of coefficients, per target."""
        if self._exact is not None:
            low, high = self._exact.squared_error_interval(coefficients)
            if np.isfinite(high).all():
                return low, high
        return squared_error_interval(self.summary, self.moments, coefficients)
