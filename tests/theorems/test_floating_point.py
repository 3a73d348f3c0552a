"""Bounds against roundings, cancellation and known seeds: each of these streams has broken one.

Truth is in long double (`_support.oracle`); ridge, scores and regret have their own files.
"""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.decomposition import PCA, IncrementalPCA

from _support import extended, oracle
from sksketch import (
    Centered,
    ExactCovariance,
    FrequentDirections,
    SparseFrequentDirections,
    StreamingPCA,
    StreamingRidge,
    StreamingSVD,
)
from sksketch.arrays.random import stream
from sksketch.sketches import bounds
from sksketch.sketches.certificate import Certificate


def error_and_bound(sketch, X, centered=False):
    """Return the true error of a sketch, less what the oracle does not know, and its bound."""
    found = oracle.truth(oracle.Rows(X.shape[1]).update(X), centered=centered)
    summary = sketch.summary()
    K = extended.operator(summary.components, summary.eigenvalues)
    K += extended.LD(summary.ridge) * np.eye(len(K), dtype=K.dtype)
    error, slack = extended.spectral_norm(found.gram - K)
    return float(error - slack - found.error), summary.error_bound


# 1. Far from the origin


@pytest.mark.parametrize("n_features", [5, 600])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_constant_rows_have_no_direction(n_features, dtype):
    row = np.random.default_rng(0).random(n_features)
    pca = StreamingPCA(2).fit(np.tile(row, (3_000, 1)).astype(dtype))
    assert pca.certificate_.n_certain == 0
    assert pca.sketch_.squared_norm == 0.0


@pytest.mark.parametrize("offset", [0.0, 1e4, 1.7e9, 1e12])
@pytest.mark.parametrize("sketch", [ExactCovariance(), FrequentDirections(3, solver="exact")])
def test_centering_far_from_the_origin_is_within_its_bound(offset, sketch):
    X = np.random.default_rng(0).standard_normal((3_000, 5)) + offset
    centered = Centered(sketch.fresh()).update(X[:1_700]).update(X[1_700:])
    error, bound = error_and_bound(centered, X, centered=True)
    assert error <= bound
    # The origin costs nothing: rows are moved before anything is summed.
    near = Centered(sketch.fresh()).update(X - offset).error_bound()
    assert bound <= 1.01 * near + 1e-9


def test_sparse_rows_far_from_the_origin_are_within_their_bound():
    X = np.random.default_rng(0).standard_normal((200, 6)) + 1e9
    for inner in (FrequentDirections(3), SparseFrequentDirections(3)):
        error, bound = error_and_bound(Centered(inner).update(sp.csr_array(X)), X, centered=True)
        assert error <= bound


@pytest.mark.parametrize(("dtype", "offset"), [(np.float32, 1e4), (np.float64, 1e8)])
def test_distances_far_from_the_origin_have_digits(dtype, offset):
    rng = np.random.default_rng(0)
    X = (offset + rng.standard_normal((2_000, 20)) * np.linspace(3, 0.3, 20)).astype(dtype)
    pca = StreamingPCA(3).fit(X)
    around = X.astype(np.float64) - X.astype(np.float64).mean(axis=0)
    rest = around - around @ pca.components_.T @ pca.components_
    true = (rest**2).sum(axis=1)
    np.testing.assert_allclose(pca.reconstruction_error(X), true, rtol=1e-5)
    near = X.astype(np.float64) - offset
    exact = PCA(3).fit(near).score(near)
    assert pca.score(X) == pytest.approx(exact, rel=1e-5)
    np.testing.assert_allclose(
        pca.transform(X), around @ pca.components_.T, atol=2e-3 if dtype == np.float32 else 1e-6
    )


# 2. Many shrinks


@pytest.mark.parametrize("correction", ["none", "half"])
def test_roundings_of_many_shrinks_add_up(correction):
    rng = np.random.default_rng(0)
    rows = sp.random_array((12_000, 60), density=0.05, rng=rng).toarray()
    X = rows * 0.5 ** np.arange(60)
    sketch = FrequentDirections(10, solver="exact", correction=correction).update(X)
    error, bound = error_and_bound(sketch, X)
    assert error <= bound


def test_gains_below_a_rounding_of_single_precision_are_kept():
    gain = np.float32(np.sqrt(0.9 * 2**-23 / 2))
    X = np.zeros((20_001, 4), np.float32)
    X[0, 0], X[1:, 0] = 1.0, gain
    sketch = FrequentDirections(1, solver="exact", buffer_rows=3).update(X)
    assert sketch.n_shrinks >= 9_000
    true = float((X[:, 0].astype(np.longdouble) ** 2).sum())
    low, high = sketch.certificate().eigenvalues[0]
    assert low <= true <= high
    assert sketch.summary().eigenvalues[0] == pytest.approx(true, rel=1e-9)


# 3. The exact covariance


def test_small_directions_of_the_exact_covariance_are_not_dropped():
    X = np.zeros((2, 500))
    X[0, 0], X[1, 1] = 1.0, 1e-7
    error, bound = error_and_bound(ExactCovariance().update(X), X)
    assert error <= bound
    svd = StreamingSVD(2).fit(X)
    np.testing.assert_allclose(svd.singular_values_, [1.0, 1e-7])
    assert abs(svd.components_[1, 1]) == pytest.approx(1.0)


@pytest.mark.parametrize("n_rows", [10_000, 300_000])
def test_the_exact_covariance_counts_the_roundings_of_its_sums(n_rows):
    X = np.full((n_rows, 1), 1 / 3)
    error, bound = error_and_bound(ExactCovariance().update(X), X)
    assert error <= bound <= 1e-11 * n_rows


def test_tables_in_single_precision_with_several_units_are_summed_in_double():
    rng = np.random.default_rng(0)
    X = (rng.standard_normal((2_000, 6)) * [1e-2, 1, 1, 10, 1e2, 1e3]).astype(np.float32)
    y = X @ (1.0 / np.array([1e-2, 1, 1, 10, 1e2, 1e3]))
    single = StreamingRidge(1e-3).fit(X, y)
    double = StreamingRidge(1e-3).fit(X.astype(np.float64), y)
    assert single.coef_error_bound_ <= 1.01 * double.coef_error_bound_
    np.testing.assert_allclose(single.coef_, double.coef_, rtol=1e-6)


# 5. Known seeds


@pytest.mark.parametrize("weight", [3, 5])
def test_a_row_that_knows_the_seed_does_not_hide(weight):
    d, size, n = 400, 10, 500
    known = [stream(0, "directions", 1).standard_normal((60, d), dtype=np.float32)]
    known += [stream(0, f"verification {k}", 1).standard_normal((8, d)) for k in range(1, 5)]
    Q = np.linalg.qr(np.vstack(known).T.astype(float))[0]
    rng = np.random.default_rng(5)
    v = rng.standard_normal(d)
    for _ in range(2):
        v -= Q @ (Q.T @ v)
    v /= np.linalg.norm(v)
    strong = np.linalg.qr(rng.standard_normal((d, size)))[0].T
    X = rng.standard_normal((n, size)) @ strong * 3 + 0.05 * rng.standard_normal((n, d))
    X -= np.outer(X @ v, v)
    bulk = 0.05**2 * (np.sqrt(n) + np.sqrt(d)) ** 2
    X = np.vstack([X, np.sqrt(weight * bulk) * v])
    sketch = FrequentDirections(size, rule="half", solver="block").update(X)
    error = np.linalg.norm(X.T @ X - sketch.summary().to_dense(), 2)
    assert error <= sketch.error_bound()


def test_a_read_does_not_show_what_verifies_the_next_shrink():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 60)) / np.arange(1, 61)
    drawn = []

    def verified(rows):
        sketch = FrequentDirections(4, solver="block", buffer_rows=400).update(rows)
        sketch.summary()
        drawn.append(sketch._whole().ledger.shrinkage)

    # The rows decide, so one more of them is another draw and the same ones are the same.
    verified(X[:280])
    verified(X[:280])
    verified(X[:281])
    assert drawn[0] == drawn[1] != drawn[2]
    shares = [FrequentDirections(4)._settings(reading=reading).chance(1) for reading in (0, 1)]
    assert shares[1] < shares[0]


# 7. Attributes and their intervals


def test_a_target_is_met_where_that_is_certain():
    X = np.random.default_rng(0).standard_normal((1_500, 600)) * np.linspace(1, 0.6, 600)
    pca = StreamingPCA(0.12, sketch_size=40).fit(X)
    around = X - X.mean(axis=0)
    true = ((around @ pca.components_.T) ** 2).sum() / (around**2).sum()
    assert true >= 0.12 or not pca.target_met_
    exact = StreamingPCA(0.12).fit(X[:, :100])
    assert exact.target_met_


@pytest.mark.parametrize("rule", ["uniform", "half", "parameterized", "truncate"])
@pytest.mark.parametrize("correction", ["none", "half", "full", "trace", 5.0])
def test_explained_variance_is_in_its_certified_interval(rule, correction):
    X = np.repeat(np.eye(60)[:40], 6, axis=0) + 0.01 * np.random.default_rng(0).random((240, 60))
    sketch = FrequentDirections(8, rule=rule, correction=correction, solver="exact")
    for model, degrees in ((StreamingPCA, len(X) - 1), (StreamingSVD, len(X))):
        fitted = model(6, sketch=sketch).fit(X)
        low, high = fitted.certificate_.eigenvalues[:6].T / degrees
        rounding = 1e-14 * high
        assert (low - rounding <= fitted.explained_variance_).all()
        assert (fitted.explained_variance_ <= high + rounding).all()
        share = fitted.certificate_.captured_energy[5]
        assert share[0] - 1e-12 <= fitted.explained_variance_ratio_.sum() <= share[1] + 1e-12


# 9. What is printed, and scikit-learn's attributes


def test_printed_bounds_are_rounded_outward():
    intervals = np.array([[0.99949, 1.0049]])
    certificate = Certificate((0.99996, 1.0049), intervals, intervals, 1, 2.0, 3, 1 - 1e-6)
    lines = str(certificate).splitlines()
    assert "confidence 0.9999" in lines[0]
    assert "between 0.999 and 1.01, at most 50.3%" in lines[1]
    assert "k=1: 99.9% to 101%" in lines[2]
    assert "1: 0.999 to 1.01" in lines[3]


def test_what_a_parameter_says_after_fit_does_not_depend_on_a_look():
    X = np.random.default_rng(0).standard_normal((200, 30))
    seen, unseen = StreamingPCA(5).fit(X), StreamingPCA(5).fit(X)
    assert len(seen.components_) == 5
    for pca in (seen, unseen):
        pca.set_params(n_components=2)
        assert len(pca.components_) == 2
    seen.n_components = 3
    assert seen.transform(X).shape == (200, 3)


@pytest.mark.parametrize("rows", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("n_features", [7, 600])
def test_the_variance_of_columns_is_that_of_incremental_pca(rows, n_features):
    X = np.random.default_rng(0).standard_normal((900, n_features)) + 3.0
    ours = StreamingPCA(2).partial_fit(rows(X[:400])).partial_fit(rows(X[400:]))
    merged = StreamingPCA(2).fit(rows(X[:300])).merge(StreamingPCA(2).fit(rows(X[300:])))
    for pca in (ours, merged):
        np.testing.assert_allclose(pca.var_, X.var(axis=0), rtol=1e-9)
    np.testing.assert_allclose(ours.var_, IncrementalPCA(2).fit(X).var_, rtol=1e-9)


def test_noise_and_score_are_those_of_pca_where_rows_are_few():
    X = np.random.default_rng(0).standard_normal((40, 100)) * np.linspace(3, 1, 100)
    ours, exact = StreamingPCA(5).fit(X), PCA(5, svd_solver="full").fit(X)
    assert ours.noise_variance_ == pytest.approx(exact.noise_variance_, rel=1e-9)
    assert ours.score(X) == pytest.approx(exact.score(X), rel=1e-9)


# 10. What the half rule guarantees


@pytest.mark.parametrize("buffer_rows", [11, 30])
def test_the_half_rule_is_not_much_worse_than_the_uniform_one(buffer_rows):
    X = np.eye(300)
    half = FrequentDirections(10, rule="half", solver="exact", buffer_rows=buffer_rows).update(X)
    assert half.shrinkage <= 1.1 * bounds.frequent_directions(X, 10) * (1 + 1e-12)
    uniform = FrequentDirections(10, solver="exact", buffer_rows=buffer_rows).update(X)
    assert half.error_bound() <= 1.12 * uniform.error_bound()
