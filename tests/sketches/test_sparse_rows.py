"""Sparse rows through every sketch: the laws, the bounds, and no dense copy."""

import copy
import itertools
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import sksketch
from _support import laws, zoo

pytestmark = pytest.mark.usefixtures("short_tiles")

RNG = np.random.default_rng(0)

NAMES = [
    *(f"fd {solver} uniform" for solver in laws.SOLVERS),
    *("fd exact truncate", "fd block truncate", "fd block parameterized"),
    *("fd exact energy", "fd block energy", "fd block full", "fd block none"),
    *("fd exact decay", "fd block decay", "fd block half life", "fd covariance decay"),
    *("fd exact growth", "fd block growth", "fd block ridge", "fd block one row", "fd block wide"),
    "fd block uncertified",
    "exact covariance",
]
NAMES += [f"centered {name}" for name in NAMES if f"centered {name}" in laws.SKETCHES]
each_sketch = pytest.mark.parametrize("name", NAMES)


def sparse_rows(n_rows, n_features, density=0.2, seed=0, dtype=np.float64):
    """Return CSR rows, some of them empty, some heavier than others."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_features)) * (rng.random((n_rows, n_features)) < density)
    X[rng.random(n_rows) < 0.1] = 0.0
    X[:, :2] *= 5.0
    return sp.csr_array(X.astype(dtype))


def pieces(X, cuts):
    edges = [0, *cuts, X.shape[0]]
    return [X[a:b] for a, b in itertools.pairwise(edges)]


@st.composite
def streams(draw, max_rows=260, max_features=60):
    n_rows = draw(st.integers(1, max_rows))
    n_features = draw(st.integers(1, max_features))
    X = sparse_rows(
        n_rows,
        n_features,
        density=draw(st.sampled_from([0.01, 0.1, 0.5, 1.0])),
        seed=draw(st.integers(0, 10_000)),
        dtype=draw(st.sampled_from([np.float64, np.float32])),
    )
    return X * draw(st.sampled_from([1.0, 1e-120, 1e120]) if X.dtype == np.float64 else st.just(1))


@each_sketch
@given(X=streams(), data=st.data())
@settings(max_examples=6)
def test_law_1_splitting_is_invisible(name, X, data):
    cuts = data.draw(zoo.splits(X.shape[0]))
    weights = RNG.choice([0.0, 0.5, 1.0, 3.0], X.shape[0]) if data.draw(st.booleans()) else None
    whole, split = laws.SKETCHES[name](), laws.SKETCHES[name]()
    whole.update(X, weights)
    parts = [None] * (len(cuts) + 1) if weights is None else np.split(weights, cuts)
    for piece, part in zip(pieces(X, cuts), parts, strict=True):
        split.update(piece, part)
    laws.assert_same_bits(whole, split)


@each_sketch
def test_law_1_row_by_row_with_dense_rows_between(name):
    X = sparse_rows(300, 70)
    kinds = RNG.random(300) < 0.8
    one_by_one, runs = laws.SKETCHES[name](), laws.SKETCHES[name]()
    for i in range(300):
        one_by_one.update(X[[i]] if kinds[i] else X[[i]].toarray())
    edges = np.flatnonzero(np.diff(kinds)) + 1
    for piece, kind in zip(pieces(X, edges), kinds[[0, *edges]], strict=True):
        runs.update(piece if kind else piece.toarray())
    laws.assert_same_bits(one_by_one, runs)


@each_sketch
def test_law_2_reading_has_no_consequences(name):
    watched, alone = laws.SKETCHES[name](), laws.SKETCHES[name]()
    for piece in pieces(sparse_rows(400, 50), [1, 30, 150, 151, 390]):
        alone.update(piece)
        watched.update(piece)
        watched.summary()
        watched.certificate()
        watched.state()
        copy.deepcopy(watched)
        _ = watched | watched
    laws.assert_same_bits(watched, alone)


@each_sketch
@given(X=streams(), seed=st.integers(0, 10_000))
@settings(max_examples=8)
def test_law_3_the_bound_is_true_for_sparse_and_mixed_shards(name, X, seed):
    rng = np.random.default_rng(seed)
    make = laws.SKETCHES[name]
    shards = [(make(), laws.Rows(X.shape[1])) for _ in range(3)]
    cuts = np.sort(rng.choice(np.arange(1, X.shape[0]), min(5, X.shape[0] - 1), replace=False))
    for piece in pieces(X, cuts):
        sketch, rows = shards[rng.integers(3)]
        weights = rng.choice([0.0, 0.5, 1.0, 3.0], piece.shape[0])
        dense = piece.toarray()
        sketch.update(piece if rng.random() < 0.8 else dense, weights)
        rows.update(dense, weights, sketch.decay)
    (first, rows), *others = shards
    for sketch, more in others:
        first.merge(sketch)
        rows.merge(more)
    if first.n_features is None:
        return
    A = rows.matrix(centered=isinstance(first, sksketch.Centered))
    # What rounds is the size of the rows before their mean is removed.
    atol = zoo.rtol(X.data) * zoo.energy(rows.matrix())
    laws.bound_is_true(first, A, atol)
    if isinstance(first, sksketch.Centered):
        np.testing.assert_allclose(
            first.mean, rows.mean, atol=1e-6 * float(np.abs(X.data).max(initial=0.0))
        )


@each_sketch
def test_law_4_saving_is_invisible(name, tmp_path):
    saved, alone = laws.SKETCHES[name](), laws.SKETCHES[name]()
    for piece in pieces(sparse_rows(300, 50), [1, 30, 150, 151]):
        alone.update(piece)
        saved.update(piece).save(tmp_path / "a.sks")
        saved = sksketch.load(tmp_path / "a.sks")
    laws.assert_same_bits(saved, alone)


@each_sketch
def test_law_6_inputs_are_left_alone(name):
    X = sparse_rows(200, 40)
    for part in (X.data, X.indices, X.indptr):
        part.flags.writeable = False
    before = X.toarray()
    one, other = laws.SKETCHES[name]().update(X), laws.SKETCHES[name]().update(X[50:])
    untouched = copy.deepcopy(other)
    one.merge(other).update(X)
    np.testing.assert_array_equal(X.toarray(), before)
    laws.assert_same_bits(other, untouched)


FORMS = {
    "csr matrix": sp.csr_matrix,
    "csc": sp.csc_matrix,
    "csc array": sp.csc_array,
    "coo": sp.coo_array,
    "lil": sp.lil_matrix,
    "bsr": sp.bsr_array,
    "dok": sp.dok_array,
}


def long_indices(X):
    X = sp.csr_array(X)
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


def unsorted(X):
    X = sp.csr_array(X)
    indices, data = X.indices.copy(), X.data.copy()
    for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        indices[a:b], data[a:b] = indices[a:b][::-1], data[a:b][::-1]
    return sp.csr_array((data, indices, X.indptr), shape=X.shape)


def repeated(X):
    X = sp.coo_array(X)
    row, col = X.coords
    twice = (np.concatenate([row, row]), np.concatenate([col, col]))
    return sp.coo_array((np.concatenate([X.data, X.data]) / 2, twice), shape=X.shape)


FORMS |= {"int64 indices": long_indices, "unsorted": unsorted, "repeated": repeated}


@pytest.mark.parametrize("solver", laws.SOLVERS)
@pytest.mark.parametrize("form", FORMS)
def test_every_sparse_form_gives_the_same_answer(form, solver):
    X = sparse_rows(200, 40)
    expected = laws.fd(laws.SOLVERS[solver]).update(X)
    laws.assert_same_answer(laws.fd(laws.SOLVERS[solver]).update(FORMS[form](X)), expected)


@pytest.mark.parametrize("dtype", [bool, np.int8, np.int64, np.uint16])
def test_narrow_numbers_are_not_multiplied_as_such(dtype):
    rows = sp.csr_array(RNG.integers(0, 2 if dtype is bool else 100, (80, 20)).astype(dtype))
    sketch = laws.fd(laws.EXACT).update(rows)
    laws.assert_same_answer(sketch, laws.fd(laws.EXACT).update(rows.astype(np.float64)))


@pytest.mark.parametrize("solver", ["exact", "block"])
@pytest.mark.parametrize("centered", [False, True])
def test_sparse_and_dense_rows_have_the_same_truth(solver, centered):
    X = sparse_rows(3000, 200, density=0.05)
    make = {False: lambda s: s, True: sksketch.Centered}[centered]
    dense = make(sksketch.FrequentDirections(10, solver=solver)).update(X.toarray())
    sparse = make(sksketch.FrequentDirections(10, solver=solver)).update(X)
    assert sparse.squared_norm == pytest.approx(dense.squared_norm, rel=1e-12)
    assert sparse.error_bound() <= dense.error_bound() * 1.5
    difference = sparse.summary().to_dense() - dense.summary().to_dense()
    assert np.linalg.norm(difference, 2) <= sparse.error_bound() + dense.error_bound()


@pytest.mark.parametrize("centered", [False, True])
def test_no_dense_copy_is_made(centered):
    n_rows, n_features = 20_000, 30_000
    X = sp.random_array((n_rows, n_features), density=5e-4, format="csr", rng=0)
    estimator = (sksketch.StreamingPCA if centered else sksketch.StreamingSVD)(5)
    estimator.partial_fit(X[:100])
    tracemalloc.start()
    try:
        for piece in pieces(X, range(1000, n_rows, 1000)):
            estimator.partial_fit(piece)
        _ = estimator.components_
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # A dense block of a thousand rows would take 240 MB.
    assert peak < 0.5 * 1000 * n_features * 8


def test_few_rows_of_many_columns_are_not_orthonormalised_as_columns():
    n_features = 500_000
    X = sp.random_array((200, n_features), density=1e-4, format="csr", rng=0)
    sketch = sksketch.FrequentDirections(20).update(X)
    summary = sketch.summary()
    assert summary.confidence == 1.0
    truth = np.linalg.eigvalsh((X @ X.T).toarray())[::-1]
    cut = truth[20]
    np.testing.assert_allclose(summary.eigenvalues, truth[:20] - cut, atol=1e-9 * truth[0])
    assert summary.error_bound == pytest.approx(cut / 2)


def test_components_match_the_stored_matrix():
    n_rows, n_features, rank = 1600, 1200, 6
    rng = np.random.default_rng(3)
    loads = sp.random_array((n_rows, rank), density=0.2, rng=rng) @ sp.diags_array(
        np.linspace(9, 4, rank)
    )
    X = sp.csr_array(loads @ sp.random_array((rank, n_features), density=0.05, rng=rng))
    X = sp.csr_array(X + 0.05 * sp.random_array((n_rows, n_features), density=1e-3, rng=rng))
    pca = sksketch.StreamingPCA(rank).fit(X)
    dense = X.toarray() - X.mean(axis=0)
    V = np.linalg.svd(dense, full_matrices=False)[2][:rank]
    cosines = np.linalg.svd(V @ pca.components_.T, compute_uv=False)
    assert cosines.min() > np.cos(1e-2)
    np.testing.assert_allclose(pca.mean_, X.mean(axis=0), atol=1e-12)


def broken(part, position, value):
    X = sparse_rows(20, 8, density=0.5)
    parts = {"data": X.data.copy(), "indices": X.indices.copy(), "indptr": X.indptr.copy()}
    parts[part][position] = value
    Y = sp.csr_array(X)
    Y.data, Y.indices, Y.indptr = parts["data"], parts["indices"], parts["indptr"]
    return Y


BAD = {
    "negative index": lambda: broken("indices", 3, -1),
    "index past the last column": lambda: broken("indices", 3, 8),
    "row pointers that go back": lambda: broken("indptr", 5, 10_000),
    "first row pointer not zero": lambda: broken("indptr", 0, 1),
    "coo index": lambda: bad_coo(),
}


def bad_coo():
    X = sp.coo_array(sparse_rows(20, 8, density=0.5))
    X.coords[1][2] = -3
    return X


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("name", ["fd block uniform", "centered fd block uniform"])
def test_broken_indices_are_refused_and_change_nothing(name, bad):
    sketch = laws.SKETCHES[name]().update(sparse_rows(20, 8))
    before = copy.deepcopy(sketch)
    with pytest.raises(ValueError, match="broken indices"):
        sketch.update(BAD[bad]())
    laws.assert_same_bits(sketch, before)


@pytest.mark.parametrize("name", ["fd block uniform", "fd exact uniform", "fd auto uniform"])
def test_rows_of_zeros_count_and_weigh_nothing(name):
    nothing = sp.csr_array((50, 12))
    stored = sp.csr_array((np.zeros(4), [0, 3, 5, 7], [0, 2, 4]), shape=(2, 12))
    sketch = laws.SKETCHES[name]().update(nothing).update(stored)
    assert sketch.n_rows_seen == 52
    assert sketch.squared_norm == 0.0
    assert sketch.error_bound() == 0.0
    X = sparse_rows(300, 12)
    with_zeros = laws.SKETCHES[name]().update(nothing).update(X).update(stored)
    # Sums over more rows are allowed more roundings, where there is no other error.
    bound = laws.SKETCHES[name]().update(X).error_bound()
    assert with_zeros.error_bound() == pytest.approx(bound, abs=1e-12 * with_zeros.squared_norm)
