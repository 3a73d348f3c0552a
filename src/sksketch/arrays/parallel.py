"""All cores, and the same bits whatever their number.

Work is cut into parts by its shape alone, never by the number of threads; each part runs on one
thread, with one BLAS thread, and whatever must be added up is added in the order of the parts.
How many parts run at once then changes nothing but the time.
"""

from __future__ import annotations

import contextvars
import functools
import math
import os
import threading
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar

import numpy as np

from sksketch.arrays.threads import n_blas_threads, one_blas_thread

VARIABLE = "SKSKETCH_NUM_THREADS"
THREAD_NAME = "sksketch-parallel"

# OpenBLAS has room for this many callers at once.
MOST_THREADS = 64

Result = TypeVar("Result")


def n_threads() -> int:
    """Return how many threads may work at once.

    The environment variable ``SKSKETCH_NUM_THREADS`` says so. Without it, the cores that this
    process may use, by its affinity and by the quota of its container, but no more than BLAS
    may: whoever limits that (joblib and Dask in their workers, or ``threadpool_limits``) wants
    the cores for something else.

    Returns
    -------
    int
        At least 1.
    """
    asked = os.environ.get(VARIABLE, "").strip()
    if not asked:
        return max(1, min(_n_cores(), n_blas_threads(), MOST_THREADS))
    if not (asked.isascii() and asked.isdigit()) or int(asked) == 0:
        raise ValueError(
            f"the environment variable {VARIABLE} is {asked!r}, expected a number from 1 on; "
            "correct or unset it"
        )
    return min(int(asked), MOST_THREADS)


def in_parallel(work: Callable[[int], Result], n_parts: int) -> list[Result]:
    """Return ``[work(0), ..., work(n_parts - 1)]``, computed by several threads at once.

    Parts must not depend on each other. A part that calls this function does all of its own
    parts itself, and several callers share the threads.

    Parameters
    ----------
    work : callable
        Takes the number of a part. It should spend its time without the interpreter: in numpy's
        products or compiled loops.
    n_parts : int
        Number of parts.

    Returns
    -------
    list
        The results in order.

    Examples
    --------
    >>> in_parallel(lambda part: part**2, 4)
    [0, 1, 4, 9]
    """
    if n_parts <= 1 or _here.is_helping:
        return [work(part) for part in range(n_parts)]
    with _callers as n_callers, one_blas_thread():
        n_helpers = min(n_parts, n_threads() // n_callers) - 1
        if n_helpers <= 0:
            return [work(part) for part in range(n_parts)]
        job = _Job(work, n_parts)
        _helpers().call(job, n_helpers)
        return job.results()


def helped() -> bool:
    """Return whether `in_parallel` would have other threads help.

    Where it would not, one pass over memory can be better than two with the same result.
    """
    return not _here.is_helping and n_threads() // (_callers.n_inside + 1) > 1


def scratch(shape: tuple[int, ...], dtype: Any) -> np.ndarray[Any, np.dtype[Any]]:
    """Return room of this thread for numbers, which its next call may hand out again.

    New pages of memory cost as much as filling them, and threads wait for each other there.

    >>> scratch((2, 3), np.float32).shape
    (2, 3)
    """
    dtype = np.dtype(dtype)
    n_bytes = dtype.itemsize * math.prod(shape)
    if _here.room.nbytes < n_bytes:
        _here.room = np.empty(n_bytes, np.uint8)
    room: np.ndarray[Any, np.dtype[Any]] = _here.room[:n_bytes].view(dtype).reshape(shape)
    return room


def spans(length: int, size: int) -> list[slice]:
    """Return slices of about equal size, at most ``size``, that cover a length.

    >>> spans(9, 4)
    [slice(0, 3, None), slice(3, 6, None), slice(6, 9, None)]
    """
    if length <= 0:
        return []
    step = -(-length // -(-length // size))
    return [slice(start, min(start + step, length)) for start in range(0, length, step)]


class _Job:
    """Parts that several threads do together: whoever is free takes the next one."""

    def __init__(self, work: Callable[[int], Any], n_parts: int) -> None:
        self._work = work
        # The next number of a range is taken in one step of the interpreter.
        self._parts = iter(range(n_parts))
        self._found: list[Any] = [None] * n_parts
        self._errors: list[tuple[int, BaseException]] = []
        # How many threads help now; nobody may begin to once it is closed.
        self._lock, self._n_inside, self._closed = threading.Lock(), 0, False
        self._left = threading.Lock()
        self._left.acquire()
        # It has numpy's and scikit-learn's settings of the caller.
        self._context = contextvars.copy_context()

    def results(self) -> list[Any]:
        """Do what parts are left, wait for the others and return all results."""
        try:
            self._do()
        finally:
            # Nobody may work on the caller's arrays any more after this, be it with an error.
            for _ in self._parts:
                pass
            with self._lock:
                self._closed = True
                waits = self._n_inside > 0
            if waits:
                self._left.acquire()
        for _, error in sorted(self._errors, key=lambda pair: pair[0]):
            raise error
        return self._found

    def help_out(self) -> None:
        """Do parts on another thread, in a copy of the caller's context."""
        with self._lock:
            if self._closed:
                return
            self._n_inside += 1
        try:
            self._context.copy().run(self._do)
        finally:
            self._leave()

    def _leave(self) -> None:
        with self._lock:
            self._n_inside -= 1
            if self._closed and self._n_inside == 0:
                self._left.release()

    def _do(self) -> None:
        for part in self._parts:
            if self._errors:
                continue
            try:
                self._found[part] = self._work(part)
            except BaseException as error:  # noqa: BLE001  (raised again by the caller)
                self._errors.append((part, error))


class _Helpers:
    """Threads that wait for jobs; there are as many as were ever asked for at once."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[_Job] = SimpleQueue()
        self._lock = threading.Lock()
        self._n_started = 0

    def call(self, job: _Job, n_helpers: int) -> None:
        """Have that many threads look at a job as soon as they can."""
        if self._n_started < n_helpers:
            with self._lock:
                while self._n_started < n_helpers:
                    name = f"{THREAD_NAME}-{self._n_started}"
                    threading.Thread(target=self._serve, name=name, daemon=True).start()
                    self._n_started += 1
        for _ in range(n_helpers):
            self._jobs.put(job)

    def _serve(self) -> None:
        _here.is_helping = True
        while True:
            self._jobs.get().help_out()


class _Here(threading.local):
    """Knows of each thread whether it helps another one."""

    is_helping = False
    room = np.empty(0, np.uint8)


class _Callers:
    """Counts the threads that share the helpers now."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.n_inside = 0

    def __enter__(self) -> int:
        with self._lock:
            self.n_inside += 1
            return self.n_inside

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self.n_inside -= 1


_here, _callers = _Here(), _Callers()


@functools.cache
def _helpers() -> _Helpers:
    return _Helpers()


def _after_fork() -> None:
    """Forget threads that a child process does not have."""
    global _callers
    _helpers.cache_clear()
    _callers = _Callers()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _n_cores() -> int:
    """Return the cores that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity is not None else os.cpu_count() or 1
    return max(1, min(cores, _quota()))


@functools.cache
def _quota() -> int:
    """Return the cores' worth of time that the process's container may use."""
    try:
        limit, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
    except (OSError, ValueError):
        folder = Path("/sys/fs/cgroup/cpu")
        try:
            limit = (folder / "cpu.cfs_quota_us").read_text()
            period = (folder / "cpu.cfs_period_us").read_text()
        except OSError:
            return MOST_THREADS
    if not limit.strip().isdigit():
        return MOST_THREADS
    return max(1, -(-int(limit) // int(period)))
