"""Windows over streams of every kind, held against the exact rows of the window at every moment."""

import datetime

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import sksketch
from _support import laws, zoo
from sksketch import SlidingWindow
from sksketch.exceptions import NotMergeableError

pytestmark = pytest.mark.usefixtures("short_tiles")

MAKERS = {
    "fd": lambda: sksketch.FrequentDirections(4, solver="exact", buffer_rows=11),
    "exact": sksketch.ExactCovariance,
    "centered fd": lambda: sksketch.Centered(sksketch.FrequentDirections(4, solver="exact")),
    "centered exact": lambda: sksketch.Centered(sksketch.ExactCovariance()),
    "centered cfd": lambda: sksketch.Centered(
        sksketch.FrequentDirections(3, solver="exact", correction="full", rule="half")
    ),
    "two-level": lambda: sksketch.TwoLevelFrequentDirections(7, rank=1, buffer_rows=8),
}
each_maker = pytest.mark.parametrize("name", MAKERS)


def drift(rng, n, d):
    return zoo.SHAPES["drifting"](n, d, int(rng.integers(1 << 20)))


def bursts(rng, n, d):
    X = rng.standard_normal((n, d))
    for start in rng.integers(0, n, 3):
        X[start : start + 10] *= 10.0 ** rng.uniform(1, 3)
    return X


def silent_spells(rng, n, d):
    X = rng.standard_normal((n, d))
    for start in rng.integers(0, n, 3):
        X[start : start + n // 5] *= 1e-6
    return X


def duplicates(rng, n, d):
    return zoo.SHAPES["duplicate rows"](n, d, int(rng.integers(1 << 20)))


def one_huge_row(rng, n, d):
    X = rng.standard_normal((n, d))
    X[n // 3] *= 1e5
    return X


def far_from_zero(rng, n, d):
    return rng.standard_normal((n, d)) + 1e3


STREAMS = (drift, bursts, silent_spells, duplicates, one_huge_row, far_from_zero)


def check(window, X):
    """Assert every statement of a window about exactly these rows."""
    rows = laws.Rows(X.shape[1]).update(X)
    laws.bound_is_true(window, rows.matrix(centered=window.centered))
    if window.centered:
        read = window.read()
        off = np.linalg.norm(read.mean - rows.mean)
        assert off <= read.mean_error + 1e-12 * (1 + np.linalg.norm(rows.mean))


@each_maker
@given(seed=st.integers(0, 2**16))
@settings(max_examples=12)
def test_the_bound_holds_at_every_moment_for_rows(name, seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(30, 500)), int(rng.integers(1, 20))
    X = STREAMS[rng.integers(len(STREAMS))](rng, n, d)
    rows = int(rng.integers(1, 200))
    window = SlidingWindow(MAKERS[name](), rows=rows, tol=float(rng.choice([0.1, 0.4, 1.0])))
    seen = 0
    while seen < n:
        step = int(rng.integers(1, 40))
        window.update(X[seen : seen + step])
        seen = min(seen + step, n)
        check(window, X[max(seen - rows, 0) : seen])
        assert window.n_rows_seen == min(seen, rows)
        assert window.n_rows_total == seen


@each_maker
@given(seed=st.integers(0, 2**16))
@settings(max_examples=12)
def test_the_bound_holds_at_every_moment_for_a_duration(name, seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(30, 400)), int(rng.integers(1, 20))
    X = STREAMS[rng.integers(len(STREAMS))](rng, n, d)
    # Equal times, and spells in which nothing comes.
    gaps = rng.choice([0.0, 0.0, 0.1, 1.0, 1.0, 30.0], n)
    times = np.cumsum(gaps)
    duration = float(rng.choice([0.5, 20.0, 200.0]))
    window = SlidingWindow(MAKERS[name](), duration=duration, tol=float(rng.choice([0.1, 0.6])))
    seen = 0
    while seen < n:
        step = int(rng.integers(1, 40))
        window.update(X[seen : seen + step], times[seen : seen + step])
        seen = min(seen + step, n)
        check(window, X[:seen][times[:seen] > times[seen - 1] - duration])


@each_maker
@given(seed=st.integers(0, 2**16))
@settings(max_examples=8)
def test_windows_of_a_duration_merge_by_time(name, seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(10, 400)), int(rng.integers(1, 15))
    X = STREAMS[rng.integers(len(STREAMS))](rng, n, d)
    times = np.cumsum(rng.choice([0.0, 0.5, 1.0], n))
    owner = rng.integers(0, 3, n)
    shards = []
    for i in range(3):
        shard = SlidingWindow(MAKERS[name](), duration=60.0, tol=0.5)
        mine = np.flatnonzero(owner == i)
        for part in np.array_split(mine, 5):
            if len(part):
                shard.update(X[part], times[part])
        shards.append(shard)
    whole = shards[0].merge(shards[1]).merge(shards[2])
    check(whole, X[times > times[-1] - 60.0])
    # It goes on as one.
    more = bursts(rng, 100, d)
    later = times[-1] + np.arange(100.0)
    whole.update(more, later)
    X, times = np.concatenate([X, more]), np.concatenate([times, later])
    check(whole, X[times > times[-1] - 60.0])


def test_windows_of_rows_merge_as_parts_of_one_table():
    X = drift(np.random.default_rng(0), 900, 12)
    parts = [
        SlidingWindow(MAKERS["fd"](), rows=200, tol=0.5).update(part)
        for part in np.split(X, [300, 350, 800])
    ]
    merged = (parts[0] | parts[1]) | (parts[2] | parts[3])
    check(merged, X[-200:])
    assert merged.n_rows_seen == 200


def test_sparse_rows_weights_and_both_kinds_of_rows():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((600, 30)) * (rng.random((600, 30)) < 0.2)
    w = rng.choice([0.5, 1.0, 3.0], 600)
    for name in ("fd", "centered fd", "centered exact"):
        whole = SlidingWindow(MAKERS[name](), rows=250, tol=0.5)
        split = SlidingWindow(MAKERS[name](), rows=250, tol=0.5)
        for start, stop, sparse in ((0, 200, True), (200, 300, False), (300, 600, True)):
            block = sp.csr_array(X[start:stop]) if sparse else X[start:stop]
            whole.update(block, weights=w[start:stop])
            for i in range(start, stop, 37):
                end = min(i + 37, stop)
                split.update(block[i - start : end - start], weights=w[i:end])
        laws.assert_same_bits(whole, split)
        rows = laws.Rows(30).update(X[-250:], w[-250:])
        laws.bound_is_true(whole, rows.matrix(centered=whole.centered))


@pytest.mark.parametrize("centered", [True, False])
@pytest.mark.parametrize("inner", ["fd", "exact"])
def test_moments_with_targets_are_certain_within_their_errors(inner, centered):
    rng = np.random.default_rng(8)
    X = bursts(rng, 700, 10) + 2.0
    Y = X[:, :2] @ rng.standard_normal((2, 3)) + rng.standard_normal((700, 3)) + 5.0
    make = MAKERS[inner]
    window = SlidingWindow(sksketch.Regression(make(), centered=centered), rows=180, tol=0.8)
    edges = 0
    for stop in range(20, 701, 20):
        window.update(X[stop - 20 : stop], targets=Y[stop - 20 : stop])
        A, B = X[max(stop - 180, 0) : stop], Y[max(stop - 180, 0) : stop]
        edges += bool(window._history.content().edges)
        found = window.read().moments()
        mean, target_mean = A.mean(0), B.mean(0)
        slack = 1e-10 * np.linalg.norm(A) * np.linalg.norm(B)
        assert np.linalg.norm(found.mean - mean) <= found.mean_error + 1e-12
        assert (abs(found.target_mean - target_mean) <= found.target_mean_error + 1e-12).all()
        if centered:
            A, B = A - mean, B - target_mean
        off = np.linalg.norm(A.T @ B - found.cross, axis=0)
        assert (off <= found.cross_error + slack).all()
        assert (abs((B**2).sum(0) - found.squares) <= found.squares_error + slack).all()
        lengths = np.sqrt((A**2).sum(0))
        assert (abs(A.T @ B - found.cross) <= found.cross_errors(lengths) + slack).all()
    assert edges > 5
    # What was read from a window is a state like any other.
    again = sksketch.Regression.from_state(window.read().state())
    np.testing.assert_array_equal(again.moments().cross, found.cross)
    with pytest.raises(NotMergeableError, match="read from a window"):
        again.merge(sksketch.Regression(make(), centered=centered).update(X, targets=Y))


def test_a_window_of_few_rows_is_exact():
    X = np.random.default_rng(0).standard_normal((1000, 8))
    window = SlidingWindow(sksketch.ExactCovariance(), rows=50).update(X)
    last = X[-50:]
    np.testing.assert_allclose(window.summary().to_dense(), last.T @ last, rtol=1e-12, atol=1e-10)
    assert window.error_bound() < 1e-10
    assert window.n_buckets == 0
    assert "keeps them all" in window.plan()


def test_the_edge_costs_no_more_than_tol():
    X = np.random.default_rng(0).standard_normal((20_000, 5))
    window = SlidingWindow(sksketch.ExactCovariance(), rows=8000, tol=0.05)
    for part in np.array_split(X, 50):
        window.update(part)
        assert window.error_bound() <= 0.05 * window.squared_norm / 2
    assert window.n_buckets < 200


@pytest.mark.parametrize(
    "times",
    [
        np.datetime64("2026-03-01") + np.arange(300) * np.timedelta64(1, "h"),
        pd.date_range("2026-03-01", periods=300, freq="h"),
        pd.Series(pd.date_range("2026-03-01", periods=300, freq="h", tz="UTC")),
        [datetime.datetime(2026, 3, 1) + datetime.timedelta(hours=i) for i in range(300)],
        [pd.Timestamp("2026-03-01") + pd.Timedelta(hours=i) for i in range(300)],
    ],
)
@pytest.mark.parametrize("duration", ["2d", "48 h", datetime.timedelta(days=2), 172800])
def test_dates_and_durations_as_users_write_them(times, duration):
    X = np.random.default_rng(0).standard_normal((300, 3))
    window = SlidingWindow(sksketch.ExactCovariance(), duration=duration, tol=0.5)
    window.update(X, times)
    check(window, X[-48:])
    assert window.n_rows_seen == 48


def test_what_a_window_refuses():
    X, exact = np.ones((3, 2)), sksketch.ExactCovariance
    window = SlidingWindow(exact(), duration=10)
    with pytest.raises(ValueError, match="needs the time of each row"):
        window.update(X)
    with pytest.raises(ValueError, match=r"row 2 of the block has the time 1, before 5"):
        window.update(X, [0.0, 5.0, 1.0])
    window.update(X, [0.0, 5.0, 5.0])
    before = window.state()
    with pytest.raises(ValueError, match=r"row 0 of the block has the time 4, before 5"):
        window.update(X, [4.0, 6.0, 7.0])
    with pytest.raises(ValueError, match="got dates as times, expected numbers"):
        window.update(X, np.array(["2026-01-01"] * 3, dtype="datetime64[D]"))
    with pytest.raises(ValueError, match="the time of row 1 is nan"):
        window.update(X, [6.0, np.nan, 7.0])
    with pytest.raises(ValueError, match="one time for each of 3 rows"):
        window.update(X, [6.0])
    with pytest.raises(ValueError, match="NaN"):
        window.update(X * np.nan, [6.0, 7.0, 8.0])
    with pytest.raises(TypeError, match="takes no targets"):
        window.update(X, [6.0, 7.0, 8.0], targets=[1, 2, 3])
    after = window.state()
    assert before.meta == after.meta
    assert all((before.arrays[name] == after.arrays[name]).all() for name in before.arrays)
    with pytest.raises(ValueError, match="neither of rows and duration"):
        SlidingWindow(exact())
    with pytest.raises(ValueError, match="both of rows and duration"):
        SlidingWindow(exact(), rows=5, duration=5)
    for duration in ("7 days ago", -1, np.inf, True, "0s", np.timedelta64("NaT")):
        with pytest.raises(ValueError, match="duration is"):
            SlidingWindow(exact(), duration=duration)
    with pytest.raises(ValueError, match="rows must be a positive integer"):
        SlidingWindow(exact(), rows=0)
    with pytest.raises(ValueError, match="does not forget"):
        SlidingWindow(exact(decay=0.9), rows=5)
    with pytest.raises(TypeError, match="expected a sketch to wrap"):
        SlidingWindow(sksketch.GaussianSketch(5), rows=5)
    with pytest.raises(TypeError, match="certifies nothing"):
        SlidingWindow(sksketch.Regression(sksketch.GaussianSketch(5)), rows=5)
    with pytest.raises(NotMergeableError, match="rows is"):
        SlidingWindow(exact(), rows=5).merge(SlidingWindow(exact(), rows=6))
    with pytest.raises(NotMergeableError, match="times are"):
        window.merge(
            SlidingWindow(exact(), duration=10).update(X, np.full(3, "2026-01-01", "datetime64[D]"))
        )
