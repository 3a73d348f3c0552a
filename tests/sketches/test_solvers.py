import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from _support import zoo
from sksketch import FrequentDirections
from sksketch.sketches.directions.shrink.ledger import Ledger
from sksketch.sketches.directions.shrink.operand import DenseOperand
from sksketch.sketches.directions.shrink.rules import NOTHING, RULES
from sksketch.sketches.directions.shrink.solvers import Task, shrink_block, shrink_exact


def task(rows, size, *, rule="uniform", kept=None, seed=0, **changes):
    """Return the task of shrinking rows on top of orthogonal kept ones."""
    kept = np.zeros((0, rows.shape[1])) if kept is None else kept
    operand = DenseOperand(
        kept,
        np.vecdot(kept, kept).astype(np.float64),
        0.0,
        rows,
        zoo.energy(rows) + zoo.energy(kept),
        lambda n_rows: np.empty((n_rows, rows.shape[1]), dtype=np.float32),
    )
    plain = Task(
        operand=operand,
        shrink=lambda e, s, losses: RULES[rule](e, s, 0.5, losses),
        sketch_size=size,
        max_sketch_size=size,
        acceptable_loss=np.inf,
        graded=False,
        certify=True,
        failure_probability=0.01,
        seed=seed,
        index=1,
    )
    return dataclasses.replace(plain, **changes)


def stacked(t):
    return t.operand.matrix


def loss(t, shrunk):
    return np.linalg.eigvalsh(zoo.gram(stacked(t)) - zoo.gram(shrunk.matrix))


@pytest.mark.parametrize("rule", RULES)
@given(X=zoo.matrices(), size=st.integers(1, 8))
def test_the_exact_shrink_is_the_textbook_shrink(rule, X, size):
    t = task(X, size, rule=rule)
    shrunk = shrink_exact(t)
    s = np.linalg.svd(X, compute_uv=False) ** 2
    kept, cut = RULES[rule](s, size, 0.5, NOTHING)
    assert shrunk.cut == pytest.approx(cut, abs=zoo.atol(X))
    expected = np.zeros(len(shrunk.eigenvalues))
    expected[: len(kept)] = kept[: len(expected)]
    np.testing.assert_allclose(shrunk.eigenvalues, expected, atol=zoo.atol(X))
    S = loss(t, shrunk)
    assert S[0] >= shrunk.floor - zoo.atol(X)
    assert S[-1] <= shrunk.loss_bound + zoo.atol(X)
    np.testing.assert_allclose(
        np.vecdot(shrunk.matrix, shrunk.matrix), shrunk.eigenvalues, atol=zoo.atol(X)
    )


def test_the_known_part_of_the_gram_matrix_is_used_and_right():
    rng = np.random.default_rng(0)
    first = shrink_exact(task(rng.standard_normal((40, 30)), 6))
    t = task(rng.standard_normal((12, 30)), 6, kept=first.matrix)
    second = shrink_exact(t)
    s = np.linalg.svd(stacked(t), compute_uv=False) ** 2
    np.testing.assert_allclose(second.eigenvalues, s[:6] - s[6], rtol=1e-10)


def test_a_spectrum_beyond_the_gram_matrix_takes_the_slower_factorisation():
    X = zoo.with_spectrum(np.geomspace(1.0, 1e-9, 6), 30, 20)
    shrunk = shrink_exact(task(X, 6))
    found = np.sqrt(shrunk.eigenvalues)
    np.testing.assert_allclose(found, np.geomspace(1.0, 1e-9, 6), rtol=1e-5)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@given(seed=st.integers(0, 2**16), size=st.integers(1, 8))
@settings(max_examples=10)
def test_a_block_shrink_is_a_valid_shrink(rule, dtype, seed, size):
    # Whatever directions were found, 0 <= P'P - B'B; at these seeds the bound holds too.
    X = zoo.draw(np.random.default_rng(seed), 50)
    peak = np.abs(X).max()
    X = (X / peak if peak > 0 else X).astype(dtype)
    if not X.any():
        return
    t = task(X, size, rule=rule, seed=seed)
    shrunk = shrink_block(t)
    assert shrunk.matrix.dtype == np.float64
    assert len(shrunk.matrix) <= size
    S = loss(t, shrunk)
    allowance = shrunk.allowance + zoo.ORACLE_RTOL * zoo.energy(X)
    assert S[0] >= -allowance
    assert S[-1] <= shrunk.loss_bound + allowance
    assert shrunk.cut <= shrunk.loss * (1 + 1e-9) + zoo.atol(X)


def test_block_bounds_fail_no_more_often_than_stated():
    failures = 0
    rng = np.random.default_rng(0)
    for seed in range(300):
        X = rng.standard_normal((80, 60)) * rng.choice([1.0, 0.3], 60)
        t = task(X, 4, seed=seed, failure_probability=0.2)
        shrunk = shrink_block(t)
        failures += loss(t, shrunk)[-1] > shrunk.loss_bound
    # 0.2 of 300 would be 60.
    assert failures <= 60


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_block_bound_is_tight_and_the_shrink_good(dtype):
    X = (np.random.default_rng(0).standard_normal((400, 120)) / np.arange(1, 121)).astype(dtype)
    t = task(X, 10)
    block, exact = shrink_block(t), shrink_exact(t)
    true = loss(t, block)[-1]
    assert true <= block.loss_bound <= 1.5 * true
    # A pass is repeated where it would lose more than three cuts.
    assert true <= 3.3 * exact.cut


def test_a_block_shrink_of_low_rank_rows_is_exact():
    X = zoo.SHAPES["low rank"](200, 50)
    t = task(X, 5)
    shrunk = shrink_block(t)
    assert abs(loss(t, shrunk)).max() <= zoo.atol(X)
    assert shrunk.loss_bound <= zoo.atol(X)


def test_directions_that_change_are_found_by_another_pass():
    rng = np.random.default_rng(3)
    Q = np.linalg.qr(rng.standard_normal((80, 80)))[0]
    old = shrink_block(task(rng.standard_normal((200, 6)) @ Q[:6], 6))
    noise = 1e-3 * rng.standard_normal((200, 80))
    new = 10 * rng.standard_normal((200, 6)) @ Q[6:12] + noise
    t = task(new, 6, kept=old.matrix)
    shrunk = shrink_block(t)
    s = np.linalg.svd(stacked(t), compute_uv=False) ** 2
    assert loss(t, shrunk)[-1] <= 1.1 * s[6]


def test_growth_within_a_block_shrink():
    X = zoo.SHAPES["power law"](300, 60)
    total = zoo.energy(X)
    t = task(X, 3, max_sketch_size=40, acceptable_loss=0.03 * total)
    shrunk = shrink_block(t)
    assert 3 < shrunk.sketch_size <= 40
    assert loss(t, shrunk)[-1] <= shrunk.loss_bound <= 0.03 * total


@pytest.mark.parametrize("n_rows", [1, 2, 5, 100])
@pytest.mark.parametrize("width", [1, 2, 7])
def test_block_shrinks_of_narrow_rows(n_rows, width):
    X = np.random.default_rng(0).standard_normal((n_rows, width))
    t = task(X, 3)
    shrunk = shrink_block(t)
    assert loss(t, shrunk)[-1] <= shrunk.loss_bound + zoo.atol(X)
    assert zoo.energy(shrunk.matrix) <= zoo.energy(X) * (1 + 1e-12)


@pytest.mark.parametrize("n_rows", [500, 20_000, 100_000])
@pytest.mark.parametrize("heavy", [1.0, 1e4])
def test_single_precision_keeps_within_what_is_allowed_for_it(n_rows, heavy):
    X = np.random.default_rng(0).standard_normal((n_rows, 40))
    X[n_rows // 3] *= heavy
    operand = task(X, 6).operand
    fresh = np.random.default_rng(1).standard_normal((8, 40)).astype(np.float32)
    single, double = operand.project(operand.start(6), fresh, cheap=True)
    assert (single.measured, double.measured) == (True, False)
    difference = zoo.gram(single.rows) - zoo.gram(double.rows)
    largest = np.linalg.norm(double.rows, 2) ** 2
    assert np.linalg.norm(difference, 2) <= single.allowance(largest)


def test_roundings_are_measured_by_all_that_was_cut():
    # Those of all shrinks add up, and so do cuts.
    X = np.random.default_rng(0).standard_normal((60, 20))
    alone = task(X, 3)
    assert alone.tolerates(0.08, 1.0)
    assert not alone.tolerates(0.09, 1.0)
    later = task(X, 3, before=Ledger(kept_loss=9.0, measured=0.3))
    assert later.tolerates(0.5, 1.0)
    assert not later.tolerates(0.51, 1.0)


def test_a_block_begins_in_the_precision_that_is_expected_to_do(monkeypatch):
    found = []
    project = DenseOperand.project

    def recorded(operand, start, fresh, cheap):
        for Z in project(operand, start, fresh, cheap):
            found.append(Z.measured)
            yield Z

    monkeypatch.setattr(DenseOperand, "project", recorded)
    single, double = True, False
    steep = np.random.default_rng(0).standard_normal((600, 60)) * 0.5 ** np.arange(60)
    first = shrink_block(task(steep, 20))
    tried = found.copy()
    assert (tried[0], *set(tried[1:])) == (single, double)
    found.clear()
    again = shrink_block(task(steep, 20, largest=first.largest, cut=first.cut))
    assert found == tried[1:]
    np.testing.assert_array_equal(again.matrix, first.matrix)
    # A stream of such rows tries in vain only where it has nothing to go by.
    found.clear()
    sketch = FrequentDirections(4, solver="block")
    for seed in range(8):
        rows = np.random.default_rng(seed).standard_normal((400, 200)) * 0.01 ** np.arange(200)
        sketch.update(rows)
    sketch.summary()
    assert found.count(single) == 1
    assert found.count(double) > 3
    found.clear()
    flat = np.random.default_rng(0).standard_normal((3_000, 200))
    FrequentDirections(4, solver="block").update(flat).summary()
    assert set(found) == {single}
