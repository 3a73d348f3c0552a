import copy
import os

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from _support import laws, zoo
from sksketch import (
    Centered,
    ExactCovariance,
    FrequentDirections,
    metrics,
)

SOLVERS = ["exact", "block", "covariance"]
RNG = np.random.default_rng(0)
X = RNG.standard_normal((210, 45)) / np.arange(1, 46)


# What rows may look like

FORMS = {
    "list": lambda A: A.tolist(),
    "tuple of rows": lambda A: tuple(A),
    "pandas": lambda A: pd.DataFrame(A, columns=[f"c{i}" for i in range(A.shape[1])]),
    "Fortran": np.asfortranarray,
    "reversed view": lambda A: np.ascontiguousarray(A[::-1])[::-1],
    "strided view": lambda A: np.repeat(np.repeat(A, 2, axis=0), 3, axis=1)[::2, ::3],
    "big endian": lambda A: A.astype(">f8"),
    "long double": lambda A: A.astype(np.longdouble),
}


def read_only(A):
    A = A.copy()
    A.flags.writeable = False
    return A


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("form", [*FORMS, "read-only"])
def test_every_form_of_rows_gives_the_same_answer(form, solver):
    make = FORMS.get(form, read_only)
    expected = laws.fd(laws.SOLVERS[solver]).update(X)
    laws.assert_same_answer(laws.fd(laws.SOLVERS[solver]).update(make(X)), expected)


@pytest.mark.parametrize("dtype", [bool, np.int8, np.int64, np.uint16, np.float16])
@pytest.mark.parametrize("form", [np.asarray, pd.DataFrame])
def test_narrow_numbers_are_not_multiplied_as_such(dtype, form):
    rows = (RNG.integers(0, 2 if dtype is bool else 100, (80, 20))).astype(dtype)
    wide = rows.astype(np.float32 if dtype == np.float16 else np.float64)
    sketch = laws.fd(laws.EXACT).update(form(rows))
    laws.assert_same_answer(sketch, laws.fd(laws.EXACT).update(wide))
    assert sketch.dtype == wide.dtype


def test_a_single_row_may_be_one_dimensional():
    left = laws.fd(laws.EXACT).update(X[0]).update(X[1].tolist())
    laws.assert_same_answer(left, laws.fd(laws.EXACT).update(X[:2]))


def test_the_first_block_fixes_the_columns_and_the_precision():
    sketch = laws.fd(laws.EXACT)
    assert sketch.n_features is None
    sketch.update(X[:1].astype(np.float32))
    assert sketch.n_features == 45
    assert sketch.dtype == np.float32
    sketch.update(X[1:])
    assert sketch.dtype == np.float32
    # What is kept is not narrowed.
    assert sketch.summary().components.dtype == sketch.matrix.dtype == np.float64
    assert laws.fd(laws.EXACT).update(X[:1]).update(X[1:].astype(np.float32)).dtype == np.float64


@pytest.mark.parametrize("solver", SOLVERS)
def test_float32_agrees_with_float64(solver):
    single = laws.fd(laws.SOLVERS[solver]).update(X.astype(np.float32))
    double = laws.fd(laws.SOLVERS[solver]).update(X.astype(np.float32).astype(np.float64))
    difference = single.summary().to_dense() - double.summary().to_dense()
    assert np.linalg.norm(difference, 2) <= zoo.FLOAT32_RTOL * zoo.energy(X)


@pytest.mark.parametrize("solver", ["exact", "block"])
def test_zero_rows_count_but_do_not_bring_the_next_shrink_nearer(solver):
    plain = laws.fd(laws.SOLVERS[solver]).update(X)
    gaps = np.insert(X, np.repeat(np.arange(0, 210, 3), 5), 0.0, axis=0)
    with_gaps = laws.fd(laws.SOLVERS[solver]).update(gaps)
    np.testing.assert_array_equal(plain.matrix, with_gaps.matrix)
    assert plain.n_shrinks == with_gaps.n_shrinks
    assert plain.error_bound() == with_gaps.error_bound()
    assert with_gaps.n_rows_seen == with_gaps.summary().n_rows_seen == len(gaps)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("wrap", [False, True])
def test_rows_of_tiny_numbers_are_not_taken_for_zeros(wrap, dtype, solver):
    # Their squares underflow in their own precision.
    scale = np.float32(1e-25) if dtype == np.float32 else 1e-100
    rows = (X * float(scale)).astype(dtype)
    sketch = laws.fd(laws.SOLVERS[solver])
    sketch = (Centered(sketch) if wrap else sketch).update(rows)
    A = rows.astype(np.float64)
    A = A - A.mean(axis=0) if wrap else A
    np.testing.assert_allclose(sketch.squared_norm, zoo.energy(A), rtol=1e-5)
    error = np.linalg.norm(zoo.gram(A) - sketch.summary().to_dense(), 2)
    assert error <= sketch.error_bound() + 1e-6 * zoo.energy(A)


@pytest.mark.parametrize("solver", SOLVERS)
def test_large_single_precision_numbers_do_not_overflow(solver):
    # A row of 1e18 squared fits into float32, a sum of a thousand of them does not.
    rows = (1e17 * np.random.default_rng(0).standard_normal((2000, 50))).astype(np.float32)
    laws.bound_is_true(laws.fd(laws.SOLVERS[solver]).update(rows), rows)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("wrap", [False, True])
@pytest.mark.parametrize("options", [{}, {"decay": 0.9}])
def test_a_stream_of_zeros(options, wrap, solver):
    sketch = laws.fd(laws.SOLVERS[solver], **options)
    sketch = (Centered(sketch) if wrap else sketch).update(np.zeros((400, 45)))
    assert sketch.error_bound() == 0.0
    assert sketch.squared_norm == 0.0
    assert not sketch.summary().to_dense().any()
    sketch.update(X)
    assert sketch.squared_norm > 0


# Guarantees of the options


@given(data=st.data(), solver=st.sampled_from(["exact", "block"]))
@settings(max_examples=15)
def test_integer_weights_are_repeated_rows(data, solver):
    counts = np.array(data.draw(st.lists(st.integers(0, 3), min_size=60, max_size=60)))
    weighted = laws.fd(laws.SOLVERS[solver]).update(X[:60], counts)
    repeated = np.repeat(X[:60], counts, axis=0)
    np.testing.assert_allclose(weighted.squared_norm, zoo.energy(repeated), rtol=1e-12)
    A = np.sqrt(counts)[:, None] * X[:60]
    laws.bound_is_true(weighted, A)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("options", [{"decay": 0.8}, {"half_life": 25.0}])
def test_forgetting_is_a_weight_per_age(options, solver):
    sketch = laws.fd(laws.SOLVERS[solver], sketch_size=8, **options).update(X)
    factor = options.get("decay", 0.5 ** (1 / 25))
    A = np.sqrt(factor ** np.arange(209, -1, -1.0))[:, None] * X
    np.testing.assert_allclose(sketch.squared_norm, zoo.energy(A), rtol=1e-9)
    laws.bound_is_true(sketch, A)


def test_half_life_is_a_decay():
    assert FrequentDirections(3, half_life=1.0).decay == 0.5
    assert FrequentDirections(3).decay == 1.0


def test_merging_forgetful_sketches_ages_neither():
    one = laws.fd(laws.EXACT, decay=0.9).update(X[:100])
    two = laws.fd(laws.EXACT, decay=0.9).update(X[100:])
    aged = np.sqrt(0.9 ** np.arange(99, -1, -1.0))[:, None] * X[:100]
    fresh = np.sqrt(0.9 ** np.arange(109, -1, -1.0))[:, None] * X[100:]
    merged = one | two
    laws.bound_is_true(merged, np.concatenate([aged, fresh]))
    np.testing.assert_allclose(merged.squared_norm, one.squared_norm + two.squared_norm)


@pytest.mark.parametrize("solver", SOLVERS)
def test_an_empty_forgetful_sketch_can_be_merged_both_ways(solver):
    full = laws.fd(laws.SOLVERS[solver], decay=0.9).update(X)
    left = laws.fd(laws.SOLVERS[solver], decay=0.9).merge(full)
    right = copy.deepcopy(full).merge(laws.fd(laws.SOLVERS[solver], decay=0.9))
    for merged in (left, right):
        np.testing.assert_allclose(merged.squared_norm, full.squared_norm, rtol=1e-12)
        assert merged.n_rows_seen == 210


def test_initial_ridge_is_part_of_the_target():
    for correction in ("none", "half", "full", "trace", 0.3):
        sketch = laws.fd(laws.EXACT, initial_ridge=2.5, correction=correction).update(X)
        error = metrics.spectral_error(X, sketch.summary(), initial_ridge=2.5)
        assert error <= sketch.error_bound() + zoo.atol(X)


def test_initial_ridge_is_counted_once_in_a_merge():
    one = laws.fd(laws.EXACT, initial_ridge=2.5).update(X[:100])
    two = laws.fd(laws.EXACT, initial_ridge=2.5).update(X[100:])
    laws.bound_is_true(one | two, X)


@pytest.mark.parametrize("solver", ["exact", "block"])
@pytest.mark.parametrize("correction", ["none", "half"])
@pytest.mark.parametrize("tol", [0.3, 0.02, 0.005, 1e-4])
def test_growth_is_honest(tol, correction, solver):
    rows = zoo.SHAPES["power law"](600, 60)
    sketch = laws.fd(laws.SOLVERS[solver], tol=tol, max_sketch_size=25, correction=correction)
    sketch.update(rows)
    relative = sketch.error_bound() / zoo.energy(rows)
    assert sketch.target_met == (relative <= tol)
    assert len(sketch.matrix) <= 25
    true = metrics.spectral_error(rows, sketch.summary()) / zoo.energy(rows)
    if sketch.target_met:
        assert true <= tol
    if tol >= 0.02:
        assert sketch.target_met
    if tol == 1e-4:
        assert not sketch.target_met
    assert sketch.certificate().relative_error == pytest.approx(relative)


def test_growth_stops_where_it_is_enough():
    rows = zoo.SHAPES["power law"](600, 60)
    sketch = laws.fd(laws.EXACT, tol=0.02, max_sketch_size=60).update(rows)
    assert sketch.target_met
    assert 4 < len(sketch.matrix) < 60
    assert not laws.fd(laws.EXACT, tol=0.02, max_sketch_size=4).update(rows).target_met
    assert FrequentDirections(4).update(rows).target_met


@pytest.mark.parametrize("solver", ["exact", "block"])
def test_the_sketch_has_no_more_rows_than_asked_for(solver):
    for size in (1, 3, 8):
        sketch = laws.fd(laws.SOLVERS[solver], sketch_size=size).update(X)
        B = sketch.matrix
        assert len(B) <= size
        assert sketch.summary().rank <= size
        products = B @ B.T
        np.testing.assert_allclose(
            products - np.diag(products.diagonal()), 0, atol=1e-12 * products.max()
        )
        assert (np.diff(products.diagonal()) <= 1e-12 * products.max()).all()


@given(X=zoo.matrices(), size=st.integers(1, 50))
def test_more_rows_than_the_data_have_lose_nothing(X, size):
    sketch = FrequentDirections(max(size, X.shape[1]), solver="exact", buffer_rows=200).update(X)
    assert sketch.error_bound() <= zoo.atol(X)
    assert np.linalg.norm(sketch.summary().to_dense() - zoo.gram(X), 2) <= zoo.atol(X)


def test_singular_values_over_twelve_decades_are_kept():
    # Rank 8 in 40 columns: nothing is cut, and even the faintest direction keeps its digits.
    s = np.geomspace(1.0, 1e-12, 8)
    rows = zoo.with_spectrum(s, 300, 40)
    sketch = FrequentDirections(8, solver="exact", buffer_rows=20, correction="none").update(rows)
    assert sketch.n_shrinks >= 20
    true = np.linalg.svd(rows, compute_uv=False)[:8]
    found = np.sqrt(sketch.summary().eigenvalues)
    assert len(found) == 8
    # The rows themselves hold 1e-16 of the largest value: 1e-4 of the last direction's.
    np.testing.assert_allclose(found[:6], true[:6], rtol=1e-5)
    np.testing.assert_allclose(found[6:], true[6:], rtol=0.1)


def test_a_graded_spectrum_of_orthogonal_rows_is_kept_to_the_last_digit():
    s = np.geomspace(1.0, 1e-12, 8)
    rows = np.repeat(s[:, None] * np.eye(8, 40), 30, axis=0)
    sketch = FrequentDirections(8, solver="exact", buffer_rows=20, correction="none").update(rows)
    found = np.sqrt(sketch.summary().eigenvalues)
    np.testing.assert_allclose(found, np.sqrt(30) * s, rtol=1e-6)


# Options


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sketch_size": 0}, "sketch_size must be a positive integer"),
        ({"sketch_size": 2.5}, "sketch_size must be a positive integer"),
        ({"sketch_size": True}, "sketch_size must be a positive integer"),
        ({"correction": "double"}, "correction must be one of"),
        ({"correction": -1.0}, "correction must be one of"),
        ({"correction": float("nan")}, "correction must be one of"),
        ({"rule": "median"}, "rule must be one of"),
        ({"rule": "parameterized", "fraction": 0.0}, "fraction must be in"),
        ({"solver": "fast"}, "solver must be one of"),
        ({"initial_ridge": -1.0}, "initial_ridge must be"),
        ({"initial_ridge": float("nan")}, "initial_ridge must be"),
        ({"decay": 0.0}, "decay must be a factor"),
        ({"decay": 1.5}, "decay must be a factor"),
        ({"half_life": 0.0}, "half_life must be"),
        ({"decay": 0.5, "half_life": 3.0}, "both decay and half_life"),
        ({"buffer_rows": 4}, "buffer_rows must exceed sketch_size"),
        ({"buffer_rows": 7.5}, "buffer_rows must be a positive integer"),
        ({"tol": 0.0}, "tol must be positive"),
        ({"tol": float("nan")}, "tol must be positive"),
        ({"max_sketch_size": 0}, "max_sketch_size must be"),
        ({"failure_probability": 0.0}, "failure_probability must be in"),
        ({"failure_probability": 2.0}, "failure_probability must be in"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        FrequentDirections(**({"sketch_size": 4} | options))


def test_reading_before_rows_is_an_error_with_one_sentence():
    for sketch in (FrequentDirections(3), ExactCovariance(), Centered(FrequentDirections(3))):
        for read in (sketch.summary, sketch.certificate, sketch.error_bound):
            with pytest.raises(ValueError, match="has seen no rows yet"):
                read()
        assert sketch.squared_norm == 0.0
        assert "waiting" in sketch.plan()
        assert "? features" in repr(sketch)


def test_plans_say_what_was_chosen():
    assert "does not sketch" in FrequentDirections(8).update(X).plan()
    wide = np.zeros((1, 3000))
    assert "verified subspace iteration" in FrequentDirections(64).update(wide).plan()
    assert "exactly (deterministic" in FrequentDirections(1, solver="exact").update(wide).plan()
    for solver in SOLVERS:
        plan = FrequentDirections(8, solver=solver).update(X).plan()
        assert plan.count(".\n") == 0
        assert plan.endswith(".")


def test_the_block_solver_repeats_itself_and_its_seed_matters():
    sketches = [laws.fd(laws.BLOCK, seed=seed).update(X) for seed in (0, 0, 1)]
    laws.assert_same_bits(sketches[0], sketches[1])
    assert not np.array_equal(sketches[0].matrix, sketches[2].matrix)


@pytest.mark.skipif("SKSKETCH_DATA" not in os.environ, reason="SKSKETCH_DATA names no data folder")
def test_a9a_reproduces_the_reference_numbers():
    with np.load(os.path.join(os.environ["SKSKETCH_DATA"], "a9a.npz")) as file:
        parts = (file["data"].astype(np.float64), file["indices"], file["indptr"])
        rows = sp.csr_array(parts, shape=tuple(file["shape"]))[: int(file["n_train"])]
    total = rows.multiply(rows).sum()
    sketch = FrequentDirections(24, solver="exact", correction="none", buffer_rows=50).update(rows)
    plain = metrics.spectral_error(rows, sketch.summary())
    # Measured with an independent implementation: the sum of cuts is the true error to 4 digits,
    # and half of it is the error of the robust read-out.
    assert plain / total == pytest.approx(1.2676e-2, rel=0.01)
    assert plain <= sketch.error_bound() <= 1.001 * plain
    robust = laws.with_correction(sketch, "half")
    assert metrics.spectral_error(rows, robust.summary()) / plain == pytest.approx(0.5, abs=1e-3)
