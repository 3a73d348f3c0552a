import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from sksketch.arrays.rows import as_rows, as_weights, dense_tiles, squared_row_norms

F64, F32 = np.dtype(np.float64), np.dtype(np.float32)


def test_arrays_pass_without_a_copy():
    X = np.ones((3, 4))
    assert as_rows(X) is X or np.shares_memory(as_rows(X), X)
    single = X.astype(np.float32)
    assert np.shares_memory(as_rows(single), single)


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (np.array([["a", "b"]]), TypeError, "dtype <U1"),
        (np.array([[1, "b"]], dtype=object), TypeError, "dtype object"),
        (np.array([[1 + 2j]]), TypeError, "complex128"),
        (np.array([["2020-01-01"]], dtype="datetime64[D]"), TypeError, "datetime64"),
        ([[1.0, 2.0], [3.0]], ValueError, "equal length"),
        (np.zeros((0, 3)), ValueError, "empty block"),
        (np.zeros((3, 0)), ValueError, "empty block"),
        (np.zeros((2, 2, 2)), ValueError, "3-D"),
        (np.float64(3.0), ValueError, "0-D"),
        (np.zeros((2, 5)), ValueError, "5 features, expected 3"),
        (pd.DataFrame({"a": [1.0], "b": ["x"], "c": [2.0]}), TypeError, "'b'"),
        ("text", TypeError, "dtype"),
        (None, TypeError, "dtype object"),
        ({"a": 1}, TypeError, "dtype object"),
        (sp.csr_array(np.array([[1 + 2j, 0, 0]])), TypeError, "complex"),
    ],
)
def test_refusals_name_the_reason(X, error, message):
    with pytest.raises(error, match=message) as caught:
        as_rows(X, n_features=3)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_what_is_not_finite_is_found_and_located(dtype, make):
    for bad, name in ((np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")):
        X = np.ones((5, 4), dtype=dtype)
        X[3, 2] = bad
        with pytest.raises(ValueError, match=f"{name} .first in row 3, column 2"):
            squared_row_norms(make(X), np.dtype(dtype))


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_squares_that_overflow_are_refused(make):
    with pytest.raises(ValueError, match="1e\\+200"):
        squared_row_norms(make(np.array([[1.0, 1e200]])), F64)
    with pytest.raises(ValueError, match="1e\\+30.*float32"):
        squared_row_norms(make(np.array([[1.0, 1e30]])), F32)
    with pytest.raises(ValueError, match="float32"):
        squared_row_norms(make(np.array([[1.0, 1e30]], dtype=np.float32)), F32)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_squared_row_norms(make, dtype):
    X = np.random.default_rng(0).standard_normal((50, 7)).astype(dtype)
    X[4] = 0
    norms = squared_row_norms(make(X), np.dtype(dtype))
    np.testing.assert_allclose(norms, (X.astype(np.float64) ** 2).sum(axis=1), atol=1e-12)


def test_sparse_rows_with_repeated_entries_are_summed_and_left_alone():
    parts = np.array([1.0, 2.0, 3.0]), np.array([2, 0, 2]), np.array([0, 3])
    X = sp.csr_matrix(tuple(part.copy() for part in parts), shape=(1, 4))
    np.testing.assert_array_equal(as_rows(X).toarray(), [[2.0, 0.0, 4.0, 0.0]])
    for mine, theirs in zip(parts, (X.data, X.indices, X.indptr), strict=True):
        np.testing.assert_array_equal(mine, theirs)
        theirs.flags.writeable = False
    np.testing.assert_array_equal(as_rows(X).toarray(), [[2.0, 0.0, 4.0, 0.0]])


@pytest.mark.parametrize(
    ("weights", "error"),
    [
        ([1.0, 2.0], ValueError),
        ([[1.0], [1.0], [1.0]], ValueError),
        (2.0, ValueError),
        ([1.0, -1.0, 1.0], ValueError),
        ([1.0, np.nan, 1.0], ValueError),
        ([1.0, np.inf, 1.0], ValueError),
        (["a", "b", "c"], TypeError),
        ([1.0, None, "x"], TypeError),
    ],
)
def test_weights_are_one_number_per_row(weights, error):
    with pytest.raises(error, match="weights"):
        as_weights(weights, 3)
    assert as_weights(None, 3) is None
    np.testing.assert_array_equal(as_weights([1, 0, 2], 3), [1.0, 0.0, 2.0])


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_chunks_are_the_rows_in_order(make):
    X = np.arange(30.0).reshape(10, 3)
    chunks = list(dense_tiles(make(X), F32, tile_rows=4))
    assert [len(chunk) for chunk in chunks] == [4, 4, 2]
    assert {chunk.dtype for chunk in chunks} == {F32}
    np.testing.assert_array_equal(np.concatenate(chunks), X)
    wide = make(np.ones((3, 400_000)))
    assert [len(chunk) for chunk in dense_tiles(wide, F64)] == [1, 1, 1]


@pytest.mark.parametrize("offset", [-(2**31) + 11, -(2**31), 2**31 - 1, -12, 6, 3])
def test_diagonals_outside_of_a_matrix_are_refused(offset):
    X = sp.dia_array((np.ones((2, 6)), [0, 3]), shape=(12, 6))
    X.offsets = np.array([offset, 3], dtype=np.int32)
    with pytest.raises(ValueError, match="broken indices"):
        as_rows(X)


def test_diagonals_are_rows():
    X = sp.dia_array((np.arange(12.0).reshape(2, 6), [-11, 5]), shape=(12, 6))
    np.testing.assert_array_equal(as_rows(X).toarray(), X.toarray())
