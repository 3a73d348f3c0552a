"""Archives: any range is what merging one by one gives; nothing is lost or counted twice."""

import multiprocessing
import os
import signal
import threading
import time
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sksketch
from sksketch import Archive, FrequentDirections, NotMergeableError, StreamingPCA
from sksketch.time.periods import Cell, Period, Periods, cell_of

DAY = np.timedelta64(1, "D")
FIRST = np.datetime64("2026-03-01")


def rows(i, n=30, d=12):
    return np.random.default_rng(i).standard_normal((n, d)) / np.arange(1, d + 1)


def sketch(i):
    return FrequentDirections(4, solver="exact").update(rows(i))


def filled(path, n=20):
    archive = Archive(path)
    for i in range(n):
        archive.add(sketch(i), FIRST + i * DAY, FIRST + (i + 1) * DAY)
    return archive


@given(data=st.data())
@settings(max_examples=100)
def test_the_smallest_cell_holds_a_stretch_and_is_cut_by_it(data):
    kind = data.draw(st.sampled_from(["int", "float"]))
    draw = st.integers(-(10**12), 10**12) if kind == "int" else st.floats(-1e6, 1e6)
    start, end = sorted(data.draw(st.tuples(draw, draw)))
    if not start < end:
        return
    cell = cell_of(start, end)
    if cell is None:
        assert start < 0 < end
        return
    assert cell.start <= start
    assert end <= cell.end
    if kind == "float" or cell.level > 0:
        assert start < cell.middle < end or (start, end) == (cell.start, cell.end)


@given(seed=st.integers(0, 2**16))
@settings(max_examples=30)
def test_parts_of_a_range_are_each_period_once(seed):
    rng = np.random.default_rng(seed)
    ends = np.unique(np.round(rng.uniform(-50, 50, 40), int(rng.integers(0, 3)))).tolist()
    all_periods = [Period(*pair) for pair in pairwise(ends)]
    kept = [period for period in all_periods if rng.random() < 0.8]
    periods = Periods(kept)

    def leaves(first, stop):
        if stop - first == 1:
            return [first]
        parts = periods.split(first, stop)
        assert len(parts) >= 2
        return [leaf for part in parts for leaf in leaves(*part)]

    if kept:
        assert leaves(0, len(kept)) == list(range(len(kept)))


@pytest.mark.parametrize("numbers", [False, True])
def test_any_range_has_exactly_its_rows(tmp_path, numbers):
    archive = Archive(tmp_path / "archive")
    moments = np.arange(-7.5, 20.0) * 0.7 if numbers else FIRST + np.arange(28) * DAY
    for i in range(27):
        archive.add(sketch(i), moments[i], moments[i + 1])
    assert len(archive) == 27
    assert [end for _, end in archive.periods()] == list(moments[1:])
    rng = np.random.default_rng(0)
    for _ in range(30):
        first, stop = sorted(rng.choice(28, 2, replace=False))
        found = archive.query(moments[first], moments[stop])
        A = np.concatenate([rows(i) for i in range(first, stop)])
        assert found.n_rows_seen == len(A)
        error = np.linalg.norm(A.T @ A - found.summary().to_dense(), 2)
        assert error <= found.error_bound() + 1e-12
        one = sketch(first)
        for i in range(first + 1, stop):
            one.merge(sketch(i))
        apart = np.linalg.norm(one.summary().to_dense() - found.summary().to_dense(), 2)
        assert apart <= one.error_bound() + found.error_bound() + 1e-12
    assert archive.query().n_rows_seen == 27 * 30


def test_a_range_takes_few_merges(tmp_path):
    archive = filled(tmp_path / "archive", 130)
    _, periods = archive._read()
    worst = max(
        len(list(archive._cover(periods, first, stop)))
        for first in range(0, 120, 7)
        for stop in range(first + 1, 131, 9)
    )
    assert worst <= 25


def test_estimators_keep_their_names_and_answers(tmp_path):
    pd = pytest.importorskip("pandas")
    archive = Archive(tmp_path / "archive")
    frames = [pd.DataFrame(rows(i), columns=list("abcdefghijkl")) for i in range(6)]
    for i, frame in enumerate(frames):
        archive.add(StreamingPCA(2, sketch="exact").fit(frame), i, i + 1)
    found = archive.query(1, 5)
    whole = StreamingPCA(2, sketch="exact").fit(pd.concat(frames[1:5]))
    np.testing.assert_allclose(found.components_, whole.components_, atol=1e-10)
    assert list(found.feature_names_in_) == list("abcdefghijkl")


def test_late_and_repeated_periods(tmp_path):
    archive = Archive(tmp_path / "archive")
    for i in (0, 1, 2, 3, 5, 6, 7, 8, 9):
        archive.add(sketch(i), i, i + 1)
    with pytest.raises(ValueError, match=r"no state from 4 to 5"):
        archive.query(2, 8)
    archive.add(sketch(4), 4, 5)
    assert archive.query(0, 10).n_rows_seen == 300
    with pytest.raises(ValueError, match="replace=True"):
        archive.add(sketch(4), 4, 5)
    archive.add(sketch(40), 4, 5, replace=True)
    A = np.concatenate([rows(40 if i == 4 else i) for i in range(10)])
    found = archive.query()
    assert np.linalg.norm(A.T @ A - found.summary().to_dense(), 2) <= found.error_bound() + 1e-12
    assert found.squared_norm == pytest.approx((A**2).sum())
    for start, end in ((4.5, 5.5), (3, 6), (4, 4.5), (3.5, 5)):
        for replace in (False, True):
            with pytest.raises(ValueError, match="overlaps that from"):
                archive.add(sketch(4), start, end, replace=replace)


def test_what_an_archive_refuses(tmp_path):
    archive = filled(tmp_path / "archive", 5)
    march = "2026-03-0{}".format
    with pytest.raises(ValueError, match=r"2026-03-02T12:00:00 cuts the period from 2026-03-02"):
        archive.query("2026-03-02T12:00", march(4))
    with pytest.raises(ValueError, match=r"no state from 2026-02-27 to 2026-03-01"):
        archive.query("2026-02-27", march(4))
    with pytest.raises(ValueError, match=r"no state from 2026-03-06 to 2026-03-09"):
        archive.query(march(4), march(9))
    with pytest.raises(ValueError, match="is empty"):
        archive.query(march(4), march(4))
    with pytest.raises(ValueError, match="periods of this archive are dates, got numbers"):
        archive.query(1, 2)
    with pytest.raises(NotMergeableError, match="does not fit those of the archive"):
        archive.add(sksketch.ExactCovariance().update(rows(0)), march(7), march(8))
    with pytest.raises(NotMergeableError, match="12 and 5 features"):
        archive.add(FrequentDirections(4).update(rows(0, d=5)), march(7), march(8))
    with pytest.raises(NotMergeableError, match="that forgets"):
        archive.add(FrequentDirections(4, half_life=5.0).update(rows(0)), march(7), march(8))
    window = sksketch.SlidingWindow(FrequentDirections(4), rows=5).update(rows(0))
    with pytest.raises(NotMergeableError, match="that forgets"):
        archive.add(window, march(7), march(8))
    with pytest.raises(ValueError, match="seen no rows"):
        archive.add(FrequentDirections(4), march(7), march(8))
    with pytest.raises(TypeError, match="that merge, got a dict"):
        archive.add({}, march(7), march(8))
    with pytest.raises(ValueError, match="is empty"):
        archive.add(sketch(7), march(8), march(7))
    assert len(archive) == 5
    with pytest.raises(ValueError, match="no periods yet"):
        Archive(tmp_path / "new").query()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").touch()
    with pytest.raises(ValueError, match="is no archive"):
        Archive(tmp_path / "other")
    (tmp_path / "archive" / "archive.txt").write_text("sksketch archive 9 dates")
    with pytest.raises(sksketch.StateFormatError, match="upgrade"):
        archive.query()


def _add_for_ever(path, n):
    archive = Archive(path)
    for i in range(len(archive), n):
        archive.add(sketch(i), float(i), float(i + 1))


def test_kills_lose_nothing_and_count_nothing_twice(tmp_path):
    path, n = tmp_path / "archive", 150
    rng, kills = np.random.default_rng(0), 0
    context = multiprocessing.get_context("fork")
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and kills < 12:
        child = context.Process(target=_add_for_ever, args=(path, n))
        child.start()
        time.sleep(float(rng.uniform(0.02, 0.08)))
        if child.is_alive():
            os.kill(child.pid, signal.SIGKILL)
            kills += 1
        child.join()
        archive = Archive(path)
        if len(archive):
            found = archive.query()
            assert found.n_rows_seen == 30 * len(archive)
            A = np.concatenate([rows(i) for i in range(len(archive))])
            assert found.squared_norm == pytest.approx((A**2).sum(), rel=1e-12)
    _add_for_ever(path, n)
    assert Archive(path).query().n_rows_seen == 30 * n
    # Groups that were missing have been made up for.
    _, periods = Archive(path)._read()
    assert len(list(Archive(path)._cover(periods, 1, n - 1))) < 30
    assert Cell(3, 0).end == 8


def test_a_query_beside_an_addition_is_of_one_moment(tmp_path):
    archive = filled(tmp_path / "archive", 8)
    moment = FIRST + 3 * DAY
    addition = threading.Thread(
        target=Archive(archive.path).add,
        args=(sketch(3).update(rows(99)), moment, moment + DAY),
        kwargs={"replace": True},
    )

    class Interrupted(Archive):
        def _load(self, file):
            # Which has been found, and the addition removes it.
            if not addition.is_alive() and addition.ident is None:
                addition.start()
                addition.join(0.5)
            return super()._load(file)

    assert Interrupted(archive.path).query().n_rows_seen == 240
    addition.join()
    assert archive.query().n_rows_seen == 270
