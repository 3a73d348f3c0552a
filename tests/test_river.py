"""The online learners as models of River: its own checks, pipelines and evaluation."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest

from sksketch import OnlineNewtonClassifier, OnlineNewtonRegressor

WITHOUT_RIVER = """
import sys
sys.modules["river"] = None
from sksketch.river import RiverClassifier, RiverRegressor
for kind in (RiverClassifier, RiverRegressor):
    try:
        kind()
    except ImportError as error:
        print(error)
"""


def test_without_river_the_classes_name_the_extra():
    command = [sys.executable, "-c", WITHOUT_RIVER]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(lines) == 2
    for line in lines:
        assert "pip install 'scikit-sketch[river]'" in line


@pytest.fixture
def river():
    return pytest.importorskip("river", reason="River is not installed")


@pytest.fixture
def kinds(river):
    from sksketch.river import RiverClassifier, RiverRegressor

    return RiverClassifier, RiverRegressor


@pytest.mark.parametrize("which", [0, 1])
def test_river_checks_pass(kinds, which):
    from river import checks

    checks.check_estimator(kinds[which]())


def test_progressive_validation_is_the_loop_by_hand(kinds):
    from river import datasets, evaluate, metrics, preprocessing

    pipeline = preprocessing.StandardScaler() | kinds[0](OnlineNewtonClassifier(sketch_size=5))
    score = evaluate.progressive_val_score(datasets.Phishing(), pipeline, metrics.Accuracy())
    scaler, model, right = preprocessing.StandardScaler(), OnlineNewtonClassifier(), []
    model.set_params(sketch_size=5)
    for x, y in datasets.Phishing():
        found = model.predict_one(scaler.transform_one(x))
        if found is not None:
            right.append(found == y)
        scaler.learn_one(x)
        model.learn_one(scaler.transform_one(x), y)
    assert score.get() == pytest.approx(np.mean(right))
    assert score.get() > 0.8


def test_regression_is_evaluated_by_river(kinds):
    from river import evaluate, metrics

    rng = np.random.default_rng(0)
    rows = rng.standard_normal((500, 3))
    stream = [({"a": r[0], "b": r[1], "c": r[2]}, 2 * r[0] - r[2]) for r in rows.tolist()]
    error = evaluate.progressive_val_score(stream, kinds[1](), metrics.MAE())
    constant = np.mean(np.abs([y for _, y in stream]))
    assert error.get() < 0.3 * constant


def test_several_labels_that_are_new_on_the_way(kinds):
    model = kinds[0]()
    assert model.predict_one({"x": 1.0}) is None
    for _ in range(30):
        for k, label in enumerate(["red", "green", "blue"]):
            model.learn_one({k: 1.0}, label)
    assert [model.predict_one({k: 1.0}) for k in range(3)] == ["red", "green", "blue"]
    assert model._multiclass


def test_probabilities_are_those_of_the_estimator(kinds):
    model = kinds[0](OnlineNewtonClassifier(loss="logistic"))
    for _ in range(20):
        model.learn_one({"x": 1.0}, True)
        model.learn_one({"x": -1.0}, False)
    if hasattr(model.fitted, "predict_proba_one"):
        found = model.predict_proba_one({"x": 1.0})
        assert set(found) == {True, False}
        assert sum(found.values()) == pytest.approx(1.0)
        assert found[True] > 0.5
    else:
        with pytest.raises(NotImplementedError, match="gives no probabilities"):
            model.predict_proba_one({"x": 1.0})


def test_a_clone_has_the_parameters_and_nothing_else(kinds):
    model = kinds[1](OnlineNewtonRegressor(sketch_size=3))
    model.learn_one({"x": 1.0}, 2.0)
    clone = model.clone()
    assert clone.estimator.sketch_size == clone.fitted.sketch_size == 3
    assert clone.predict_one({"x": 1.0}) == 0.0
    assert not hasattr(model.estimator, "learners_")
    other = model.clone({"estimator": OnlineNewtonRegressor(sketch_size=4)})
    assert other.fitted.sketch_size == 4


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_a_copy_continues_to_the_same_bits(kinds, copied):
    rng = np.random.default_rng(1)
    rows = [dict(enumerate(row)) for row in rng.standard_normal((60, 4)).tolist()]
    model = kinds[0]()
    for x in rows[:30]:
        model.learn_one(x, x[0] > 0)
    other = copied(model)
    for x in rows[30:]:
        model.learn_one(x, x[0] > 0)
        other.learn_one(x, x[0] > 0)
    np.testing.assert_array_equal(model.fitted.coef_, other.fitted.coef_)
