"""Themes of the torture that are about two views and about standard errors."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

import sksketch
from _support import configurations, families, oracle
from _support.checks import check
from _support.extended import LD
from _support.oracle import Rows
from _support.sketch_themes import Result, precision, shape, size_of
from sksketch.moments.two_views import views_of

EPS = float(np.finfo(np.float64).eps)


def _views(rng):
    """Return rows of two views of moderate size, each of a family and a size of its own."""
    n, d = shape(rng, large=0.01)
    n, d = max(n, 3), max(d, 2)
    family, rows = families.draw(rng, n, d)
    rows = rows / 2.0 ** np.round(np.log2(size_of(rows)))
    p = int(rng.integers(1, d))
    rows[:, p:] *= 10.0 ** rng.uniform(-3, 3)
    if rng.random() < 0.3:
        # A part that both share.
        rows[:, p:] += rows[:, :1]
    return family, families.fitted(rows, precision(rng)), p


def _learned(rng, model, rows, p, weights):
    parts = np.split(np.arange(len(rows)), np.unique(rng.integers(1, len(rows), 3)))
    if rng.random() < 0.3:
        return model.fit(rows[:, :p], rows[:, p:], sample_weight=weights), "fit"
    for part in parts:
        w = None if weights is None else weights[part]
        X = configurations.block(rng, rows[part], "dense" if rng.random() < 0.8 else "mixed")
        model.partial_fit(X[:, :p], X[:, p:], sample_weight=w)
        if rng.random() < 0.2:
            model = type(model).from_state(model.state())
    return model, "blocks"


def two_views(rng):
    """Correlations and singular values of two views, against dense decompositions."""
    family, rows, p = _views(rng)
    n, d = rows.shape
    made = configurations.draw(rng, d, 1.0, centered=False, ages=False)
    sketch = made.make()
    if made.initial_ridge or rng.random() < 0.3:
        sketch, made = sksketch.ExactCovariance(), made._replace(name="exact", initial_ridge=0.0)
    weights = rng.choice([0.5, 1.0, 3.0], n) if rng.random() < 0.2 else None
    found = oracle.truth(Rows(d).update(rows, weights), centered=True)
    C = found.gram
    k = int(rng.integers(1, min(p, d - p) + 1))
    result = []
    pls = sksketch.StreamingPLS(k, scale=False, sketch=sketch)
    pls, way = _learned(rng, pls, rows, p, weights)
    failure = 1.0 - pls.certificate_.confidence
    degrees = views_of(pls).degrees
    cross = (C[:p, p:] / LD(degrees)).astype(np.float64)
    true = np.linalg.svd(cross, compute_uv=False)[:k]
    # The oracle's own decomposition is one of floats.
    slack = 64 * d * EPS * np.linalg.norm(cross)
    low, high = pls.singular_value_intervals_.T
    result.append(check("singular value of two views, at least", low, true, slack, failure))
    result.append(check("singular value of two views, at most", true, high, slack, failure))
    total = float(np.trace(C))
    ridge = max(total, 1e-100) * float(10.0 ** rng.uniform(-6, 1))
    cca, way = _learned(rng, sksketch.StreamingCCA(k, ridge=ridge, sketch=sketch), rows, p, weights)
    A, B = (
        np.linalg.cholesky(part.astype(np.float64) + ridge * np.eye(len(part)))
        for part in (C[:p, :p], C[p:, p:])
    )
    inner = np.linalg.solve(A, C[:p, p:].astype(np.float64))
    true = np.linalg.svd(np.linalg.solve(B, inner.T), compute_uv=False)[:k]
    slack = 64 * d * EPS * (1.0 + total / ridge)
    low, high = cca.correlation_intervals_.T
    result.append(check("canonical correlation, at least", low, true, slack, failure))
    result.append(check("canonical correlation, at most", true, high, slack, failure))
    name = f"{family} {n} x ({p} + {d - p}) {rows.dtype}: two views, {made.name} {way}"
    return Result(name + " weighted" * (weights is not None), result)


def _rational(rows, y, weights, intercept):
    """Return the coefficients of least squares without any rounding, by elimination."""
    w = [Fraction(1)] * len(y) if weights is None else [Fraction(x) for x in weights.tolist()]
    X = [[Fraction(1)] * intercept + [Fraction(x) for x in row] for row in rows.tolist()]
    b = [Fraction(x) for x in y.tolist()]
    k = len(X[0])
    M = [
        [sum(v * r[i] * r[j] for v, r in zip(w, X, strict=True)) for j in range(k)]
        + [sum(v * r[i] * t for v, r, t in zip(w, X, b, strict=True))]
        for i in range(k)
    ]
    for i in range(k):
        pivot = max(range(i, k), key=lambda row: abs(M[row][i]))
        M[i], M[pivot] = M[pivot], M[i]
        M[i] = [value / M[i][i] for value in M[i]]
        for row in range(k):
            if row != i:
                factor = M[row][i]
                M[row] = [a - factor * c for a, c in zip(M[row], M[i], strict=True)]
    return [row[-1] for row in M]


def inference(rng):
    """Least squares against rational numbers, standard errors of a sketch against exact ones."""
    n, d = shape(rng, large=0.0)
    n, d = min(max(n, 4), 60), min(d, 6)
    family, rows = families.draw(rng, n, d)
    rows = families.fitted(rows / 2.0 ** np.round(np.log2(size_of(rows))), precision(rng))
    wide = rows.astype(np.float64)
    y = wide @ rng.standard_normal(d) + rng.choice([0.1, 1.0]) * rng.standard_normal(n)
    intercept = bool(rng.random() < 0.6)
    weights = rng.choice([0.5, 1.0, 3.0], n) if rng.random() < 0.3 else None
    exact = sksketch.StreamingRidge(0.0, sketch="exact", fit_intercept=intercept)
    exact.fit(rows, y, sample_weight=weights)
    result = []
    found = exact.inference()
    if not found.dependent:
        true = _rational(wide, y, weights, intercept)
        off = [abs(Fraction(x) - t) for x, t in zip(found.coef.tolist(), true, strict=True)]
        off = np.array([float(value) for value in off])
        result.append(check("least squares, each coefficient", off, found.coef_error_bound))
    made = configurations.draw(rng, d, 1.0, centered=False, ages=False)
    alpha = float(10.0 ** rng.uniform(-6, 1)) * max(float((wide**2).sum()), 1e-100)
    options = {"fit_intercept": intercept}
    if not made.initial_ridge:
        model = sksketch.StreamingRidge(alpha, sketch=made.make(), **options)
        model.fit(rows, y, sample_weight=weights)
        exact = sksketch.StreamingRidge(alpha, sketch="exact", **options)
        true = exact.fit(rows, y, sample_weight=weights).inference()
        found = model.inference()
        failure = 1.0 - model.certificate_.confidence
    # Without a degree of freedom left, both are infinite.
    if not made.initial_ridge and np.isfinite(true.standard_error).all():
        slack = 1e-9 * np.abs(true.standard_error).max()
        kinds = "standard error of a sketch", "interval of a sketch"
        errors = true.standard_error
        result.append(check(kinds[0], errors, found.standard_error_bound, slack, failure))
        slack += 1e-9 * np.abs(true.coef).max() + true.coef_error_bound.max()
        for side, sign in enumerate((-1, 1)):
            width = sign * (found.interval[:, side] - found.coef)
            reach = sign * (true.interval[:, side] - found.coef)
            result += [check(kinds[1], reach, width, slack, failure)]
    name = f"{family} {n} x {d} {rows.dtype}: inference, {intercept=} {made.name}"
    return Result(name + " weighted" * (weights is not None), result)
