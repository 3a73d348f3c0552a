"""Findings of what is read from moments: two views, generalized models, and standard errors."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from sksketch.models.inference import Inference, names_of
from sksketch.moments import StreamingCCA, StreamingGLM, StreamingPLS
from sksketch.present.findings.plain import PlainFindings
from sksketch.ridge import StreamingRidge

# Columns up to which a report works standard errors out.
MOST_COLUMNS = 512


def two_views(model: StreamingCCA | StreamingPLS, _names: object) -> PlainFindings:
    """Return the correlations or singular values of two views."""
    correlated = isinstance(model, StreamingCCA)
    values = np.asarray(model.correlations_ if correlated else model.singular_values_)
    ends = model.correlation_intervals_ if correlated else model.singular_value_intervals_
    facts: dict[str, Any] = {
        "columns": int(model.n_features_in_),
        "columns of view 2": int(model.n_features_y_),
        "rows seen": int(model.n_samples_seen_),
        "components": len(values),
        "plan": model.plan_.removesuffix("."),
    }
    if correlated:
        facts |= {"ridge": float(model.ridge), "total correlation": float(values.sum())}
        title, quantity = "Canonical correlations", "correlation"
        sentence = f"The {len(values):,} largest canonical correlations of the two views."
    else:
        facts["mode"] = model.mode
        title, quantity = "Partial least squares", "singular value"
        sentence = f"{len(values):,} components of the covariance of the two views."
    found = (quantity, values)
    return PlainFindings(title, sentence, facts, found, intervals=np.asarray(ends))


def generalized(model: StreamingGLM, names: list[str] | None) -> PlainFindings:
    """Return the table of a generalized linear model."""
    found = named(model.inference(), names)
    facts: dict[str, Any] = {
        "columns": int(model.n_features_in_),
        "rows seen": int(model.n_samples_seen_),
        "family": model.family,
        "passes": model.n_iter_,
        "converged": "yes" if model.converged_ else "no",
        "deviance": float(found.residual_deviance),
        "null deviance": model.null_deviance_,
        "aic": float(found.aic),
    }
    sentence = (
        f"The model explains {found.r2:.2%} of the deviance of a constant."
        if model.converged_
        else f"{found.notes[-1][:1].upper()}{found.notes[-1][1:]}."
    )
    return PlainFindings("Generalized linear model", sentence, facts, inference=found)


def inference_of(model: object, names: list[str] | None) -> Inference | None:
    """Return standard errors of least squares; None for other models."""
    if not isinstance(model, StreamingRidge) or model.sketch_.linear or model.positive:
        return None
    if model.n_features_in_ > MOST_COLUMNS or model.sketch_.products is None or np.any(model.alpha):
        return None
    return named(model.inference(), names)


def named(found: Inference, names: list[str] | None) -> Inference:
    """Return the record with names of the columns, as a file or table has them."""
    if names is None:
        return found
    intercept = found.names[:1] == ("(intercept)",)
    n_features = len(found.names) - int(intercept)
    if len(names) != n_features:
        return found
    every = names_of(names, n_features, intercept)
    new = dict(zip(found.names, every, strict=True))
    return replace(found, names=every, dependent=tuple(new[name] for name in found.dependent))


def record_of(found: Inference) -> dict[str, Any]:
    """Return the record as plain values, for JSON."""
    targets = [
        found.facts(k) | {name: values.tolist() for name, values in found.columns(k).items()}
        for k in range(found.n_targets)
    ]
    how = {
        "names": list(found.names),
        "covariance": found.covariance,
        "confidence": found.confidence,
        "distribution": found.distribution,
        "dependent": list(found.dependent),
        "notes": list(found.notes),
    }
    return how | (targets[0] if found.n_targets == 1 else {"targets": targets})
