"""Themes of the torture that are about decompositions and ridge regression."""

from __future__ import annotations

import numpy as np
from sklearn.base import clone

import sksketch
from _support import checks, configurations, extended, families, oracle
from _support.checks import check
from _support.extended import LD
from _support.oracle import Rows
from _support.sketch_themes import Result, precision, shape, size_of

# An answer that is no bound has to be right to this part of itself: more than single precision,
# and far less than double, so that it tells a lost digit from a wrong formula.
ACCURACY = 1e-6
NAMED = ("fd", "rfd", "cfd", "pfd", "isvd", "exact", "auto")


def decomposition(rng):
    """PCA and SVD: what they say beside the certificate has to agree with it."""
    n, d = shape(rng, large=0.01)
    n = max(n, 3)
    family, rows = families.draw(rng, n, d, str(rng.choice(["offset", "seconds", "", "", ""])))
    rows = families.fitted(rows, precision(rng))
    centered = bool(rng.random() < 0.6)
    kind = sksketch.StreamingPCA if centered else sksketch.StreamingSVD
    made = configurations.draw(rng, d, size_of(rows), centered=centered)
    options = {
        "n_components": [None, 1, min(2, d), float(rng.uniform(0.05, 0.95))][rng.integers(4)]
    }
    flat = bool(rng.random() < 0.2)
    if flat:
        # Much is lost, and an estimate of what is explained is more than what is certain.
        family, rows = "flat", _flat(rng, 2 * n, d)
        options["n_components"] = float(rng.uniform(0.05, 0.6))
        rule = str(rng.choice(["uniform", "half"]))
        correction = str(rng.choice(["half", "full", "trace"]))
        inner = sksketch.FrequentDirections(
            int(rng.integers(2, 12)), solver="exact", rule=rule, correction=correction
        )
        options["sketch"] = inner
        made = made._replace(initial_ridge=0.0, name=f"{correction=!r} {rule=!r}")
    elif rng.random() < 0.4:
        size = int(rng.integers(2, 5))
        options |= {"sketch": str(rng.choice(NAMED)), "sketch_size": size}
        if rng.random() < 0.3:
            options["tol"] = float(10.0 ** rng.uniform(-3, -0.5))
        made = made._replace(initial_ridge=0.0, name=str(options))
    else:
        inner = made.make()
        options["sketch"] = inner.sketch if centered else inner
    model, seen = kind(**options), Rows(d)
    weighted = bool(rng.random() < 0.2)
    style = "dense" if rng.random() < 0.8 else "mixed"
    for piece in configurations.pieces(rng, rows):
        weights = rng.choice([0.0, 0.5, 1.0, 3.0], len(piece)) if weighted else None
        model.partial_fit(configurations.block(rng, piece, style), sample_weight=weights)
        seen.update(piece, weights, model.sketch_.decay)
        if rng.random() < 0.1:
            model = type(model).from_state(model.state())
    found = oracle.truth(seen, centered=centered)
    summary, certificate = model.sketch_.summary(), model.certificate_
    result = checks.of_answer(summary, certificate, found, seen.n_rows, made)
    result += _spectrum(model, certificate, found, centered)
    result += _reconstruction(rng, model, rows, centered)
    name = f"{family} {len(rows)} x {d} {rows.dtype}: {kind.__name__} {made.name}"
    name += f" n_components={options['n_components']}" + " weighted" * weighted
    return Result(name, result)


def _flat(rng, n, d):
    """Return rows of which no direction stands out."""
    return rng.standard_normal((n, d)) * rng.uniform(0.9, 1.0) ** np.arange(d)


def _spectrum(model, certificate, found, centered):
    """Check explained variances, their sum and `target_met_`."""
    failure = 1.0 - certificate.confidence
    k = model.n_components_
    variances = np.asarray(model.explained_variance_, LD)[: len(certificate.eigenvalues)]
    degrees = max(LD(model.sketch_.total_weight) - centered, LD(1))
    least, most = certificate.eigenvalues[: len(variances)].T.astype(LD) / degrees
    # One division and one product apart.
    rounding = 4 * LD(extended.DOUBLE) * variances
    result = []
    if len(variances):
        result += [
            check("explained variance, in its interval", variances, most, rounding),
            check("explained variance, in its interval", least, variances, rounding),
        ]
    if not found.trace > 1e-280:
        return result
    total = LD(np.sum(model.explained_variance_ratio_, dtype=LD))
    if k <= len(certificate.captured_energy):
        low, high = certificate.captured_energy[k - 1].astype(LD)
        rounding = 4 * (k + 1) * LD(extended.DOUBLE)
        result += [
            check("sum of ratios, in its interval", total, high, rounding),
            check("sum of ratios, in its interval", low, total, rounding),
        ]
    if model.target_met_ and isinstance(model.n_components, float):
        share = extended.captured(found.gram, model.components_)[-1] / found.trace
        slack = (k + len(found.gram)) * found.error / found.trace
        result.append(check("target met, share", model.n_components, share, slack, failure))
    if model.target_met_ and model.tol is not None:
        summary = model.sketch_.summary()
        K = extended.operator(summary.components, summary.eigenvalues, summary.ridge)
        error, slack = extended.spectral_norm(found.gram - K)
        low, high = error / found.trace, LD(model.tol)
        result.append(check("target met, error", low, high, (slack + found.error) / found.trace))
    return result


def _reconstruction(rng, model, rows, centered):
    """Check the distance of rows from the components, however far from the origin they are."""
    some = rows[rng.integers(0, len(rows), min(len(rows), 10))]
    answer = model.reconstruction_error(some)
    Z = some.astype(LD) - (model.mean_.astype(LD) if centered else 0)
    Q = extended.orthonormal(model.components_)
    left = Z - (Z @ Q.T) @ Q
    squares, exact = (Z**2).sum(axis=1), (left**2).sum(axis=1)
    # The difference of a row's square and that of its scores has the roundings of the square.
    # Components of float32 rows are unit vectors to its last place.
    eps = 4 * rows.shape[1] * np.finfo(rows.dtype).eps
    allowed = ACCURACY * exact + max(eps, 1e-12) * squares + 1e-280
    return [check("distance from components", np.abs(answer - exact), allowed)]


def _regression(rng, *, large):
    """Return rows, targets, weights and a penalty's unit."""
    n, d = shape(rng, large=large)
    n = max(n, 3)
    family, rows = families.draw(rng, n, d, str(rng.choice(["offset", "", "", "", ""])))
    # Products of rows and targets have to be in range, too.
    scale = 2.0 ** np.round(np.log2(size_of(rows)))
    rows = families.fitted(rows / scale * 10.0 ** rng.integers(-3, 4), precision(rng))
    w = rng.standard_normal(d)
    Z = rows.astype(np.float64) - rows[0]
    y = Z @ w + rng.choice([0.0, 0.1, 1.0, 1e4]) * rng.standard_normal(n) * np.abs(Z).max()
    y += rng.choice([0.0, 1.0, 1e6]) * np.abs(Z).max()
    weights = rng.choice([0.5, 1.0, 3.0], n) if rng.random() < 0.2 else None
    unit = float((Z**2).sum() / d)
    return family, rows, y, weights, unit if 1e-200 < unit < 1e200 else 1.0


def ridge(rng):
    """Coefficients and predictions against those of the exact covariance."""
    family, rows, y, weights, unit = _regression(rng, large=0.02)
    n, d = rows.shape
    intercept = bool(rng.random() < 0.6)
    made = configurations.draw(rng, d, size_of(rows), centered=False, ages=False)
    # The penalty is the ridge that is meant.
    sketch = made.make()
    if made.initial_ridge:
        sketch, made = sksketch.ExactCovariance(), made._replace(name="exact", initial_ridge=0.0)
    alpha = unit * float(10.0 ** rng.uniform(-8, 2))
    refine = int(rng.random() < 0.1)
    model = sksketch.StreamingRidge(alpha, sketch=sketch, fit_intercept=intercept, refine=refine)
    if refine or rng.random() < 0.3:
        model.fit(rows, y, sample_weight=weights)
    else:
        style = "dense" if rng.random() < 0.8 else "mixed"
        models = [model, clone(model)]
        for part in np.split(np.arange(n), np.unique(rng.integers(1, n, 3))):
            w = None if weights is None else weights[part]
            X = configurations.block(rng, rows[part], style)
            models[rng.integers(2)].partial_fit(X, y[part], sample_weight=w)
        fitted = [one for one in models if hasattr(one, "sketch_")]
        model = fitted[0].merge(fitted[1]) if len(fitted) == 2 else fitted[0]
    found = oracle.truth(Rows(d).update(rows, weights), centered=intercept, targets=y)
    exact = oracle.ridge(found, alpha)
    failure = 1.0 - model.sketch_.summary().confidence
    off = np.asarray(model.coef_).astype(LD) - exact.coefficients
    error, length = np.sqrt(off @ off), np.sqrt(exact.coefficients @ exact.coefficients)
    relative, absolute = model.coef_error_bound_, model.coef_error_bound_absolute_
    result = []
    if np.isfinite(relative) and length > 0:
        kind = "ridge coefficients, relative"
        result.append(
            check(kind, error, LD(relative) * length, exact.error * (1 + LD(relative)), failure)
        )
    if np.isfinite(absolute):
        result.append(check("ridge coefficients, absolute", error, absolute, exact.error, failure))
        some = rows[rng.integers(0, n, min(n, 10))]
        Z = some.astype(LD) - (found.mean if intercept else 0)
        # "What the sketch can have changed": the roundings of the products with a row, and of the
        # intercept, are those of any linear model and not part of the statement.
        bound = np.asarray(model.prediction_error_bound(some))
        slack = exact.error * np.sqrt((Z**2).sum(axis=1))
        result.append(check("ridge prediction", np.abs(Z @ off), bound, slack, failure))
    name = f"{family} {n} x {d} {rows.dtype}: StreamingRidge({alpha:g}, {intercept=}, {refine=})"
    return Result(f"{name} {made.name}", result)


def gcv(rng):
    """Scores of generalized cross-validation, and what is chosen by them."""
    family, rows, y, weights, unit = _regression(rng, large=0.0)
    n, d = rows.shape
    intercept = bool(rng.random() < 0.5)
    made = configurations.draw(rng, d, size_of(rows), centered=False, ages=False)
    sketch = sksketch.ExactCovariance() if made.initial_ridge else made.make()
    # The last one is so large that a sane choice is always on the list.
    alphas = unit * np.append(10.0 ** np.sort(rng.uniform(-7, 1, 4)), 1e3 * d)
    model = sksketch.StreamingRidgeCV(alphas, sketch=sketch, fit_intercept=intercept)
    model.fit(rows, y, sample_weight=weights)
    found = oracle.truth(Rows(d).update(rows, weights), centered=intercept, targets=y)
    failure = 1.0 - model.sketch_.summary().confidence
    exact, slacks, errors = [], [], []
    path = model.path(alphas)
    coefficients = path.coef.astype(LD)
    lengths, offs, off_slacks = [], [], []
    for alpha, w in zip(alphas, coefficients, strict=True):
        at = oracle.ridge(found, alpha)
        lengths.append(np.linalg.norm(at.coefficients.astype(np.float64)))
        offs.append(np.sqrt(((w - at.coefficients) ** 2).sum()))
        off_slacks.append(at.error)
        left = found.weight - at.free - intercept
        score = found.weight / left**2 * at.squares if left > 1 else LD(np.nan)
        exact.append(score)
        slacks.append(found.weight / left**2 * at.squares_error + 4 * score * at.free_error / left)
        errors.append(found.squares - 2 * found.cross @ w + w @ found.gram @ w)
    exact, slacks = np.array(exact), np.array(slacks)
    known = np.isfinite(exact) & np.isfinite(slacks)
    low, high = model.score_intervals_.T.astype(LD)
    result = []
    if known.any():
        result += [
            check("gcv score, upper end", exact[known], high[known], slacks[known], failure),
            check("gcv score, lower end", low[known], exact[known], slacks[known], failure),
        ]
    certified = np.isfinite(path.error_bounds) & (np.array(lengths) > 0)
    if certified.any():
        bounds = (path.error_bounds.astype(LD) * np.array(lengths))[certified]
        slack = (np.array(off_slacks) * (1 + path.error_bounds))[certified]
        kind = "ridge coefficients, path"
        result.append(check(kind, np.array(offs)[certified], bounds, slack, failure))
    # No theorem, but what a choice is for: not ten times worse than both the best on the list
    # and a model that predicts the mean.
    chosen = errors[int(np.flatnonzero(alphas == model.alpha_)[0])]
    sane = 10 * max(min(errors), found.squares)
    if n >= 3 * d + 3:
        slack = found.error * max(w @ w for w in coefficients)
        result.append(check("gcv choice", chosen, sane, slack))
    return Result(f"{family} {n} x {d} {rows.dtype}: StreamingRidgeCV, {made.name}", result)
