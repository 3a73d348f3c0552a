"""The small parts: row buffer, forgetting, read-outs, planning, catalog, a priori bounds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sksketch
from _support import laws, zoo
from sksketch.sketches import bounds, planning
from sksketch.sketches.buffer import RowBuffer
from sksketch.sketches.catalog import KEYS, load_sketch, make_sketch
from sksketch.sketches.directions.shrink.readout import SHIFTS, check_correction
from sksketch.sketches.forgetting import age_weights, aged
from sksketch.state.persistence import State

X = np.random.default_rng(0).standard_normal((150, 20))


@given(sizes=st.lists(st.integers(1, 12), min_size=1, max_size=12), capacity=st.integers(1, 7))
def test_a_buffer_hands_out_the_same_blocks_however_it_is_filled(sizes, capacity):
    rows = np.arange(sum(sizes), dtype=np.float64)[:, None]
    buffer = RowBuffer(capacity).allocate(1, rows.dtype)
    got = []
    for piece in np.split(rows, np.cumsum(sizes)[:-1]):
        got += [block.copy() for block in buffer.fill(piece)]
    assert all(len(block) == capacity for block in got)
    assert len(got) == len(rows) // capacity
    np.testing.assert_array_equal(np.concatenate([*got, buffer.rows]), rows)


def test_extra_rows_leave_a_buffer_as_it_was():
    buffer = RowBuffer(4).allocate(20, X.dtype)
    list(buffer.fill(X[:3]))
    # More than the spare room, and less.
    for n_extra in (1, 60_000):
        extra = np.resize(X, (n_extra, 20))
        together = buffer.with_extra(extra)
        np.testing.assert_array_equal(together[:3], X[:3])
        np.testing.assert_array_equal(together[3:], extra)
        np.testing.assert_array_equal(buffer.rows, X[:3])
    (block,) = buffer.fill(X[3:4])
    np.testing.assert_array_equal(block, X[:4])


@given(decay=st.floats(0.1, 1.0), n=st.integers(1, 50))
def test_ages(decay, n):
    w = age_weights(n, decay)
    assert w[-1] == 1.0
    np.testing.assert_allclose(w[:-1], decay * w[1:], rtol=1e-12)
    rows = X[:n]
    np.testing.assert_allclose(zoo.gram(aged(rows, decay)), (rows.T * w) @ rows, atol=1e-12)
    assert aged(rows.astype(np.float32), decay).dtype == np.float32


def test_read_outs_of_one_state():
    sketch = laws.fd(laws.EXACT, correction="energy").update(X)
    read = {name: laws.with_correction(sketch, name).summary() for name in SHIFTS}
    kept = zoo.gram(sketch.matrix)
    np.testing.assert_allclose(read["none"].to_dense(), kept, atol=1e-9)
    shift = read["half"].ridge
    assert 0 < shift < sketch.shrinkage
    np.testing.assert_allclose(read["half"].to_dense(), kept + shift * np.eye(20), atol=1e-9)
    assert read["full"].ridge == 0.0
    V = read["full"].components
    np.testing.assert_allclose(
        read["full"].to_dense(), kept + sketch.shrinkage * V.T @ V, rtol=1e-6, atol=1e-9
    )
    assert read["trace"].trace() == pytest.approx(zoo.energy(X))
    fixed = laws.with_correction(sketch, 0.125).summary()
    assert fixed.ridge == 0.125
    # Half is the best that is certain.
    assert min(s.error_bound for s in [*read.values(), fixed]) == read["half"].error_bound


@pytest.mark.parametrize("correction", [True, "", None, [0.5], -0.1, float("inf"), float("nan")])
def test_corrections_that_make_no_sense(correction):
    if correction is True:
        assert check_correction(correction) == 1.0
        return
    with pytest.raises(ValueError, match="correction must be one of"):
        check_correction(correction)


@pytest.mark.parametrize("n_features", [1, 10, 300, 1000, 4096, 20_000])
@pytest.mark.parametrize("size", [1, 8, 64, 256])
def test_every_plan_has_a_route_and_a_buffer(n_features, size):
    for solver in planning.SOLVERS:
        route = planning.choose(solver, n_features, size)
        assert route in planning.SOLVERS[1:]
        assert solver in ("auto", route)
        assert planning.rows_between_shrinks(route, size, 8 * n_features) >= size


@pytest.mark.parametrize("solver", planning.SOLVERS)
def test_every_plan_is_one_sentence(solver):
    plan = sksketch.FrequentDirections(8, solver=solver).update(X).plan()
    assert plan.endswith("MB.")
    assert "\n" not in plan
    assert solver == "auto" or solver in plan


def test_few_columns_are_not_sketched_and_many_are():
    assert planning.choose("auto", 500, 64) == "covariance"
    assert planning.choose("auto", 4096, 128) == "block"


@pytest.mark.parametrize("key", KEYS)
def test_sketches_by_name(key):
    sketch = make_sketch(key, 5).update(X)
    laws.bound_is_true(sketch, X)
    again = load_sketch(sketch.state())
    assert type(again) is type(sketch)
    laws.assert_same_bits(again, sketch)


def test_unknown_names():
    with pytest.raises(ValueError, match="unknown sketch 'best'; choose from"):
        make_sketch("best", 5)
    with pytest.raises(sksketch.StateFormatError, match="expected one of"):
        load_sketch(State("something", 1, {}, {}))
    state = sksketch.ExactCovariance().update(X).state()
    with pytest.raises(sksketch.StateFormatError, match="sksketch.load"):
        sksketch.FrequentDirections.from_state(state)
    newer = State(state.kind, 99, state.meta, state.arrays)
    with pytest.raises(sksketch.StateFormatError, match="upgrade"):
        load_sketch(newer)


@given(X=zoo.matrices(scales=(1.0,)), size=st.integers(1, 8), rank=st.integers(0, 8))
def test_a_priori_bounds_agree_with_their_formulas(X, size, rank):
    rank = min(rank, size)
    tail = zoo.tail(X, rank)
    assert bounds.frequent_directions(X, size, rank) == pytest.approx(tail / (size + 1 - rank))
    assert bounds.robust_fd(X, size, rank) == bounds.frequent_directions(X, size, rank) / 2
    assert bounds.parameterized_fd(X, size, 1.0, rank) == bounds.frequent_directions(X, size, rank)
    expected = (size + 1) / (size + 1 - rank) * tail
    assert bounds.projection(X, size, rank) == pytest.approx(expected)
