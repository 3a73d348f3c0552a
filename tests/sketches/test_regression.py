import copy
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from _support import laws, zoo
from sksketch import Regression, make_sketch
from sksketch.sketches.wrappers.cross_moments import CrossMoments
from sksketch.state.persistence import State

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


def exactly(X, y, w, centered):
    """Return mean, target mean, cross moment and squares in exact arithmetic, then rounded."""
    X, y, w = (np.vectorize(Fraction, otypes=[object])(a) for a in (X, y, w))
    mean, target_mean = w @ X / w.sum(), w @ y / w.sum()
    if centered:
        X, y = X - mean, y - target_mean
    return mean, target_mean, X.T @ (w[:, None] * y), w @ y**2


def distance(found, truth):
    """Return lengths of exact differences, by column."""
    gap = np.vectorize(Fraction, otypes=[object])(found) - truth
    return np.sqrt(np.asarray((gap**2).sum(axis=0), dtype=float))


@pytest.mark.parametrize("centered", [True, False])
@given(
    seed=st.integers(0, 10_000),
    offset=st.sampled_from([0.0, 3.0, 1e4, 1.7e9, -1e15]),
    target_offset=st.sampled_from([0.0, 1e6]),
    scale=st.sampled_from([1.0, 1e-120, 1e100]),
    form=st.sampled_from([np.asarray, sp.csr_array, "mixed"]),
)
@settings(max_examples=12, deadline=None)
def test_the_rounding_of_moments_is_within_its_bounds(
    centered, seed, offset, target_offset, scale, form
):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 350))
    X = (rng.standard_normal((n, 3)) * [1.0, 1e-3, 0.0] + offset) * scale
    y = rng.standard_normal((n, 2)) + target_offset
    w = rng.choice([0.0, 0.3, 1.0, 7.0], n) if rng.random() < 0.5 else np.ones(n)
    w[0] = 1.0
    shards = [CrossMoments(3, 2, centered=centered) for _ in range(3)]
    for i, part in enumerate(np.array_split(np.arange(n), 7)):
        kind = (np.asarray, sp.csr_array)[i % 2] if form == "mixed" else form
        if len(part):
            shards[i // 3].update(kind(X[part]), y[part], w[part])
    found = shards[0].merge(shards[1]).merge(shards[2]).read()
    mean, target_mean, cross, squares = exactly(X, y, w, centered)
    assert distance(found.mean, mean) <= found.mean_error
    assert (distance(found.target_mean[None], target_mean[None]) <= found.target_mean_error).all()
    assert (distance(found.cross, cross) <= found.cross_error).all()
    assert (distance(found.squares[None], squares[None]) <= found.squares_error).all()
    assert found.n_rows == np.count_nonzero(w)


def test_moments_far_from_zero_are_as_good_as_near():
    rng = np.random.default_rng(0)
    G = rng.standard_normal((3000, 4)).astype(np.float32).astype(float)
    G[:, 3] = 0.1
    y = (G @ [1.0, 2.0, 3.0, 0.0])[:, None]
    errors = []
    for offset in (0.0, 2.0**30):
        moments = CrossMoments(4, 1, centered=True)
        # The offset is exact in the first columns, and the last one is constant.
        rows = G + np.array([offset, offset, offset, 0.0])
        found = moments.update(rows, y, np.ones(3000)).read()
        errors.append(found.cross_error[0] / np.linalg.norm(found.cross))
        assert found.cross[3, 0] == 0.0
    assert errors[1] < 2.0 * errors[0] < 1e-10


def test_states_without_bounds_get_an_estimate():
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((500, 3)) + 100.0, rng.standard_normal(500)
    sketch = make("exact", True).update(X, targets=y)
    moments = sketch.moments()
    state = sketch.state()
    old = {"mean": moments.mean, "target_mean": moments.target_mean}
    old |= {"cross": moments.cross, "squares": moments.squares}
    arrays = {f"cross.{name}": value for name, value in old.items()}
    empty = CrossMoments(3, 1, centered=True).state().arrays
    arrays |= {
        f"cross.{name}": empty[name] for name in empty if "dense" in name or "sparse" in name
    }
    kept = {name: value for name, value in state.arrays.items() if not name.startswith("cross.")}
    meta = {k: v for k, v in state.meta.items() if not k.startswith("cross.")}
    meta |= {"cross.kind": "cross-moments", "cross.version": 1}
    meta |= {"cross.weight": 500.0, "cross.centered": True}
    again = Regression.from_state(State(state.kind, state.version, meta, kept | arrays)).moments()
    np.testing.assert_array_equal(again.cross, moments.cross)
    np.testing.assert_array_equal(again.mean, moments.mean)
    assert (moments.cross_error > 0).all()
    assert (moments.cross_error <= 10 * again.cross_error).all()
