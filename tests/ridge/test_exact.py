"""Ridge regression on columns in different units, against rational arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from sksketch import ExactCovariance, FrequentDirections, StreamingRidge, StreamingRidgeCV

rational = np.vectorize(Fraction, otypes=[object])


def exact_ridge(X, y, weights, alpha, centered):
    """Return the coefficients without any rounding, by elimination."""
    X, y, w = (rational(np.asarray(part, dtype=np.float64)) for part in (X, y, weights))
    if centered:
        X, y = X - (w @ X) / w.sum(), y - (w @ y) / w.sum()
    d = X.shape[1]
    M = np.column_stack([(X.T * w) @ X + Fraction(alpha) * rational(np.eye(d)), (X.T * w) @ y])
    for i in range(d):
        pivot = i + int(np.argmax(np.abs(M[i:, i])))
        M[[i, pivot]] = M[[pivot, i]]
        M[i] = M[i] / M[i, i]
        for k in range(d):
            if k != i:
                M[k] = M[k] - M[k, i] * M[i]
    return M[:, d]


def length(vector):
    return float(vector @ vector) ** 0.5


def table(rng, n, d, far, dtype=np.float64):
    """Return rows whose columns have units from 1e-4 to 1e4 and zeros of their own."""
    rows = rng.standard_normal((n, d)) @ (np.eye(d) + 0.5 * rng.standard_normal((d, d)))
    rows = (rows + far * rng.standard_normal(d)) * 10.0 ** rng.uniform(-4, 4, d)
    return rows.astype(dtype), rows @ (rng.standard_normal(d) / rows.std(axis=0))


@given(
    seed=st.integers(0, 10**6),
    d=st.integers(1, 4),
    far=st.sampled_from([0.0, 3.0, 1e6]),
    alpha=st.sampled_from([0.0, 1e-6, 1.0, 1e3]),
    dtype=st.sampled_from([np.float32, np.float64]),
    centered=st.booleans(),
    weighted=st.booleans(),
    parts=st.sampled_from(["one", "merged", "mixed"]),
)
def test_bounds_hold_in_any_units(seed, d, far, alpha, dtype, centered, weighted, parts):
    rng = np.random.default_rng(seed)
    n = 12 + seed % 20
    X, y = table(rng, n, d, far, dtype)
    y = y + rng.standard_normal(n)
    weights = rng.choice([0.5, 1.0, 3.0], n) if weighted else np.ones(n)
    inner = ExactCovariance() if seed % 2 else FrequentDirections(5, solver="covariance")
    model = StreamingRidge(alpha, sketch=inner, fit_intercept=centered)
    given_weights = weights if weighted else None
    if parts == "one":
        model.fit(X, y, sample_weight=given_weights)
    else:
        other = StreamingRidge(alpha, sketch=inner, fit_intercept=centered)
        cut = n // 3
        for part, rows in ((slice(None, cut), other), (slice(cut, None), model)):
            block = sp.csr_array(X[part]) if parts == "mixed" and rows is other else X[part]
            rows.partial_fit(block, y[part], sample_weight=weights[part] if weighted else None)
        model.merge(other)
    exact = exact_ridge(X, y, weights, alpha, centered)
    off = length(rational(model.coef_) - exact)
    assert off <= model.coef_error_bound_absolute_
    if np.isfinite(model.coef_error_bound_):
        assert off <= model.coef_error_bound_ * length(exact)
    means = (rational(weights) @ rational(X.astype(float))) / rational(weights).sum()
    mean = (rational(weights) @ rational(y)) / rational(weights).sum()
    away = rational(X.astype(float)) - (means if centered else 0)
    predicted = rational(model.predict(X.astype(float))) - (away @ exact + centered * mean)
    assert (np.abs(predicted.astype(float)) <= model.prediction_error_bound(X)).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_units_cost_neither_digits_nor_the_bound(dtype):
    rng = np.random.default_rng(0)
    X, y = table(rng, 20_000, 10, 3.0, dtype)
    X *= np.geomspace(1e-3, 1e3, 10).astype(dtype)
    y = y + 0.1 * rng.standard_normal(len(y))
    model = StreamingRidge(1.0).fit(X, y)
    assert model.coef_error_bound_ < 1e-6
    # A table in the units of its columns, with the penalty in them.
    Z = X.astype(np.float64) - X.astype(np.float64).mean(axis=0)
    s = np.sqrt((Z**2).sum(axis=0) + 1.0)
    G = (Z / s).T @ (Z / s) + np.diag(1.0 / s**2)
    expected = np.linalg.solve(G, (Z / s).T @ (y - y.mean())) / s
    np.testing.assert_allclose(model.coef_, expected, rtol=1e-9)
    bounds = model.prediction_error_bound(X[:100].astype(np.float64))
    assert bounds.max() < 1e-6 * np.abs(y).max()


def test_a_chosen_penalty_does_not_depend_on_units():
    rng = np.random.default_rng(1)
    X, y = table(rng, 2000, 6, 0.0)
    y = y + 0.5 * rng.standard_normal(len(y))
    alphas = [1e-6, 1e-3, 1.0, 1e3]
    model = StreamingRidgeCV(alphas).fit(X, y)
    low, high = model.score_intervals_.T
    assert (high - low <= 1e-3 * high).all()


def test_columns_without_numbers_are_left_to_the_pseudo_inverse():
    rng = np.random.default_rng(2)
    X, y = table(rng, 50, 3, 0.0)
    X[:, 1] = 0.0
    model = StreamingRidge(0.0, fit_intercept=False).fit(X, y)
    assert model.coef_[1] == 0.0
    expected = np.linalg.lstsq(X / X.std(axis=0).clip(1e-9), y, rcond=None)[0]
    assert model.coef_[0] == pytest.approx(expected[0] / X[:, 0].std(), rel=1e-4)
