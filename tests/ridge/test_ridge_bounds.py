"""Bounds of ridge regression against exact arithmetic, and the scores of penalties."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import RidgeCV

from sksketch import FrequentDirections, StreamingRidge, StreamingRidgeCV

pytestmark = pytest.mark.filterwarnings("ignore:the coefficients are certain only to")


def fractions(values):
    return np.vectorize(Fraction, otypes=[object])(values)


def solved(X, y, alpha, centered):
    """Return the exact coefficients and intercept of ridge regression, as fractions."""
    X, y = fractions(X), fractions(y)
    mean, target_mean = X.sum(axis=0) / len(X), y.sum() / len(X)
    if not centered:
        mean, target_mean = 0 * mean, 0 * target_mean
    A, b = X - mean, y - target_mean
    d = X.shape[1]
    M = np.column_stack([A.T @ A + Fraction(alpha) * np.eye(d, dtype=int), A.T @ b])
    for i in range(d):
        M[i] /= M[i, i]
        for j in range(d):
            if j != i:
                M[j] -= M[j, i] * M[i]
    return M[:, d], target_mean - mean @ M[:, d]


def length(values):
    return float(sum(v * v for v in values)) ** 0.5


@pytest.mark.parametrize("size", [1.0, 1e4, 1e6, 1e8])
def test_the_rounding_of_the_cross_moment_is_in_the_bound(size):
    # Targets that have nearly nothing to do with the rows.
    rng = np.random.default_rng(0)
    A = rng.standard_normal((500, 3))
    noise = rng.standard_normal(500)
    Q = np.linalg.qr(A)[0]
    noise -= Q @ (Q.T @ noise)
    y = A @ [1.0, 2.0, 3.0] + size * noise
    model = StreamingRidge(1.0, fit_intercept=False).fit(A, y)
    exact, _ = solved(A, y, 1.0, False)
    error = length(fractions(model.coef_) - exact)
    assert error <= model.coef_error_bound_absolute_
    assert error <= model.coef_error_bound_ * length(exact)
    assert model.coef_error_bound_ < 1e-12 * size + 1e-11


@pytest.mark.parametrize("seed", range(20))
def test_bounds_hold_to_the_last_bit(seed):
    rng = np.random.default_rng(seed)
    d, n = int(rng.integers(1, 4)), int(rng.integers(1, 12))
    A, y = rng.standard_normal((n, d)), rng.standard_normal(n)
    alpha = float(10 ** rng.uniform(-3, 3))
    model = StreamingRidge(alpha, fit_intercept=False).fit(A, y)
    exact, _ = solved(A, y, alpha, False)
    error = length(fractions(model.coef_) - exact)
    assert error <= model.coef_error_bound_absolute_
    assert 2.0**-53 <= model.coef_error_bound_ < 1e-11
    assert error <= model.coef_error_bound_ * length(exact)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(("dtype", "offset"), [("f4", 1e4), ("f8", 1e8), ("f8", 0.0)])
def test_predictions_far_from_zero_are_within_their_bounds(make, dtype, offset):
    rng = np.random.default_rng(1)
    G = rng.standard_normal((300, 10)) * np.linspace(2, 0.5, 10)
    rows = (G + offset).astype(dtype)
    y = G @ rng.standard_normal(10) + rng.standard_normal(300)
    model = StreamingRidge(300.0, sketch=FrequentDirections(3, solver="exact"))
    model.fit(make(rows), y)
    coef, intercept = solved(rows[:, :], y, 300.0, True)
    truth = fractions(rows) @ coef + intercept
    errors = np.abs(np.asarray(fractions(model.predict(make(rows))) - truth, dtype=float))
    bounds = model.prediction_error_bound(make(rows))
    assert (errors <= bounds).all()
    # Not so wide as to say nothing: targets are of size 5.
    near = np.median(bounds[:, None] if bounds.ndim == 1 else bounds)
    assert near < 50.0 if make is np.asarray else np.isfinite(near)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("alpha", [0.0, 1e-300, 1e-16, 1e-14, 1e-12])
def test_a_tiny_penalty_on_few_rows_is_that_of_none(fit_intercept, alpha):
    rng = np.random.default_rng(0)
    rows, y = rng.standard_normal((50, 100)), rng.standard_normal(50)
    model = StreamingRidge(alpha, fit_intercept=fit_intercept).fit(rows, y)
    assert model.score(rows, y) > 1 - 1e-9
    least = StreamingRidge(0.0, fit_intercept=fit_intercept).fit(rows, y)
    np.testing.assert_allclose(model.coef_, least.coef_, atol=1e-9)


def gcv(rows, y, alphas, fit_intercept=True):
    """Return the scores by the singular values, without any cancellation."""
    if fit_intercept:
        rows, y = rows - rows.mean(axis=0), y - y.mean()
    n = len(rows)
    U, s, _ = np.linalg.svd(rows, full_matrices=True)
    b = U.T @ y
    # The mean is fitted whole.
    rank = min(n - fit_intercept, rows.shape[1])
    scores = []
    for alpha in alphas:
        kept = np.ones(n)
        kept[:rank] = alpha / (s[:rank] ** 2 + alpha)
        if fit_intercept:
            ones = np.ones(n) / np.sqrt(n)
            outside = U[:, rank:] - np.outer(ones, ones @ U[:, rank:])
            left = kept[:rank].sum() + n - rank - 1
            errors = (kept[:rank] ** 2) @ b[:rank] ** 2 + ((outside.T @ y) ** 2).sum()
        else:
            left, errors = kept.sum(), (kept**2) @ b**2
        scores.append(n * errors / left**2)
    return np.array(scores)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(("n", "d"), [(300, 40), (100, 300), (60, 60)])
def test_gcv_for_any_shape(n, d, fit_intercept):
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((n, d))
    y = rows @ rng.standard_normal(d) * 0.1 + 2.0 * rng.standard_normal(n)
    alphas = np.logspace(-3, 4, 8)
    model = StreamingRidgeCV(alphas, fit_intercept=fit_intercept).fit(rows, y)
    truth = gcv(rows, y, alphas, fit_intercept)
    low, high = model.score_intervals_.T
    assert (low <= truth * (1 + 1e-9)).all()
    assert (truth <= high * (1 + 1e-9)).all()
    assert ((low <= model.scores_) & (model.scores_ <= high)).all()
    np.testing.assert_allclose(model.scores_[2:], truth[2:], rtol=1e-2)
    assert model.alpha_ == alphas[np.argmin(truth)]
    # Leaving out one row at a time chooses nearly alike.
    theirs = RidgeCV(alphas, fit_intercept=fit_intercept).fit(rows, y).alpha_
    assert 0.1 <= model.alpha_ / theirs <= 10.0


@pytest.mark.parametrize("correction", ["half", "none", "full", "energy"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_gcv_on_a_sketch_does_not_choose_what_it_can_not_know(correction, fit_intercept):
    rng = np.random.default_rng(0)
    n, d, ell = 600, 60, 10
    U = np.linalg.qr(rng.standard_normal((n, d)))[0]
    V = np.linalg.qr(rng.standard_normal((d, d)))[0]
    s = np.r_[np.full(ell, 30.0), np.full(3, 10.0), np.full(d - ell - 3, 0.5)]
    rows = (U * s) @ V.T
    # The target lies along a direction that is lost.
    y = rows @ V[:, ell] + 0.05 * rng.standard_normal(n)
    alphas = [1e-3, 1.0, 10.0, 100.0, 1000.0]
    sketch = FrequentDirections(ell, solver="exact", correction=correction)
    model = StreamingRidgeCV(alphas, sketch=sketch, fit_intercept=fit_intercept).fit(rows, y)
    truth = gcv(rows, y, alphas, fit_intercept)
    assert (model.score_intervals_[:, 0] <= truth).all()
    assert (truth <= model.score_intervals_[:, 1]).all()
    path = model.path(alphas)
    errors = ((rows @ path.coef.T + path.intercept - y[:, None]) ** 2).mean(axis=0)
    # Never optimistic, and so no coefficients are chosen that are far from the best.
    assert (errors <= model.scores_).all()
    assert errors[alphas.index(model.alpha_)] < 0.06


@pytest.mark.parametrize("scale", [0.3, 3.0])
def test_gcv_intervals_hold_the_exact_scores_of_weighted_rows(scale):
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((400, 120)) * 0.97 ** np.arange(120) * scale
    y = rows @ rng.standard_normal(120) / 5 + 2 * rng.standard_normal(400)
    alphas = [0.0, 1.0, 10.0, 100.0, 1000.0]
    copies = np.repeat(np.arange(400), 2)
    truth = gcv(rows[copies], y[copies], alphas)
    for sketch in ("fd", "rfd", "isvd", "2lfd", "exact"):
        model = StreamingRidgeCV(alphas, sketch=sketch, sketch_size=30)
        model.fit(rows, y, sample_weight=np.full(400, 2.0))
        assert (model.score_intervals_[:, 0] <= truth * (1 + 1e-9)).all()
        assert (truth <= model.score_intervals_[:, 1] * (1 + 1e-9)).all()


def test_ties_and_scores_without_end_go_to_the_larger_penalty():
    rows = np.eye(4)
    model = StreamingRidgeCV([0.1, 10.0, 1.0], fit_intercept=False).fit(rows, np.zeros(4))
    np.testing.assert_array_equal(model.scores_, 0.0)
    assert model.alpha_ == 10.0
    # As many columns as rows and no penalty: nothing is left to judge by.
    model = StreamingRidgeCV([0.0, 0.0]).fit(rows, np.arange(4.0))
    assert np.isinf(model.scores_).all()
    assert model.alpha_ == 0.0


@pytest.mark.parametrize("sketch", ["sign", "countsketch", "gaussian"])
def test_random_projections_are_scored_by_their_own_residual(sketch):
    rng = np.random.default_rng(5)
    rows = rng.standard_normal((2000, 50))
    y = rows[:, 0] + 5.0 * rng.standard_normal(2000)
    alphas = [1e-3, 1e2, 1e3, 1e4, 1e9]
    model = StreamingRidgeCV(alphas, sketch=sketch, sketch_size=30, fit_intercept=False)
    model.fit(rows, y)
    np.testing.assert_array_equal(model.score_intervals_, [[0.0, np.inf]] * 5)
    A, b, _ = model.sketch_.projected()
    expected = gcv(A.astype(float), b[:, 0].astype(float), alphas, False) * 30 / 2000
    np.testing.assert_allclose(model.scores_, expected, rtol=1e-4)
    assert np.isfinite(StreamingRidgeCV(alphas, sketch=sketch).fit(rows, y).scores_).all()


@pytest.mark.parametrize("refine", [1, 4])
def test_refinement_far_from_zero(refine):
    rng = np.random.default_rng(7)
    G = np.round(rng.standard_normal((400, 8)) * 2.0**20) / 2.0**20
    y = G @ np.arange(8.0)
    sketch = FrequentDirections(3, solver="exact")
    near = StreamingRidge(50.0, sketch=sketch, refine=refine).fit(G, y)
    far = StreamingRidge(50.0, sketch=sketch, refine=refine).fit(G + 2.0**30, y)
    np.testing.assert_allclose(far.coef_, near.coef_, rtol=1e-6)
    exact, _ = solved(G, y, 50.0, True)
    assert length(fractions(near.coef_) - exact) <= near.coef_error_bound_absolute_
