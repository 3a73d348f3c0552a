"""Spectral clustering: shapes that k-means cannot tell apart, and labels for new rows."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.cluster import SpectralClustering
from sklearn.datasets import load_digits, make_blobs, make_circles, make_moons
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks

import sksketch
from sksketch import StreamingSpectralClustering
from sksketch.kernel_methods.latent.spectral import local_scale, spectral_coefficients


@parametrize_with_checks([StreamingSpectralClustering(3, landmarks=60)])
def test_estimator_contract(estimator, check):
    check(estimator)


def score(X, y, n_clusters=2, **options) -> float:
    model = StreamingSpectralClustering(n_clusters, **options)
    return float(adjusted_rand_score(y, model.fit_predict(X)))


@pytest.mark.parametrize(("n", "seeds"), [(500, 3), (20_000, 1)])
@pytest.mark.parametrize("factor", [0.3, 0.5])
def test_two_circles_at_defaults(n, seeds, factor):
    for seed in range(seeds):
        X, y = make_circles(n, factor=factor, noise=0.05, random_state=seed)
        assert score(X, y, random_state=seed) == 1.0


@pytest.mark.parametrize(("n", "seeds"), [(500, 3), (20_000, 1)])
@pytest.mark.parametrize("noise", [0.05, 0.1])
def test_two_moons_at_defaults(n, seeds, noise):
    for seed in range(seeds):
        X, y = make_moons(n, noise=noise, random_state=seed)
        assert score(X, y, random_state=seed) >= 0.95


def test_blobs_of_any_shape_at_defaults():
    X, y = make_blobs(1500, random_state=170)
    assert score(X @ [[0.6, -0.6], [-0.4, 0.8]], y, 3) > 0.97
    X, y = make_blobs(1500, cluster_std=[1.0, 2.5, 0.5], random_state=170)
    assert score(X, y, 3) > 0.85
    X, y = make_blobs(2000, centers=20, n_features=5, random_state=0)
    assert score(X, y, 20) > 0.97


def test_digits_are_clustered_about_as_well_as_with_the_whole_affinity():
    X, y = load_digits(return_X_y=True)
    model = StreamingSpectralClustering(10).fit(X)
    whole = SpectralClustering(10, gamma=0.5 / model.bandwidth_**2, random_state=0).fit(X)
    ours = adjusted_rand_score(y, model.labels_)
    assert ours > 0.55
    assert ours > adjusted_rand_score(y, whole.labels_) - 0.1


def test_all_rows_as_landmarks_give_the_eigenvectors_of_the_normalised_affinity():
    X, _ = make_moons(120, noise=0.1, random_state=0)
    model = StreamingSpectralClustering(3, bandwidth=0.3, landmarks=X).fit(X)
    K = np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2) / 0.3**2)
    degrees = K.sum(axis=1)
    assert degrees.min() > 0.1 * np.median(degrees)
    U = np.linalg.eigh(K / np.sqrt(np.outer(degrees, degrees)))[1][:, ::-1][:, :3]
    U /= np.linalg.norm(U, axis=1, keepdims=True)
    E = model.transform(X)
    np.testing.assert_allclose(E @ E.T, U @ U.T, atol=1e-5)


def test_random_features_on_request():
    X, y = make_blobs(1000, centers=3, cluster_std=0.5, random_state=3)
    assert score(X, y, 3, landmarks=None, bandwidth=2.0, n_random_features=512) > 0.97


def test_new_rows_are_labelled_like_those_of_fit():
    X, _ = make_moons(2000, noise=0.05, random_state=0)
    model = StreamingSpectralClustering(2).fit(X)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    new, truth = make_moons(500, noise=0.05, random_state=1)
    assert adjusted_rand_score(truth, model.predict(new)) == 1.0
    np.testing.assert_allclose(np.linalg.norm(model.transform(new), axis=1), 1.0)
    assert model.transform(new.astype(np.float32)).dtype == np.float32
    assert list(model.get_feature_names_out()) == [
        "streamingspectralclustering0",
        "streamingspectralclustering1",
    ]


def test_rows_far_from_all_others_take_no_cluster():
    X, y = make_blobs(600, centers=[[0, 0], [12, 0]], random_state=0)
    X = np.vstack([X, [[6.0, 60.0]]])
    labels = StreamingSpectralClustering(2).fit_predict(X)
    assert adjusted_rand_score(y, labels[:-1]) == 1.0


def test_sparse_rows_and_torch_arrays_agree_with_numpy():
    X, _ = make_moons(400, noise=0.05, random_state=0)
    model = StreamingSpectralClustering(2, landmarks=100)
    labels = clone(model).fit_predict(X)
    np.testing.assert_array_equal(clone(model).fit_predict(sp.csr_array(X)), labels)
    torch = pytest.importorskip("torch")
    found = clone(model).fit_predict(torch.asarray(X))
    assert isinstance(found, torch.Tensor)
    np.testing.assert_array_equal(found.numpy(), labels)


def test_saved_and_loaded_it_labels_and_embeds_the_same(tmp_path):
    X, _ = make_moons(400, noise=0.05, random_state=0)
    for options in ({}, {"landmarks": None, "n_random_features": 256}, {"landmarks": X[:50]}):
        model = StreamingSpectralClustering(2, **options).fit(X)
        model.save(tmp_path / "model.sks")
        loaded = sksketch.load(tmp_path / "model.sks")
        np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
        np.testing.assert_array_equal(loaded.transform(X), model.transform(X))
        assert loaded.bandwidth_ == model.bandwidth_


def test_blocks_are_invisible(monkeypatch):
    X, _ = make_moons(1000, noise=0.05, random_state=0)
    model = StreamingSpectralClustering(2, landmarks=100).fit(X)
    one = spectral_coefficients(model.features_, X, 2, 0)
    monkeypatch.setattr("sksketch.kernel_methods.latent.spectral.BLOCK_BYTES", 1)
    np.testing.assert_allclose(spectral_coefficients(model.features_, X, 2, 0), one, rtol=1e-6)


def test_memory_does_not_grow_with_the_rows():
    X, _ = make_circles(200_000, factor=0.5, noise=0.05, random_state=0)
    model = StreamingSpectralClustering(2, landmarks=50)
    model.fit(X[:2000])
    tracemalloc.start()
    model.fit(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # Blocks of features, the sample of k-means and the labels; an affinity would take 320 GB.
    assert peak < 150e6


def test_the_local_scale_is_that_of_neighbours():
    X, _ = make_circles(1000, factor=0.5, noise=0.02, random_state=0)
    narrow, wide = (local_scale(X, k, "gaussian", 0) for k in (50, 2))
    assert narrow < wide < 0.2
    assert local_scale(X * 10, 2, "gaussian", 0) == pytest.approx(10 * wide)
    assert local_scale(X, 2, "laplacian", 0) > wide
    assert local_scale(X, 2, "polynomial", 0) == 1.0
    # Equal rows have no scale, and many equal rows that of the others.
    assert local_scale(np.ones((20, 2)), 2, "gaussian", 0) == 1.0
    assert local_scale(np.repeat(X[:50], 10, axis=0), 2, "gaussian", 0) > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_clusters": 0}, "n_clusters is 0; give an integer of at least 1"),
        ({"n_clusters": 30}, "n_samples=20 is fewer than n_clusters=30"),
        ({"landmarks": 0}, "landmarks is 0"),
        ({"landmarks": np.ones((3, 5))}, "expected rows of 2 features"),
        ({"bandwidth": "wide"}, "bandwidth is 'wide'"),
        ({"bandwidth": -1.0}, "bandwidth is -1.0"),
        ({"kernel": "cosine"}, "kernel is 'cosine'; give one of 'gaussian'"),
    ],
)
def test_what_makes_no_sense_is_refused(options, message):
    X = np.random.default_rng(0).standard_normal((20, 2))
    with pytest.raises(ValueError, match=message):
        StreamingSpectralClustering(**({"n_clusters": 2} | options)).fit(X)


def test_constant_columns_and_equal_rows():
    X, y = make_moons(300, noise=0.05, random_state=0)
    assert score(np.column_stack([X, np.full(300, 5.0)]), y) == 1.0
    assert score(np.repeat(X, 3, axis=0), np.repeat(y, 3)) == 1.0
    two = np.repeat([[0.0], [1.0]], 20, axis=0)
    assert score(two, two[:, 0]) == 1.0
