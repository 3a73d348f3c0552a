import numpy as np
import pytest
import scipy.fft
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from sksketch import datasets
from sksketch.streams import BlockSource

MAKERS = [datasets.stationary, datasets.drifting, datasets.low_rank_plus_noise]


@pytest.mark.parametrize("make", MAKERS)
@settings(deadline=None, max_examples=8)
@given(seed=st.integers(0, 2**16), batch_rows=st.integers(50, 500), cut=st.integers(0, 400))
def test_rows_do_not_depend_on_how_they_are_read(make, seed, batch_rows, cut):
    # 3000 columns make tiles of 174 rows, so that blocks straddle them.
    source = make(400, 3000, seed=seed, batch_rows=batch_rows)
    whole = source.rows(0, 400)
    np.testing.assert_array_equal(np.concatenate([b.X for b in source.blocks()]), whole)
    np.testing.assert_array_equal(source.rows(cut, cut + 7), whole[cut : cut + 7])


@pytest.mark.parametrize("make", MAKERS)
def test_a_source_starts_over_and_its_seed_matters(make):
    source = make(300, 40, seed=1, batch_rows=128)
    assert isinstance(source, BlockSource)
    assert [len(b.X) for b in source.blocks()] == [128, 128, 44]
    first, again = (np.concatenate([b.X for b in source.blocks()]) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, make(300, 40, seed=2).rows(0, 300))


@pytest.mark.parametrize("make", [datasets.stationary, datasets.low_rank_plus_noise])
def test_the_covariance_is_the_promised_one(make):
    source = make(40_000, 30)
    V = source.components(30)
    np.testing.assert_allclose(V @ V.T, np.eye(30), atol=1e-12)
    X = source.rows(0, 40_000)
    measured = V @ (X.T @ X / len(X)) @ V.T
    # Entry (i, j) has a standard deviation of at most sqrt(2 e_i e_j / n): six of them.
    scale = np.sqrt(2 * np.outer(source.spectrum, source.spectrum) / len(X))
    assert np.all(np.abs(measured - np.diag(source.spectrum)) <= 6 * scale)


def test_stationary_singular_values_fall_as_a_power():
    spectrum = datasets.stationary(10, 100, decay=0.75).spectrum
    np.testing.assert_allclose(np.sqrt(spectrum), np.arange(1, 101) ** -0.75)


def test_drifting_rows_change_basis_half_way():
    source = datasets.drifting(20_001, 64)
    for phase, part in enumerate((slice(0, 10_001), slice(10_001, None))):
        X = source.rows(0, 20_001)[part]
        energy = np.mean((X @ source.components(5, phase).T) ** 2, axis=0)
        np.testing.assert_allclose(energy, source.spectrum[:5], rtol=0.1)
    overlap = np.linalg.svd(source.components(5, 0) @ source.components(5, 1).T)[1]
    assert overlap.max() < 0.8


def test_low_rank_plus_noise_without_noise_has_its_rank():
    X = datasets.low_rank_plus_noise(100, 50, rank=4, noise=0.0).rows(0, 100)
    assert np.linalg.matrix_rank(X) == 4
    spectrum = datasets.low_rank_plus_noise(1, 4, rank=2, noise=0.5).spectrum
    np.testing.assert_allclose(spectrum, [1.25, 0.5, 0.25, 0.25])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dtype_is_that_of_every_block(dtype):
    source = datasets.drifting(100, 10, batch_rows=30, dtype=dtype)
    assert {b.X.dtype for b in source.blocks()} == {np.dtype(dtype)}
    assert source.rows(3, 3).shape == (0, 10)
    assert source.rows(3, 3).dtype == dtype


@settings(deadline=None, max_examples=8)
@given(seed=st.integers(0, 2**16), batch_rows=st.integers(50, 900), cut=st.integers(0, 900))
def test_sparse_rows_do_not_depend_on_how_they_are_read(seed, batch_rows, cut):
    # 800 entries a row make tiles of 655 rows, so that blocks straddle them.
    source = datasets.SparseSignRows(900, 1500, nnz_per_row=800, seed=seed, batch_rows=batch_rows)
    assert isinstance(source, BlockSource)
    whole = source.rows(0, 900)
    assert (sp.vstack([b.X for b in source.blocks()]) != whole).nnz == 0
    assert (source.rows(cut, cut + 7) != whole[cut : cut + 7]).nnz == 0


def test_sparse_rows_have_signs_at_distinct_places_mostly_in_the_head():
    X = datasets.SparseSignRows(20_000, 400, nnz_per_row=10).rows(0, 20_000)
    assert X.has_canonical_format
    assert set(np.diff(X.indptr)) == {10}
    assert set(X.data) == {-1.0, 1.0}
    assert abs(X.data.mean()) < 6 / np.sqrt(X.nnz)
    counts = np.bincount(X.indices, minlength=400)
    # Inside head and tail all places are alike, and a count is nearly binomial.
    for part in (counts[:15], counts[15:]):
        assert np.all(np.abs(part - part.mean()) < 6 * np.sqrt(part.mean()))
    # The first draw of a row decides alone, later ones may find the head taken.
    assert 0.75 < counts[:15].sum() / X.nnz < 0.9
    alone = datasets.SparseSignRows(20_000, 400, nnz_per_row=1).rows(0, 20_000)
    assert alone[:, :1].nnz / 20_000 == pytest.approx(0.9, abs=6 * 0.3 / np.sqrt(20_000))


def test_linear_model_rows_do_not_depend_on_how_they_are_read():
    # 3000 columns make tiles of 174 rows, so that blocks straddle them.
    def source(**options):
        return datasets.LinearModelRows(400, 3000, effective_rank=300, seed=3, **options)

    assert isinstance(source(), BlockSource)
    X, y = source().rows(0, 400)
    blocks = list(source(batch_rows=130).blocks())
    assert [len(block.y) for block in blocks] == [130, 130, 130, 10]
    np.testing.assert_array_equal(np.concatenate([block.X for block in blocks]), X)
    np.testing.assert_array_equal(np.concatenate([block.y for block in blocks]), y)
    # A product with fewer rows may be summed in another order.
    np.testing.assert_allclose(source().rows(170, 180).y, y[170:180], rtol=1e-12)
    loud = source(noise_sd=4.0).rows(0, 400)
    np.testing.assert_array_equal(loud.X, X)
    signal = X @ source().coefficients
    np.testing.assert_allclose(loud.y - signal, 2 * (y - signal), atol=1e-12)


def test_linear_model_rows_are_those_of_the_paper():
    source = datasets.LinearModelRows(40_000, 40, effective_rank=20, noise_sd=2.0)
    X, y = source.rows(0, 40_000)
    C = scipy.fft.dct(np.eye(40), axis=1, norm="ortho")
    strengths = np.exp(-(np.arange(40.0) ** 2) / 20**2)
    measured = C @ (X.T @ X / len(X)) @ C.T
    # Entry (i, j) has a standard deviation of at most sqrt(2 / n) times the two strengths.
    scale = np.sqrt(2 / len(X)) * np.outer(strengths, strengths)
    assert np.all(np.abs(measured - np.diag(strengths**2)) <= 6 * scale)
    model = C @ source.coefficients
    assert np.linalg.norm(model) == pytest.approx(1.0)
    np.testing.assert_allclose(model[20:], 0.0, atol=1e-12)
    assert np.abs(model[:20]).min() > 0
    noise = y - X @ source.coefficients
    assert noise.std() == pytest.approx(2.0, abs=6 * 2 / np.sqrt(2 * len(X)))
    assert not np.array_equal(
        datasets.LinearModelRows(9, 40, effective_rank=20, seed=1).rows(0, 9).X, X[:9]
    )


def test_truncation_breaker_defeats_truncation_and_not_shrinking():
    sketch_size, n_copies = 5, 40
    X = datasets.truncation_breaker(sketch_size, n_copies, n_features=8)
    errors = {}
    for shrinks in (False, True):
        B = np.empty((0, 8))
        for row in X:
            _, s, V = np.linalg.svd(np.vstack([B, row]), full_matrices=False)
            cut = s[sketch_size] ** 2 if shrinks and len(s) > sketch_size else 0.0
            kept = np.sqrt(np.maximum(s[:sketch_size] ** 2 - cut, 0.0))
            B = kept[:, np.newaxis] * V[:sketch_size]
        errors[shrinks] = np.linalg.norm(X.T @ X - B.T @ B, 2)
    assert errors[False] == pytest.approx(n_copies * 0.49)
    assert errors[True] <= 1.0 + 1e-12


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: datasets.GaussianRows(3, np.array([1.0, -1.0])), "none of them negative"),
        (lambda: datasets.stationary(-1, 3), "n_rows >= 0"),
        (lambda: datasets.stationary(5, 0), "at least one eigenvalue"),
        (lambda: datasets.stationary(5, 3, batch_rows=0), "at least 1"),
        (lambda: datasets.stationary(5, 3, dtype=np.int64), "float64 or float32"),
        (lambda: datasets.stationary(5, 3).rows(6, 7), "not among 5"),
        (lambda: datasets.low_rank_plus_noise(5, 3), "rank is 20"),
        (lambda: datasets.truncation_breaker(5, 3, n_features=5), "give at least 6"),
        (lambda: datasets.SparseSignRows(5, 15, nnz_per_row=10), "more than 15 columns"),
        (lambda: datasets.SparseSignRows(5, 15, nnz_per_row=2, batch_rows=0), "at least 1"),
        (lambda: datasets.SparseSignRows(5, 15, nnz_per_row=2).rows(6, 7), "not among 5"),
        (lambda: datasets.LinearModelRows(5, 3, effective_rank=4), "from 1 to n_features"),
        (lambda: datasets.LinearModelRows(5, 3, effective_rank=1, noise_sd=-1), "noise_sd >= 0"),
        (lambda: datasets.LinearModelRows(5, 3, effective_rank=1).rows(6, 7), "not among 5"),
    ],
)
def test_a_users_mistake_is_explained(call, message):
    with pytest.raises(ValueError, match=message):
        call()
