"""Projections are S A with the S that seed, shard and position choose."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from _support import laws, zoo
from sksketch import (
    CountSketch,
    GaussianSketch,
    HadamardSketch,
    NotMergeableError,
    SignSketch,
    StreamingPCA,
    StreamingSVD,
    make_sketch,
)

PROJECTIONS = ("gaussian", "sign", "countsketch", "srht")
each_projection = pytest.mark.parametrize("key", PROJECTIONS)
each_linear = pytest.mark.parametrize("key", laws.LINEAR)
rng = np.random.default_rng(0)
X = rng.standard_normal((700, 12)) / np.arange(1, 13)
SPARSE = sp.random_array((5000, 40), density=0.1, format="csr", rng=rng)
y = X @ np.arange(12.0) + 0.1 * rng.standard_normal(700)


def columns_of_s(key, size, n_rows, **options):
    """Return S itself: what the sketch makes of an identity matrix."""
    return make_sketch(key, size, **options).update(sp.eye_array(n_rows, format="csr")).matrix


@each_projection
@pytest.mark.parametrize("size", [1, 6, 300])
def test_the_product_is_that_of_one_matrix(key, size):
    S = columns_of_s(key, size, len(X), seed=3, shard=2)
    B = make_sketch(key, size, seed=3, shard=2).update(X).matrix
    np.testing.assert_allclose(B, S @ X, atol=1e-12)


def test_entries_of_s_are_as_described():
    size, n_rows = 50, 9000
    G = columns_of_s("gaussian", size, n_rows)
    # 450,000 entries: mean, variance and kurtosis to a few standard errors.
    scaled = np.sqrt(size) * G.ravel()
    assert abs(scaled.mean()) < 4 / np.sqrt(scaled.size)
    assert abs((scaled**2).mean() - 1) < 4 * np.sqrt(2 / scaled.size)
    assert abs((scaled**4).mean() - 3) < 4 * np.sqrt(96 / scaled.size)
    for key in ("sign", "srht"):
        S = columns_of_s(key, size, n_rows)
        np.testing.assert_allclose(np.abs(S), 1 / np.sqrt(size))
        assert abs(np.sign(S).mean()) < 4 / np.sqrt(S.size / size)
    C = columns_of_s("countsketch", size, n_rows)
    np.testing.assert_array_equal(np.abs(C).sum(axis=0), 1.0)
    np.testing.assert_array_equal(np.count_nonzero(C, axis=0), 1)
    counts = np.count_nonzero(C, axis=1)
    # Chi-square with 49 degrees of freedom: below 100 but for a probability of 2e-5.
    assert ((counts - n_rows / size) ** 2 / (n_rows / size)).sum() < 100
    assert abs(C.sum()) < 4 * np.sqrt(n_rows)


def test_no_two_tiles_share_columns():
    # Position 0 of every tile would have the same column without the signs of the rows of B.
    S = columns_of_s("srht", 64, 4096)
    first = S[:, ::256]
    overlap = first.T @ first - np.eye(16)
    assert np.abs(overlap).max() < 5 / np.sqrt(64)
    for key in PROJECTIONS:
        S = columns_of_s(key, 30, 8200)
        assert not (S[:, :256] == S[:, 256:512]).all()
        assert not (S[:, :4096] == S[:, 4096:8192]).all()


@each_projection
def test_seed_shard_and_kind_choose_independent_columns(key):
    plain = columns_of_s(key, 30, 300)
    for options in ({"seed": 1}, {"shard": 1}, {"seed": 1, "shard": 1}):
        other = columns_of_s(key, 30, 300, **options)
        # Both of length sqrt(300); their product is a sum of 9000 terms with mean zero.
        assert abs((plain * other).sum()) < 5 * np.sqrt(300 * 300 / 9000) * np.sqrt(30)


@each_linear
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sparse_rows_in_any_pieces_give_the_same_bits(key, dtype):
    rows = SPARSE.astype(dtype)
    weights = rng.choice([0.0, 0.5, 2.0], rows.shape[0])
    whole = make_sketch(key, 9).update(rows, weights)
    split = make_sketch(key, 9)
    for low, high in ((0, 1), (1, 2), (2, 255), (255, 257), (257, 4095), (4095, 5000)):
        split.update(rows[low:high], weights[low:high])
    laws.assert_same_bits(whole, split)
    assert whole.matrix.dtype == dtype


@each_linear
def test_sparse_and_dense_rows_are_the_same_rows(key):
    dense = make_sketch(key, 9).update(SPARSE.toarray())
    np.testing.assert_allclose(make_sketch(key, 9).update(SPARSE).matrix, dense.matrix, atol=1e-12)
    mixed = make_sketch(key, 9).update(SPARSE[:100].toarray()).update(SPARSE[100:701])
    mixed.update(SPARSE[701:1500].toarray()).update(SPARSE[1500:])
    np.testing.assert_allclose(mixed.matrix, dense.matrix, atol=1e-12)
    assert mixed.squared_norm == pytest.approx(dense.squared_norm, rel=1e-14)


@each_linear
def test_a_mixed_stream_in_any_pieces_gives_the_same_bits(key):
    one = make_sketch(key, 9).update(SPARSE[:300].toarray()).update(SPARSE[300:600])
    one.update(SPARSE[600:1200].toarray())
    two = make_sketch(key, 9).update(SPARSE[:90].toarray()).update(SPARSE[90:300].toarray())
    two.update(SPARSE[300:301]).update(SPARSE[301:600])
    two.update(SPARSE[600:800].toarray()).update(SPARSE[800:1200].toarray())
    laws.assert_same_bits(one, two)


@each_projection
def test_dense_tiles_are_crossed_without_a_trace(key):
    long = np.tile(X, (13, 1))
    whole = make_sketch(key, 9).update(long)
    split = make_sketch(key, 9)
    for piece in zoo.pieces(long, [255, 256, 257, 4000, 4095, 4096, 4097, 8192]):
        split.update(piece)
    laws.assert_same_bits(whole, split)


# Merging


@each_projection
def test_a_merged_sketch_is_that_of_all_shards(key):
    S = [columns_of_s(key, 9, n, seed=5, shard=i) for i, n in ((0, 300), (4, 250), (7, 150))]
    parts = [
        make_sketch(key, 9, seed=5, shard=i).update(piece)
        for i, piece in zip((0, 4, 7), zoo.pieces(X, [300, 550]), strict=True)
    ]
    expected = np.concatenate(S, axis=1) @ X
    for merged in (parts[0] | parts[1] | parts[2], parts[2] | (parts[0] | parts[1])):
        np.testing.assert_allclose(merged.matrix, expected, atol=1e-12)
        assert merged.shards == (0, 4, 7)
        assert merged.n_rows_seen == 700
        assert merged.squared_norm == pytest.approx(zoo.energy(X))


@each_projection
def test_a_merged_sketch_goes_on_with_its_own_columns(key):
    merged = make_sketch(key, 9).update(X[:100]).merge(make_sketch(key, 9, shard=1).update(X[:50]))
    S, other = columns_of_s(key, 9, 400), columns_of_s(key, 9, 50, shard=1)
    merged.update(X[100:400])
    np.testing.assert_allclose(merged.matrix, S @ X[:400] + other @ X[:50], atol=1e-12)


@each_linear
def test_equal_shards_are_refused(key):
    one, two = make_sketch(key, 9).update(X), make_sketch(key, 9).update(X[::-1])
    third = make_sketch(key, 9, shard=1).update(X)
    before = one.copy()
    for left, right in ((one, two), (one, one), (third | one, two), (make_sketch(key, 9), one)):
        with pytest.raises(NotMergeableError, match="its own shard="):
            left.merge(right)
        with pytest.raises(NotMergeableError, match="shard 0"):
            _ = left | right
    laws.assert_same_bits(one, before)
    # There is nothing in an empty one that could be counted twice.
    laws.assert_same_bits(one.merge(make_sketch(key, 9)), before)


@each_linear
@pytest.mark.parametrize("options", [{"seed": 1}, {"sketch_size": 8}])
def test_other_options_are_refused(key, options):
    other = make_sketch(key, **({"sketch_size": 9, "shard": 1} | options)).update(X)
    with pytest.raises(NotMergeableError, match=next(iter(options))):
        make_sketch(key, 9).update(X).merge(other)


@each_linear
def test_an_empty_sketch_takes_over_another(key):
    other = make_sketch(key, 9, shard=1).update(X, targets=y)
    taken = make_sketch(key, 9).merge(other)
    np.testing.assert_array_equal(taken.matrix, other.matrix)
    np.testing.assert_array_equal(taken.targets, other.targets)
    assert taken.shards == (0, 1)


# Targets


@each_linear
@pytest.mark.parametrize("shape", [(), (1,), (3,)])
def test_targets_meet_the_same_s(key, shape):
    b = rng.standard_normal((700, *shape))
    weights = rng.choice([0.0, 0.5, 2.0], 700)
    sketch = make_sketch(key, 20).update(X, weights, targets=b)
    alone = make_sketch(key, 20).update(X, weights)
    np.testing.assert_allclose(sketch.matrix, alone.matrix, atol=1e-13)
    assert sketch.squared_norm == alone.squared_norm
    assert sketch.targets.shape == (20, *shape)
    assert alone.targets is None
    # Targets that are columns of X must become those columns of S X.
    linked = make_sketch(key, 20).update(X, weights, targets=X[:, 2:5])
    np.testing.assert_allclose(linked.targets, linked.matrix[:, 2:5], atol=1e-13)
    with_sparse = make_sketch(key, 20).update(sp.csr_array(X), weights, targets=b)
    np.testing.assert_allclose(with_sparse.targets, sketch.targets, atol=1e-12)


@each_linear
def test_targets_come_in_pieces_merge_and_are_saved(key):
    whole = make_sketch(key, 20).update(X, targets=y)
    parts = make_sketch(key, 20).update(X[:300], targets=y[:300])
    parts = type(parts).from_state(parts.state()).update(X[300:], targets=pd.Series(y[300:]))
    laws.assert_same_bits(whole, parts)
    np.testing.assert_array_equal(whole.targets, parts.targets)
    merged = whole | make_sketch(key, 20, shard=1).update(X, targets=X @ np.ones(12))
    assert merged.targets.shape == (20,)
    with pytest.raises(NotMergeableError, match="targets"):
        whole.merge(make_sketch(key, 20, shard=1).update(X))


@each_linear
@pytest.mark.parametrize(
    "bad",
    [
        None,
        y[:-1],
        y[:, None],
        np.ones((700, 2)),
        np.ones((700, 1, 1)),
        np.where(np.arange(700) == 9, np.nan, y),
        np.where(np.arange(700) == 9, np.inf, y),
        np.where(np.arange(700) == 9, 1e200, y),
        np.full(700, "a"),
        sp.csr_array(y[:, None]),
        [[1.0], [1.0, 2.0]],
    ],
    ids=lambda bad: type(bad).__name__,
)
def test_bad_targets_leave_nothing_behind(key, bad):
    sketch, twin = (make_sketch(key, 9).update(X, targets=y) for _ in range(2))
    with pytest.raises((ValueError, TypeError)) as caught:
        sketch.update(X, targets=bad)
    assert "targets" in str(caught.value)
    laws.assert_same_bits(sketch, twin)
    with pytest.raises(ValueError, match="NaN"):
        sketch.update(np.full((1, 12), np.nan), targets=[1.0])
    laws.assert_same_bits(sketch.update(X, targets=y), twin.update(X, targets=y))
    np.testing.assert_array_equal(sketch.targets, twin.targets)


def test_targets_after_rows_without_them_are_refused():
    sketch = CountSketch(9).update(X)
    with pytest.raises(ValueError, match="expected no targets"):
        sketch.update(X, targets=y)
    assert sketch.n_rows_seen == 700


def test_a_refused_first_block_does_not_decide_about_targets():
    sketch = GaussianSketch(9)
    with pytest.raises(ValueError, match="NaN"):
        sketch.update(np.full((1, 12), np.nan), targets=[1.0])
    assert sketch.update(X).targets is None


# Reading


@each_linear
def test_nothing_is_certified_and_it_says_so(key):
    sketch = make_sketch(key, 9).update(X)
    assert sketch.error_bound() == np.inf
    text = str(sketch.certificate())
    assert "no bound is certified" in text
    assert "inf" not in text
    assert "nan" not in text
    assert "MB" in sketch.plan()
    zeros = make_sketch(key, 9).update(np.zeros((5, 3)))
    assert zeros.error_bound() == 0.0
    assert zeros.summary().rank == 0


@each_linear
def test_reading_gives_copies(key):
    sketch = make_sketch(key, 9).update(X, targets=y)
    sketch.matrix[:] = 0.0
    sketch.targets[:] = 0.0
    assert sketch.matrix.any()
    assert sketch.targets.any()


@pytest.mark.parametrize("kind", [GaussianSketch, SignSketch, CountSketch, HadamardSketch])
@pytest.mark.parametrize(
    "options",
    [{"sketch_size": 0}, {"sketch_size": 2.5}, {"sketch_size": 3, "shard": -1}],
)
def test_bad_options_are_refused_at_once(kind, options):
    with pytest.raises(ValueError, match="must be an? (positive )?integer"):
        kind(**options)


@each_linear
def test_svd_takes_them_and_pca_says_what_it_needs(key):
    svd = StreamingSVD(2, sketch=key, sketch_size=200).fit(X)
    exact = np.linalg.svd(X, full_matrices=False)[2][0]
    assert abs(svd.components_[0] @ exact) > 0.9
    with pytest.raises(TypeError, match="pass an empty FrequentDirections"):
        StreamingPCA(2, sketch=key).fit(X)
    with pytest.raises(NotMergeableError, match="its own shard="):
        svd.merge(StreamingSVD(2, sketch=key, sketch_size=200).fit(X))
