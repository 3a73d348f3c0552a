"""From a regression sketch to a record of coefficients with their standard errors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from sksketch._typing import Array
from sksketch.arrays.rounding import gamma
from sksketch.models.inference import Inference, f_tail, judged, names_of
from sksketch.ridge.exact import RidgeReader
from sksketch.ridge.inference.least_squares import Fit, Problem
from sksketch.ridge.inference.robust import RobustPass
from sksketch.ridge.solution import RidgeSolution


class Asked(NamedTuple):
    """A request for inference.

    ``covariance`` and ``weights`` are words, ``names`` those of the columns, and ``one_target``
    says that targets came as a list of numbers.
    """

    covariance: str
    confidence: float
    weights: str
    names: Sequence[object] | None
    one_target: bool


@dataclass(frozen=True, eq=False)
class Estimates:
    """Coefficients and variances, of the exact sums or of a sketch.

    Parameters
    ----------
    coef, coef_errors : arrays of shape (n_coef, n_targets)
        Coefficients and bounds on their errors.
    errors, most : arrays of shape (n_coef, n_targets)
        Standard errors, and the most that the exact ones can be.
    covariances : array of shape (n_targets, n_coef, n_coef)
        Covariances of the coefficients; without entries where there are too many columns.
    squared_errors, total_squares : arrays of shape (n_targets,)
        Of the residuals, and of the targets.
    n_free : float
        Trace of the hat matrix, without the intercept.
    rank : int
        Coefficients that the rows determine.
    dependent : array of int
        Columns that depend on others.
    n_rows, df_resid : float
        Rows, and degrees of freedom of the residuals.
    intercept : bool
        Whether the first coefficient is the intercept.
    notes : tuple of str
        What else is to be known.
    log_weights : float
        Sum of the logarithms of analytic weights.
    least_df : float or None
        Fewest degrees of freedom that a sketch allows.
    """

    coef: Array
    coef_errors: Array
    errors: Array
    most: Array
    covariances: Array
    squared_errors: Array
    total_squares: Array
    n_free: float
    rank: int
    dependent: Array
    n_rows: float
    df_resid: float
    intercept: bool
    notes: tuple[str, ...] = ()
    log_weights: float = 0.0
    least_df: float | None = None


def n_counted(problem: Problem, weights: str) -> float:
    """Return the rows that count: copies of frequency weights, or rows as they are."""
    return problem.weight if weights == "frequency" else float(problem.n_rows)


def classical(problem: Problem, fit: Fit, asked: Asked) -> Estimates:
    """Return estimates whose noise has one variance for all rows."""
    n = n_counted(problem, asked.weights)
    df = n - fit.n_free - int(problem.intercept)
    scale = fit.squared_errors / df if df > 0.0 else np.full(problem.n_targets, math.inf)
    with np.errstate(invalid="ignore"):
        covariances = np.nan_to_num(scale[:, None, None] * fit.spread, nan=0.0, posinf=np.inf)
    return _estimates(problem, fit, covariances, (n, df), asked)


def robust(problem: Problem, fit: Fit, asked: Asked, second: RobustPass) -> Estimates:
    """Return estimates whose covariance is a sandwich.

    Parameters
    ----------
    problem : Problem
        Sums of products.
    fit : Fit
        Its solution.
    asked : Asked
        What is asked for.
    second : RobustPass
        What has seen all rows a second time.
    """
    if (second.covariance, second.weights) != (asked.covariance, asked.weights):
        raise ValueError(
            f"the second pass is for {second.covariance!r} with {second.weights} weights, asked "
            f"for are {asked.covariance!r} and {asked.weights} ones; build it for these"
        )
    if not np.array_equal(second.around, fit.around):
        raise ValueError("the second pass is for other coefficients; build it by robust_pass again")
    meats, n_groups = second.meats()
    second.require_rows(problem.n_rows, problem.weight, float(np.sqrt(fit.total_squares.max())))
    n = n_counted(problem, asked.weights)
    df = n - fit.n_free - int(problem.intercept)
    # As in Stata and statsmodels: for the degrees of freedom, and for few groups.
    factor = 1.0
    if asked.covariance == "HC1":
        factor = n / df if df > 0.0 else math.inf
    elif asked.covariance == "cluster":
        # All coefficients count here, also those that depend on others.
        left = df if fit.penalized else n - len(fit.coef)
        factor = (n - 1.0) / left if left > 0.0 else math.inf
        factor *= n_groups / (n_groups - 1.0) if n_groups > 1 else math.inf
    outer = fit.to_user @ fit.bread
    with np.errstate(invalid="ignore"):
        covariances = np.nan_to_num(factor * (outer @ meats @ outer.T), nan=0.0, posinf=np.inf)
    notes = (f"{n_groups:,} groups",) if asked.covariance == "cluster" else ()
    found = _estimates(problem, fit, covariances, (n, df), asked)
    return replace(found, notes=(*found.notes, *notes))


def _estimates(
    problem: Problem,
    fit: Fit,
    covariances: Array,
    counts: tuple[float, float],
    asked: Asked,
) -> Estimates:
    log_weights = 0.0
    notes: tuple[str, ...] = ()
    if asked.weights == "analytic" and problem.exact is not None:
        log_weights = problem.exact.log_weights
    elif asked.weights == "analytic" and problem.weight != problem.n_rows:
        notes = ("the likelihood lacks half the sum of the logarithms of the weights",)
    errors = np.sqrt(np.maximum(np.diagonal(covariances, axis1=1, axis2=2), 0.0)).T
    return Estimates(
        fit.coef,
        fit.coef_errors,
        errors,
        errors * (1.0 + 1e-12),
        covariances,
        fit.squared_errors,
        fit.total_squares,
        fit.n_free,
        fit.rank,
        fit.dependent,
        *counts,
        problem.intercept,
        notes,
        log_weights,
    )


def in_floats(
    found: Estimates,
    fit: Fit,
    reader: RidgeReader,
    alpha: float,
    units: Array,
    *,
    is_robust: bool,
) -> Estimates:
    """Return estimates with the bounds that sums in floats have.

    Parameters
    ----------
    found : Estimates
        Without them.
    fit : Fit
        The solution.
    reader : RidgeReader
        Of the sums.
    alpha : float
        Penalty.
    units : array of shape (n_features,)
        Units of the columns that the reader has.
    is_robust : bool
        Whether the covariance is of a second pass.
    """
    first = int(found.intercept)
    solution = reader.solve(alpha)
    off = coefficient_errors(reader, solution)
    off[first:] = off[first:] / units[:, None]
    # The two ways to solve round differently.
    x = fit.coef[first:] * units[:, None]
    off = off + np.abs(fit.coef - _with_intercept(reader, solution.coefficients, units))
    off = np.nan_to_num(off, nan=np.inf, posinf=np.inf)
    if is_robust:
        # What sums of a second pass are off by is not counted.
        return replace(found, coef_errors=off)
    high = (np.sqrt(reader.squared_error_interval(x)[1]) + solution.image_bounds) ** 2
    slack = reader.variance_slack(alpha)
    inner = np.diagonal(fit.bread)[first:]
    if first:
        inner = np.concatenate([[fit.center @ fit.bread[1:, 1:] @ fit.center], inner])
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = np.diagonal(fit.spread) + slack * inner
        most = np.sqrt(spread[:, None] * high / found.df_resid)
    most = np.fmax(np.nan_to_num(most, nan=np.inf, posinf=np.inf), found.most)
    return replace(found, coef_errors=off, most=most)


def _with_intercept(reader: RidgeReader, x: Array, units: Array) -> Array:
    moments = reader.moments
    first = [(moments.target_mean - moments.mean @ x)[None]] * int(reader.sketch.centered)
    return np.vstack([*first, x / units[:, None]])


def coefficient_errors(reader: RidgeReader, solution: RidgeSolution) -> Array:
    """Return bounds on the errors of the intercept, if there is one, and of all coefficients."""
    moments, x = reader.moments, solution.coefficients
    scales = np.broadcast_to(solution.scales, len(x))
    bounds = solution.absolute_bounds if solution.scaled_bounds is None else solution.scaled_bounds
    off = bounds[None] / scales[:, None] * (1.0 + gamma(4))
    if not reader.sketch.centered:
        return np.asarray(off)
    with np.errstate(invalid="ignore"):
        moved = float(np.linalg.norm(moments.mean / scales)) * bounds
    lengths = np.linalg.norm(x, axis=0)
    size = float(np.linalg.norm(moments.mean)) * lengths + np.abs(moments.target_mean)
    moved = moved + moments.mean_error * lengths + moments.target_mean_error
    return np.vstack([(moved + gamma(len(x) + 8) * size)[None], off])


def record(found: Estimates, asked: Asked, title: str) -> Inference:
    """Return the record of estimates."""
    first = int(found.intercept)
    n_coef, n_targets = found.coef.shape
    names = names_of(asked.names, n_coef - first, found.intercept)
    distribution = "t" if asked.covariance == "classical" else "normal"
    bounds = found.coef_errors, found.most
    how = asked.confidence, distribution
    least = found.df_resid if found.least_df is None else found.least_df
    table = judged(found.coef, found.errors, bounds, least, how)
    dependent = tuple(names[first + j] for j in found.dependent)
    n, df, rss, tss = found.n_rows, found.df_resid, found.squared_errors, found.total_squares
    with np.errstate(divide="ignore", invalid="ignore"):
        r2 = np.where(tss > 0.0, 1.0 - rss / np.where(tss > 0.0, tss, 1.0), 0.0)
        adjusted = 1.0 - (n - first) / df * (1.0 - r2) if df > 0.0 else r2
        likelihood = -0.5 * n * (np.log(2.0 * np.pi * rss / n) + 1.0) + 0.5 * found.log_weights
        scale = rss / df if df > 0.0 else np.full(n_targets, math.inf)
    f, df_model = _f_statistics(found, asked, scale)
    n_parameters = found.n_free + first
    columns: dict[str, Any] = {
        "coef": found.coef,
        "standard_error": found.errors,
        "coef_error_bound": found.coef_errors,
        "standard_error_bound": found.most,
    } | table
    shaped = {name: np.moveaxis(values, 1, 0) for name, values in columns.items()}
    facts: dict[str, Any] = {
        "coef_covariance": found.covariances,
        "r2": r2,
        "adjusted_r2": adjusted,
        "f_statistic": f,
        "f_p_value": f_tail(f, df_model, df),
        "log_likelihood": likelihood,
        "aic": -2.0 * likelihood + 2.0 * n_parameters,
        "bic": -2.0 * likelihood + math.log(n) * n_parameters,
        "residual_deviance": rss,
        "scale": scale,
    }
    if asked.one_target:
        shaped = {name: values[0] for name, values in shaped.items()}
        facts = {
            name: values[0] if np.ndim(values[0]) else float(values[0])
            for name, values in facts.items()
        }
    return Inference(
        names=names,
        **shaped,
        **facts,
        df_model=found.n_free,
        df_resid=df,
        rank=found.rank,
        dependent=dependent,
        n_rows=n,
        covariance=asked.covariance,
        weights=asked.weights,
        confidence=asked.confidence,
        distribution=distribution,
        title=title,
        notes=(*_notes(dependent, found), *found.notes),
    )


def _notes(dependent: tuple[str, ...], found: Estimates) -> list[str]:
    notes = []
    if dependent:
        notes.append(
            f"rank {found.rank} of {len(found.coef)}: {', '.join(dependent)} "
            f"depend{'s' if len(dependent) == 1 else ''} on other columns; the coefficients are "
            "the shortest ones"
        )
    if found.df_resid <= 0.0:
        notes.append("no degrees of freedom are left: standard errors are infinite")
    return notes


def _f_statistics(found: Estimates, asked: Asked, scale: Array) -> tuple[Array, float]:
    """Return the test of all slopes, and its degrees of freedom."""
    first = int(found.intercept)
    n_slopes = found.rank - first
    if not n_slopes or found.df_resid <= 0.0:
        return np.zeros(len(scale)), 0.0
    rss, tss = found.squared_errors, found.total_squares
    if asked.covariance == "classical" or not found.covariances.size:
        with np.errstate(divide="ignore", invalid="ignore"):
            f = (np.maximum(tss - rss, 0.0) / found.n_free) / scale
        return np.nan_to_num(f, nan=0.0, posinf=np.inf), found.n_free
    statistics = []
    for target, covariance in enumerate(found.covariances):
        slopes, V = found.coef[first:, target], covariance[first:, first:]
        if not np.isfinite(V).all():
            statistics.append(0.0)
            continue
        values, vectors = np.linalg.eigh(V)
        kept = values > values[-1] * 1e-14 * len(V)
        along = vectors[:, kept].T @ slopes
        statistics.append(float((along**2 / values[kept]).sum()) / max(int(kept.sum()), 1))
    return np.array(statistics), float(n_slopes)
