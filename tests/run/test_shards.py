"""Parts learned apart: every estimator, any tree, certificates that hold, nothing counted twice."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from sksketch import (
    Centered,
    ExactCovariance,
    FrequentDirections,
    NotMergeableError,
    OnlineNewtonRegressor,
    PartitionError,
    Regression,
    SparseFrequentDirections,
    StreamingKernelPCA,
    StreamingPCA,
    StreamingRidge,
    StreamingRidgeCV,
    StreamingSVD,
    SubspaceReduction,
    make_sketch,
)
from sksketch.run.shards import (
    MergeTree,
    Rows,
    Shard,
    fit_parts,
    learn_shard,
    merge_shards,
    merge_tree,
    shard_template,
)
from sksketch.sketches.catalog import KEYS
from sksketch.state.persistence import to_bytes

N_PARTS, N_FEATURES = 7, 12
RNG = np.random.default_rng(0)
X = RNG.standard_normal((700, N_FEATURES)) / np.arange(1, N_FEATURES + 1) + 0.5
Y = X @ np.arange(N_FEATURES) + 1.0
CUTS = [0, 90, 90, 240, 300, 301, 560, 700]
PARTS = [slice(a, b) for a, b in pairwise(CUTS)]


def fitted(estimator, rows=X, fan_in=3):
    """Fit in the reference tree."""

    def learn(template):
        shards = [
            learn_shard(template, [Rows(rows[part], targets(estimator, part))], i, N_PARTS)
            for i, part in enumerate(PARTS)
        ]
        return merge_tree(type(estimator), shards, fan_in)

    fit_parts(estimator, N_PARTS, learn, lambda n: rows[:n])
    return estimator


def targets(estimator, part):
    return Y[part] if isinstance(estimator, StreamingRidge | StreamingRidgeCV) else None


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("fan_in", [2, 3, 8])
def test_every_sketch_learns_in_parts(key, fan_in):
    sketch = fitted(make_sketch(key, 8), fan_in=fan_in)
    assert sketch.n_rows_seen == len(X)
    assert sketch.squared_norm == pytest.approx(np.vdot(X, X))
    error = np.linalg.norm(X.T @ X - sketch.summary().to_dense(), 2)
    assert error <= sketch.error_bound() * (1 + 1e-9)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_the_certificate_of_pca_holds_after_merges(make):
    pca = fitted(StreamingPCA(3, sketch="rfd", sketch_size=5), make(X))
    centered = X - X.mean(axis=0)
    np.testing.assert_allclose(pca.mean_, X.mean(axis=0))
    error = np.linalg.norm(centered.T @ centered - pca.sketch_.summary().to_dense(), 2)
    assert 0 < error <= pca.certificate_.spectral_error[1]
    exact = np.linalg.eigvalsh(centered.T @ centered)[::-1]
    bounds = pca.certificate_.eigenvalues
    assert (bounds[:, 0] <= exact[: len(bounds)] * (1 + 1e-9)).all()
    assert (exact[: len(bounds)] <= bounds[:, 1] * (1 + 1e-9)).all()


def test_estimators_in_parts_are_those_of_all_rows():
    ridge, cv = fitted(StreamingRidge(2.0)), fitted(StreamingRidgeCV([0.1, 10.0]))
    np.testing.assert_allclose(ridge.coef_, StreamingRidge(2.0).fit(X, Y).coef_, rtol=1e-8)
    assert cv.alpha_ == StreamingRidgeCV([0.1, 10.0]).fit(X, Y).alpha_
    svd = fitted(StreamingSVD(2))
    np.testing.assert_allclose(svd.components_, StreamingSVD(2).fit(X).components_, atol=1e-8)
    assert svd.n_samples_seen_ == len(X)


def test_kernel_pca_in_parts_has_one_feature_map():
    options = {"solver": "sketch", "n_random_features": 64, "random_state": None}
    kernel = fitted(StreamingKernelPCA(2, **options))
    features = kernel._functions().features.transform(X)
    centered = (features - features.mean(axis=0)) / np.sqrt(len(X))
    # Features are scaled so that their products are the kernel.
    exact = np.linalg.svd(centered, compute_uv=False)[:2] ** 2
    np.testing.assert_allclose(kernel.eigenvalues_, exact, rtol=1e-8)
    assert kernel.n_samples_seen_ == len(X)


@pytest.mark.parametrize("n_power_iter", [0, 1, 2])
def test_power_passes_are_sums_of_their_parts(n_power_iter):
    reduction = SubspaceReduction(4, n_power_iter=n_power_iter, random_state=None)
    fitted(reduction)
    basis = reduction.components_
    np.testing.assert_allclose(basis @ basis.T, np.eye(4), atol=1e-9)
    # The same sums, then the same power iterations, by hand.
    Q = np.linalg.qr(reduction.sketch_.matrix.T)[0]
    for _ in range(n_power_iter):
        Q = np.linalg.qr(X.T @ (X @ Q))[0]
    np.testing.assert_allclose(np.linalg.svd(basis @ Q)[1], np.ones(4), atol=1e-8)


def test_power_passes_of_different_subspaces_are_not_merged():
    one = SubspaceReduction(3, random_state=0).partial_fit(X).next_pass().partial_fit(X)
    two = SubspaceReduction(3, random_state=1).partial_fit(X).next_pass().partial_fit(X)
    with pytest.raises(NotMergeableError, match="different subspaces"):
        one.merge(two)
    with pytest.raises(NotMergeableError, match="in one of two"):
        one.merge(SubspaceReduction(3, random_state=0).partial_fit(X))


def test_shards_share_the_failure_probability():
    whole = FrequentDirections(4, failure_probability=0.1)
    assert whole.for_shard(3, 50).failure_probability == pytest.approx(0.1 / 50)
    assert SparseFrequentDirections(4).for_shard(0, 10).failure_probability == pytest.approx(1e-3)
    assert Regression(whole.fresh()).for_shard(1, 5).sketch.sketch.failure_probability == 0.02
    assert make_sketch("gaussian", 4, shard=2).for_shard(3, 10).shard == 23


def test_the_confidence_of_many_parts_is_that_of_one():
    rows = RNG.standard_normal((40, 120, 200))
    template = FrequentDirections(4, solver="block", buffer_rows=100)
    shards = [learn_shard(template, [Rows(part)], i, 40) for i, part in enumerate(rows)]
    assert all(FrequentDirections.from_state(s.state).n_shrinks for s in shards)
    sketch = FrequentDirections.from_state(merge_tree(FrequentDirections, shards).state)
    assert 0.99 <= sketch.summary().confidence < 1.0


# Nothing twice, nothing left out


def shards(kind=ExactCovariance, n=4):
    return [learn_shard(kind(), [Rows(X[i::n])], i, n) for i in range(n)]


def test_a_part_that_comes_twice_or_not_at_all_is_refused():
    parts = shards()
    with pytest.raises(NotMergeableError, match="each must come once"):
        merge_shards(ExactCovariance, [parts[0], parts[1], parts[1]])
    with pytest.raises(NotMergeableError, match="each must come once"):
        merge_shards(ExactCovariance, [parts[0], parts[2]])
    with pytest.raises(RuntimeError, match="0 to 2 came back of 4"):
        fit_parts(
            ExactCovariance(), 4, lambda _: merge_tree(ExactCovariance, parts[:3]), lambda _: None
        )


def test_parts_without_rows_count_for_nothing():
    empty = learn_shard(ExactCovariance(), [Rows(X[:0])], 0, 2)
    assert empty == Shard(0, 1, 0, None)
    with pytest.raises(ValueError, match="hold no rows"):
        fit_parts(ExactCovariance(), 1, lambda _: empty, lambda _: None)


def test_the_tree_does_not_depend_on_the_order_in_which_parts_come():
    parts = shards(lambda: FrequentDirections(3), 11)
    expected = to_bytes(merge_tree(FrequentDirections, parts, 3).state)
    for seed in range(3):
        tree = MergeTree(11, 3)
        left = [(0, i, parts[i]) for i in np.random.default_rng(seed).permutation(11)]
        while left:
            level, number, shard = left.pop()
            if level == tree.top:
                assert to_bytes(shard.state) == expected
            elif (ready := tree.add(level, number, shard)) is not None:
                left.insert(0, (*ready[:2], merge_shards(FrequentDirections, ready[2])))


# Mistakes


@pytest.mark.parametrize(
    ("estimator", "reason"),
    [
        (OnlineNewtonRegressor(), "each step depends on all rows before"),
        (StreamingKernelPCA(2, solver="sgd"), "pass solver='sketch'"),
        (StreamingRidgeCV(selection="holdout"), 'selection="gcv"'),
        (StreamingRidge(refine=2), "set refine=0"),
        (FrequentDirections(4, half_life=100), "learned side by side"),
        (StreamingPCA(sketch=FrequentDirections(4, half_life=9)), "learned side by side"),
        (ExactCovariance().update(X), "has rows already"),
        (object(), "cannot learn parts"),
    ],
)
def test_what_can_not_be_merged_says_why_before_any_work(estimator, reason):
    with pytest.raises(ValueError, match=reason):
        shard_template(estimator)


def test_an_error_names_its_partition():
    bad = X[:5].copy()
    bad[2, 3] = np.nan
    with pytest.raises(PartitionError, match="^partition 3 of 8: "):
        learn_shard(StreamingPCA(), [Rows(X[:5]), Rows(bad)], 3, 8)
    narrow = learn_shard(ExactCovariance(), [Rows(X[:5, :4])], 1, 2)
    wide = learn_shard(ExactCovariance(), [Rows(X[:5])], 0, 2)
    with pytest.raises(PartitionError, match="^partition 1: .* 12 and 4 features"):
        merge_shards(ExactCovariance, [wide, narrow])


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("make", [FrequentDirections, SparseFrequentDirections])
def test_states_travel_without_waiting_rows(make, sparse):
    A = np.random.default_rng(3).standard_normal((2_500, 200))
    A *= A > 0.5 if sparse else 1.0
    rows = sp.csr_array(A) if sparse else A
    learned = [
        learn_shard(Centered(make(8)), [Rows(rows[i::2])], index=i, n_shards=2) for i in range(2)
    ]
    merged = merge_tree(Centered, learned)
    for shard in (*learned, merged):
        held = sum(array.size for array in shard.state.arrays.values())
        # A few kept rows, and the seven arrays of a mean.
        assert held <= (3 * 8 + 9) * 200
    centered = A - A.mean(axis=0)
    found = Centered.from_state(merged.state)
    error = np.linalg.norm(centered.T @ centered - found.summary().to_dense(), 2)
    assert 0 < error <= found.error_bound()


def test_a_tree_needs_branches():
    with pytest.raises(ValueError, match="fan_in is 1"):
        merge_tree(ExactCovariance, shards(), 1)
