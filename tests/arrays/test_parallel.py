"""Parts on several threads: results in order, errors, settings, processes and limits."""

import contextlib
import multiprocessing
import threading
import time

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from sksketch.arrays import parallel
from sksketch.arrays.parallel import THREAD_NAME, helped, in_parallel, n_threads, spans
from sksketch.arrays.threads import blas_libraries, one_blas_thread


@pytest.fixture
def four(monkeypatch):
    monkeypatch.setenv("SKSKETCH_NUM_THREADS", "4")


def wait_together(n):
    """Return work that goes on only once so many parts are under way."""
    barrier = threading.Barrier(n)
    return lambda part: (barrier.wait(timeout=60), part, threading.current_thread().name)[1:]


def test_parts_run_at_once_and_results_come_in_order(four):
    assert helped()
    found = in_parallel(wait_together(4), 8)
    assert [part for part, _ in found] == list(range(8))
    others = {name for _, name in found} - {threading.current_thread().name}
    assert len(others) == 3
    assert all(name.startswith(THREAD_NAME) for name in others)


def test_nothing_to_do_and_one_thread(monkeypatch):
    assert in_parallel(lambda part: part, 0) == []
    monkeypatch.setenv("SKSKETCH_NUM_THREADS", "1")
    assert not helped()
    assert set(in_parallel(lambda part: threading.get_ident(), 9)) == {threading.get_ident()}


def test_a_part_does_its_own_parts_itself(four):
    def work(part):
        if threading.current_thread().name.startswith(THREAD_NAME):
            assert not helped()
            return set(in_parallel(lambda _: threading.get_ident(), 5)) == {threading.get_ident()}
        return True

    assert all(in_parallel(work, 20))


@pytest.mark.parametrize("bad", [0, 5, 11])
def test_the_first_error_is_raised_when_no_part_runs_any_more(four, bad):
    running = []

    def work(part):
        running.append(part)
        try:
            time.sleep(0.01)
            if part >= bad:
                raise KeyError(part)
        finally:
            running.remove(part)

    with pytest.raises(KeyError):
        in_parallel(work, 12)
    assert running == []
    assert in_parallel(lambda part: part, 12) == list(range(12))


def test_an_interruption_leaves_no_part_running(four):
    caller = threading.get_ident()
    running = []

    def work(part):
        if threading.get_ident() == caller:
            raise KeyboardInterrupt
        running.append(part)
        time.sleep(0.05)
        running.remove(part)

    for _ in range(3):
        with contextlib.suppress(KeyboardInterrupt):
            in_parallel(work, 100)
        assert running == []


def test_parts_have_the_settings_of_their_caller(four):
    def work(part):
        return np.float64(1.0) / np.float64(0.0) + part

    with np.errstate(divide="ignore"):
        assert in_parallel(work, 8) == [np.inf] * 8
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        in_parallel(work, 8)


def test_blas_has_one_thread_in_every_part(four):
    def threads(part):
        return max(n() or 1 for _, n in blas_libraries())

    with threadpool_limits(2, user_api="blas"):
        assert set(in_parallel(threads, 8)) == {1}
        assert threads(0) == max(threads(0), 1)


def test_the_limit_holds_on_a_thread_that_has_never_asked_for_it():
    found = {}

    def ask():
        with one_blas_thread():
            found["inside"] = max(n() or 1 for _, n in blas_libraries())

    with threadpool_limits(2, user_api="blas"):
        before = [n() for _, n in blas_libraries()]
        thread = threading.Thread(target=ask)
        thread.start()
        thread.join()
        assert found == {"inside": 1}
        assert [n() for _, n in blas_libraries()] == before


def test_callers_share_the_threads(four):
    most, now, lock = [0], [0], threading.Lock()

    def work(part):
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        time.sleep(0.002)
        with lock:
            now[0] -= 1

    callers = [threading.Thread(target=in_parallel, args=(work, 40)) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    # The first is helped by three, the second by one, and later ones by none.
    assert most[0] <= 4 + 3 + 1


@pytest.mark.parametrize("value", ["0", "-1", "two", "1.5"])
def test_other_numbers_of_threads_are_refused(monkeypatch, value):
    monkeypatch.setenv("SKSKETCH_NUM_THREADS", value)
    with pytest.raises(ValueError, match="expected a number from 1 on"):
        n_threads()


def test_without_a_number_limits_of_others_count(monkeypatch):
    monkeypatch.delenv("SKSKETCH_NUM_THREADS", raising=False)
    with threadpool_limits(1, user_api="blas"):
        assert n_threads() == 1
    monkeypatch.setattr(parallel, "_n_cores", lambda: 3)
    monkeypatch.setattr(parallel, "n_blas_threads", lambda: 64)
    assert n_threads() == 3


def in_child(queue):
    queue.put(in_parallel(lambda part: part, 6))


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_starts_threads_of_its_own(four):
    in_parallel(lambda part: part, 6)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=in_child, args=(queue,))
    child.start()
    assert queue.get(timeout=60) == list(range(6))
    child.join(60)
    assert child.exitcode == 0


def test_spans_cover_a_length():
    for length in (0, 1, 7, 100):
        for size in (1, 3, 7, 1000):
            parts = spans(length, size)
            assert [i for part in parts for i in range(part.start, part.stop)] == list(
                range(length)
            )
            assert all(part.stop - part.start <= size for part in parts)
