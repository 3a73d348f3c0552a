"""Huang (2018), ICML: two-level Frequent Directions, in the form of our notes.

The first level keeps 3 k rows for rank k, the second ``sketch_size - 3 k``.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from _support import laws, zoo
from sksketch import FrequentDirections, TwoLevelFrequentDirections, metrics
from sksketch.sketches.directions.shrink.compression import ShrinkState
from sksketch.sketches.directions.shrink.split_shrink import split_shrink

ranks = st.integers(1, 3)
second_sizes = st.integers(1, 6)
new_rows = st.integers(1, 20)


def two_level(X, rank, second, n_new, **options):
    """Sketch with so many rows in the second level, ``n_new`` rows at a time in the first."""
    first = 3 * rank
    return TwoLevelFrequentDirections(
        first + second, rank=rank, buffer_rows=first + n_new, **options
    ).update(X)


def loss(X, sketch):
    return np.linalg.eigvalsh(zoo.gram(X) - zoo.gram(sketch.matrix))[::-1]


@given(X=zoo.matrices(max_rows=60), sketch_size=st.integers(1, 8))
def test_a_split_shrink_loses_nothing(X, sketch_size):
    memory, removed = split_shrink(ShrinkState.empty(X.shape[1], sketch_size), X)
    both = zoo.gram(memory.matrix) + zoo.gram(removed)
    np.testing.assert_allclose(both, zoo.gram(X), atol=zoo.atol(X))
    # What is kept is Frequent Directions, and no direction lost more than the cut.
    plain = FrequentDirections(
        sketch_size, solver="exact", correction="none", buffer_rows=sketch_size + len(X) + 1
    ).update(X)
    np.testing.assert_allclose(zoo.gram(memory.matrix), zoo.gram(plain.matrix), atol=zoo.atol(X))
    np.testing.assert_allclose(memory.ledger.shrinkage, plain.shrinkage, atol=zoo.atol(X))
    assert np.linalg.norm(removed, 2) ** 2 <= memory.ledger.shrinkage + zoo.atol(X)


@given(X=zoo.matrices(), rank=ranks, second=second_sizes, n_new=new_rows)
def test_huang2018_the_loss_is_between_zero_and_the_shrinkage(X, rank, second, n_new):
    sketch = two_level(X, rank, second, n_new)
    S = loss(X, sketch)
    assert S[-1] >= -zoo.atol(X)
    assert S[0] <= sketch.shrinkage + zoo.atol(X)
    assert len(sketch.matrix) <= sketch.sketch_size


@given(X=zoo.matrices(), rank=ranks, second=second_sizes, n_new=new_rows)
def test_huang2018_a_priori_bound(X, rank, second, n_new):
    sketch = two_level(X, rank, second, n_new)
    error = metrics.spectral_error(X, sketch.summary())
    bound = (3 * rank + 1) / ((2 * rank + 1) * (second + 1)) * zoo.tail(X, rank)
    assert error <= sketch.error_bound() + zoo.atol(X)
    assert sketch.error_bound() <= bound + zoo.atol(X)


@given(seed=st.integers(0, 2**16), rank=ranks, second=second_sizes, n_new=new_rows)
def test_huang2018_merging_keeps_the_a_priori_bound(seed, rank, second, n_new):
    rng = np.random.default_rng(seed)
    X = zoo.draw(rng)

    def make():
        size = 3 * rank + second
        return TwoLevelFrequentDirections(size, rank=rank, buffer_rows=3 * rank + n_new)

    sketch, rows = laws.random_tree(make, X, rng, weighted=True)
    if sketch.n_features is None:
        sketch.update(X)
        rows.update(X)
    A = rows.matrix()
    bound = (3 * rank + 1) / ((2 * rank + 1) * (second + 1)) * zoo.tail(A, rank)
    assert metrics.spectral_error(A, sketch.summary()) <= sketch.error_bound() + zoo.atol(A)
    assert sketch.error_bound() <= bound + zoo.atol(A)


@pytest.mark.parametrize("name", ["flat", "power law", "spiked", "heavy tails", "drifting"])
def test_the_sampled_second_level_is_right_on_average(name):
    # A second level that never shrinks: its mean over seeds is A'A, the certificate of each true.
    X = zoo.SHAPES[name](150, 12)
    n_seeds = 200
    mean = np.zeros((12, 12))
    for seed in range(n_seeds):
        sketch = two_level(X, 1, 12, 7, sample=True, seed=seed)
        mean += sketch.summary().to_dense() / n_seeds
        if seed < 20:
            laws.bound_is_true(sketch, X)
    spread = metrics.spectral_error(X, sketch.summary())
    error = np.linalg.norm(mean - zoo.gram(X), 2)
    assert error <= max(0.02 * zoo.energy(X), 0.5 * spread)


def test_sampling_sends_fewer_rows_to_the_second_level():
    X = np.random.default_rng(0).standard_normal((3000, 60)) / np.sqrt(np.arange(1, 61))
    sampled, whole = (
        TwoLevelFrequentDirections(18, rank=2, sample=sample).update(X) for sample in (True, False)
    )
    assert sampled._second.n_shrinks < whole._second.n_shrinks / 3
    error = metrics.spectral_error(X, sampled.summary())
    assert error <= sampled.error_bound()
    assert error <= 2 * metrics.spectral_error(X, whole.summary())
