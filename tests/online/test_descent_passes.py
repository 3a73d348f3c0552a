"""The sums of a pass: blocks of any size, parts that merge, states that resume."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

from sksketch import NotMergeableError
from sksketch.online.descent import Descent, PassSums, RowSample, SmoothLoss
from sksketch.online.descent.tiles import Tile
from sksketch.state.persistence import from_bytes, to_bytes


def long_rows(sparse):
    rng = np.random.default_rng(11)
    rows = rng.standard_normal((5000, 7)) * (rng.random((5000, 7)) < 0.4)
    target = np.where(rows[:, 0] + rows[:, 1] + rng.standard_normal(5000) > 0, 1.0, -1.0)
    return (sp.csr_array(rows) if sparse else rows), target, rng.uniform(0, 2, 5000)


def new_descent(sample_rows, tol=1e-12):
    return Descent(
        np.zeros((1, 8)),
        SmoothLoss("logistic"),
        np.ones(8),
        lambda g: g / 400,
        tol=tol,
        sample_rows=sample_rows,
    )


def run_in_blocks(descent, n_passes, data, edges, *, resume=lambda sums: sums):
    rows, target, weights = data
    cuts = [0, *edges, rows.shape[0]]
    for _ in range(n_passes):
        if descent.converged:
            break
        sums = descent.new_pass()
        for start, stop in itertools.pairwise(cuts):
            sums.add(rows[start:stop], target[start:stop], weights[start:stop])
            sums = resume(sums)
        descent.take(sums)
    return descent


@pytest.mark.parametrize("sample_rows", [0, 500])
@pytest.mark.parametrize("sparse", [False, True])
def test_blocks_of_any_size_give_the_same_bits(sparse, sample_rows):
    data = long_rows(sparse)
    wanted = run_in_blocks(new_descent(sample_rows), 8, data, []).result()
    for edges in ([1], [1024, 2048], range(100, 5000, 100), range(999, 5000, 1777), [4999]):
        found = run_in_blocks(new_descent(sample_rows), 8, data, edges).result()
        assert found.objective == wanted.objective
        np.testing.assert_array_equal(found.weights, wanted.weights)


def test_order_in_memory_and_precision_change_no_bits():
    rows, target, weights = long_rows(sparse=False)
    rows = rows.astype(np.float32)
    wanted = run_in_blocks(new_descent(500), 5, (rows.astype(float), target, weights), []).result()
    for same in (rows, np.asfortranarray(rows), np.repeat(rows, 2, axis=1)[:, ::2]):
        found = run_in_blocks(new_descent(500), 5, (same, target, weights), [1500]).result()
        np.testing.assert_array_equal(found.weights, wanted.weights)


@pytest.mark.parametrize("sample_rows", [0, 500, 8000])
def test_sparse_rows_are_the_same_rows(sample_rows):
    dense, sparse = (
        run_in_blocks(new_descent(sample_rows), 8, long_rows(kind), []) for kind in (False, True)
    )
    np.testing.assert_allclose(sparse.result().weights, dense.result().weights, rtol=1e-7)


@pytest.mark.parametrize("sample_rows", [0, 500, 8000])
@pytest.mark.parametrize("sparse", [False, True])
def test_resume_within_a_pass_and_between_passes(sparse, sample_rows):
    data, edges = long_rows(sparse), [700, 1300, 4000]
    wanted = run_in_blocks(new_descent(sample_rows), 9, data, edges)

    def stored(sums):
        return PassSums.from_state(from_bytes(to_bytes(sums.state())))

    found = new_descent(sample_rows)
    for _ in range(9):
        found = Descent.from_state(from_bytes(to_bytes(found.state())), lambda g: g / 400)
        found = run_in_blocks(found, 1, data, edges, resume=stored)
    assert found.n_passes == wanted.n_passes
    assert found.converged == wanted.converged
    np.testing.assert_array_equal(found.result().weights, wanted.result().weights)


@pytest.mark.parametrize("sample_rows", [0, 500])
@pytest.mark.parametrize("sparse", [False, True])
def test_parts_merge_to_the_whole(sparse, sample_rows):
    rows, target, weights = long_rows(sparse)
    point, direction = np.full((1, 8), 0.1), np.full((1, 8), -0.2)

    def sums(part):
        sample = RowSample(sample_rows) if sample_rows else None
        empty = PassSums(SmoothLoss("logistic"), point, direction, sample)
        return empty.add(rows[part], target[part], weights[part])

    one, two, three = sums(slice(0, 1500)), sums(slice(1500, 1600)), sums(slice(1600, 5000))
    before = to_bytes(two.state())
    merged, at_once = one.merge(two).merge(three), sums(slice(None))
    assert to_bytes(two.state()) == before
    found, wanted = merged.totals(), at_once.totals()
    np.testing.assert_allclose(found.losses, wanted.losses, rtol=1e-13)
    np.testing.assert_allclose(found.gradient, wanted.gradient, rtol=1e-10)
    assert found.curvature == pytest.approx(wanted.curvature, rel=1e-13)
    assert found.n_rows == 5000
    if sample_rows:
        assert merged.sample().n_rows_seen == 5000
        assert len(merged.sample().rows()) == sample_rows


def test_reading_sums_changes_nothing():
    rows, target, weights = long_rows(sparse=False)
    looked = new_descent(500).new_pass()
    wanted = new_descent(500).new_pass().add(rows, target, weights)
    for part in (slice(0, 900), slice(900, 3000), slice(3000, None)):
        looked.add(rows[part], target[part], weights[part])
        assert looked.totals().n_rows == part.indices(5000)[1]
        looked.sample()
    assert to_bytes(looked.state()) == to_bytes(wanted.state())


def test_descent_from_merged_parts_reaches_the_same_optimum():
    rows, target, weights = long_rows(sparse=True)
    descent = new_descent(8000)
    while not descent.converged:
        parts = [descent.new_pass().add(rows[k::3], target[k::3], weights[k::3]) for k in range(3)]
        descent.take(parts[0].merge(parts[1]).merge(parts[2]))
    wanted = run_in_blocks(new_descent(8000), 30, (rows, target, weights), []).result()
    np.testing.assert_allclose(descent.result().weights, wanted.weights, atol=1e-6)


def test_sums_of_another_pass_are_refused():
    point = np.zeros((1, 3))
    sums = PassSums(SmoothLoss("squared"), point)
    for other in (
        PassSums(SmoothLoss("huber"), point),
        PassSums(SmoothLoss("squared"), point + 1),
        PassSums(SmoothLoss("squared"), point, np.ones((1, 3))),
        PassSums(SmoothLoss("squared"), point, sample=RowSample(3)),
    ):
        with pytest.raises(NotMergeableError, match="different passes"):
            sums.merge(other)


def test_sample_is_uniform_and_knows_no_blocks():
    counts = np.zeros(3000)
    for seed in range(200):
        sample = RowSample(300, seed)
        for number in range(3):
            place = np.arange(1024 * number, min(1024 * (number + 1), 3000))
            sample.take(
                number, Tile(place[:, None] * 1.0, place, np.ones(len(place))), np.ones(len(place))
            )
        kept = sample.rows().targets
        assert len(kept) == 300
        assert (np.diff(kept) > 0).all()
        counts[kept] += 1
    # A binomial of mean 20 for each row, summed in tens.
    tens = counts.reshape(-1, 10).sum(axis=1)
    assert abs(tens - 200).max() < 5 * np.sqrt(200)


def test_sums_over_a_sample_are_unbiased():
    rng = np.random.default_rng(2)
    sizes, values = rng.lognormal(sigma=1.5, size=2000), rng.uniform(1, 2, 2000)
    sizes[::7] = 0.0
    found = []
    for seed in range(300):
        one, two = RowSample(100, seed), RowSample(100, 1000 + seed)
        for number, part in enumerate((slice(0, 1000), slice(1000, 2000))):
            sample = (one, two)[number]
            sample.take(number, Tile(np.ones((1000, 1)), values[part], np.ones(1000)), sizes[part])
        rows = one.merge(two).rows()
        assert len(rows) == 100
        found.append((rows.weights * rows.targets).sum())
    wanted = values[sizes > 0].sum()
    error = np.std(found) / np.sqrt(len(found))
    assert abs(np.mean(found) - wanted) < 4 * error < 0.1 * wanted
