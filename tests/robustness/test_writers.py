"""Several threads at one object: one of them works, the others are told."""

from __future__ import annotations

import contextlib
import copy
import pickle
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from robustness import abuse, everyone
from sksketch import ConcurrentUseError, ExactCovariance, Sketch, StreamingPCA

pytestmark = everyone.QUIET

WRITTEN = [
    name
    for name in (*abuse.SKETCHES, *everyone.ESTIMATORS)
    if everyone.streams(name) and not name.startswith("Random")
]


class Held:
    """Rows that are not there before somebody lets them go."""

    def __init__(self, X):
        self._X, self.asked, self.free = X, threading.Event(), threading.Event()
        self.shape, self.dtype = X.shape, X.dtype

    def __len__(self):
        return len(self._X)

    def __array__(self, dtype=None, copy=None):
        self.asked.set()
        assert self.free.wait(30)
        return self._X


def beside(name, n_rows):
    return [part[:n_rows] for part in everyone.second_of(name)]


@pytest.mark.parametrize("name", WRITTEN)
def test_a_second_writer_is_refused(name, tally):
    model = everyone.learn(everyone.make(name), everyone.X[:60], *beside(name, 60))
    expected = copy.deepcopy(model)
    everyone.learn(expected, everyone.X[:40], *beside(name, 40))
    held = Held(everyone.X[:40])
    with ThreadPoolExecutor(1) as pool:
        busy = pool.submit(everyone.learn, model, held, *beside(name, 40))
        assert held.asked.wait(30)
        try:
            with pytest.raises(ConcurrentUseError, match="another thread is changing this"):
                everyone.learn(model, everyone.X[:9], *beside(name, 9))
            with pytest.raises(ConcurrentUseError):
                model.state()
            if isinstance(model, Sketch):
                with pytest.raises(ConcurrentUseError):
                    everyone.make(name).merge(model)
        finally:
            held.free.set()
        busy.result()
    everyone.learn(model, everyone.X[:9], *beside(name, 9))
    everyone.learn(expected, everyone.X[:9], *beside(name, 9))
    assert everyone.digest(model.state().arrays) == everyone.digest(expected.state().arrays)
    tally("writers at one object", {"second writer refused, nothing changed": 1})


def n_seen(model):
    return model.n_rows_seen if isinstance(model, Sketch) else model.n_samples_seen_


@pytest.mark.parametrize("name", WRITTEN)
def test_four_writers_and_a_reader(name, full, tally):
    sizes = (1, 2, 5, 9)
    rounds = 60 if full else 6
    model = everyone.learn(everyone.make(name), everyone.X[:60], *beside(name, 60))
    counts = {"done": 0, "refused": 0}
    lock, start = threading.Lock(), threading.Barrier(5)

    def write(i):
        start.wait()
        n_rows = 0
        for _ in range(rounds):
            try:
                everyone.learn(model, everyone.X[: sizes[i]], *beside(name, sizes[i]))
            except ConcurrentUseError:
                outcome = "refused"
            else:
                outcome, n_rows = "done", n_rows + sizes[i]
            with lock:
                counts[outcome] += 1
        return n_rows

    def read(_):
        start.wait()
        for _ in range(rounds):
            with contextlib.suppress(ConcurrentUseError):
                model.state()
        return 0

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(5) as pool:
            learned = sum(pool.map(lambda i: write(i) if i < 4 else read(i), range(5)))
    finally:
        sys.setswitchinterval(before)
    # A window has seen the rows that are in it.
    window = getattr(model, "rows", None) or getattr(model, "window", None)
    assert n_seen(model) == min(60 + learned, window or sys.maxsize)
    for key, array in model.state().arrays.items():
        if "sums" not in key:
            # Among them are bounds, which may be infinite.
            assert np.isfinite(array).all(), key
    tally("writers at one object", {f"calls {name}": n for name, n in counts.items()})


def test_one_thread_may_come_back():
    model = StreamingPCA(2).fit(everyone.X)
    model.merge(model)
    assert model.n_samples_seen_ == 2 * len(everyone.X)


def test_an_error_leaves_no_trace():
    sketch = ExactCovariance().update(everyone.X)
    with pytest.raises(ValueError, match="NaN"):
        sketch.update(np.full((2, everyone.X.shape[1]), np.nan))
    with ThreadPoolExecutor(1) as pool:
        pool.submit(sketch.update, everyone.X).result()
    assert sketch.n_rows_seen == 2 * len(everyone.X)


def test_what_is_copied_while_it_learns_is_nobodys():
    found = []

    class Nosy(ExactCovariance):
        def _take(self, rows):
            found.extend([pickle.dumps(vars(self)), copy.copy(self)])
            super()._take(rows)

    Nosy().update(everyone.X)
    with ThreadPoolExecutor(1) as pool:
        pool.submit(found[1].fresh).result()
