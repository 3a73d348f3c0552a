import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from sksketch import FrequentDirections, datasets, metrics
from sksketch.low_rank import LowRankPlusRidge
from sksketch.streams import ArraySource


def some_rows(seed, n_rows, n_features):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n_rows, n_features)) / np.arange(1, n_features + 1)


def truncated(X, rank, ridge=0.0):
    """The best answer of a given rank."""
    _, s, V = np.linalg.svd(X, full_matrices=False)
    return LowRankPlusRidge(V[:rank], s[:rank] ** 2, ridge)


@given(
    seed=st.integers(0, 2**16),
    n_rows=st.integers(1, 30),
    n_features=st.integers(1, 12),
    ridge=st.sampled_from([0.0, 0.3]),
    initial_ridge=st.sampled_from([0.0, 2.0]),
)
def test_spectral_error_is_the_dense_norm_for_every_kind_of_rows(
    seed, n_rows, n_features, ridge, initial_ridge
):
    X = some_rows(seed, n_rows, n_features)
    H = truncated(X, min(2, n_features), ridge)
    target = X.T @ X + initial_ridge * np.eye(n_features)
    expected = np.linalg.norm(target - H.to_dense(), 2)
    for rows in (X, sp.csr_array(X), sp.csc_matrix(X), ArraySource(X, batch_rows=4)):
        error = metrics.spectral_error(rows, H, initial_ridge=initial_ridge)
        assert error == pytest.approx(expected, rel=1e-9, abs=1e-12 * np.trace(target))


@pytest.mark.parametrize("ridge", [0.0, 0.05])
def test_lanczos_and_the_dense_way_agree(monkeypatch, ridge):
    X = some_rows(0, 80, 60)
    H = truncated(X, 10, ridge)
    dense = metrics.spectral_error(X, H)
    monkeypatch.setattr(metrics, "DENSE_FEATURES", 0)
    for rows in (X, sp.csr_array(X), ArraySource(X, batch_rows=7)):
        assert metrics.spectral_error(rows, H) == pytest.approx(dense, rel=1e-9)


@pytest.mark.parametrize("correction", ["none", "half", "full"])
def test_lanczos_finds_the_end_of_a_flat_spectrum(monkeypatch, correction):
    # Many errors are all but equal, and with "half" the two ends are all but opposite.
    X = np.random.default_rng(5).standard_normal((400, 90)) / np.arange(1, 91) ** 0.25
    sketch = FrequentDirections(20, correction=correction, solver="exact").update(X)
    dense = metrics.spectral_error(X, sketch.summary())
    monkeypatch.setattr(metrics, "DENSE_FEATURES", 0)
    found = metrics.spectral_error(X, sketch.summary())
    assert found == pytest.approx(dense, rel=1e-6)
    assert found <= dense * (1 + 1e-9)


def test_lanczos_on_an_exact_answer_is_rounding_noise(monkeypatch):
    monkeypatch.setattr(metrics, "DENSE_FEATURES", 0)
    X = some_rows(1, 5, 600)
    assert metrics.spectral_error(X, truncated(X, 5)) <= 1e-12 * np.sum(X**2)
    nothing = LowRankPlusRidge(np.empty((0, 600)), np.empty(0))
    assert metrics.spectral_error(np.zeros((3, 600)), nothing) == 0.0


def test_lanczos_with_many_equal_errors(monkeypatch):
    monkeypatch.setattr(metrics, "DENSE_FEATURES", 0)
    X = np.eye(700)
    H = LowRankPlusRidge(np.eye(700)[:5], np.ones(5), ridge=0.5)
    assert metrics.spectral_error(X, H) == pytest.approx(0.5)


def test_covariance_error_is_relative_to_the_energy():
    X = some_rows(2, 40, 8)
    H = truncated(X, 3)
    expected = np.linalg.svd(X, compute_uv=False)[3] ** 2 / np.sum(X**2)
    assert metrics.covariance_error(X, H) == pytest.approx(expected)
    nothing = LowRankPlusRidge(np.empty((0, 8)), np.empty(0))
    assert metrics.covariance_error(np.zeros((4, 8)), nothing) == 0.0
    assert metrics.covariance_error(np.zeros((4, 8)), nothing.with_ridge(1.0)) == math.inf


@given(st.integers(0, 2**16), st.integers(1, 30), st.integers(1, 12), st.integers(0, 12))
def test_projection_error_and_tail_energy_match_the_svd(seed, n_rows, n_features, rank):
    X = some_rows(seed, n_rows, n_features)
    rank = min(rank, n_features)
    Q, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal((n_features, n_features)))
    V = Q.T[:rank]
    tail = np.sum(np.linalg.svd(X, compute_uv=False)[rank:] ** 2)
    for rows in (X, sp.csr_array(X), ArraySource(X, batch_rows=5)):
        assert metrics.tail_energy(rows, rank) == pytest.approx(tail, rel=1e-9, abs=1e-25)
        if tail > 1e-20:
            expected = np.sum((X - X @ V.T @ V) ** 2) / tail
            assert metrics.projection_error(rows, Q.T, rank) == pytest.approx(expected)


@settings(deadline=None)
@given(st.floats(1e-11, 1e-3))
def test_a_small_tail_keeps_its_digits(size):
    rng = np.random.default_rng(4)
    U, _ = np.linalg.qr(rng.standard_normal((50, 10)))
    V, _ = np.linalg.qr(rng.standard_normal((10, 10)))
    s = np.array([3.0, 2.0, 1.0, *([size] * 7)])
    X = (U * s) @ V.T
    # The entries of X are rounded at 1e-16 of the largest, so size has that absolute error.
    assert metrics.tail_energy(X, 3) == pytest.approx(7 * size**2, rel=1e-4)
    assert metrics.projection_error(X, V.T, 3) == pytest.approx(1.0, rel=1e-4)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_projection_error_where_nothing_is_left(dtype):
    rng = np.random.default_rng(5)
    X = rng.standard_normal((40, 3)) @ rng.standard_normal((3, 20))
    V = np.linalg.svd(X, full_matrices=False)[2].astype(dtype)
    assert metrics.projection_error(X, V, 3) == 1.0
    assert metrics.projection_error(X, V[::-1], 3) == math.inf
    assert metrics.projection_error(np.zeros((4, 20)), V, 2) == 1.0


def test_float32_rows_and_made_up_rows_are_read():
    source = datasets.stationary(500, 30, dtype=np.float32)
    X = source.rows(0, 500).astype(np.float64)
    H = truncated(X, 5)
    assert metrics.spectral_error(source, H) == pytest.approx(metrics.spectral_error(X, H))
    assert metrics.projection_error(source, H.components, 5) == pytest.approx(1.0)


def test_a_users_mistake_is_explained():
    X = np.ones((4, 3))
    H = LowRankPlusRidge(np.eye(2), np.ones(2))
    with pytest.raises(ValueError, match="3 features and the sketch's answer has 2"):
        metrics.spectral_error(X, H)
    with pytest.raises(ValueError, match="rank 3 was asked"):
        metrics.projection_error(X, np.eye(3)[:2], 3)
    with pytest.raises(ValueError, match="rank is -1"):
        metrics.tail_energy(X, -1)
