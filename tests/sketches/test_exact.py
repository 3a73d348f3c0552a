import numpy as np
import pytest
from hypothesis import given

from _support import checks, laws, zoo
from _support.configurations import Configuration
from _support.oracle import Rows
from sksketch import ExactCovariance, NotMergeableError

X = np.random.default_rng(1).standard_normal((1300, 12)) / np.arange(1, 13)


@given(X=zoo.matrices())
def test_it_is_the_gram_matrix(X):
    sketch = ExactCovariance().update(X)
    np.testing.assert_allclose(sketch.matrix(), zoo.gram(X), atol=zoo.ORACLE_RTOL * zoo.energy(X))
    np.testing.assert_allclose(sketch.summary().to_dense(), zoo.gram(X), atol=zoo.atol(X))
    assert sketch.error_bound() <= 1e-12 * zoo.energy(X)
    np.testing.assert_allclose(sketch.squared_norm, zoo.energy(X), rtol=1e-12)


def test_the_matrix_is_symmetric_and_a_copy():
    sketch = ExactCovariance().update(X)
    C = sketch.matrix()
    np.testing.assert_array_equal(C, C.T)
    C[:] = 0.0
    assert sketch.matrix().any()


def test_single_precision_rows_are_summed_in_double():
    rows = np.full((20_000, 3), 0.1, dtype=np.float32)
    sketch = ExactCovariance().update(rows)
    np.testing.assert_allclose(sketch.matrix(), zoo.gram(rows), rtol=1e-12)
    assert sketch.summary().components.dtype == np.float64


@pytest.mark.parametrize("n_rows", [1, 511, 512, 513, 1024, 1300])
def test_forgetting_at_buffer_edges(n_rows):
    sketch = ExactCovariance(decay=0.99).update(X[:n_rows])
    A = np.sqrt(0.99 ** np.arange(n_rows - 1, -1, -1.0))[:, None] * X[:n_rows]
    np.testing.assert_allclose(sketch.matrix(), zoo.gram(A), atol=1e-12 * zoo.energy(A))


def test_merging_adds():
    one, two = ExactCovariance().update(X[:700]), ExactCovariance().update(X[700:])
    np.testing.assert_allclose((one | two).matrix(), zoo.gram(X), atol=1e-12 * zoo.energy(X))
    empty = ExactCovariance().merge(one)
    np.testing.assert_allclose(empty.matrix(), one.matrix(), rtol=1e-13)
    np.testing.assert_allclose((one | one).matrix(), 2 * one.matrix(), rtol=1e-12)


@pytest.mark.parametrize("options", [{"decay": 0.5}, {"initial_ridge": 1.0}])
def test_refusals(options):
    with pytest.raises(NotMergeableError, match=next(iter(options))):
        ExactCovariance().update(X).merge(ExactCovariance(**options).update(X))


@pytest.mark.parametrize("ridge", [-1.0, float("nan"), float("inf")])
def test_a_bad_ridge_is_refused_at_once(ridge):
    with pytest.raises(ValueError, match="ridge"):
        ExactCovariance(initial_ridge=ridge)


def test_rank_deficient_rows_have_nothing_certain_beyond_their_rank():
    rows = zoo.SHAPES["low rank"](100, 20)
    sketch = ExactCovariance().update(rows)
    assert sketch.certificate().n_certain == 3
    assert (sketch.summary().eigenvalues[3:] <= sketch.error_bound()).all()
    laws.bound_is_true(ExactCovariance().update(rows), rows)
    assert ExactCovariance().update(np.zeros((5, 4))).summary().rank == 0


def test_the_plan_names_its_memory():
    assert "MB" in ExactCovariance().update(X).plan()


def test_the_bound_holds_where_lapack_scales():
    # Squares of about 1e-213, which LAPACK multiplies before it looks for eigenvalues.
    X = np.array(
        [
            [-5.80333702e-108, -4.13528530e-107, -1.45000815e-107],
            [-2.13555760e-107, -1.41520825e-107, -4.93175767e-107],
        ]
    )
    rng = np.random.default_rng(0)
    blocks = [X, *(1e-107 * rng.standard_normal((2, 3)) for _ in range(200))]
    for rows in blocks:
        seen = Rows(3).update(rows)
        sketch = ExactCovariance().update(rows)
        made = Configuration(ExactCovariance, "ExactCovariance()", False)
        assert not [check for check in checks.of_sketch(sketch, seen, made) if check.broken]
