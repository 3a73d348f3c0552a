"""Products in parts: equal to the whole, and to the bit for any number of threads."""

import numpy as np
import pytest
import scipy.sparse as sp

from sksketch.arrays import products, sparse

SHAPES = [(1, 1), (5, 3), (3, 9000), (700, 20), (300, 700)]


@pytest.fixture(params=[False, True], ids=["one part", "small parts"])
def parts(request, monkeypatch):
    if request.param:
        monkeypatch.setattr(products, "PART_ENTRIES", (64, 512))
        monkeypatch.setattr(products, "PART_COLUMNS", 7)
        monkeypatch.setattr(products, "GROUP_ROWS", (16, 16))
        monkeypatch.setattr(products, "TILE_ROWS", 16)


def on_threads(monkeypatch, compute):
    """Return what is computed on one thread, after a look at that on two, three and eight."""
    monkeypatch.setenv("SKSKETCH_NUM_THREADS", "1")
    expected = compute()
    for n in (2, 3, 8):
        monkeypatch.setenv("SKSKETCH_NUM_THREADS", str(n))
        np.testing.assert_array_equal(compute(), expected)
    return expected


def rows_of(shape, dtype):
    return (np.random.default_rng(0).standard_normal(shape) + 3).astype(dtype)


each_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])
each_shape = pytest.mark.parametrize("shape", SHAPES)


@each_dtype
@each_shape
def test_gram_and_norms_are_double_sums(dtype, shape, parts, monkeypatch):
    X = rows_of(shape, dtype)
    wide = X.astype(np.float64)
    found = on_threads(monkeypatch, lambda: products.gram(X))
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, wide @ wide.T, rtol=1e-12)
    found = on_threads(monkeypatch, lambda: products.squared_norm(X))
    np.testing.assert_allclose(found, (wide**2).sum(), rtol=1e-13)
    np.testing.assert_allclose(products.squared_norm(X.T), (wide**2).sum(), rtol=1e-13)
    found = on_threads(monkeypatch, lambda: products.row_norms(X))
    np.testing.assert_allclose(found, (wide**2).sum(axis=1), rtol=1e-13)
    assert products.squared_norm(X[:0]) == 0.0


@each_dtype
@each_shape
@pytest.mark.parametrize("step", [1, 2])
def test_products_with_many_rows(dtype, shape, step, parts, monkeypatch):
    rng = np.random.default_rng(1)
    X = rows_of(shape, dtype)[::step]
    wide = X.astype(np.float64)
    tol = 64 * np.finfo(dtype).eps
    W = rng.standard_normal((X.shape[1], 4)).astype(dtype)
    found = on_threads(monkeypatch, lambda: products.times_rows(X, W))
    scale = np.abs(wide) @ np.abs(W)
    assert (np.abs(found - wide @ W) <= tol * scale).all()
    C = rng.standard_normal((4, len(X)))
    found = on_threads(monkeypatch, lambda: products.combined_rows(C.astype(dtype), X))
    assert found.dtype == dtype
    assert (np.abs(found - C @ wide) <= tol * (np.abs(C) @ np.abs(wide))).all()
    double = on_threads(monkeypatch, lambda: products.combined_rows(C, X))
    np.testing.assert_allclose(double, C @ wide, atol=1e-12 * np.abs(wide).sum())
    V = rng.standard_normal((3, X.shape[1])).astype(dtype)
    found = on_threads(monkeypatch, lambda: products.normal_rows(V, X))
    exact = (V @ wide.T) @ wide
    assert np.abs(found - exact).max() <= tol * np.linalg.norm(wide) ** 2 * np.abs(V).max() * 10


@pytest.mark.parametrize(("kept", "n_rows"), [(0, 5), (3, 0)])
def test_products_of_nothing(kept, n_rows):
    C, rows = np.ones((kept, n_rows)), np.ones((n_rows, 4))
    np.testing.assert_array_equal(products.combined_rows(C, rows), C @ rows)
    np.testing.assert_array_equal(products.normal_rows(np.ones((2, 4)), rows[:0]), np.zeros((2, 4)))


@pytest.mark.parametrize("few", [0, 640])
@each_shape
@pytest.mark.parametrize("factor", [1.0, 0.5])
def test_the_square_of_columns(few, shape, factor, parts, monkeypatch):
    monkeypatch.setattr(products, "FEW_COLUMNS", few)
    X = rows_of(shape, np.float64)[:, :900]
    d = X.shape[1]

    def compute():
        C = np.ones((d, d), order="F")
        products.scratch((20, d, d), np.float64).fill(np.nan)
        products.add_gram_inplace(C, X, factor)
        # Nothing is known of the lower triangle but that it is the same, and saved.
        assert np.isfinite(C).all()
        return C

    found = on_threads(monkeypatch, compute)
    np.testing.assert_allclose(np.triu(found), np.triu(factor + X.T @ X), rtol=1e-12)


def test_the_depth_of_a_square_counts_every_sum():
    assert products.gram_depth(7, 100, 10) == 101
    assert products.gram_depth(0, 16384, 10) == 4096 + 4
    assert products.gram_depth(5000, 16384, 10) == 5000 + 4
    assert products.gram_depth(0, 16384, 641) == 16384


@pytest.mark.parametrize("n_features", [642, 800, 1000])
def test_a_square_of_many_columns_is_that_of_its_strips(n_features, monkeypatch):
    X = rows_of((1300, n_features), np.float64)

    def compute():
        C = np.ones((n_features, n_features), order="F")
        products.add_gram_inplace(C, X)
        return np.triu(C)

    found = on_threads(monkeypatch, compute)
    np.testing.assert_allclose(found, np.triu(1.0 + X.T @ X), rtol=1e-12)
    # Without a trial of this BLAS, strips are taken everywhere.
    monkeypatch.setattr(products, "strips_are_alike", lambda *shape: False)
    np.testing.assert_array_equal(on_threads(monkeypatch, compute), found)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("centered", [False, True])
def test_sparse_products_have_the_bits_of_the_fused_loop(dtype, centered, monkeypatch):
    monkeypatch.setattr(sparse, "PANEL_ROWS", 100)
    monkeypatch.setattr(sparse, "PART_ROWS", 16)
    monkeypatch.setattr(sparse, "RANGES", 5)
    rng = np.random.default_rng(0)
    X = sp.random_array((333, 90), density=0.2, format="csr", rng=rng, dtype=dtype)
    X.sort_indices()
    around = (rng.random(333), rng.standard_normal(90)) if centered else (np.zeros(0), np.zeros(0))
    rows = sparse.SparseRows(X, *around)
    W = rng.standard_normal((90, 16)).astype(dtype)
    found = on_threads(monkeypatch, lambda: rows.normal(W))
    P = X.toarray().astype(np.float64)
    if centered:
        P -= np.outer(*around)
    atol = 64 * np.finfo(dtype).eps * np.linalg.norm(P) ** 2 * np.abs(W).max()
    np.testing.assert_allclose(found, P.T @ (P @ W), rtol=0, atol=atol)
