"""Online learners stay finite: an outlier is learned from, or refused with nothing changed."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import sksketch
from _support.paper_learners import paper_regressor
from robustness import abuse, children, everyone
from sksketch.online import named_columns

CASES = (("oja", 1e6), ("rp", 1e20), ("rfd", 1e50), ("fd", 1e50), ("pfd", 1e50))


def test_outliers_of_every_size(full, tally):
    found = children.outcomes("outliers", *(() if full else ("24",)))
    for (method, outcome), n in found.items():
        tally(f"outliers, {method}", {outcome: n})


@pytest.mark.parametrize(("method", "size"), CASES)
def test_an_outlier_is_refused_and_the_model_goes_on(method, size):
    X = np.random.default_rng(0).standard_normal((400, 6))
    y = X @ np.arange(6.0)
    model = paper_regressor(method, sketch_size=3).partial_fit(X, y)
    expected = copy.deepcopy(model).partial_fit(X, y).predict(X)
    Z = X.copy()
    Z[200] *= size
    with pytest.raises(ValueError, match="no longer be finite"):
        model.partial_fit(Z, y)
    np.testing.assert_array_equal(model.partial_fit(X, y).predict(X), expected)


@pytest.mark.parametrize("size", [1e5, 1e30, 1e60])
def test_with_units_of_their_own_columns_take_an_outlier_and_learn_on(size):
    X = np.random.default_rng(0).standard_normal((400, 6))
    y = X @ np.arange(6.0)
    Z = X.copy()
    Z[10] *= size
    model = sksketch.OnlineNewtonRegressor(sketch_size=3).partial_fit(Z, y)
    assert np.isfinite(model.partial_fit(X, y).predict(X)).all()


@pytest.mark.parametrize("labels", [("no", "yes"), (0, 1), (0.5, 1.5)])
def test_a_label_that_is_nan_changes_nothing(labels):
    model = sksketch.OnlineNewtonClassifier(sketch_size=2)
    for label in labels:
        model.learn_one({"old": 1.0}, label)
    before = everyone.digest(dict(model.state().meta))
    with pytest.raises(ValueError):
        model.learn_one({"new": 1.0}, float("nan"))
    assert everyone.digest(dict(model.state().meta)) == before
    model.learn_one({"new": 1.0}, labels[0])
    assert model.n_features_in_ == 2


def test_a_refused_row_takes_its_new_names_back():
    model = sksketch.OnlineNewtonRegressor("adagrad").learn_one({"a": 1.0}, 2.0)
    before = model.state()
    for x, y in (({"b": 1e80}, 1.0), ({"b": 1.0}, np.nan), ({"b": np.inf}, 1.0)):
        with pytest.raises(ValueError):
            model.learn_one(x, y)
        abuse.forging.assert_same(model.state(), before)
    assert model.learn_one({"c": 1.0}, 1.0).n_features_in_ == 2


def test_new_names_share_columns_once_there_are_very_many(monkeypatch):
    monkeypatch.setattr(named_columns, "MOST_NAMES", 16)
    monkeypatch.setattr(named_columns, "SHARED", 8)
    model = sksketch.OnlineNewtonRegressor("adagrad")
    for i in range(200):
        model.learn_one({f"name {i}": 1.0, "always": float(i % 3)}, float(i % 3))
    assert model.n_features_in_ == 16 + 8
    assert len(model.state().meta["names"]) < 400
    assert abs(model.predict_one({"always": 2.0}) - 2.0) < 1.0
    back = sksketch.run.loading.restore(model.state())
    for one in (model, back):
        one.learn_one({"name 7": 1.0, "another": 2.0}, 1.0)
    abuse.forging.assert_same(model.state(), back.state())
    assert back.predict_one({"never seen": 1.0}) == model.predict_one({"never seen": 1.0})
