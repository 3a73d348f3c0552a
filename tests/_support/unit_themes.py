"""Themes of the torture that are about columns in units of their own."""

from __future__ import annotations

import numpy as np
from sklearn.base import clone

import sksketch
from _support import checks, configurations, families, oracle
from _support.checks import check
from _support.extended import LD
from _support.oracle import Rows
from _support.sketch_themes import Result, precision, shape, size_of
from sksketch.models import standardized as units_of_rows


def _rows(rng):
    """Return rows of moderate size whose columns have units of their own."""
    n, d = shape(rng, large=0.01)
    n = max(n, 3)
    family, rows = families.draw(rng, n, d, str(rng.choice(["offset", "", "", "", ""])))
    scale = 2.0 ** np.round(np.log2(size_of(rows)))
    spread = float(rng.choice([0.0, 3.0, 8.0]))
    rows = rows / scale * 10.0 ** rng.uniform(-spread, spread, d)
    return family, families.fitted(rows, precision(rng))


def _learned(rng, model, rows, y=None, weights=None):
    """Learn in one of the ways there are: at once, in blocks, from files, in merged parts."""
    way = str(rng.choice(["fit", "blocks", "parts"]))
    targets = () if y is None else (y,)
    if way == "fit":
        return model.fit(rows, *targets, sample_weight=weights), way
    models = [model, clone(model)] if way == "parts" else [model]
    if way == "parts":
        for number, one in enumerate(models):
            one.take_pilot(rows[: max(len(rows) // 2, 2)])
            models[number] = one.for_shard(number, 2)
    style = "dense" if rng.random() < 0.8 else "mixed"
    for part in np.split(np.arange(len(rows)), np.unique(rng.integers(1, len(rows), 3))):
        w = None if weights is None else weights[part]
        X = configurations.block(rng, rows[part], style)
        one = rng.integers(len(models))
        models[one].partial_fit(X, *(t[part] for t in targets), sample_weight=w)
        if rng.random() < 0.2:
            models[one] = type(model).from_state(models[one].state())
    fitted = [one for one in models if hasattr(one, "sketch_")]
    return (fitted[0].merge(fitted[1]) if len(fitted) == 2 else fitted[0]), way


def _few_first_rows(rng, theme):
    """Run a theme with units that are fixed after few rows, half of the time."""
    before = units_of_rows.FIRST_ROWS
    units_of_rows.FIRST_ROWS = int(rng.choice([2, 5, before, before]))
    try:
        return theme(rng)
    finally:
        units_of_rows.FIRST_ROWS = before


def standardized(rng):
    """PCA and SVD of standardized rows: certificates about rows in exactly the stated units."""
    return _few_first_rows(rng, _decomposition)


def standardized_ridge(rng):
    """Coefficients of standardized columns against those of the exact covariance."""
    return _few_first_rows(rng, _ridge)


def _decomposition(rng):
    family, rows = _rows(rng)
    centered = bool(rng.random() < 0.6)
    kind = sksketch.StreamingPCA if centered else sksketch.StreamingSVD
    made = configurations.draw(rng, rows.shape[1], 1.0, centered=centered, ages=False)
    inner = made.make()
    inner = inner.sketch if centered else inner
    if rng.random() < 0.4:
        inner, made = sksketch.ExactCovariance(), made._replace(name="exact", initial_ridge=0.0)
    model = kind(sketch=inner, standardize=True)
    weights = rng.choice([0.5, 1.0, 3.0], len(rows)) if rng.random() < 0.2 else None
    model, way = _learned(rng, model, rows, weights=weights)
    seen = Rows(rows.shape[1]).update(rows, weights)
    found = oracle.truth(seen, centered=centered, units=model.scale_)
    summary, certificate = model._read()
    result = checks.of_answer(summary, certificate, found, seen.n_rows, made, ", in units")
    name = f"{family} {rows.shape} {rows.dtype}: {kind.__name__} {made.name} {way}"
    return Result(name + " weighted" * (weights is not None), result)


def _ridge(rng):
    family, rows = _rows(rng)
    n, d = rows.shape
    wide = rows.astype(np.float64)
    deviation = wide.std(axis=0)
    Z = (wide - wide[0]) / np.where(deviation > 0, deviation, 1.0)
    y = Z @ rng.standard_normal(d) + rng.choice([0.1, 1.0, 1e3]) * rng.standard_normal(n)
    y += rng.choice([0.0, 1.0, 1e4])
    intercept = bool(rng.random() < 0.6)
    made = configurations.draw(rng, d, 1.0, centered=False, ages=False)
    sketch = made.make()
    if made.initial_ridge or rng.random() < 0.4:
        sketch, made = sksketch.ExactCovariance(), made._replace(name="exact", initial_ridge=0.0)
    alpha = n * float(10.0 ** rng.uniform(-6, 1))
    options = {"sketch": sketch, "fit_intercept": intercept, "standardize": True}
    weights = rng.choice([0.5, 1.0, 3.0], n) if rng.random() < 0.2 else None
    model, way = _learned(rng, sksketch.StreamingRidge(alpha, **options), rows, y, weights)
    units = model.scale_
    seen = Rows(d).update(rows, weights)
    found = oracle.truth(seen, centered=intercept, targets=y, units=units)
    exact = oracle.ridge(found, alpha)
    failure = 1.0 - model.certificate_.confidence
    off = np.asarray(model.coef_).astype(LD) * units.astype(LD) - exact.coefficients
    error, length = np.sqrt(off @ off), np.sqrt(exact.coefficients @ exact.coefficients)
    slack = exact.error
    relative, absolute = model.coef_error_bound_, model.coef_error_bound_absolute_
    result = []
    if np.isfinite(relative) and length > 0:
        bound, kind = LD(relative) * length, "ridge coefficients, relative, in units"
        result.append(check(kind, error, bound, slack * (1 + LD(relative)), failure))
    if np.isfinite(absolute):
        kind = "ridge coefficients, absolute, in units"
        result.append(check(kind, error, absolute, slack, failure))
        some = rows[rng.integers(0, n, min(n, 10))]
        Z = some.astype(LD) / units.astype(LD) - (found.mean if intercept else 0)
        bound = np.asarray(model.prediction_error_bound(some))
        slack = slack * np.sqrt((Z**2).sum(axis=1))
        result.append(check("ridge prediction, in units", np.abs(Z @ off), bound, slack, failure))
    name = f"{family} {n} x {d} {rows.dtype}: StreamingRidge({alpha:g}, {intercept=}) {way}"
    return Result(f"{name} {made.name}", result)
