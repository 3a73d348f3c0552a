import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sksketch.low_rank import LowRankPlusRidge


def random_operator(seed, n_features, rank, ridge, dtype=np.float64):
    rng = np.random.default_rng(seed)
    Q, _ = np.linalg.qr(rng.standard_normal((n_features, n_features)))
    eigenvalues = np.sort(rng.uniform(0.5, 10.0, rank))[::-1]
    return LowRankPlusRidge(Q.T[:rank].astype(dtype), eigenvalues, ridge=ridge)


@st.composite
def operators(draw):
    n_features = draw(st.integers(1, 12))
    rank = draw(st.integers(0, n_features))
    ridge = draw(st.sampled_from([0.0, 1e-3, 1.0, 50.0]))
    return random_operator(draw(st.integers(0, 2**16)), n_features, rank, ridge)


@given(operators(), st.sampled_from([None, 1, 4]))
def test_every_operation_agrees_with_the_dense_matrix(H, n_columns):
    shape = (H.n_features,) if n_columns is None else (H.n_features, n_columns)
    b = np.random.default_rng(1).standard_normal(shape)
    V = H.components
    dense = sum(
        (e * np.outer(v, v) for e, v in zip(H.eigenvalues, V, strict=True)),
        H.ridge * np.eye(H.n_features),
    )
    inverse = np.linalg.pinv(dense, rcond=1e-12, hermitian=True)
    # The smallest eigenvalues are 1e-3 or 0.5, so the inverses lose four digits at most.
    np.testing.assert_allclose(H.to_dense(), dense, atol=1e-12)
    np.testing.assert_allclose(H @ b, dense @ b, atol=1e-11)
    np.testing.assert_allclose(H.solve(b), inverse @ b, atol=1e-9)
    np.testing.assert_allclose(H.sqrt_solve(H.sqrt_solve(b)), inverse @ b, atol=1e-9)
    assert H.trace() == pytest.approx(np.trace(dense))
    assert H.shape == dense.shape
    values = np.linalg.eigvalsh(dense)
    if H.ridge == 0.0 and H.rank < H.n_features:
        assert H.logdet() == -math.inf
        assert H.condition_number() == math.inf
    else:
        assert H.logdet() == pytest.approx(np.linalg.slogdet(dense)[1], abs=1e-9)
        assert H.condition_number() == pytest.approx(values[-1] / values[0])


def test_a_tiny_ridge_keeps_its_digits_when_the_components_span_everything():
    H = random_operator(0, n_features=6, rank=6, ridge=1e-300)
    b = np.arange(6.0)
    np.testing.assert_allclose(H @ H.solve(b), b, atol=1e-12)


def test_without_ridge_an_eigenvalue_of_rounding_size_counts_as_zero():
    H = LowRankPlusRidge(np.eye(2), np.array([1.0, 1e-17]))
    np.testing.assert_array_equal(H.solve(np.ones(2)), [1.0, 0.0])
    np.testing.assert_array_equal(H.sqrt_solve(np.ones(2)), [1.0, 0.0])
    assert H.logdet() == -math.inf
    assert H.condition_number() == math.inf


def test_an_operator_without_components_is_its_ridge():
    H = LowRankPlusRidge(np.empty((0, 3)), np.empty(0), ridge=2.0)
    np.testing.assert_array_equal(H.solve(np.ones(3)), np.full(3, 0.5))
    assert H.condition_number() == 1.0
    zero = H.with_ridge(0.0)
    np.testing.assert_array_equal(zero @ np.ones(3), np.zeros(3))
    np.testing.assert_array_equal(zero.solve(np.ones(3)), np.zeros(3))


@pytest.mark.parametrize("rank", [3, 8])
@pytest.mark.parametrize("ridge", [0.0, 0.5])
def test_float32_stays_float32_and_float64_is_not_cut_down(rank, ridge):
    H = random_operator(2, 8, rank, ridge, dtype=np.float32)
    b = np.random.default_rng(3).standard_normal((8, 2))
    assert H.eigenvalues.dtype == np.float64
    for operation in (H.__matmul__, H.solve, H.sqrt_solve):
        single = operation(b.astype(np.float32))
        assert single.dtype == np.float32
        assert operation(b).dtype == np.float64
        np.testing.assert_allclose(single, operation(b), atol=1e-5)


def test_with_ridge_keeps_all_but_the_ridge():
    H = LowRankPlusRidge(np.eye(3)[:1], [2.0], 1.0, 0.25, 0.9, n_rows_seen=7, squared_norm=3.0)
    shifted = H.with_ridge(4.0)
    assert (shifted.ridge, shifted.error_bound, shifted.confidence) == (4.0, 0.25, 0.9)
    assert (shifted.n_rows_seen, shifted.squared_norm) == (7, 3.0)
    assert H.ridge == 1.0


def test_inputs_may_be_read_only_and_are_left_alone():
    components, b = np.eye(4)[:2], np.ones(4)
    for array in (components, b):
        array.flags.writeable = False
    H = LowRankPlusRidge(components, [2.0, 1.0], ridge=1.0)
    H.solve(b), H.sqrt_solve(b), H @ b, H.to_dense()
    np.testing.assert_array_equal(b, np.ones(4))


@pytest.mark.parametrize("b", [np.ones(4), np.ones((1, 3)), np.ones((3, 1, 1)), np.float64(1.0)])
def test_a_wrong_right_hand_side_is_refused_with_the_shapes(b):
    H = LowRankPlusRidge(np.eye(3)[:1], [2.0], ridge=1.0)
    for operation in (H.__matmul__, H.solve, H.sqrt_solve):
        with pytest.raises(ValueError, match=r"of 3 features.*give a vector of shape \(3,\)"):
            operation(b)


@pytest.mark.parametrize(
    ("components", "eigenvalues", "options", "message"),
    [
        (np.eye(3)[:2], [1.0], {}, "do not fit"),
        (np.ones(3), [1.0], {}, "do not fit"),
        (np.eye(2), [1.0, 2.0], {}, "descending"),
        (np.eye(2), [1.0, -1.0], {}, "descending"),
        (np.eye(2), [1.0, np.nan], {}, "descending"),
        (np.eye(2), [2.0, 1.0], {"ridge": -1.0}, "ridge"),
        (np.eye(2), [2.0, 1.0], {"ridge": np.nan}, "ridge"),
        (np.eye(2), [2.0, 1.0], {"error_bound": np.nan}, "error_bound"),
    ],
)
def test_parts_that_do_not_make_an_operator_are_refused(components, eigenvalues, options, message):
    with pytest.raises(ValueError, match=message):
        LowRankPlusRidge(components, eigenvalues, **options)
