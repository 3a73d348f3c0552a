"""Each slot holds a row by the share of its squared norm, at every moment and after merges."""

import numpy as np
import pytest

from _support import zoo
from sksketch import RowSampleSketch

X = np.diag([1.0, 2.0, 0.0, 3.0, 4.0])
SHARES = np.array([1.0, 4.0, 0.0, 9.0, 16.0]) / 30
SLOTS = 30_000


def kept(sketch):
    """Return which row of a diagonal matrix each slot holds."""
    B = sketch.matrix
    assert (np.count_nonzero(B, axis=1) == 1).all()
    return np.abs(B).argmax(axis=1)


def assert_shares(found, shares):
    counts = np.bincount(found, minlength=len(shares))
    assert not counts[shares == 0].any()
    expected = shares[shares > 0] * len(found)
    # Chi-square with at most 4 degrees of freedom: above 30 with probability 5e-6.
    assert ((counts[shares > 0] - expected) ** 2 / expected).sum() < 30


def test_slots_hold_rows_by_squared_norm():
    assert_shares(kept(RowSampleSketch(SLOTS).update(X)), SHARES)
    assert_shares(kept(RowSampleSketch(SLOTS).update(X[::-1])), SHARES)


def test_at_every_moment():
    sketch = RowSampleSketch(SLOTS)
    for n_rows in range(1, 6):
        sketch.update(X[n_rows - 1])
        norms = (X[:n_rows] ** 2).sum(axis=1)
        assert_shares(kept(sketch), norms / norms.sum())


def test_weights_count_as_copies():
    weights = np.array([3.0, 1.0, 1.0, 0.0, 0.5])
    shares = weights * SHARES
    sketch = RowSampleSketch(SLOTS).update(X, weights)
    assert_shares(kept(sketch), shares / shares.sum())


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_merged_slots_hold_rows_by_squared_norm_and_go_on(order):
    parts = [RowSampleSketch(SLOTS, shard=i).update(X[2 * i : 2 * i + 2]) for i in range(2)]
    parts.append(RowSampleSketch(SLOTS, shard=2).update(np.zeros((3, 5))))
    merged = parts[order[0]] | parts[order[1]] | parts[order[2]]
    assert_shares(kept(merged), np.append(SHARES[:4] / SHARES[:4].sum(), 0.0))
    assert_shares(kept(merged.update(X[4:])), SHARES)


def test_slots_are_independent():
    B = RowSampleSketch(SLOTS).update(X)
    pairs = kept(B).reshape(2, -1)
    joint = np.bincount(5 * pairs[0] + pairs[1], minlength=25) / (SLOTS / 2)
    assert np.abs(joint - np.outer(SHARES, SHARES).ravel()).max() < 5 * 0.5 / np.sqrt(SLOTS / 2)


def test_every_row_is_scaled_to_the_same_length():
    rows = zoo.SHAPES["heavy tails"](400, 8)
    B = RowSampleSketch(50).update(rows).matrix
    np.testing.assert_allclose((B**2).sum(axis=1), zoo.energy(rows) / 50)


def test_targets_are_those_of_the_kept_rows():
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((400, 4))
    rows[:, 0] = np.arange(400)
    sketch = RowSampleSketch(30).update(rows, targets=np.arange(400.0))
    np.testing.assert_allclose(sketch.targets, sketch.matrix[:, 0], rtol=1e-12)


def test_replacements_are_few():
    sketch = RowSampleSketch(100).update(np.ones((100_000, 2)))
    # Their number is a sum of chances 1, 1/2, 1/3, ...: about log(100,000) = 12 for each slot.
    assert 10 < sketch.state().arrays["replacements"].mean() < 15
