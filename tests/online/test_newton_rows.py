"""Online learners fed one row at a time, by dictionaries of names or sequences of numbers."""

import numpy as np
import pytest
import scipy.sparse as sp

import sksketch
from sksketch import OnlineNewtonClassifier, OnlineNewtonRegressor

RNG = np.random.default_rng(0)
X = RNG.standard_normal((200, 12))
WEIGHTS = RNG.standard_normal(12)
Y = np.where(X @ WEIGHTS > 0, 1, -1)


def test_one_row_at_a_time_equals_the_block():
    block = OnlineNewtonClassifier(sketch_size=5).partial_fit(X, Y, classes=[-1, 1])
    rows = OnlineNewtonClassifier(sketch_size=5)
    for x, y in zip(X, Y.tolist(), strict=True):
        assert rows.predict_one(x) in (None, -1, 1)
        rows.learn_one(x, y)
    assert np.array_equal(rows.coef_, block.coef_)
    assert rows.online_error_ == block.online_error_


@pytest.mark.parametrize("hash_size", [None, 256])
def test_names_get_columns_as_they_come_or_by_hash(hash_size, tmp_path):
    model = OnlineNewtonClassifier(sketch_size=3, hash_size=hash_size)
    words = {"good": "up", "fine": "up", "bad": "down", "poor": "down", "odd": "side"}
    assert model.predict_one({"good": 1}) is None
    for number in range(40):
        for word, label in words.items():
            model.learn_one({word: 1, f"noise {number}": 0.1}, label)
    assert [model.predict_one({word: 1}) for word in words] == list(words.values())
    assert model.predict_one({"never seen": 3.0}) in ("up", "down", "side")
    assert model.n_features_in_ == (45 if hash_size is None else 256)
    model.save(tmp_path / "model.sks")
    loaded = sksketch.load(tmp_path / "model.sks")
    for each in (model, loaded):
        each.learn_one({"new word": 2.0}, "up")
    assert np.array_equal(model.coef_, loaded.coef_)


def test_names_of_a_frame_are_names_of_a_row():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("abcdefghijkl"))
    model = OnlineNewtonRegressor(sketch_size=5).fit(frame, X @ WEIGHTS)
    row = frame.iloc[0].to_dict()
    assert model.predict_one(row) == pytest.approx(model.predict(frame[:1])[0])
    model.learn_one(row, 3.0)
    with pytest.raises(ValueError, match="there is no column 'z'"):
        model.predict_one({"z": 1.0})


def test_bad_single_rows_change_nothing(tmp_path):
    model = OnlineNewtonClassifier(sketch_size=4, hash_size=64)
    for _ in range(5):
        model.learn_one({"a": 1.0}, True).learn_one({"b": 1.0}, False)
    model.save(tmp_path / "before.sks")
    for x, y, message in [
        ({"a": "red"}, True, "give a finite number, or make a name of it"),
        ({"a": np.nan}, True, "finite"),
        ({"a": 1e99}, True, "too large"),
        ({"a": 1.0}, "maybe", "is not one of"),
        ([1.0, 2.0], True, "the row has 2 values"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.learn_one(x, y)
    model.save(tmp_path / "after.sks")
    assert (tmp_path / "before.sks").read_bytes() == (tmp_path / "after.sks").read_bytes()


def test_a_refused_row_leaves_no_names_behind():
    model = OnlineNewtonClassifier(sketch_size=3)
    for _ in range(3):
        model.learn_one({"a": 1.0}, True).learn_one({"b": 1.0}, False)
    for x, y in [({"new": 1.0}, "maybe"), ({"c": 1.0, "d": "red"}, True)]:
        with pytest.raises(ValueError):
            model.learn_one(x, y)
    assert model.n_features_in_ == 2
    assert model.predict_one({"new": 1.0}) in (True, False)
    assert model.learn_one({"c": 1.0}, True).n_features_in_ == 3


@pytest.mark.parametrize("labels", [(1, 0), (1, -1), (1, 2), (-1, 7), (0, 1, 2), (1, 2, 0)])
@pytest.mark.parametrize("number", [int, np.int64])
def test_labels_of_single_rows_come_in_any_order(labels, number):
    model = OnlineNewtonClassifier(sketch_size=3)
    for _ in range(30):
        for column, label in enumerate(labels):
            model.learn_one(np.eye(len(labels))[column], number(label))
    assert [model.predict_one(x) for x in np.eye(len(labels))] == list(labels)
    assert sorted(model.classes_.tolist()) == sorted(labels)


def test_one_row_of_another_width_is_refused():
    model = OnlineNewtonClassifier(sketch_size=3).learn_one([1.0, 2.0], 1)
    with pytest.raises(ValueError, match="the row has 3 values, expected 2"):
        model.predict_one([1.0, 2.0, 3.0])


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, sp.csr_matrix])
@pytest.mark.parametrize("Model", [OnlineNewtonClassifier, OnlineNewtonRegressor])
def test_blocks_that_need_no_check_are_learned_as_those_that_do(kind, Model):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((60, 5))
    y = (X[:, 0] > 0).astype(int)
    plain, checked = (Model(sketch_size=3).fit(X[:20], y[:20]) for _ in range(2))
    plain.partial_fit(kind(X[20:]), y[20:])
    checked.partial_fit(X[20:].tolist(), y[20:].tolist())
    np.testing.assert_array_equal(plain.coef_, checked.coef_)
    for bad in (np.nan, np.inf, 1e80):
        wrong = X[20:].copy()
        wrong[7, 2] = bad
        with pytest.raises(ValueError, match="NaN|infinity|too large"):
            plain.partial_fit(kind(wrong), y[20:])
    np.testing.assert_array_equal(plain.coef_, checked.coef_)
