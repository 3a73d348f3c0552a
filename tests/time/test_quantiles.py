"""Quantile sketches: the bound on the rank is true for every stream, split and merge."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from sksketch.time.quantiles import QuantileSketch, quantile_of
from sksketch.time.score_history import ScoreHistory


@given(seed=st.integers(0, 2**16))
@settings(max_examples=60)
def test_no_rank_is_off_by_more_than_the_bound(seed):
    rng = np.random.default_rng(seed)
    capacity = int(rng.choice([2, 7, 16, 64]))
    n = int(rng.integers(1, 3000))
    draw = [rng.standard_normal, np.arange, lambda k: rng.integers(0, 5, k)][rng.integers(3)]
    values = np.asarray(draw(n), dtype=np.float64)
    if rng.random() < 0.3:
        values = values[::-1]
    shards = [QuantileSketch(capacity) for _ in range(int(rng.integers(1, 4)))]
    for part in np.array_split(values, int(rng.integers(1, 9))):
        shards[rng.integers(len(shards))].update(part)
    sketch = shards[0]
    for other in shards[1:]:
        sketch.merge(other)
    held = np.concatenate([values for values, _ in sketch.levels()])
    weights = np.concatenate([np.full(len(values), weight) for values, weight in sketch.levels()])
    assert sketch.n == n == weights.sum()
    for point in rng.choice(values, min(n, 20)):
        for side in ("left", "right"):
            true = np.searchsorted(np.sort(values), point, side)
            below = held < point if side == "left" else held <= point
            assert abs(weights[below].sum() - true) <= sketch.rank_error
    levels = len(sketch._levels)
    assert sketch.rank_error <= 2 * levels * n / max(capacity - 1, 1) + 1
    assert len(held) <= levels * (2 * capacity)


def test_splitting_is_invisible_and_states_come_back():
    values = np.random.default_rng(0).standard_normal(5000)
    whole, split = QuantileSketch(100).update(values), QuantileSketch(100)
    for part in np.array_split(values, 77):
        split.update(part)
        split = QuantileSketch.of_arrays(split.arrays())
    for name, part in whole.arrays().items():
        np.testing.assert_array_equal(part, split.arrays()[name])


def test_few_numbers_are_exact():
    values = np.random.default_rng(0).standard_normal(999)
    sketch = QuantileSketch().update(values)
    for share in (0.0, 0.01, 0.1, 0.5, 1.0):
        np.testing.assert_allclose(sketch.quantile(share), np.quantile(values, share), rtol=1e-12)


@given(seed=st.integers(0, 2**16), share=st.floats(0.0, 1.0))
@settings(max_examples=60)
def test_levels_are_numbers_that_are_repeated(seed, share):
    rng = np.random.default_rng(seed)
    levels = [
        (rng.choice([1.0, 5.0]) * rng.standard_normal(int(rng.integers(0, 200))).round(1), 2.0**h)
        for h in range(4)
    ]
    if repeated := [np.repeat(values, int(weight)) for values, weight in levels if len(values)]:
        expected = np.quantile(np.concatenate(repeated), share)
        np.testing.assert_allclose(quantile_of(levels, share), expected, rtol=1e-7, atol=1e-7)
    else:
        assert quantile_of(levels, share) == -np.inf


def test_old_scores_are_forgotten():
    places = np.arange(10_000.0)
    window = ScoreHistory.of(1000, None, None).add(places, places)
    assert 8900 <= window.quantile(0.0) <= 9000
    ages = ScoreHistory.of(None, None, 500.0).add(places, places)
    # Half of the weight is of the last half-life.
    assert abs(ages.quantile(0.5) - 9500) < 150
    assert ages.rank_error == 0.0
