import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.decomposition import PCA, IncrementalPCA, TruncatedSVD
from sklearn.utils.estimator_checks import parametrize_with_checks

import sksketch
from _support import laws, zoo
from sksketch import FrequentDirections, StreamingPCA, StreamingSVD

RNG = np.random.default_rng(0)
X = RNG.standard_normal((400, 25)) * np.linspace(4.0, 0.3, 25) + np.arange(25)
X = X @ np.linalg.qr(RNG.standard_normal((25, 25)))[0]
NAMES = [f"column {i}" for i in range(25)]


@parametrize_with_checks(
    [
        StreamingPCA(),
        StreamingPCA(2, sketch="rfd", sketch_size=2),
        StreamingPCA(1, whiten=True),
        StreamingSVD(),
        StreamingSVD(1, sketch="fd", sketch_size=3),
    ]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


# Against scikit-learn, which sees all rows at once


@pytest.mark.parametrize("k", [1, 4, 24, 25])
@pytest.mark.parametrize("whiten", [False, True])
@pytest.mark.parametrize("rows", ["at once", "in blocks", "one by one"])
def test_exact_pca_is_pca(k, whiten, rows):
    ours = StreamingPCA(k, sketch="exact", whiten=whiten)
    for piece in {"at once": [X], "in blocks": np.array_split(X, 7), "one by one": X}[rows]:
        ours.partial_fit(np.atleast_2d(piece))
    theirs = PCA(k, svd_solver="full", whiten=whiten).fit(X)
    signs = np.sign((ours.components_ * theirs.components_).sum(axis=1))
    np.testing.assert_allclose(ours.components_ * signs[:, None], theirs.components_, atol=1e-9)
    for name in ("explained_variance_", "explained_variance_ratio_", "singular_values_", "mean_"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-9)
    np.testing.assert_allclose(ours.noise_variance_, theirs.noise_variance_, atol=1e-9)
    assert ours.n_components_ == theirs.n_components_ == k
    assert ours.n_samples_seen_ == 400
    assert ours.n_features_in_ == 25
    scores = ours.transform(X)
    np.testing.assert_allclose(scores * signs, theirs.transform(X), atol=1e-8)
    np.testing.assert_allclose(
        ours.inverse_transform(scores), theirs.inverse_transform(theirs.transform(X)), atol=1e-8
    )
    # Whitening changes the scores and not the model; scikit-learn's model forgets that.
    model = PCA(k, svd_solver="full").fit(X)
    np.testing.assert_allclose(ours.score_samples(X), model.score_samples(X), rtol=1e-8)
    np.testing.assert_allclose(ours.score(X), model.score(X), rtol=1e-8)
    np.testing.assert_allclose(ours.get_covariance(), model.get_covariance(), atol=1e-8)
    np.testing.assert_allclose(ours.get_precision(), model.get_precision(), atol=1e-6)
    np.testing.assert_allclose(ours.var_, X.var(axis=0), rtol=1e-10)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
def test_exact_svd_is_truncated_svd(make):
    rows = make(X)
    ours = StreamingSVD(4, sketch="exact").fit(rows)
    theirs = TruncatedSVD(4, algorithm="arpack").fit(X)
    signs = np.sign((ours.components_ * theirs.components_).sum(axis=1))
    np.testing.assert_allclose(ours.components_ * signs[:, None], theirs.components_, atol=1e-9)
    np.testing.assert_allclose(ours.singular_values_, theirs.singular_values_, rtol=1e-9)
    np.testing.assert_allclose(ours.transform(rows) * signs, theirs.transform(X), atol=1e-8)
    # Mean squared coordinates: not centered, unlike scikit-learn's variances.
    np.testing.assert_allclose(ours.explained_variance_, ours.singular_values_**2 / 400)
    np.testing.assert_allclose(
        ours.explained_variance_ratio_, ours.singular_values_**2 / zoo.energy(X)
    )


def test_reconstruction_error_is_the_distance_to_the_projection():
    for estimator in (StreamingPCA(3), StreamingSVD(3), StreamingPCA(3, whiten=True)):
        estimator.fit(X)
        back = estimator.inverse_transform(estimator.transform(X))
        expected = ((X - back) ** 2).sum(axis=1)
        np.testing.assert_allclose(estimator.reconstruction_error(X), expected, atol=1e-8)
        np.testing.assert_allclose(
            estimator.reconstruction_error(sp.csr_array(X)), expected, atol=1e-8
        )


# Components


def test_signs_are_deterministic():
    rows = X.copy()
    for sketch in ("exact", "rfd"):
        a = StreamingPCA(5, sketch=sketch, sketch_size=12).fit(rows)
        b = StreamingPCA(5, sketch=sketch, sketch_size=12).fit(-rows)
        np.testing.assert_allclose(a.components_, b.components_, atol=1e-8)
        largest = np.abs(a.components_).argmax(axis=1)
        assert (a.components_[np.arange(5), largest] > 0).all()


def test_components_are_orthonormal_and_variances_descend():
    for sketch in ("exact", "fd", "rfd", "cfd", "pfd", "isvd"):
        pca = StreamingPCA(6, sketch=sketch, sketch_size=9).fit(X)
        V = pca.components_
        np.testing.assert_allclose(V @ V.T, np.eye(6), atol=1e-10)
        assert (np.diff(pca.explained_variance_) <= 0).all()
        assert pca.explained_variance_ratio_.sum() <= 1 + 1e-12


def test_a_fraction_of_the_variance():
    theirs = PCA(0.95, svd_solver="full").fit(X)
    ours = StreamingPCA(0.95).fit(X)
    assert ours.n_components_ == theirs.n_components_
    assert ours.explained_variance_ratio_.sum() >= 0.95
    assert ours.target_met_
    small = StreamingPCA(0.95, sketch=FrequentDirections(3, solver="exact")).fit(X)
    assert small.n_components_ <= 3
    assert not small.target_met_


def test_all_components_by_default():
    assert StreamingPCA().fit(X).n_components_ == 25
    assert StreamingPCA().fit(X[:5]).n_components_ == 4
    assert StreamingSVD().fit(X[:5]).n_components_ == 5


def test_as_many_components_as_asked_for_whatever_the_rank():
    for rows in (X[:5], np.tile(X[:1], (20, 1)), np.zeros((9, 25))):
        pca = StreamingPCA(10, whiten=True).fit(rows)
        V = pca.components_
        assert V.shape == (10, 25)
        np.testing.assert_allclose(V @ V.T, np.eye(10), atol=1e-10)
        assert np.abs(pca.explained_variance_[len(rows) - 1 :]).max(initial=0.0) <= 1e-20
        assert np.isfinite(pca.transform(rows)).all()
    with pytest.warns(UserWarning, match="n_components=99 is more than the 25 columns"):
        assert StreamingPCA(99).fit(X).n_components_ == 25


@pytest.mark.parametrize("sketch", ["exact", "rfd", "cfd"])
def test_variances_lie_in_their_certified_intervals(sketch):
    pca = StreamingPCA(6, sketch=sketch, sketch_size=9).fit(X)
    intervals = pca.certificate_.eigenvalues[:6] / 399
    variances = pca.explained_variance_
    slack = 1e-9 * pca.var_.sum()
    assert (intervals[:, 0] - slack <= variances).all()
    assert (variances <= intervals[:, 1] + slack).all()
    truth = PCA(6, svd_solver="full").fit(X).explained_variance_
    assert (intervals[:, 0] - slack <= truth).all()
    assert (truth <= intervals[:, 1] + slack).all()


@pytest.mark.parametrize("n_components", [8, 16])
@pytest.mark.parametrize(
    "source",
    [
        sksketch.datasets.stationary(6000, 600),
        sksketch.datasets.stationary(6000, 600, decay=0.5),
        sksketch.datasets.drifting(6000, 600),
        sksketch.datasets.low_rank_plus_noise(6000, 600, rank=8),
    ],
    ids=["steady", "slow decay", "drifting", "low rank"],
)
def test_components_miss_no_more_than_those_of_incremental_pca(source, n_components):
    X = source.rows(0, 6000)
    ours = StreamingPCA(16).fit(X)
    assert "verified subspace iteration" in ours.plan_
    theirs = IncrementalPCA(16, batch_size=32).fit(X)
    centered = X - X.mean(axis=0)

    def missed(pca):
        V = pca.components_[:n_components]
        return np.linalg.norm(centered - (centered @ V.T) @ V) ** 2

    assert missed(ours) <= missed(theirs)


def test_the_certificate_is_about_the_centered_rows():
    pca = StreamingPCA(3, sketch="rfd", sketch_size=6).fit(X)
    laws.bound_is_true(pca.sketch_, X - X.mean(axis=0))
    assert pca.certificate_.spectral_error[1] == pca.sketch_.error_bound()


# Streams


@pytest.mark.parametrize("make", [StreamingPCA, StreamingSVD])
@pytest.mark.parametrize("sketch", ["exact", "rfd", "auto"])
def test_blocks_do_not_matter(make, sketch):
    whole = make(4, sketch=sketch, sketch_size=8).fit(X)
    split = make(4, sketch=sketch, sketch_size=8)
    for piece in np.split(X, [1, 2, 5, 100, 101, 350]):
        split.partial_fit(piece)
    for name in ("components_", "explained_variance_", "singular_values_"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(split, name))


@pytest.mark.parametrize("sketch", ["auto", "rfd"])
def test_a_first_batch_smaller_than_the_components(sketch):
    pca = StreamingPCA(5, sketch=sketch).partial_fit(X[:1])
    assert pca.transform(X[:3]).shape == (3, pca.n_components_)
    assert np.isfinite(pca.explained_variance_).all()
    for n in (2, 3):
        pca.partial_fit(X[n - 1 : n])
        assert pca.n_components_ == 5
        assert np.count_nonzero(pca.explained_variance_ > 1e-9) == n - 1
        assert pca.n_samples_seen_ == n
    pca.partial_fit(X[3:])
    assert pca.n_components_ == 5
    assert pca.components_.shape == (5, 25)


def test_a_refit_forgets():
    pca = StreamingPCA(3, sketch="rfd").fit(X[:100, :10])
    assert pca.components_.shape == (3, 10)
    pca.fit(X)
    fresh = StreamingPCA(3, sketch="rfd").fit(X)
    np.testing.assert_array_equal(pca.components_, fresh.components_)
    np.testing.assert_array_equal(pca.mean_, fresh.mean_)
    assert pca.n_samples_seen_ == 400


def test_partial_fit_goes_on_after_fit():
    pca = StreamingPCA(3).fit(X[:200]).partial_fit(X[200:])
    np.testing.assert_array_equal(pca.components_, StreamingPCA(3).fit(X).components_)


def test_nothing_is_solved_until_it_is_read(monkeypatch):
    calls = []
    real = sksketch.Centered._answer
    monkeypatch.setattr(
        sksketch.Centered, "_answer", lambda self, extra=None: calls.append(1) or real(self, extra)
    )
    pca = StreamingPCA(3, sketch="rfd")
    for piece in np.array_split(X, 10):
        pca.partial_fit(piece)
    assert pca.n_samples_seen_ == 400
    _ = pca.mean_
    other = StreamingPCA(3, sketch="rfd").fit(X)
    pca.merge(other)
    assert not calls
    _ = pca.components_
    n_calls = len(calls)
    assert n_calls >= 1
    _ = pca.explained_variance_, pca.components_, pca.noise_variance_, pca.transform(X)
    assert len(calls) == n_calls
    pca.partial_fit(X)
    assert len(calls) == n_calls
    _ = pca.components_
    assert len(calls) > n_calls


def test_a_reading_does_not_show_through_later_updates():
    pca = StreamingPCA(3).partial_fit(X[:100])
    before, kept = pca.components_, pca.components_.copy()
    pca.partial_fit(100 * X[100:])
    np.testing.assert_array_equal(before, kept)
    assert not np.allclose(pca.components_, kept)


@pytest.mark.parametrize("make", [StreamingPCA, StreamingSVD])
def test_weights_are_repeated_rows(make):
    counts = RNG.integers(0, 4, 400)
    weighted = make(5, sketch="exact").fit(X, sample_weight=counts)
    repeated = make(5, sketch="exact").fit(np.repeat(X, counts, axis=0))
    np.testing.assert_allclose(weighted.components_, repeated.components_, atol=1e-8)
    for name in ("explained_variance_", "explained_variance_ratio_", "singular_values_"):
        np.testing.assert_allclose(getattr(weighted, name), getattr(repeated, name), rtol=1e-8)
    np.testing.assert_allclose(weighted.noise_variance_, repeated.noise_variance_, rtol=1e-8)
    np.testing.assert_allclose(weighted.transform(X), repeated.transform(X), atol=1e-7)


def test_weights_through_partial_fit():
    counts = RNG.integers(0, 4, 400)
    parts = StreamingPCA(5)
    for rows, w in zip(np.array_split(X, 5), np.array_split(counts, 5), strict=True):
        parts.partial_fit(rows, sample_weight=w)
    whole = StreamingPCA(5).fit(X, sample_weight=counts)
    np.testing.assert_array_equal(parts.components_, whole.components_)


def test_tolerance_is_met_or_admitted():
    # So wide that the sketch does not turn into an exact covariance.
    wide = zoo.SHAPES["power law"](400, 300)
    A = wide - wide.mean(axis=0)
    met = []
    for tol in (0.1, 0.02, 1e-5):
        pca = StreamingPCA(3, sketch="rfd", tol=tol, max_sketch_size=40).fit(wide)
        met.append(pca.target_met_)
        assert pca.target_met_ == (pca.certificate_.relative_error <= tol)
        true = np.linalg.norm(zoo.gram(A) - pca.sketch_.summary().to_dense(), 2) / zoo.energy(A)
        assert true <= pca.certificate_.relative_error + 1e-9
    assert met == [True, True, False]
    assert StreamingPCA(3, sketch="exact", tol=1e-5).fit(wide).target_met_
