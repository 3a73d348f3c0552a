"""One BLAS thread while this package computes, so that no bit depends on how many there are."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

from threadpoolctl import ThreadpoolController


class _OneThread:
    """Limits every BLAS library to one thread from the first entry to the last exit.

    The limit holds for the whole process, so all entries are counted: where each restored what it
    had found, the last of two threads would leave the limit for ever.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._n_inside = 0
        # Those that had more than one thread, and how many.
        self._limited: list[tuple[Any, int]] = []

    def __enter__(self) -> None:
        with self.lock:
            self._n_inside += 1
            if self._n_inside == 1:
                for library, n_threads in blas_libraries():
                    n = n_threads()
                    if n is not None and n > 1:
                        library.set_num_threads(1)
                        self._limited.append((library, n))

    def __exit__(self, *error: object) -> None:
        with self.lock:
            self._n_inside -= 1
            if self._limited and not self._n_inside:
                for library, n in self._limited:
                    library.set_num_threads(n)
                self._limited.clear()


@functools.cache
def blas_libraries() -> list[tuple[Any, Callable[[], int | None]]]:
    """Return every BLAS that is loaded, and how to ask it for its number of threads.

    numpy and scipy each bring their own.
    """
    # Looking for them takes most of a millisecond, so do it once.
    found = [lib for lib in ThreadpoolController().lib_controllers if lib.user_api == "blas"]
    return [(library, _n_threads(library)) for library in found]


def _n_threads(library: ModuleType) -> Callable[[], int | None]:
    """Return OpenBLAS' own function where it has one of the usual names: it is asked often."""
    if library.internal_api == "openblas" and library.threading_layer == "pthreads":
        for prefix in ("", "scipy_"):
            for suffix in ("", "64_", "_64"):
                name = f"{prefix}openblas_get_num_threads{suffix}"
                if hasattr(library.dynlib, name):
                    asked: Callable[[], int] = getattr(library.dynlib, name)
                    return asked
    general: Callable[[], int | None] = library.get_num_threads
    return general


_one_thread = _OneThread()
if hasattr(os, "register_at_fork"):
    # A child must not inherit a lock that a thread it does not have is holding.
    os.register_at_fork(
        before=_one_thread.lock.acquire,
        after_in_parent=_one_thread.lock.release,
        after_in_child=_one_thread.lock.release,
    )


def one_blas_thread() -> _OneThread:
    """Limit BLAS to one thread inside a ``with`` block, which may stand inside of another.

    Products, factorizations and sums are cut into parts by the number of threads, and each cut
    has roundings of its own.

    >>> with one_blas_thread(), one_blas_thread():
    ...     {n_threads() for _, n_threads in blas_libraries()} <= {1}
    True
    """
    return _one_thread
