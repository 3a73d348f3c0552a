import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from _support import zoo
from sksketch.arrays import linalg


@given(X=zoo.matrices(scales=(1.0, 1e60, 1e-60)))
def test_thin_svd_factors_its_rows(X):
    s, V = linalg.thin_svd(X)
    assert len(s) == min(X.shape)
    assert (np.diff(s) <= 0).all()
    np.testing.assert_allclose(V @ V.T, np.eye(len(s)), atol=1e-12)
    np.testing.assert_allclose((V.T * s**2) @ V, zoo.gram(X), atol=zoo.ORACLE_RTOL * zoo.energy(X))


def test_thin_svd_sees_far_below_the_largest_value():
    s = np.geomspace(1.0, 1e-14, 6)
    found, _ = linalg.thin_svd(s[:, None] * np.eye(6, 30))
    np.testing.assert_allclose(found, s, rtol=1e-10)


def test_thin_svd_falls_back_when_the_fast_driver_fails(monkeypatch):
    real = linalg.scipy.linalg.svd

    def failing(A, lapack_driver="gesdd", **options):
        if lapack_driver == "gesdd":
            raise np.linalg.LinAlgError("did not converge")
        return real(A, lapack_driver=lapack_driver, **options)

    monkeypatch.setattr(linalg.scipy.linalg, "svd", failing)
    s, _ = linalg.thin_svd(np.diag([1.0, 3.0, 2.0]))
    np.testing.assert_allclose(s, [3.0, 2.0, 1.0])


def test_eigh_descending():
    G = np.diag([1.0, 3.0, 2.0])
    e, V = linalg.eigh_descending(G)
    np.testing.assert_allclose(e, [3.0, 2.0, 1.0])
    np.testing.assert_allclose((V * e) @ V.T, G, atol=1e-14)


@pytest.mark.parametrize("scale", [1e-290, 1.0, 1e290])
@pytest.mark.parametrize("wanted", [1, 4, 10])
@given(seed=st.integers(0, 2**16), rank=st.integers(0, 30))
def test_the_first_eigenvectors_alone_are_those_of_all(scale, wanted, seed, rank):
    rows = np.random.default_rng(seed).standard_normal((rank, 20)) * 0.5 ** np.arange(20)
    G = scale * (rows.T @ rows)
    values, U = linalg.eigh_descending(G, wanted)
    all_values, _ = linalg.eigh_descending(G)
    largest = max(all_values[0], np.finfo(float).tiny)
    np.testing.assert_allclose(values / largest, all_values / largest, atol=1e-13)
    np.testing.assert_allclose(U[:, :wanted].T @ U[:, :wanted], np.eye(wanted), atol=1e-12)
    np.testing.assert_allclose(
        (G / largest) @ U[:, :wanted], U[:, :wanted] * (values[:wanted] / largest), atol=1e-13
    )


@pytest.mark.parametrize("wanted", [-1, 0])
def test_no_eigenvectors_are_wanted_only_by_a_forged_file(wanted, capfd):
    values, _ = linalg.eigh_descending(np.diag([1.0, 3.0]), wanted)
    np.testing.assert_allclose(values, [3.0, 1.0])
    # LAPACK would print what it does not like.
    assert capfd.readouterr().out == ""


def test_the_first_eigenvectors_without_the_routine_that_divides(monkeypatch):
    monkeypatch.delattr(linalg.lapack, "dstevd", raising=False)
    values, U = linalg.eigh_descending(np.diag([1.0, 3.0, 2.0]), 1)
    np.testing.assert_allclose(values, [3.0, 2.0, 1.0])
    np.testing.assert_allclose(np.abs(U[:, 0]), [0.0, 1.0, 0.0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(seed=st.integers(0, 2**16), n=st.integers(1, 12), width=st.integers(12, 40))
def test_orthonormal_rows_span_what_they_were_given(dtype, seed, n, width):
    rng = np.random.default_rng(seed)
    T = (rng.standard_normal((n, width)) * 10.0 ** rng.integers(-6, 6, (n, 1))).astype(dtype)
    Q = linalg.orthonormal_rows(T)
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(Q @ Q.T, np.eye(len(Q)), atol=100 * eps)
    scaled = T / np.linalg.norm(T, axis=1, keepdims=True)
    np.testing.assert_allclose((scaled @ Q.T) @ Q, scaled, atol=1e4 * eps)


@pytest.mark.parametrize(
    "T",
    [
        np.zeros((3, 5)),
        np.ones((4, 5)),
        np.vstack([np.eye(3, 6), np.eye(3, 6), np.zeros((2, 6))]),
        np.vstack([np.ones((1, 6)), np.ones((1, 6)) + 1e-9 * np.eye(1, 6)]),
        np.random.default_rng(0).standard_normal((9, 4)),
    ],
)
def test_dependent_rows_are_left_out(T):
    Q = linalg.orthonormal_rows(T)
    assert len(Q) <= np.linalg.matrix_rank(T)
    np.testing.assert_allclose(Q @ Q.T, np.eye(len(Q)), atol=1e-10)
    missed = T - (T @ Q.T) @ Q
    assert np.linalg.norm(missed) <= 1e-6 * np.linalg.norm(T) + 1e-300


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_arrays_start_on_a_cache_line(dtype):
    for shape in ((1, 1), (3, 7), (100, 33)):
        A = linalg.aligned_empty(shape, np.dtype(dtype))
        assert A.ctypes.data % linalg.ALIGNMENT == 0
        assert A.shape == shape
        assert A.flags.c_contiguous
        assert A.flags.writeable
