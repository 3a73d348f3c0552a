import copy

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import laws
import sksketch
import zoo
from sksketch import Regression, make_sketch

pytestmark = pytest.mark.usefixtures("short_tiles")

KEYS = ("fd", "rfd", "isvd", "2lfd", "sfd", "exact", "sign", "countsketch")


def make(key, centered, shard=0):
    options = {"shard": shard} if key in laws.LINEAR else {}
    return Regression(make_sketch(key, 4, **options), centered=centered)


@pytest.mark.parametrize("centered", [True, False])
@pytest.mark.parametrize("key", KEYS)
@given(X=zoo.matrices(), data=st.data())
@settings(max_examples=5)
def test_splitting_and_saving_are_invisible(key, centered, X, data):
    cuts = data.draw(zoo.splits(len(X)))
    rng = np.random.default_rng(len(cuts))
    y, weights = rng.standard_normal((len(X), 2)), rng.choice([0.0, 0.5, 1.0, 3.0], len(X))
    form = data.draw(st.sampled_from([np.asarray, sp.csr_array]))
    whole = make(key, centered).update(form(X), weights, targets=y)
    split = make(key, centered)
    parts = (zoo.pieces(X, cuts), np.split(weights, cuts), np.split(y, cuts))
    for rows, w, targets in zip(*parts, strict=True):
        split.update(form(rows), w, targets=targets)
        split = Regression.from_state(split.state())
    laws.assert_same_bits(whole, split)
    for left, right in zip(whole.moments(), split.moments(), strict=True):
        np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize("centered", [True, False])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, "mixed"])
def test_moments_are_those_of_the_dense_rows(centered, form):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((900, 20)) + 50.0
    y, w = rng.standard_normal((900, 2)) * 3 + 1e3, rng.uniform(0.0, 2.0, 900)
    shards = [make("exact", centered) for _ in range(3)]
    for i, rows in enumerate(np.array_split(np.arange(900), 9)):
        kind = (np.asarray, sp.csr_array)[i % 2] if form == "mixed" else form
        shards[i % 3].update(kind(X[rows]), w[rows], targets=y[rows])
    untouched = copy.deepcopy(shards[1])
    merged = shards[0].merge(shards[1]).merge(shards[2])
    laws.assert_same_bits(shards[1], untouched)
    moments = merged.moments()
    mean, target_mean = w @ X / w.sum(), w @ y / w.sum()
    np.testing.assert_allclose(moments.mean, mean, rtol=1e-12)
    np.testing.assert_allclose(moments.target_mean, target_mean, rtol=1e-12)
    A, b = (X - mean, y - target_mean) if centered else (X, y)
    scale = np.abs(A.T) @ (w[:, None] * np.abs(b))
    np.testing.assert_allclose(moments.cross, A.T @ (w[:, None] * b), atol=1e-11 * scale.max())
    np.testing.assert_allclose(moments.squares, w @ b**2, rtol=1e-10)


def test_it_does_without_targets_and_then_refuses_them():
    sketch = Regression(make_sketch("fd", 4)).update(np.eye(5))
    with pytest.raises(ValueError, match="no targets have come"):
        sketch.moments()
    with pytest.raises(ValueError, match=r"got targets of shape \(n_rows,\), expected no targets"):
        sketch.update(np.eye(5), targets=np.ones(5))


def test_what_can_not_be_wrapped_is_refused():
    with pytest.raises(TypeError, match="expected a sketch of rows"):
        Regression("fd")
    with pytest.raises(ValueError, match="wrap it before update"):
        Regression(make_sketch("fd", 4).update(np.eye(3)))
    with pytest.raises(ValueError, match="without decay"):
        Regression(sksketch.FrequentDirections(4, decay=0.5))
