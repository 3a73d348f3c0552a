"""Coefficients that are not negative: against a dense solution, within their bounds, refused."""

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
from sklearn.linear_model import Ridge

import sksketch
from sksketch import StreamingRidge

RNG = np.random.default_rng(0)
X = RNG.standard_normal((400, 30)) @ np.diag(np.linspace(3.0, 0.1, 30)) + np.linspace(-2, 5, 30)
Y = X @ RNG.standard_normal((30, 2)) + 7.0 + RNG.standard_normal((400, 2))


def dense(alpha, target, scale=1.0, fit_intercept=True):
    """Return coefficients and intercept by non-negative least squares of the rows themselves."""
    mean, middle = (X.mean(axis=0), target.mean()) if fit_intercept else (0.0, 0.0)
    A = np.vstack([(X - mean) / scale, np.sqrt(alpha) * np.eye(X.shape[1])])
    b = np.append(target - middle, np.zeros(X.shape[1]))
    coef = scipy.optimize.nnls(A, b, maxiter=3000)[0] / scale
    return coef, middle - mean @ coef if fit_intercept else 0.0


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("standardize", [True, False])
def test_the_exact_covariance_gives_the_dense_solution(make, fit_intercept, standardize):
    options = {"fit_intercept": fit_intercept, "standardize": standardize, "positive": True}
    model = StreamingRidge([0.5, 50.0], **options)
    for part in np.array_split(np.arange(400), 7):
        model.partial_fit(make(X[part]), Y[part])
    scale = X.std(axis=0) if standardize else 1.0
    for j, alpha in enumerate([0.5, 50.0]):
        coef, intercept = dense(alpha, Y[:, j], scale, fit_intercept)
        assert (model.coef_[j] >= 0.0).all()
        assert (coef == 0.0).any()
        np.testing.assert_allclose(model.coef_[j], coef, atol=1e-8)
        np.testing.assert_allclose(model.intercept_[j], intercept, atol=1e-7)
    assert model.coef_error_bound_ < 1e-6


def test_it_is_ridge_where_no_coefficient_is_negative(tmp_path):
    target = X @ RNG.uniform(0.5, 1.0, 30)
    models = [StreamingRidge(1e-3, positive=positive).fit(X, target) for positive in (True, False)]
    np.testing.assert_allclose(*(model.coef_ for model in models), atol=1e-8)
    theirs = Ridge(2.5, positive=True, tol=1e-10).fit(X, Y[:, 0])
    ours = StreamingRidge(2.5, positive=True).fit(X, Y[:, 0])
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-3)
    np.testing.assert_array_equal(ours.path([2.5]).coef[0], ours.coef_)
    ours.save(tmp_path / "model.sks")
    np.testing.assert_array_equal(sksketch.load(tmp_path / "model.sks").coef_, ours.coef_)


@pytest.mark.parametrize("sketch", ["fd", "rfd", "cfd", "2lfd"])
@pytest.mark.parametrize("alpha", [1.0, 100.0, 1e4])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.filterwarnings("ignore:the coefficients are certain only to")
def test_what_a_sketch_says_is_within_its_bounds(sketch, alpha, fit_intercept):
    options = {"sketch": sketch, "sketch_size": 12, "fit_intercept": fit_intercept}
    model = StreamingRidge(alpha, positive=True, **options).fit(X, Y)
    predicted, bounds = model.predict(X), model.prediction_error_bound(X)
    for j in range(2):
        coef, intercept = dense(alpha, Y[:, j], 1.0, fit_intercept)
        gap = np.linalg.norm(model.coef_[j] - coef)
        assert gap <= model.coef_error_bound_absolute_[j] + 1e-9
        assert gap <= model.coef_error_bound_ * np.linalg.norm(coef) + 1e-9
        assert (np.abs(predicted[:, j] - X @ coef - intercept) <= bounds[:, j] + 1e-8).all()


def test_what_makes_no_sense_together_is_refused():
    with pytest.raises(ValueError, match="refine knows no constraint"):
        StreamingRidge(positive=True, refine=1).fit(X, Y)
    with pytest.raises(ValueError, match="needs a sketch that certifies an error"):
        _ = StreamingRidge(positive=True, sketch="countsketch").fit(X, Y).coef_
    model = StreamingRidge(0.0, positive=True).fit(X, Y)
    with pytest.raises(ValueError, match="coefficients of either sign"):
        model.inference()
    wide = sp.random_array((20, 5000), density=0.01, format="csr", rng=RNG)
    with pytest.raises(ValueError, match="at most 4096 columns"):
        _ = StreamingRidge(positive=True, sketch="rfd").fit(wide, np.ones(20)).coef_
