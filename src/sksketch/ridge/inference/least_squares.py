"""Least squares from sums of products, with what standard errors need.

All steps are in twice the precision of floats: the condition of the rows counts squared here.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sksketch._typing import Array
from sksketch.arrays.double_double import Doubled, sweep
from sksketch.arrays.rounding import gamma, unit_roundoff
from sksketch.sketches.wrappers.exact_products import ExactProducts
from sksketch.sketches.wrappers.regression import Regression

# A column whose part beyond the others is no longer than this times its own length is what
# rounding of the entries leaves of a linear combination of them.
DEPENDENT = 64.0 * unit_roundoff()
# Of the arithmetic here: a few roundings of 106 bits.
DOUBLED_ROUNDOFF = 2.0**-100


@dataclass(frozen=True, eq=False)
class Problem:
    """Sums of products of columns and targets, around the means or around zero.

    Parameters
    ----------
    products : Doubled of shape (n_columns, n_columns)
        Of all columns, the targets last.
    mean : Doubled of shape (n_columns,)
        Means, or zeros.
    weight : float
        Sum of the weights.
    n_rows : int
        Rows of positive weight.
    n_targets : int
        Columns that are targets.
    intercept : bool
        Whether products are around the means.
    least : array of shape (n_features,)
        Columns with no more than this beyond others depend on them.
    exact : ExactProducts or None
        The sums themselves, if nothing was rounded.
    """

    products: Doubled
    mean: Doubled
    weight: float
    n_rows: int
    n_targets: int
    intercept: bool
    least: Array
    exact: ExactProducts | None = None

    @classmethod
    def of(cls, sketch: Regression) -> Problem | None:
        """Return the problem of a sketch that keeps A'A; None for others."""
        moments = sketch.moments()
        n_targets = len(moments.squares)
        if (exact := sketch.products) is not None:
            found = exact.centered(sketch.centered)
            least = DEPENDENT**2 * found.raw_squares[:-n_targets]
            # Whole numbers add up without rounding; sums of others depend on their order.
            weight = moments.weight if moments.weight.is_integer() else found.weight
            parts = found.products, found.mean, weight, moments.n_rows
            return cls(*parts, n_targets, sketch.centered, least, exact)
        gram = sketch._exact_gram()
        if gram is None:
            return None
        C = gram.matrix
        products = np.block([[C, moments.cross], [moments.cross.T, np.diag(moments.squares)]])
        means = np.concatenate([moments.mean, moments.target_mean])
        raw = np.maximum(C.diagonal(), 0.0) + moments.weight * moments.mean**2
        least = DEPENDENT**2 * raw + 4.0 * gram.errors.diagonal()
        return cls(
            Doubled.of(products),
            Doubled.of(means if sketch.centered else 0.0 * means),
            moments.weight,
            moments.n_rows,
            n_targets,
            sketch.centered,
            least,
        )


@dataclass(frozen=True, eq=False)
class Fit:
    """The solution of a problem.

    Parameters
    ----------
    coef : array of shape (n_coef, n_targets)
        The intercept first, if there is one.
    coef_errors : array of shape (n_coef, n_targets)
        Bounds on what the arithmetic did to them.
    spread : array of shape (n_coef, n_coef)
        Their covariance, divided by the variance of the noise.
    center : array of shape (n_features,)
        A point near the mean.
    around : array of shape (n_coef, n_targets)
        Coefficients of ones and columns around the center that predict the same.
    bread : array of shape (n_coef, n_coef)
        Inverse of the products of ones and columns around the center; zeros for dependent ones.
    to_user : array of shape (n_coef, n_coef)
        Takes coefficients of columns around the center to those of ``coef``.
    squared_errors, total_squares : arrays of shape (n_targets,)
        Of the residuals, and of the targets around their means or zero.
    n_free : float
        Trace of the hat matrix, without the intercept.
    rank : int
        Coefficients that the rows determine.
    dependent : array of int
        Columns that depend on others.
    penalized : bool
        Whether there is a ridge.
    """

    coef: Array
    coef_errors: Array
    spread: Array
    center: Array
    around: Array
    bread: Array
    to_user: Array
    squared_errors: Array
    total_squares: Array
    n_free: float
    rank: int
    dependent: Array
    penalized: bool


def solve(problem: Problem, ridge: Array) -> Fit:
    """Solve for coefficients, with a ridge for each column.

    Parameters
    ----------
    problem : Problem
        Sums of products.
    ridge : array of shape (n_features,)
        Penalties of the squared coefficients; all zero for least squares.

    Returns
    -------
    Fit

    Notes
    -----
    Columns that depend on others get what a pseudo-inverse of ones and columns gives them: of all
    solutions the shortest, the intercept included.
    """
    d = len(ridge)
    matrix = problem.products.copy()
    diagonal = np.arange(d), np.arange(d)
    matrix.put(diagonal, matrix[diagonal] + Doubled.of(ridge))
    swept = sweep(matrix, d, np.where(ridge > 0.0, -1.0, problem.least))
    chosen, dependent = swept.pivots, swept.dependent
    n_others = len(dependent)
    b = Doubled.of(np.zeros((d, problem.n_targets)))
    b.put(chosen, swept.solution[:, n_others:])
    mean_x, mean_y = problem.mean[:d], problem.mean[d:]
    intercept = mean_y - (mean_x[:, None] * b).sum(0)
    first = int(problem.intercept)
    spread = _spread(problem, swept.inverse, chosen, ridge)
    k = first + d
    center, bread = mean_x.rounded(), np.zeros((k, k))
    bread[np.ix_(first + chosen, first + chosen)] = swept.inverse.rounded()
    to_user = np.eye(k)
    if first:
        bread[0, 0] = 1.0 / problem.weight if problem.weight > 0.0 else 0.0
        to_user[0, 1:] = -center
    coef = np.vstack([intercept.rounded()[None]] * first + [b.rounded()])
    around = np.vstack([mean_y.rounded()[None]] * first + [b.rounded()])
    errors = _errors(problem, swept.inverse, chosen, b, ridge) + gamma(2) * np.abs(b.high)
    if first:
        moved = np.abs(mean_x.high) @ errors * (1.0 + gamma(d + 2))
        errors = np.vstack([moved + gamma(2) * np.abs(coef[0]), errors])
    if n_others:
        shortest, size = _shortest(problem, swept.solution[:, :n_others], chosen, dependent)
        # Entry by entry: columns that depend on none are not charged for those that do.
        mixed = np.abs(np.eye(k) - shortest)
        errors = np.abs(shortest) @ errors * (1.0 + gamma(k + 4))
        errors = errors + gamma(16 * k) * (1.0 + size) * (mixed @ np.abs(coef))
        coef, spread, to_user = shortest @ coef, shortest @ spread @ shortest, shortest @ to_user
        errors = errors + gamma(4) * np.abs(coef)
    free = len(chosen) - float((np.diagonal(bread)[first:] * ridge).sum())
    return Fit(
        coef,
        errors,
        spread,
        center,
        around,
        bread,
        to_user,
        _squared_errors(problem, b, intercept, swept.rest, ridge),
        np.maximum(np.diagonal(problem.products.high)[d:], 0.0),
        free,
        first + len(chosen),
        dependent,
        bool(ridge.any()),
    )


def _spread(problem: Problem, inverse: Doubled, chosen: Array, ridge: Array) -> Array:
    """Return the covariance of the coefficients, without the variance of the noise."""
    first = int(problem.intercept)
    k = first + len(ridge)
    spread = np.zeros((k, k))
    if ridge.any():
        damped = inverse * Doubled.of(np.broadcast_to(ridge[chosen], inverse.shape))
        inverse = inverse - damped.times(inverse)
    places = first + chosen
    spread[np.ix_(places, places)] = inverse.rounded()
    if first and problem.weight > 0.0:
        mean = problem.mean[chosen]
        along = inverse.times(mean[:, None])[:, 0]
        spread[0, places] = spread[places, 0] = -along.rounded()
        corner = Doubled.of(np.ones(())) / Doubled.of(np.array(problem.weight))
        spread[0, 0] = float((corner + (mean * along).sum(0)).rounded())
    return spread


def _errors(problem: Problem, inverse: Doubled, chosen: Array, b: Doubled, ridge: Array) -> Array:
    """Bound what the arithmetic did to the coefficients of columns, before they are rounded.

    With S the lengths of the columns, M the products with the ridge, G what was found as its
    inverse and q what the solution leaves of the right-hand side, where |I - S^-1 M G S| <= e < 1,
    M^-1 q is G times a vector whose length is at most that of q over 1 - e. So for column i::

        |S (b - M^-1 c)|_i  <=  |S^-1 q| |row i of S G S| / (1 - e)

    Known sums leave q without rounding. Without them there is no bound here.
    """
    d, exact = b.shape[0], problem.exact
    off = np.full((d, problem.n_targets), np.inf)
    off[np.setdiff1d(np.arange(d), chosen)] = 0.0
    if exact is None or not len(chosen):
        return off if len(chosen) else 0.0 * b.high
    M = problem.products[np.ix_(chosen, chosen)]
    diagonal = np.arange(len(chosen)), np.arange(len(chosen))
    M.put(diagonal, M[diagonal] + Doubled.of(ridge[chosen]))
    # Powers of two round nothing.
    s = np.exp2(np.round(0.5 * np.log2(np.diagonal(M.high))))
    M, G = M.scaled(1.0 / s).scaled(1.0 / s[:, None]), inverse.scaled(s).scaled(s[:, None])
    size = float(np.linalg.norm(G.high)) * (1.0 + gamma(len(s)))
    rest = (Doubled.of(np.eye(len(s))) - M.times(G)).rounded()
    rounded = DOUBLED_ROUNDOFF * (len(s) + 4) * float(np.linalg.norm(M.high)) * size
    e = (float(np.linalg.norm(rest)) + rounded) * (1.0 + gamma(len(s) ** 2 + 4))
    models = []
    for target in range(problem.n_targets):
        ends = [Fraction(0)] * problem.n_targets
        ends[target] = Fraction(-1)
        pairs = zip(b.high[:, target].tolist(), b.low[:, target].tolist(), strict=True)
        models.append([*(Fraction(x) + Fraction(y) for x, y in pairs), *ends])
    q = exact.residuals(models, problem.intercept)[chosen]
    # With a ridge both parts are rounded before they cancel.
    q = np.abs(q) if not ridge.any() else np.abs(q + ridge[chosen, None] * b.high[chosen])
    q = q + (gamma(4) * ridge[:, None] * np.abs(b.high))[chosen] + np.finfo(float).tiny
    lengths = np.linalg.norm(q / s[:, None], axis=0) * (1.0 + gamma(d + 16))
    if e < 0.5:
        of_rows = np.linalg.norm(G.high, axis=1) * (1.0 + gamma(len(s) + 8))
        off[chosen] = of_rows[:, None] * lengths / (1.0 - e) / s[:, None]
    return off


def _shortest(
    problem: Problem, solution: Doubled, chosen: Array, dependent: Array
) -> tuple[Array, float]:
    """Return the projection that takes a solution to the shortest one, and a size.

    That is the largest number with which a column depends on another.
    """
    first = int(problem.intercept)
    d = len(problem.least)
    null = np.zeros((first + d, len(dependent)))
    null[first + chosen] = -solution.rounded()
    null[first + dependent, np.arange(len(dependent))] = 1.0
    if first:
        moved = (problem.mean[chosen][:, None] * solution).sum(0) - problem.mean[dependent]
        null[0] = moved.rounded()
        # What rounding of the entries leaves.
        size = np.abs(problem.mean.high[:d]) @ np.abs(null[1:])
        null[0, np.abs(null[0]) <= DEPENDENT * size] = 0.0
    basis = np.linalg.qr(null)[0]
    return np.eye(first + d) - basis @ basis.T, float(np.abs(null).max())


def _squared_errors(
    problem: Problem, b: Doubled, intercept: Doubled, rest: Doubled, ridge: Array
) -> Array:
    """Return the sums of squared errors, of the sums themselves where those are known."""
    if problem.exact is None:
        penalties = (Doubled.of(ridge)[:, None] * (b * b)).sum(0)
        found = Doubled(np.diagonal(rest.high), np.diagonal(rest.low)) - penalties
        return np.maximum(found.rounded(), 0.0)
    best = np.full(problem.n_targets, np.inf)
    # Rounded coefficients are nearly as good; where they are exact, they are better.
    for low in (1.0, 0.0) if not ridge.any() else (1.0,):
        models = []
        for target in range(problem.n_targets):
            ends = [0.0] * problem.n_targets
            ends[target] = -1.0
            high = [intercept.high[target], *b.high[:, target], *ends]
            rest_ = [intercept.low[target], *b.low[:, target], *np.zeros(problem.n_targets)]
            pairs = zip(high, rest_, strict=True)
            models.append([Fraction(float(x)) + Fraction(float(low * y)) for x, y in pairs])
        errors = [float(value) for value in problem.exact.squared_errors(models)]
        best = np.minimum(best, errors)
    return best
