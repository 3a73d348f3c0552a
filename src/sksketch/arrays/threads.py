"""One BLAS thread while this package computes, so that no bit depends on how many there are."""

from __future__ import annotations

import functools
import os
import threading
from typing import Any

from threadpoolctl import ThreadpoolController


class _OneThread:
    """Limits every BLAS library to one thread from the first entry to the last exit.

    The limit holds for the whole process, so entries of all threads are counted together: where
    each restored what it had found, the last of two would leave the limit for ever.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._n_inside = 0
        self._before: list[tuple[Any, int]] = []

    def __enter__(self) -> None:
        with self.lock:
            if not self._n_inside:
                found = [(library, library.num_threads) for library in _libraries("blas")]
                self._before = [(library, n) for library, n in found if n is not None and n > 1]
                for library, _ in self._before:
                    library.set_num_threads(1)
            self._n_inside += 1

    def __exit__(self, *error: object) -> None:
        with self.lock:
            self._n_inside -= 1
            if not self._n_inside:
                for library, n_threads in self._before:
                    library.set_num_threads(n_threads)


@functools.cache
def _libraries(kind: str) -> list[Any]:
    # Looking for them takes most of a millisecond, so do it once.
    return [lib for lib in ThreadpoolController().lib_controllers if lib.user_api == kind]


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

    Products, factorisations and sums are cut into parts by the number of threads, and each cut
    has roundings of its own.

    >>> with one_blas_thread(), one_blas_thread():
    ...     max(library.num_threads for library in _libraries("blas"))
    1
    """
    return _one_thread
