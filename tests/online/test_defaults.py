"""The online learners at their defaults: as good as what users have, whatever the units."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import datasets
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

import sksketch
from sksketch import OnlineNewtonClassifier, OnlineNewtonRegressor, StreamingRidge


def table(seed, n=3000, d=12):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) @ rng.standard_normal((d, d))
    z = (X - X.mean(axis=0)) / X.std(axis=0) @ rng.standard_normal(d)
    return X, z + 0.3 * rng.standard_normal(n), rng


def raw(X, rng):
    scales = 10.0 ** rng.uniform(-6, 6, X.shape[1])
    return (X + 100.0 * rng.standard_normal(X.shape[1])) * scales


@pytest.mark.parametrize("name", ["iris", "wine", "breast_cancer", "digits"])
def test_five_folds_are_those_of_logistic_regression(name):
    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    peer = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    best = cross_val_score(peer, X, y, cv=5).mean()
    assert cross_val_score(OnlineNewtonClassifier(), X, y, cv=5).mean() > best - 0.015
    standardized = make_pipeline(StandardScaler(), OnlineNewtonClassifier())
    assert cross_val_score(standardized, X, y, cv=5).mean() > best - 0.015


def test_diabetes_is_that_of_ridge():
    X, y = datasets.load_diabetes(return_X_y=True)
    best = cross_val_score(make_pipeline(StandardScaler(), RidgeCV()), X, y, cv=5).mean()
    assert cross_val_score(OnlineNewtonRegressor(), X, y, cv=5).mean() > best - 0.02


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("alpha", [0.01, 5.0])
def test_one_pass_of_the_squared_loss_is_ridge_regression(alpha, intercept):
    X, y, rng = table(0)
    Y = np.column_stack([y, 1e3 + rng.standard_normal(len(y))])
    weights = rng.random(len(y)) * 3
    options = {"initial_ridge": alpha, "fit_intercept": intercept, "normalize": False}
    model = OnlineNewtonRegressor(**options).partial_fit(X, Y, sample_weight=weights)
    ridge = StreamingRidge(alpha, fit_intercept=intercept).fit(X, Y, sample_weight=weights)
    np.testing.assert_allclose(model.coef_, ridge.coef_, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(model.intercept_, ridge.intercept_, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("sketch_size", [5, 20])
def test_raw_columns_are_as_good_as_standardized_ones(seed, sketch_size):
    X, y, rng = table(seed)
    rows, standardized = raw(X, rng), StandardScaler().fit_transform(X)
    for A in (rows, standardized):
        A[0] *= (1.0, 100.0, 0.0)[seed % 3]
    scores = [
        OnlineNewtonRegressor(sketch_size=sketch_size).fit(A, y).score(A[1:], y[1:])
        for A in (rows, standardized)
    ]
    assert scores[0] > scores[1] - 0.01
    if seed % 3 == 1:
        # A row 10,000 deviations out, with a label, turns the optimum of the loss itself.
        return
    order = np.argsort(y > 0, kind="stable")
    scores = [
        OnlineNewtonClassifier(sketch_size=sketch_size)
        .fit(A[order], y[order] > 0)
        .score(A[1:], y[1:] > 0)
        for A in (rows, standardized)
    ]
    assert scores[0] > scores[1] - 0.01


@pytest.mark.parametrize("width", [12, 60])
def test_fit_ends_at_the_optimum_whatever_the_level_of_the_targets(width):
    X, y, rng = table(7, d=width)
    rows = raw(X, rng)
    best = make_pipeline(StandardScaler(), RidgeCV()).fit(rows, y).score(rows, y)
    for level in (0.0, 1e6):
        model = OnlineNewtonRegressor().fit(rows, y + level)
        assert model.score(rows, y + level) > best - 0.001


def test_fit_has_the_same_bits_with_any_number_of_threads():
    X, y, _ = table(8, d=600, n=1500)
    found = []
    for n_threads in (1, 2, 3):
        with threadpool_limits(n_threads):
            found.append(OnlineNewtonClassifier().fit(X, y > 0).coef_)
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("width", [8, 40])
def test_powers_of_two_change_no_digit(width, form):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((500, width)) * (rng.random((500, width)) < 0.4)
    y = X[:, 0] + X[:, 1] > 0.1
    units = 2.0 ** rng.integers(-30, 30, width)
    one, two = OnlineNewtonClassifier(), OnlineNewtonClassifier()
    one.partial_fit(form(X), y, classes=[False, True])
    two.partial_fit(form(X * units), y, classes=[False, True])
    np.testing.assert_array_equal(one.coef_, two.coef_ * units)
    assert one.cumulative_loss_ == two.cumulative_loss_


@pytest.mark.parametrize("name", ["breast_cancer", "digits"])
@pytest.mark.parametrize("loss", ["logistic", "hinge", "squared"])
def test_more_passes_do_not_raise_the_training_error(loss, name):
    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    errors = [
        1 - OnlineNewtonClassifier(loss=loss, max_passes=n).fit(X, y).score(X, y)
        for n in (1, 2, 3, 5, 10, 30)
    ]
    assert all(later < min(errors[: i + 1]) + 0.003 for i, later in enumerate(errors))


def test_probabilities_are_calibrated():
    X, y, rng = table(3, n=8000)
    labels = rng.random(len(y)) < 1 / (1 + np.exp(-y))
    model = OnlineNewtonClassifier().fit(X[:4000], labels[:4000])
    p = model.predict_proba(X[4000:])[:, 1]
    np.testing.assert_allclose(np.log(p), model.predict_log_proba(X[4000:])[:, 1], atol=1e-9)
    for low in (0.1, 0.3, 0.5, 0.7):
        among = (p > low) & (p < low + 0.2)
        assert abs(labels[4000:][among].mean() - p[among].mean()) < 0.06


@pytest.mark.parametrize("width", [5, 40])
def test_no_target_is_known_before_it_is_predicted(width):
    X = np.random.default_rng(6).standard_normal((200, width))
    for y in (X[:, 0] + 1e3, X[:, 0] > 0):
        model = OnlineNewtonRegressor().partial_fit(X[:100], y[:100].astype(float))
        found = model.partial_fit_predict(X[100:], np.asarray(y[100:], float))
        again = OnlineNewtonRegressor().partial_fit(X[:100], y[:100].astype(float))
        other = np.append(y[100:199], 1e6).astype(float)
        assert found[-1] == again.partial_fit_predict(X[100:], other)[-1]
        first = OnlineNewtonRegressor().partial_fit_predict(X, np.asarray(y, float))[0]
        assert first == 0.0


def test_the_baseline_is_shown():
    X, y, _ = table(4)
    model = OnlineNewtonRegressor().partial_fit(X, y)
    running = np.append(0.0, np.cumsum(y)[:-1] / np.arange(1, len(y)))
    assert model.baseline_error_ == pytest.approx(np.mean((y - running) ** 2))
    assert model.online_error_ < 0.3 * model.baseline_error_


def test_labels_and_columns_may_come_late(tmp_path):
    rng = np.random.default_rng(5)
    model = OnlineNewtonClassifier(sketch_size=6)
    for t in range(900):
        names = rng.choice(5 + 10 * (t // 300), 4, replace=False)
        kind = int(names.min()) % (2 + t // 300)
        model.learn_one({f"w{name}": 1.0 for name in names}, f"c{kind}")
    assert len(model.classes_) == 4
    model.save(tmp_path / "model.sks")
    again = sksketch.load(tmp_path / "model.sks")
    row = {"w1": 1.0, "w7": 1.0}
    assert again.predict_proba_one(row) == model.predict_proba_one(row)
    assert sum(model.predict_proba_one(row).values()) == pytest.approx(1.0)
