"""Read ahead: the next blocks are made in a background thread while one is being used."""

from __future__ import annotations

import queue
import threading
from collections.abc import Generator, Iterator
from contextlib import closing
from typing import TypeVar

Item = TypeVar("Item")

# Blocks made but not used yet; memory grows with it, and two keep both sides busy.
BLOCKS_AHEAD = 2
PATIENCE_SECONDS = 0.2
THREAD_NAME = "sksketch-read-ahead"


class _End:
    """The last thing in the queue, with the error that ended the reading, if one did."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error


def read_ahead(items: Iterator[Item], depth: int = BLOCKS_AHEAD) -> Generator[Item, None, None]:
    """Yield the items of an iterator that runs in a background thread, at most ``depth`` ahead.

    The thread starts with the first item asked for. An error of the iterator is raised where
    its item would have come. Closing what is returned, or dropping it, closes a generator
    and ends the thread.

    >>> list(read_ahead(x * x for x in range(4)))
    [0, 1, 4, 9]
    """
    ready: queue.Queue[Item | _End] = queue.Queue(depth)
    stopped = threading.Event()

    def put(item: Item | _End) -> bool:
        while not stopped.is_set():
            try:
                ready.put(item, timeout=PATIENCE_SECONDS)
            except queue.Full:
                continue
            return True
        return False

    def given() -> Generator[Item, None, None]:
        # Closing this closes a generator behind it as well.
        yield from items

    def work() -> None:
        end = _End()
        try:
            with closing(given()) as inner:
                for item in inner:
                    if not put(item):
                        return
        except BaseException as error:  # noqa: BLE001  (raised again in the thread that reads)
            end = _End(error)
        put(end)

    # A daemon, because it may hang in a read from a terminal when the program wants to end.
    worker = threading.Thread(target=work, name=THREAD_NAME, daemon=True)
    worker.start()
    try:
        while True:
            item = _get(ready)
            if isinstance(item, _End):
                if item.error is not None:
                    raise item.error
                return
            yield item
    finally:
        stopped.set()
        while not ready.empty():
            ready.get_nowait()
        worker.join(timeout=10 * PATIENCE_SECONDS)


def is_reading() -> bool:
    """Return whether a thread still reads for somebody who has stopped, or waits for its input."""
    return any(thread.name == THREAD_NAME for thread in threading.enumerate())


def _get(ready: queue.Queue[Item | _End]) -> Item | _End:
    """Wait for the next item, in short steps so that Ctrl-C is noticed on every system."""
    while True:
        try:
            return ready.get(timeout=PATIENCE_SECONDS)
        except queue.Empty:
            continue
