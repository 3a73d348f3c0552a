"""Units do not matter: ridge with ``standardize`` beside scikit-learn's scaler."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sksketch import StreamingRidge, StreamingRidgeCV

SKETCHED = {"sketch": "rfd", "sketch_size": 4}


@pytest.fixture
def rng():
    return np.random.default_rng(5)


@pytest.fixture
def data(rng):
    """Rows whose columns have units that differ by 10^9, and targets of all of them."""
    units = 10.0 ** np.linspace(-4, 5, 10)
    Z = rng.standard_normal((2500, 4)) @ rng.standard_normal((4, 10))
    Z += 0.5 * rng.standard_normal((2500, 10)) + 3.0
    y = Z @ rng.standard_normal(10) + rng.standard_normal(2500) + 5.0
    X = Z * units
    X[:, 4] = 3.0
    return X, y


def pipeline(X, y, alpha, intercept, weights=None):
    ridge = Ridge(alpha, fit_intercept=intercept, solver="cholesky")
    model = make_pipeline(StandardScaler(with_mean=intercept), ridge)
    given = {"standardscaler__sample_weight": weights, "ridge__sample_weight": weights}
    return model.fit(X, y, **(given if weights is not None else {}))


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("style", [np.asarray, sp.csr_array])
def test_exact_ridge_is_that_of_a_scaler_and_ridge(data, rng, intercept, weighted, style):
    X, y = data
    weights = rng.integers(1, 4, len(X)).astype(float) if weighted else None
    pipe = pipeline(X, y, 50.0, intercept, weights)
    cuts = np.sort(rng.choice(np.arange(1, len(X)), 8, replace=False))
    models = []
    for part in np.split(np.arange(len(X)), cuts):
        model = StreamingRidge(50.0, standardize=True, fit_intercept=intercept)
        w = None if weights is None else weights[part]
        models.append(model.partial_fit(style(X[part]), y[part], sample_weight=w))
    while len(models) > 1:
        models[int(rng.integers(len(models) - 1))].merge(models.pop())
    (model,) = models
    wanted = pipe[-1].coef_ / pipe[0].scale_
    np.testing.assert_allclose(model.scale_, pipe[0].scale_, rtol=1e-8)
    np.testing.assert_allclose(model.coef_ * model.scale_, pipe[-1].coef_, rtol=0, atol=1e-8)
    np.testing.assert_allclose(model.coef_, wanted, rtol=1e-6, atol=1e-10)
    np.testing.assert_allclose(model.predict(X), pipe.predict(X), rtol=1e-8)
    assert model.coef_error_bound_ < 1e-6
    path = model.path([50.0, 5000.0])
    np.testing.assert_array_equal(path.coef[0], model.coef_)
    other = pipeline(X, y, 5000.0, intercept, weights)
    np.testing.assert_allclose(path.coef[1] * model.scale_, other[-1].coef_, atol=1e-8)


def test_a_sketch_learns_in_units_and_refines_to_the_exact_answer(data):
    X, y = data
    pipe = pipeline(X, y, 50.0, intercept=True)
    near = StreamingRidge(50.0, standardize=True, **SKETCHED).fit(X, y)
    assert near.score(X, y) > 0.9
    for options in (SKETCHED, {"sketch": "exact"}):
        model = StreamingRidge(50.0, standardize=True, refine=40, **options).fit(X, y)
        np.testing.assert_allclose(model.predict(X), pipe.predict(X), rtol=1e-6)
        again = StreamingRidge.from_state(model.state())
        np.testing.assert_array_equal(again.coef_, model.coef_)


def test_the_first_rows_give_units_with_targets_and_weights(data, rng):
    X, y = data
    weights = rng.integers(1, 4, len(X)).astype(float)

    def learned(n_blocks):
        model = StreamingRidge(50.0, standardize=True, **SKETCHED)
        for part in np.array_split(np.arange(len(X)), n_blocks):
            model.partial_fit(X[part], y[part], sample_weight=weights[part])
            if rng.random() < 0.1:
                model = StreamingRidge.from_state(model.state())
                assert np.isfinite(model.coef_).all()
        return model

    model, other = learned(3), learned(150)
    np.testing.assert_array_equal(model.coef_, other.coef_)
    assert "first 1,000 rows" in model.plan_


@pytest.mark.parametrize("selection", ["gcv", "holdout"])
@pytest.mark.parametrize("options", [{"sketch": "exact"}, SKETCHED])
def test_the_penalty_is_chosen_in_units(data, selection, options):
    X, y = data
    alphas = [1.0, 1e2, 1e6]
    model = StreamingRidgeCV(alphas, standardize=True, selection=selection, **options).fit(X, y)
    units = X / np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
    plain = StreamingRidgeCV(alphas, selection=selection, **options).fit(units, y)
    assert model.alpha_ == plain.alpha_
    # Rows kept apart have no part in the units.
    np.testing.assert_allclose(
        model.scores_, plain.scores_, rtol=1e-6 if selection == "gcv" else 0.02
    )


def test_predictions_are_within_their_bounds(data):
    X, y = data
    for options in ({}, SKETCHED):
        model = StreamingRidge(500.0, standardize=True, **options).fit(X, y)
        Z = (X - X.mean(axis=0)) / model.scale_
        w = np.linalg.solve(Z.T @ Z + 500.0 * np.eye(10), Z.T @ (y - y.mean()))
        exact = Z @ w + y.mean()
        off = np.abs(model.predict(X) - exact)
        assert (off <= model.prediction_error_bound(X) + 1e-9).all()


def test_columns_of_other_units_have_a_useful_bound_in_single_precision(data):
    X, y = data
    rows = (X * 10.0 ** np.linspace(0, 6, 10)).astype(np.float32)
    model = StreamingRidge(10.0, standardize=True).fit(rows, y)
    assert model.coef_error_bound_ < 1e-5


def test_the_warning_names_what_helps(rng):
    X = rng.standard_normal((300, 50)) * np.geomspace(1, 1e4, 50)
    X, y = X.astype(np.float32), rng.standard_normal(300)
    model = StreamingRidge(1e-3, sketch="fd", sketch_size=3).fit(X, y)
    with pytest.warns(UserWarning, match="standardize the columns.*sketch_size.*float64"):
        _ = model.coef_
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _ = StreamingRidge(1e-3, standardize=True).fit(X, y).coef_
