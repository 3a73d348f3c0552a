"""The record of a generalized linear model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from sksketch._typing import Array
from sksketch.models.inference import Inference, f_tail, judged, names_of
from sksketch.moments.families import FAMILIES, log_likelihood
from sksketch.moments.scoring import Model, PassSums, Step


def record(
    sums: PassSums,
    model: Model,
    step: Step,
    null_deviance: float,
    asked: tuple[float, Sequence[object] | None, tuple[str, ...]],
) -> Inference:
    """Return coefficients with their standard errors.

    Parameters
    ----------
    sums : PassSums
        Of the last pass.
    model : Model
        What it was at.
    step : Step
        Its end.
    null_deviance : float
        Deviance of a constant.
    asked : (float, sequence of str or None, tuple of str)
        Confidence, names of the columns, and notes.
    """
    confidence, columns, notes = asked
    totals, family = sums.totals(), FAMILIES[model.family]
    deviance, pearson = totals["deviance"], totals["pearson"]
    if model.coef is None:
        # Of normal targets the first pass is the last, and started from the targets themselves.
        deviance = pearson = _squared_errors(sums, step)
    first, n = int(sums.regression.centered), totals["weight"]
    df = n - step.n_free - first
    scale = 1.0
    if family.has_dispersion:
        scale = pearson / df if df > 0.0 else math.inf
    coef = np.concatenate([[step.intercept] * first, step.coef])
    with np.errstate(invalid="ignore"):
        covariance = np.nan_to_num(scale * step.spread, nan=0.0, posinf=np.inf)
    errors = np.sqrt(np.maximum(covariance.diagonal(), 0.0))
    none = np.zeros_like(coef)
    table = judged(coef, errors, (none, errors), df, (confidence, "normal"))
    parts = (deviance if model.family == "gaussian" else totals["first"]), totals["second"]
    likelihood = log_likelihood(model.family, parts, n, scale) if math.isfinite(scale) else -np.inf
    explained = 1.0 - deviance / null_deviance if null_deviance > 0.0 else 0.0
    f = _wald(step.coef, covariance[first:, first:])
    names = names_of(columns, len(step.coef), bool(first))
    n_parameters = step.n_free + first
    facts: dict[str, Any] = {
        "r2": explained,
        "adjusted_r2": 1.0 - (n - first) / df * (1.0 - explained) if df > 0.0 else explained,
        "f_statistic": f,
        "f_p_value": float(f_tail(np.array(f), step.rank - first, df)),
        "log_likelihood": likelihood,
        "aic": -2.0 * likelihood + 2.0 * n_parameters,
        "bic": -2.0 * likelihood + math.log(n) * n_parameters,
    }
    if step.rank < len(coef):
        notes = (f"rank {step.rank} of {len(coef)}: some columns depend on others", *notes)
    return Inference(
        names=names,
        coef=coef,
        standard_error=errors,
        **table,
        coef_error_bound=none,
        standard_error_bound=errors,
        coef_covariance=covariance,
        **facts,
        residual_deviance=deviance,
        scale=scale,
        df_model=step.n_free,
        df_resid=df,
        rank=step.rank,
        dependent=(),
        n_rows=n,
        covariance="classical",
        weights="frequency",
        confidence=confidence,
        distribution="normal",
        title=f"Generalized linear model, {model.family} with link {model.link}",
        notes=notes,
    )


def _squared_errors(sums: PassSums, step: Step) -> float:
    moments, gram = sums.regression.moments(), sums.regression._exact_gram()
    assert gram is not None
    x = step.coef
    explained = 2.0 * float(moments.cross[:, 0] @ x) - float(x @ gram.matrix @ x)
    return max(float(moments.squares[0]) - explained, 0.0)


def _wald(slopes: Array, covariance: Array) -> float:
    """Return the test of all slopes over their number."""
    if not len(slopes) or not np.isfinite(covariance).all():
        return 0.0
    units = np.sqrt(np.maximum(covariance.diagonal(), 0.0))
    units = np.where(units > 0.0, units, 1.0)
    values, vectors = np.linalg.eigh(covariance / units / units[:, None])
    kept = values > max(float(values[-1]), 0.0) * 1e-14 * len(values)
    if not kept.any():
        return 0.0
    along = vectors[:, kept].T @ (slopes / units)
    return float((along**2 / values[kept]).mean())
