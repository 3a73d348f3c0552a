"""Sketches of rows on a device: torch on the CPU everywhere, and GPUs where there are any."""

import contextlib
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from sksketch import (
    CountSketch,
    ExactCovariance,
    FrequentDirections,
    GaussianSketch,
    HadamardSketch,
    RowSampleSketch,
    SignSketch,
    SparseFrequentDirections,
    TwoLevelFrequentDirections,
    fit_stream,
)
from sksketch.arrays.device_sparse import as_device_csr
from sksketch.arrays.namespace import on_device, squared_norms, to_numpy, weighted_sum
from sksketch.sketches import Centered
from sksketch.sketches.wrappers.regression import Regression
from sksketch.streams import Block
from sksketch.streams.device import DEVICE_BLOCK_BYTES, device_blocks

torch = pytest.importorskip("torch", reason="torch is not installed: no device to test on")

N_ROWS, N_FEATURES = 1800, 60


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def _places():
    """Return what brings numpy arrays to each device that is here."""
    places = {"torch": torch.asarray}
    if torch.cuda.is_available():
        places["torch on a GPU"] = lambda X: torch.asarray(X, device="cuda")
        with contextlib.suppress(ImportError):
            import cupy

            places["cupy"] = cupy.asarray
    return places


PLACES = _places()


@pytest.fixture(params=PLACES)
def place(request):
    return PLACES[request.param]


@pytest.fixture(params=["float64", "float32"])
def rows(request, rng):
    scale = np.arange(1, N_FEATURES + 1) ** -0.8
    return (rng.standard_normal((N_ROWS, N_FEATURES)) * scale + 0.1).astype(request.param)


SKETCHES = {
    "exact solver": lambda: FrequentDirections(8, solver="exact"),
    "block solver": lambda: FrequentDirections(8, solver="block"),
    "not verified": lambda: FrequentDirections(8, solver="block", certify=False),
    "covariance": lambda: FrequentDirections(8, solver="covariance"),
    "growing": lambda: FrequentDirections(4, solver="block", tol=0.02, max_sketch_size=30),
    "truncating": lambda: FrequentDirections(8, solver="exact", rule="truncate"),
    "probes": lambda: FrequentDirections(8, solver="block", correction="energy"),
    "exact": lambda: ExactCovariance(),
    "two levels": lambda: TwoLevelFrequentDirections(16, rank=3),
    "two levels, sampled": lambda: TwoLevelFrequentDirections(16, rank=3, sample=True),
    "centered block": lambda: Centered(FrequentDirections(8, solver="block")),
    "centered exact": lambda: Centered(ExactCovariance()),
}
LINEAR = [GaussianSketch, SignSketch, CountSketch, HadamardSketch, RowSampleSketch]


def _scatter(X, centered):
    X = X.astype(np.float64)
    X = X - X.mean(axis=0) if centered else X
    return X.T @ X


@pytest.mark.parametrize("name", SKETCHES)
def test_the_bound_is_true_on_a_device(name, rows, place):
    sketch = SKETCHES[name]()
    for part in np.array_split(rows, [1, 40, 900, 1700]):
        sketch.update(place(part))
    summary = sketch.summary()
    assert isinstance(summary.components, np.ndarray)
    truth = _scatter(rows, isinstance(sketch, Centered))
    error = np.linalg.norm(truth - summary.to_dense(), 2)
    assert error <= sketch.error_bound() * (1 + 1e-9)
    assert sketch.squared_norm == pytest.approx(np.trace(truth), rel=1e-6)


@pytest.mark.parametrize("name", SKETCHES)
def test_a_device_answers_like_the_host(name, rows, place):
    here, there = SKETCHES[name]().update(rows), SKETCHES[name]().update(place(rows))
    total = np.trace(_scatter(rows, False))
    gap = np.linalg.norm(here.summary().to_dense() - there.summary().to_dense(), 2)
    # Blocks are larger on a device, so answers differ by what both lost.
    assert gap <= here.error_bound() + there.error_bound() + 1e-6 * total
    assert there.error_bound() <= 2 * here.error_bound() + 1e-6 * total


@pytest.mark.parametrize("name", SKETCHES)
def test_saving_is_invisible_on_a_device(name, rows, place):
    sketch = SKETCHES[name]().update(place(rows[:1100]))
    again = type(sketch).from_state(sketch.state())
    sketch.update(place(rows[1100:]))
    again.update(place(rows[1100:]))
    gap = np.abs(sketch.summary().to_dense() - again.summary().to_dense()).max()
    assert gap <= 1e-7 * sketch.squared_norm
    assert sketch.error_bound() == pytest.approx(again.error_bound(), rel=1e-6)


@pytest.mark.parametrize("name", SKETCHES)
def test_splitting_is_invisible_on_a_device(name, rows, place):
    whole = SKETCHES[name]().update(place(rows))
    parts = SKETCHES[name]()
    for part in np.array_split(rows, [7, 500, 1600]):
        parts.update(place(part))
    gap = np.abs(whole.summary().to_dense() - parts.summary().to_dense()).max()
    assert gap <= 1e-6 * whole.squared_norm


@pytest.mark.parametrize("name", SKETCHES)
def test_merging_host_and_device(name, rows, place):
    for first, second in ((np.asarray, place), (place, np.asarray), (place, place)):
        here = SKETCHES[name]().update(first(rows[:1000]))
        here.merge(SKETCHES[name]().update(second(rows[1000:])))
        truth = _scatter(rows, isinstance(here, Centered))
        error = np.linalg.norm(truth - here.summary().to_dense(), 2)
        assert error <= here.error_bound() * (1 + 1e-9)
        assert here.n_rows_seen == N_ROWS


def test_dense_rows_of_a_device_in_a_sparse_sketch(rows, place):
    here, there = (SparseFrequentDirections(8).update(X) for X in (rows[:300], place(rows[:300])))
    assert there.error_bound() == pytest.approx(here.error_bound(), rel=1e-6)


def test_a_stream_may_change_its_place(rows, place):
    sketch = FrequentDirections(8, solver="block")
    for number, part in enumerate(np.array_split(rows, 7)):
        sketch.update(place(part) if number % 2 else part)
    assert on_device(sketch._buffer.rows)
    error = np.linalg.norm(_scatter(rows, False) - sketch.summary().to_dense(), 2)
    assert error <= sketch.error_bound()


def test_shorter_factors_do_not_void_the_bound(rows):
    if not torch.cuda.is_available():
        pytest.skip("torch sees no GPU, and only there products may be in TF32")
    X = torch.asarray(rows.astype(np.float32), device="cuda")
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        for solver in ("exact", "block"):
            sketch = FrequentDirections(8, solver=solver).update(X)
            error = np.linalg.norm(_scatter(rows, False) - sketch.summary().to_dense(), 2)
            assert error <= sketch.error_bound()
        assert torch.backends.cuda.matmul.allow_tf32
    finally:
        torch.backends.cuda.matmul.allow_tf32 = False


@pytest.mark.parametrize("kind", LINEAR)
def test_random_sums_are_those_of_the_host(kind, rows, place):
    targets = rows[:, :2] @ np.array([1.0, -2.0])
    here = kind(16, seed=3).update(rows, targets=targets)
    there = kind(16, seed=3)
    for part in (slice(0, 11), slice(11, 1500), slice(1500, None)):
        there.update(place(rows[part]), targets=place(targets[part]))
    tolerance = 1e-12 if rows.dtype == np.float64 else 1e-4
    np.testing.assert_allclose(there.matrix, here.matrix, rtol=0, atol=tolerance * 100)
    np.testing.assert_allclose(there.targets, here.targets, rtol=0, atol=tolerance * 100)
    again = kind.from_state(there.state())
    np.testing.assert_allclose(again.matrix, there.matrix, rtol=0, atol=tolerance * 100)


@pytest.mark.parametrize("centered", [False, True])
def test_cross_moments_on_a_device(centered, rows, place, rng):
    targets, weights = rng.standard_normal((N_ROWS, 2)), rng.random(N_ROWS)
    here, there = (Regression(ExactCovariance(), centered=centered) for _ in range(2))
    here.update(rows, weights, targets=targets)
    for part in (slice(0, 900), slice(900, None)):
        there.update(place(rows[part]), place(weights[part]), targets=place(targets[part]))
    for mine, theirs in zip(here.moments(), there.moments(), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=1e-6)


def test_weights_and_forgetting_on_a_device(rows, place, rng):
    weights = rng.random(N_ROWS)
    sketch = FrequentDirections(8, solver="block", half_life=500.0)
    exact = ExactCovariance(half_life=500.0).update(rows.astype(np.float64), weights)
    for part in (slice(0, 900), slice(900, None)):
        sketch.update(place(rows[part]), place(weights[part]))
    error = np.linalg.norm(exact.matrix() - sketch.summary().to_dense(), 2)
    assert error <= sketch.error_bound() * (1 + 1e-6)


def test_bad_rows_on_a_device(rows, place):
    sketch = FrequentDirections(8, solver="block").update(place(rows))
    before = sketch.summary().to_dense()
    for value, name in ((np.nan, "NaN"), (np.inf, "infinity")):
        bad = rows.copy()
        bad[17, 5] = value
        with pytest.raises(ValueError, match=f"{name} .first in row 17, column 5"):
            sketch.update(place(bad))
    with pytest.raises(ValueError, match="expected 60 as in the earlier rows"):
        sketch.update(place(rows[:, :7]))
    with pytest.raises(ValueError, match="empty block"):
        sketch.update(place(rows[:0]))
    with pytest.raises(TypeError, match="real numbers"):
        sketch.update(place(rows[:3].astype(np.complex64)))
    np.testing.assert_array_equal(sketch.summary().to_dense(), before)


def test_integers_and_half_precision_on_a_device(place):
    X = np.arange(12).reshape(4, 3)
    for given in (X, X.astype(np.float16), X > 4):
        sketch = ExactCovariance().update(place(given))
        truth = given.astype(np.float64).T @ given.astype(np.float64)
        np.testing.assert_allclose(sketch.matrix(), truth)


@pytest.mark.parametrize("scale", [1e-22, 1e-12, 1.0, 1e15])
def test_squared_norms_of_any_size(scale, place, rng):
    X = (scale * rng.standard_normal((50, 700))).astype(np.float32)
    truth = (X.astype(np.float64) ** 2).sum(axis=1)
    np.testing.assert_allclose(squared_norms(place(X)), truth, rtol=1e-6)
    weights = rng.random(50)
    expected = weights @ X.astype(np.float64)
    found = weighted_sum(place(X), weights)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9 * scale)


# Sparse rows


@pytest.fixture(params=["csr", "coo"])
def sparse(request, place, rng):
    """Return sparse rows of scipy, and the same on the device."""
    X = sp.random_array((1500, 200), density=0.05, rng=rng, format="csr")
    X = sp.csr_array(X * np.arange(1, 201) ** -0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        dense = place(X.toarray())
        if hasattr(dense, "to_sparse_csr"):
            there = dense.to_sparse_csr() if request.param == "csr" else dense.to_sparse()
        else:
            from cupyx.scipy import sparse as cupy_sparse

            there = getattr(cupy_sparse, f"{request.param}_matrix")(dense)
    return X, there


@pytest.mark.parametrize(
    "make",
    [
        lambda: FrequentDirections(10, solver="block", buffer_rows=900),
        lambda: FrequentDirections(10, solver="exact"),
        lambda: FrequentDirections(10, solver="covariance"),
        lambda: SparseFrequentDirections(10),
        lambda: SparseFrequentDirections(10, boosted=False, correction="energy"),
        lambda: Centered(FrequentDirections(10, solver="block", buffer_rows=900)),
        lambda: Centered(SparseFrequentDirections(10)),
        lambda: Centered(ExactCovariance()),
        lambda: ExactCovariance(),
        lambda: TwoLevelFrequentDirections(20, rank=4),
    ],
)
def test_sparse_rows_on_a_device(make, sparse):
    X, there = sparse
    here, sketch = make().update(X), make().update(there)
    truth = _scatter(X.toarray(), isinstance(sketch, Centered))
    error = np.linalg.norm(truth - sketch.summary().to_dense(), 2)
    # The truth is rounded as well.
    assert error <= sketch.error_bound() + 1e-14 * np.trace(truth)
    # Products differ in their last bits, and with them the probes that verify.
    luck = 0.2 if here.summary().confidence < 1 else 1e-3
    assert sketch.error_bound() == pytest.approx(here.error_bound(), rel=luck, abs=1e-9)
    again = type(sketch).from_state(sketch.state()).update(there)
    sketch.update(there)
    gap = np.abs(sketch.summary().to_dense() - again.summary().to_dense()).max()
    assert gap <= 1e-6 * sketch.squared_norm


def test_products_with_sparse_rows_of_a_device(sparse, rng):
    X, there = sparse
    rows = as_device_csr(there)
    W, U = rng.standard_normal((200, 3)), rng.standard_normal((1500, 3))
    from sksketch.arrays.namespace import like

    np.testing.assert_allclose(to_numpy(rows.times(like(W, rows.data))), X @ W, atol=1e-12)
    found = to_numpy(rows.transposed_times(like(U, rows.data)))
    np.testing.assert_allclose(found, X.T @ U, atol=1e-11)
    assert (rows.on_host() != X).nnz == 0


# The way to a device


def _blocks(X, y, sizes):
    ends = np.cumsum(sizes)
    for start, end in zip(ends - sizes, ends, strict=True):
        yield Block(X[start:end], None if y is None else y[start:end])


@pytest.mark.parametrize("with_targets", [False, True])
def test_blocks_arrive_as_they_were_sent(with_targets, rng, monkeypatch):
    X, y = rng.standard_normal((1000, 7)), rng.standard_normal(1000)
    monkeypatch.setattr("sksketch.streams.device.DEVICE_BLOCK_BYTES", 130 * 7 * 8)
    assert DEVICE_BLOCK_BYTES > 1 << 20
    sizes = np.array([1, 400, 99, 500])
    found = list(device_blocks(_blocks(X, y if with_targets else None, sizes), "cpu"))
    assert [len(block.X) for block in found] == [130] * 7 + [90]
    np.testing.assert_array_equal(torch.cat([block.X for block in found]), X)
    if with_targets:
        np.testing.assert_array_equal(np.concatenate([block.y for block in found]), y)


def test_sparse_blocks_arrive_too(rng):
    X = sp.random_array((300, 50), density=0.1, rng=rng, format="csr")
    dense = rng.standard_normal((20, 50))
    blocks = [Block(dense, None), Block(X, None), Block(dense, None)]
    found = [block.X for block in device_blocks(iter(blocks), "cpu")]
    np.testing.assert_array_equal(found[0], dense)
    np.testing.assert_array_equal(found[1].to_dense(), X.toarray())


def test_fit_stream_on_a_device(rows, tmp_path):
    sketch = FrequentDirections(8, solver="block")
    path = tmp_path / "run.sks"
    fit_stream(sketch, rows, device="cpu", checkpoint=path, every=700, progress=False)
    assert on_device(sketch._buffer.rows)
    resumed = FrequentDirections(8, solver="block")
    fit_stream(resumed, rows, device="cpu", checkpoint=path, progress=False)
    assert resumed.n_rows_seen == N_ROWS
    direct = FrequentDirections(8, solver="block").update(torch.asarray(rows))
    gap = np.abs(direct.summary().to_dense() - sketch.summary().to_dense()).max()
    assert gap <= 1e-7 * direct.squared_norm


def test_missing_values_are_found_on_the_device(rows):
    bad = rows.copy()
    bad[1500, 3] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        fit_stream(FrequentDirections(8), bad, device="cpu", progress=False)


def test_a_device_that_is_not_there(rows):
    if torch.cuda.is_available():
        pytest.skip("there is one")
    with pytest.raises(ValueError, match="torch sees no such device here"):
        fit_stream(FrequentDirections(8), rows, device="cuda", progress=False)
