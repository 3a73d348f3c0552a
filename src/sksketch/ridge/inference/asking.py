"""Questions to a fitted ridge regression, answered from its sketch."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sksketch._typing import Array
from sksketch.models.inference import Inference
from sksketch.models.standardized import keeps_gram
from sksketch.ridge.inference.coefficients import certified
from sksketch.ridge.inference.estimates import Asked, classical, in_floats, record, robust
from sksketch.ridge.inference.from_sketch import sketched
from sksketch.ridge.inference.least_squares import Fit, Problem, solve
from sksketch.ridge.inference.robust import RobustPass
from sksketch.ridge.ridge_estimator import RidgeEstimator
from sksketch.ridge.solution import RidgeSolution


def infer(
    model: RidgeEstimator, alpha: float, asked: Asked, second: Callable[[], RobustPass]
) -> Inference:
    """Return the record; ``second`` gives the second pass, where one is needed."""
    units = _units(model)
    if (problem := _problem(model)) is None:
        if asked.covariance != "classical":
            empty_pass(model, alpha, asked.covariance, asked.weights)
        if model.sketch_.linear:
            raise ValueError(
                f"sketch={model.sketch!r} certifies nothing about coefficients; fit with "
                "sketch='exact', or 'rfd' and a penalty"
            )
        found = sketched(model._reader(), alpha, asked, units)
        return record(found, asked, f"Ridge regression from a sketch, alpha {alpha:g}")
    fit, is_robust = _fit(model, problem, alpha), asked.covariance != "classical"
    parts = problem, fit, asked
    found = robust(*parts, second()) if is_robust else classical(*parts)
    if problem.exact is None:
        found = in_floats(found, fit, model._reader(), alpha, units, is_robust=is_robust)
    title = f"Ridge regression, alpha {alpha:g}" if fit.penalized else "Least squares"
    return record(found, asked, title)


def empty_pass(model: RidgeEstimator, alpha: float, covariance: str, weights: str) -> RobustPass:
    """Return a second pass that has seen nothing yet."""
    problem = _problem(model)
    if problem is None:
        raise ValueError(
            f"{covariance!r} standard errors need the exact covariance, and this model has a "
            "sketch; fit with sketch='exact'"
        )
    fit = _fit(model, problem, alpha)
    return RobustPass(covariance, weights, problem.intercept, fit.center, fit.bread, fit.around)


def exact_solution(model: RidgeEstimator, alpha: float) -> tuple[RidgeSolution, Array] | None:
    """Return the solution of sums without rounding, and intercepts; None where there are none.

    Without a penalty floats cannot always tell a solution, and such sums can.
    """
    if model.sketch_.products is None:
        return None
    problem = _problem(model)
    if problem is None or _penalties(model, alpha).any():
        return None
    return certified(_fit(model, problem, alpha), problem, model._unit())


def _problem(model: RidgeEstimator) -> Problem | None:
    """Return the sums of products where they are exact; None for a sketch."""
    if not keeps_gram(model._sketch):
        return None
    problem: Problem | None = model._once("problem", lambda: Problem.of(model.sketch_))
    return problem


def _fit(model: RidgeEstimator, problem: Problem, alpha: float) -> Fit:
    """Return the solution at a penalty, which is found once."""
    fit: Fit = model._once(f"fit {alpha}", lambda: solve(problem, _penalties(model, alpha)))
    return fit


def _units(model: RidgeEstimator) -> Array:
    unit = model._unit()
    return np.ones(model.n_features_in_) if unit is None else unit


def _penalties(model: RidgeEstimator, alpha: float) -> Array:
    """Return the penalty of each of the user's columns."""
    gram = model.sketch_._exact_gram()
    alpha = alpha + (0.0 if gram is None else gram.ridge)
    return np.asarray(alpha * _units(model) ** 2)
