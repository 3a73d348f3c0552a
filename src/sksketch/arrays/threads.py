"""One BLAS thread while this package computes, so that no bit depends on how many there are."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from typing import Any

from threadpoolctl import ThreadpoolController

Setter = Callable[[int], object]
Getter = Callable[[], int | None]


class _OneThread:
    """Limits every BLAS library to one thread from the first entry to the last exit.

    The limit holds for the whole process, so all entries are counted: where each restored what it
    had found, the last of two threads would leave the limit for ever.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._n_inside = 0
        # Those that had more than one thread, and how many.
        self._limited: list[tuple[Setter, int]] = []

    def __enter__(self) -> None:
        with self.lock:
            self._n_inside += 1
            if self._n_inside == 1:
                for set_threads, n_threads in blas_libraries():
                    n = n_threads()
                    if n is not None and n > 1:
                        set_threads(1)
                        self._limited.append((set_threads, n))

    def __exit__(self, *error: object) -> None:
        with self.lock:
            self._n_inside -= 1
            if self._limited and not self._n_inside:
                for set_threads, n in self._limited:
                    set_threads(n)
                self._limited.clear()

    def n_outside(self) -> int:
        """Return the most threads that a BLAS has outside of all limits of ours."""
        with self.lock:
            if self._n_inside:
                return max((n for _, n in self._limited), default=1)
            return max((n_threads() or 1 for _, n_threads in blas_libraries()), default=1)


@functools.cache
def blas_libraries() -> list[tuple[Setter, Getter]]:
    """Return for every BLAS that is loaded how to set its number of threads, and how to ask for it.

    numpy and scipy each bring their own.
    """
    # Looking for them takes most of a millisecond, so do it once.
    found = [lib for lib in ThreadpoolController().lib_controllers if lib.user_api == "blas"]
    return [_functions(library) for library in found]


def _functions(library: Any) -> tuple[Setter, Getter]:
    """Return OpenBLAS' own functions where they have one of the usual names.

    They are called often. And from threadpoolctl 3.7 on, its own setter does nothing on any thread
    but the first one that has called it: the limit would not hold for work on other threads.
    """
    if library.internal_api == "openblas" and library.threading_layer == "pthreads":
        for prefix in ("", "scipy_"):
            for suffix in ("", "64_", "_64"):
                names = [f"{prefix}openblas_{verb}_num_threads{suffix}" for verb in ("set", "get")]
                if all(hasattr(library.dynlib, name) for name in names):
                    set_threads, n_threads = (getattr(library.dynlib, name) for name in names)
                    return set_threads, n_threads
    return library.set_num_threads, library.get_num_threads


_one_thread = _OneThread()
if hasattr(os, "register_at_fork"):
    # A child must not inherit a lock that a thread it does not have is holding.
    os.register_at_fork(
        before=_one_thread.lock.acquire,
        after_in_parent=_one_thread.lock.release,
        after_in_child=_one_thread.lock.release,
    )


def n_blas_threads() -> int:
    """Return how many threads BLAS may use, by its environment or whoever has limited it.

    The limit of `one_blas_thread` does not count.
    """
    return _one_thread.n_outside()


def one_blas_thread() -> _OneThread:
    """Limit BLAS to one thread inside a ``with`` block, which may stand inside of another.

    Products, factorizations and sums are cut into parts by the number of threads, and each cut
    has roundings of its own.

    >>> with one_blas_thread(), one_blas_thread():
    ...     {n_threads() for _, n_threads in blas_libraries()} <= {1}
    True
    """
    return _one_thread
