import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from _support import laws, zoo
from sksketch import Centered, ExactCovariance, FrequentDirections, NotMergeableError
from sksketch.sketches.buffer import tile_rows

X = np.random.default_rng(2).standard_normal((1100, 12)) / np.arange(1, 13) + np.arange(12)
TILE = tile_rows(8 * 12)


def scatter(rows, weights=None):
    w = np.ones(len(rows)) if weights is None else weights
    deviations = rows - w @ rows / w.sum()
    return (deviations * w[:, None]).T @ deviations


@given(X=zoo.matrices(), shift=st.sampled_from([0.0, 1.0, 1e3]))
def test_one_pass_gives_the_scatter_around_the_final_mean(X, shift):
    rows = X + shift * np.abs(X).max()
    sketch = Centered(ExactCovariance()).update(rows)
    np.testing.assert_allclose(
        sketch.mean, rows.mean(axis=0), rtol=1e-12, atol=1e-12 * abs(X).max()
    )
    A = rows - rows.mean(axis=0)
    # Rounding is relative to the rows as they came, before their mean was taken off.
    atol = zoo.atol(A) + 1e-12 * zoo.energy(rows)
    np.testing.assert_allclose(sketch.summary().to_dense(), zoo.gram(A), atol=atol)


@pytest.mark.parametrize("n_rows", [1, 2, TILE - 1, TILE, TILE + 1, 1100])
@pytest.mark.parametrize("decay", [None, 0.99, 0.5])
def test_means_weights_and_scatter_at_tile_edges(n_rows, decay):
    rows = X[:n_rows]
    weights = np.random.default_rng(0).choice([0.0, 0.5, 2.0], n_rows)
    weights[-1] = 1.0
    sketch = Centered(ExactCovariance(decay=decay)).update(rows, weights)
    now = weights * (decay or 1.0) ** np.arange(n_rows - 1, -1, -1.0)
    np.testing.assert_allclose(sketch.total_weight, now.sum(), rtol=1e-12)
    np.testing.assert_allclose(sketch.mean, now @ rows / now.sum(), rtol=1e-10, atol=1e-12)
    expected = scatter(rows, now)
    atol = 1e-10 * max(np.trace(expected), 1e-3)
    np.testing.assert_allclose(sketch.summary().to_dense(), expected, atol=atol)


@pytest.mark.parametrize("decay", [None, 0.97])
def test_merging_adds_one_row_for_the_gap_between_means(decay):
    one = Centered(ExactCovariance(decay=decay)).update(X[:300])
    two = Centered(ExactCovariance(decay=decay)).update(X[300:] + 5.0)
    merged = one | two
    factor = decay or 1.0
    w = np.concatenate([factor ** np.arange(299, -1, -1.0), factor ** np.arange(799, -1, -1.0)])
    rows = np.concatenate([X[:300], X[300:] + 5.0])
    np.testing.assert_allclose(merged.mean, w @ rows / w.sum(), rtol=1e-10)
    expected = scatter(rows, w)
    np.testing.assert_allclose(
        merged.summary().to_dense(), expected, atol=1e-10 * np.trace(expected)
    )
    assert merged.n_rows_seen == 1100


def test_a_deep_chain_of_merges_keeps_the_mean():
    merged = Centered(FrequentDirections(4, solver="exact", buffer_rows=10))
    for row in X[:100]:
        merged.merge(Centered(FrequentDirections(4, solver="exact", buffer_rows=10)).update(row))
    np.testing.assert_allclose(merged.mean, X[:100].mean(axis=0), rtol=1e-12)
    assert merged.n_rows_seen == 100
    laws.bound_is_true(merged, X[:100] - X[:100].mean(axis=0))


def test_a_large_mean_does_not_drown_the_scatter():
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((1000, 8))
    rows = noise + 1e8
    for sketch in (ExactCovariance(), FrequentDirections(8, solver="exact")):
        centered = Centered(sketch).update(rows)
        A = rows - rows.mean(axis=0)
        np.testing.assert_allclose(centered.summary().to_dense(), zoo.gram(A), rtol=1e-6, atol=1e-4)


def test_single_precision_rows_with_a_large_mean():
    rows = (np.random.default_rng(0).standard_normal((2000, 8)) + 1000).astype(np.float32)
    centered = Centered(ExactCovariance()).update(rows)
    A = rows.astype(np.float64) - rows.astype(np.float64).mean(axis=0)
    # Each deviation is rounded to 24 bits of its own size, not of the mean's.
    np.testing.assert_allclose(centered.summary().to_dense(), zoo.gram(A), atol=1e-3)
    np.testing.assert_allclose(centered.mean, rows.astype(np.float64).mean(axis=0), rtol=1e-12)


@pytest.mark.parametrize("solver", ["exact", "block", "covariance"])
@pytest.mark.parametrize("decay", [None, 0.9])
def test_constant_rows_have_no_scatter(solver, decay):
    rows = np.tile(np.arange(45.0), (700, 1))
    sketch = Centered(laws.fd(laws.SOLVERS[solver], decay=decay)).update(rows)
    np.testing.assert_allclose(sketch.mean, np.arange(45.0), rtol=1e-12)
    assert sketch.squared_norm <= 1e-20 * zoo.energy(rows)
    assert np.isfinite(sketch.error_bound())


def test_rows_of_weight_zero_change_nothing_but_the_count():
    plain = Centered(ExactCovariance()).update(X[:50])
    with_ghosts = Centered(ExactCovariance()).update(
        np.concatenate([X[:50], 1e6 * X[:20]]), np.repeat([1.0, 0.0], [50, 20])
    )
    np.testing.assert_allclose(with_ghosts.mean, plain.mean, rtol=1e-12)
    np.testing.assert_allclose(
        with_ghosts.summary().to_dense(), plain.summary().to_dense(), rtol=1e-9, atol=1e-9
    )
    assert with_ghosts.n_rows_seen == 70
    ghosts = Centered(ExactCovariance()).update(X, np.zeros(len(X)))
    assert ghosts.total_weight == 0.0
    assert not ghosts.summary().to_dense().any()


def test_what_can_be_wrapped():
    with pytest.raises(TypeError, match="expected a sketch to wrap"):
        Centered(np.eye(3))
    with pytest.raises(TypeError, match="expected a sketch to wrap"):
        Centered(Centered(ExactCovariance()))
    with pytest.raises(ValueError, match="empty sketch"):
        Centered(ExactCovariance().update(X))


def test_refusals():
    with pytest.raises(NotMergeableError, match="different kinds"):
        Centered(ExactCovariance()).update(X).merge(Centered(FrequentDirections(3)).update(X))
    with pytest.raises(NotMergeableError, match="decay"):
        Centered(FrequentDirections(3)).update(X).merge(
            Centered(FrequentDirections(3, decay=0.5)).update(X)
        )


def test_options_show_through():
    sketch = Centered(FrequentDirections(3, decay=0.5))
    assert sketch.sketch_size == 3
    assert sketch.decay == 0.5
    assert Centered(ExactCovariance()).sketch_size is None
    assert "Centered in one pass" in sketch.update(X).plan()
