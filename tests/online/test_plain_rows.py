"""The short way of single rows gives the bits of the long one, and refuses what that refuses."""

import copy
from types import MappingProxyType

import numpy as np
import pytest

from sksketch import OnlineNewtonClassifier, OnlineNewtonRegressor
from sksketch.online.curvature.exact_newton import ExactNewton

NAMES = [f"f{i}" for i in range(6)]
OPTIONS = {"sketch_size": 12}
MODELS = {
    "two labels": (OnlineNewtonClassifier, [0, 1]),
    "two booleans": (OnlineNewtonClassifier, [False, True]),
    "three labels": (OnlineNewtonClassifier, ["a", "b", "c"]),
    "hinge": (lambda **o: OnlineNewtonClassifier(loss="hinge", **o), ["a", "b", "c"]),
    "one label": (OnlineNewtonClassifier, ["a"]),
    "weights": (lambda **o: OnlineNewtonClassifier(class_weight={1: 3.0}, **o), [0, 1]),
    "numbers": (OnlineNewtonRegressor, [1.5, -2.0, 0.25, 40.0]),
    "huber": (lambda **o: OnlineNewtonRegressor(loss="huber", **o), [1.5, -2.0, 0.25, 40.0]),
    "as paper": (lambda **o: OnlineNewtonRegressor(curvature="gradient", **o), [1.5, -2.0]),
    "raw units": (lambda **o: OnlineNewtonRegressor(normalize=False, **o), [1.5, -2.0]),
}


def rows(targets, n_rows=150):
    """Give rows that are mostly alike: some with other names, large, whole or without numbers."""
    rng = np.random.default_rng(3)
    for i in range(n_rows):
        values = rng.normal(size=6) * (1e6 if i % 37 == 36 else 1.0)
        row = dict(zip(NAMES, values.tolist(), strict=True))
        if i % 11 == 10:
            row = {name: row[name] for name in rng.permutation(NAMES)[:3]}
        if i % 23 == 22:
            row |= {"f1": 3, "f2": True, "f3": np.float32(0.5), "f4": -0.0}
        if i % 50 == 49:
            row |= {f"late {i}": 1.0}
        yield row, targets[int(rng.integers(len(targets)))]


@pytest.mark.parametrize("name", MODELS)
def test_a_dictionary_and_another_mapping_learn_the_same_bits(name):
    kind, targets = MODELS[name]
    plain, other = kind(**OPTIONS), kind(**OPTIONS)
    for row, target in rows(targets):
        assert plain.predict_one(row) == other.predict_one(MappingProxyType(row))
        plain.learn_one(row, target)
        other.learn_one(MappingProxyType(row), target)
        assert plain.online_error_ == other.online_error_
        assert plain.baseline_error_ == other.baseline_error_
    mine, theirs = plain.state(), other.state()
    assert mine.meta == theirs.meta
    for part in mine.arrays:
        np.testing.assert_array_equal(mine.arrays[part], theirs.arrays[part])


BAD = [np.nan, np.inf, -np.inf, 1e200, 10**400, None, "1", 1j]


@pytest.mark.parametrize("value", BAD, ids=str)
@pytest.mark.parametrize("kind", [OnlineNewtonClassifier, OnlineNewtonRegressor])
def test_what_is_refused_changes_nothing(kind, value):
    model = kind(**OPTIONS)
    for row, target in rows([0, 1], 30):
        model.learn_one(row, target)
    before = model.state()
    row = dict.fromkeys(NAMES, 1.0) | {"f3": value}
    with pytest.raises((ValueError, TypeError, OverflowError)):
        model.learn_one(row, 1)
    after = model.state()
    assert before.meta == after.meta
    for part in before.arrays:
        np.testing.assert_array_equal(before.arrays[part], after.arrays[part])


def test_rows_of_few_known_names_take_the_short_way():
    model = OnlineNewtonClassifier(**OPTIONS)
    taken = []
    for row, target in rows([0, 1], 60):
        model.learn_one(row, target)
        taken.append("targets_of_labels" in model._answers)
    assert type(model.learners_[0]) is ExactNewton
    assert sum(taken) > 40
    with pytest.raises(ValueError, match="NaN"):
        model.learn_one(dict.fromkeys(NAMES, 1.0), float("nan"))
    with pytest.raises((ValueError, TypeError)):
        model.learn_one(dict.fromkeys(NAMES, 1.0), [1])


def test_a_copy_learns_apart():
    model = OnlineNewtonClassifier(**OPTIONS)
    for row, target in rows([0, 1], 30):
        model.learn_one(row, target)
    twin = copy.deepcopy(model)
    for row, target in rows([1, 0], 20):
        twin.learn_one(row, target)
    assert model.n_samples_seen_ == 30
    assert model.baseline_.sum() == 30
