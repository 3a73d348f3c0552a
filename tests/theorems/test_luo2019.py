"""Luo et al. (2019), JMLR 20(45): Robust Frequent Directions. m of the paper is sketch_size + 1.

The numbers are the paper's. Where a printed statement is wrong the test says what holds instead.
"""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from _support import zoo
from sksketch import ExactCovariance, FrequentDirections, datasets, metrics
from sksketch.sketches import bounds
from sksketch.sketches.directions.shrink.rules import n_reduced

sizes = st.integers(1, 8)
new_rows = st.integers(1, 20)
modest = zoo.matrices(scales=(1.0, 1e3))


def directions(X, sketch_size, n_new, **options):
    """Sketch with the exact solver, ``n_new`` rows at a time."""
    options = {"solver": "exact", "correction": "none"} | options
    return FrequentDirections(sketch_size, buffer_rows=sketch_size + n_new, **options).update(X)


def loss(X, sketch):
    """Return the eigenvalues of S = A'A - B'B, largest first."""
    B = sketch.matrix
    return np.linalg.eigvalsh(zoo.gram(X) - zoo.gram(B))[::-1]


@pytest.mark.parametrize("rule", ["uniform", "half", "parameterized", "truncate"])
@given(X=zoo.matrices(), sketch_size=sizes, n_new=new_rows)
def test_master_lemma_facts_1_and_2_the_loss_is_between_zero_and_the_shrinkage(
    rule, X, sketch_size, n_new
):
    sketch = directions(X, sketch_size, n_new, rule=rule, fraction=0.6)
    S = loss(X, sketch)
    assert S[-1] >= -zoo.atol(X)
    assert S[0] <= sketch.shrinkage + zoo.atol(X)


@pytest.mark.parametrize(("rule", "fraction"), [("uniform", 1.0), ("parameterized", 0.6)])
@given(X=zoo.matrices(), sketch_size=sizes, n_new=new_rows)
def test_master_lemma_fact_3_the_lost_mass_is_q_times_the_shrinkage(
    rule, fraction, X, sketch_size, n_new
):
    sketch = directions(X, sketch_size, n_new, rule=rule, fraction=fraction)
    q = n_reduced(sketch_size, fraction)
    mass = zoo.energy(X) - zoo.energy(sketch.matrix)
    assert mass >= q * sketch.shrinkage - zoo.atol(X)


@given(X=zoo.matrices(), sketch_size=sizes, n_new=new_rows)
def test_half_the_cut_has_nearly_the_bound_of_a_cut_in_full(X, sketch_size, n_new):
    sketch = directions(X, sketch_size, n_new, rule="half")
    q = (sketch_size + 1) / 1.1
    mass = zoo.energy(X) - zoo.energy(sketch.matrix)
    assert mass >= q * sketch.shrinkage - zoo.atol(X)
    values = np.linalg.svd(X, compute_uv=False) ** 2
    for rank in range(math.ceil(q)):
        tail = values[rank:].sum()
        assert sketch.shrinkage <= tail / (q - rank) + zoo.atol(X)


@given(sketch_size=st.integers(1, 4))
def test_half_the_cut_as_a_ridge_gives_the_kept_directions_back(sketch_size):
    X = np.random.default_rng(sketch_size).standard_normal((30, 40))
    sketch = FrequentDirections(sketch_size, rule="half", solver="exact", buffer_rows=40).update(X)
    summary = sketch.summary()
    values = np.linalg.svd(X, compute_uv=False) ** 2
    np.testing.assert_allclose(summary.eigenvalues + summary.ridge, values[:sketch_size])
    assert sketch.error_bound() == pytest.approx(values[sketch_size] / 2)


@given(X=zoo.matrices(), sketch_size=sizes, n_new=new_rows)
def test_luo2019_theorem1_frequent_directions_for_every_rank(X, sketch_size, n_new):
    sketch = directions(X, sketch_size, n_new)
    error = metrics.spectral_error(X, sketch.summary())
    for rank in range(sketch_size + 1):
        bound = bounds.frequent_directions(X, sketch_size, rank)
        assert error <= sketch.shrinkage + zoo.atol(X)
        assert sketch.shrinkage <= bound + zoo.atol(X)


@given(X=zoo.matrices(), sketch_size=sizes, n_new=new_rows, fraction=st.floats(0.1, 1.0))
def test_parameterized_bound_for_every_rank_below_q(X, sketch_size, n_new, fraction):
    sketch = directions(X, sketch_size, n_new, rule="parameterized", fraction=fraction)
    error = metrics.spectral_error(X, sketch.summary())
    for rank in range(n_reduced(sketch_size, fraction)):
        bound = bounds.parameterized_fd(X, sketch_size, fraction, rank)
        assert error <= sketch.shrinkage + zoo.atol(X)
        assert sketch.shrinkage <= bound + zoo.atol(X)


@given(X=zoo.matrices(), sketch_size=sizes, n_new=new_rows)
def test_master_lemma_projection_on_the_leading_components(X, sketch_size, n_new):
    sketch = directions(X, sketch_size, n_new)
    summary, total = sketch.summary(), zoo.energy(X)
    A = np.asarray(X)
    for rank in range(1, min(sketch_size, summary.rank) + 1):
        V = summary.components[:rank]
        missed = total - zoo.energy(A @ V.T)
        certified = total - float(summary.eigenvalues[:rank].sum())
        assert missed <= certified + zoo.atol(X)
        assert certified <= zoo.tail(X, rank) + rank * sketch.shrinkage + zoo.atol(X)
        assert missed <= bounds.projection(X, sketch_size, rank) + zoo.atol(X)


def best_shifted_rank_error(M, rank):
    """Return min ||M - (C'C + t I)||_2 over rank(C) <= rank and real t."""
    mu = np.linalg.eigvalsh(M)[::-1]
    return (mu[rank] - mu[-1]) / 2 if rank < len(mu) else 0.0


@given(X=modest, sketch_size=sizes, alpha=st.sampled_from([0.0, 0.3, 10.0]))
def test_luo2019_theorem2_one_robust_shrink_is_optimal(X, sketch_size, alpha):
    # Erratum: printed for buffers of rank below n_features. The read-out also uses the floor
    # of a full-rank buffer, and then the statement has no exception.
    sketch = FrequentDirections(
        sketch_size, solver="exact", buffer_rows=sketch_size + len(X) + 1, initial_ridge=alpha
    ).update(X)
    assert sketch.n_shrinks == 0
    target = zoo.gram(X) + alpha * np.eye(X.shape[1])
    error = np.linalg.norm(target - sketch.summary().to_dense(), 2)
    best = best_shifted_rank_error(target, sketch_size)
    np.testing.assert_allclose(error, best, atol=zoo.atol(X) + 1e-13 * alpha)
    np.testing.assert_allclose(sketch.error_bound(), best, atol=zoo.atol(X))


@given(X=zoo.matrices(), sketch_size=sizes, n_new=new_rows)
def test_luo2019_theorem3_robust_fd_halves_the_bound(X, sketch_size, n_new):
    sketch = directions(X, sketch_size, n_new, correction="half")
    error = metrics.spectral_error(X, sketch.summary())
    assert error <= sketch.error_bound() + zoo.atol(X)
    for rank in range(sketch_size + 1):
        assert error <= bounds.robust_fd(X, sketch_size, rank) + zoo.atol(X)


@given(X=modest, sketch_size=sizes, n_new=new_rows)
def test_luo2019_theorem3_the_error_is_exactly_half_when_the_loss_is_singular(
    X, sketch_size, n_new
):
    X = np.hstack([X, np.zeros((len(X), 1))])
    sketch = directions(X, sketch_size, n_new, correction="half")
    error = metrics.spectral_error(X, sketch.summary())
    np.testing.assert_allclose(error, sketch.shrinkage / 2, atol=zoo.atol(X))


@given(X=modest, sketch_size=sizes, n_new=new_rows, fraction=st.sampled_from([1e-3, 0.1, 10.0]))
def test_luo2019_theorem4_condition_number_as_corrected(X, sketch_size, n_new, fraction):
    # Erratum R4: the second claim needs rank(A) < n_features; in general it is
    # (sigma_1^2 + alpha_0) / alpha_0 that bounds the condition number.
    assume(zoo.energy(X) > 0)
    alpha = fraction * zoo.energy(X) / X.shape[1]
    robust = directions(X, sketch_size, n_new, correction="half", initial_ridge=alpha).summary()
    plain = directions(X, sketch_size, n_new, correction="none", initial_ridge=alpha).summary()
    slack = 1 + 1e-9
    assert robust.condition_number() <= plain.condition_number() * slack
    largest = np.linalg.norm(X, 2) ** 2
    assert robust.condition_number() <= (largest + alpha) / alpha * slack
    if np.linalg.matrix_rank(X) < X.shape[1]:
        exact = np.linalg.cond(zoo.gram(X) + alpha * np.eye(X.shape[1]))
        assert robust.condition_number() <= exact * (1 + 1e-6)


def test_luo2019_theorem4_fails_as_printed():
    # The counter-example behind erratum R4: 60 x 12 Gaussian rows.
    worse = 0
    for seed in range(40):
        X = np.random.default_rng(seed).standard_normal((60, 12))
        alpha = 0.1 * zoo.energy(X) / 12
        sketch = directions(X, 10, 1, correction="half", initial_ridge=alpha)
        exact = np.linalg.cond(zoo.gram(X) + alpha * np.eye(12))
        worse += sketch.summary().condition_number() > exact
    assert worse > 0


@given(X=zoo.matrices(max_features=12), sketch_size=sizes, n_new=new_rows)
def test_two_sided_refinement_every_direction_lost_the_floor(X, sketch_size, n_new):
    # Section 4 of our notes, not in the paper: a full-rank buffer raises the lower bound too.
    sketch = directions(X, sketch_size, n_new, correction="half")
    S = loss(X, sketch)
    none = directions(X, sketch_size, n_new)
    floor = 2 * (none.error_bound() / 2 - sketch.error_bound())
    assert floor >= -zoo.atol(X)
    assert S[-1] >= floor - zoo.atol(X)
    assert sketch.error_bound() <= sketch.shrinkage / 2 + zoo.atol(X)


def test_two_sided_refinement_is_worth_something():
    X = np.random.default_rng(0).standard_normal((500, 6))
    sketch = directions(X, 3, 30, correction="half")
    assert sketch.error_bound() < 0.9 * sketch.shrinkage / 2


@given(X=zoo.matrices(), sketch_size=sizes, n_new=new_rows)
def test_compensated_fd_stays_within_the_shrinkage(X, sketch_size, n_new):
    sketch = directions(X, sketch_size, n_new, correction="full")
    error = metrics.spectral_error(X, sketch.summary())
    assert error <= sketch.shrinkage + zoo.atol(X)


@given(X=zoo.matrices(), sketch_size=st.integers(1, 8))
def test_trace_read_out_keeps_the_trace(X, sketch_size):
    sketch = directions(X, sketch_size, 10, correction="trace")
    mass = zoo.energy(X) - zoo.energy(sketch.matrix)
    if mass / X.shape[1] <= sketch.shrinkage:
        np.testing.assert_allclose(sketch.summary().trace(), zoo.energy(X), atol=zoo.atol(X))


@pytest.mark.parametrize("n_copies", [20, 200, 1000])
def test_luo2019_appendix_f_truncation_loses_what_comes_late(n_copies):
    X = datasets.truncation_breaker(6, n_copies)
    greedy = directions(X, 6, 2, rule="truncate")
    shrinking = directions(X, 6, 2)
    error = metrics.spectral_error(X, greedy.summary())
    np.testing.assert_allclose(error, n_copies * 0.49, rtol=1e-9)
    assert error <= greedy.error_bound() * (1 + 1e-9)
    assert metrics.spectral_error(X, shrinking.summary()) <= 1.0 + 1e-9


def test_luo2019_appendix_f_rotated_so_that_rounding_cannot_help():
    # Three new directions, 20 copies each: 9.8 lost by truncation, at most 1.4 by shrinking.
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.standard_normal((12, 12)))[0]
    X = np.concatenate([Q[:7], *(np.tile(0.7 * Q[7 + k], (20, 1)) for k in range(3))])
    assert metrics.spectral_error(X, directions(X, 7, 1, rule="truncate").summary()) > 9.0
    assert metrics.spectral_error(X, directions(X, 7, 1).summary()) <= 1.4


@given(X=zoo.matrices(max_rows=60), sketch_size=st.integers(1, 45), n_new=new_rows)
def test_nothing_is_lost_when_the_rank_fits(X, sketch_size, n_new):
    assume(np.linalg.matrix_rank(X, tol=0.0) <= sketch_size or X.shape[1] <= sketch_size)
    sketch = directions(X, sketch_size, n_new)
    exact = ExactCovariance().update(X)
    difference = sketch.summary().to_dense() - exact.summary().to_dense()
    assert np.linalg.norm(difference, 2) <= zoo.atol(X)
    assert sketch.error_bound() <= zoo.atol(X)
