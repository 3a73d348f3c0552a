"""Parts of files learned by processes of this machine; one that is killed is replaced."""

from __future__ import annotations

import multiprocessing
import signal
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any, TypeVar

from sksketch.exceptions import PartitionError
from sksketch.run.progress import Progress, reporting
from sksketch.run.shards import (
    FAN_IN,
    MergeTree,
    Rows,
    Shard,
    check_fan_in,
    fit_parts,
    kind_of,
    learn_shard,
    merge_shards,
    shard_template,
)
from sksketch.run.stream import name_features
from sksketch.streams import Part, RowSource
from sksketch.streams.blocks import concatenated

T = TypeVar("T")

# A part is given up after this many processes were lost over it.
MOST_TRIES = 3


def fit_workers(
    estimator: T,
    source: RowSource,
    parts: Sequence[Part],
    n_workers: int,
    *,
    fan_in: int = FAN_IN,
    progress: bool | Progress = False,
) -> T:
    """Learn from parts of files with several processes; the same result for any number of them.

    Parameters
    ----------
    estimator : estimator or empty sketch
        One that can be merged. What it learned before is forgotten.
    source : RowSource
        What the parts are of.
    parts : list of Part
        From ``divide(source, ...)``.
    n_workers : int
        Processes. One that dies, for want of memory or killed, is replaced, and its part is
        learned again.
    fan_in : int
        Parts that are merged at a time.
    progress : bool or callable
        True writes one line to stderr; a callable gets the rows done and all rows.

    Returns
    -------
    estimator
        The same object.
    """
    check_fan_in(fan_in)
    n_passes = getattr(shard_template(estimator), "n_passes", 1)
    n_rows = None if source.n_rows is None else source.n_rows * n_passes
    n_workers = min(n_workers, len(parts))
    with reporting(progress) as report, Pool(n_workers) as pool:
        n_done = 0
        report(0, n_rows)

        def learned(shard: Shard) -> None:
            nonlocal n_done
            n_done += shard.n_rows
            report(n_done, n_rows)

        def learn(template: object) -> Shard:
            return _learn_all(pool, template, parts, fan_in, learned)

        fit_parts(estimator, len(parts), learn, lambda n: first_rows(parts, n))
    name_features(estimator, source)
    return estimator


def learn_part(template: object, part: Part, index: int, n_parts: int) -> Shard:
    """Learn one part of a file, wherever this runs."""
    return learn_shard(template, _blocks(part), index, n_parts)


def _blocks(part: Part) -> Any:
    # A generator, so that also a file that cannot be opened is blamed on its part.
    for block in part.blocks():
        yield Rows(block.X, block.y, block.sample_weight)


def first_rows(parts: Sequence[Part], n_rows: int) -> Any:
    """Return the first rows, for a pilot."""
    blocks: list[Any] = []
    for part in parts:
        for X, _ in part.blocks():
            missing = n_rows - sum(block.shape[0] for block in blocks)
            if missing <= 0:
                return concatenated(blocks)
            blocks.append(X[:missing])
    return concatenated(blocks)


def _learn_all(
    pool: Pool,
    template: object,
    parts: Sequence[Part],
    fan_in: int,
    learned: Callable[[Shard], None],
) -> Shard:
    kind, n_parts = kind_of(template), len(parts)
    tree = MergeTree(n_parts, fan_in)
    whole: list[Shard] = []

    def done(task: Task, shard: Shard) -> None:
        level, number = task.place
        if not level:
            learned(shard)
        if level == tree.top:
            whole.append(shard)
        elif (ready := tree.add(level, number, shard)) is not None:
            above, group, shards = ready
            pool.add(Task((above, group), merge_shards, (kind, shards), "a merge"))

    for index, part in enumerate(parts):
        name = f"partition {index} of {n_parts}"
        pool.add(Task((0, index), learn_part, (template, part, index, n_parts), name))
    pool.run(done)
    return whole[0]


@dataclass
class Task:
    """A call for a process of the pool, and its place in the tree."""

    place: tuple[int, int]
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    name: str
    n_tries: int = 0


class Worker:
    """A process that answers one call at a time."""

    def __init__(self) -> None:
        # Spawned: a fork would copy locks that other threads hold.
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs,), daemon=True)
        self.process.start()
        # Only the process holds this end now, so its death is noticed.
        theirs.close()
        self.task: Task | None = None

    def give(self, task: Task) -> bool:
        """Send a call; False if there is nobody to take it."""
        self.task = task
        try:
            self.connection.send((task.function, task.arguments))
        except OSError:
            return False
        return True

    def stop(self) -> None:
        """End the process, whatever it does."""
        self.process.terminate()
        self.process.join()
        self.connection.close()


class Pool:
    """Processes that are replaced when they die, with the call they had in hand."""

    def __init__(self, n_workers: int) -> None:
        self._n_workers = n_workers
        self._workers: list[Worker] = []
        self._pending: deque[Task] = deque()

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_error: object) -> None:
        for worker in self._workers:
            worker.stop()

    @property
    def pids(self) -> list[int]:
        """The numbers of the processes."""
        return [worker.process.pid for worker in self._workers if worker.process.pid]

    def add(self, task: Task) -> None:
        """Let a call wait for a process; merges go first, so that few states wait."""
        if task.place[0]:
            self._pending.appendleft(task)
        else:
            self._pending.append(task)

    def run(self, done: Callable[[Task, Any], None]) -> None:
        """Make all calls, and those that ``done`` adds."""
        while self._pending or any(worker.task for worker in self._workers):
            self._assign()
            busy = {worker.connection: worker for worker in self._workers if worker.task}
            for ready in wait(list(busy)):
                assert isinstance(ready, Connection)
                self._receive(busy[ready], done)

    def _assign(self) -> None:
        while self._pending:
            idle = next((worker for worker in self._workers if worker.task is None), None)
            if idle is None:
                if len(self._workers) >= self._n_workers:
                    return
                idle = Worker()
                self._workers.append(idle)
            if not idle.give(self._pending.popleft()):
                self._lost(idle)

    def _receive(self, worker: Worker, done: Callable[[Task, Any], None]) -> None:
        try:
            fine, result = worker.connection.recv()
        except (EOFError, OSError):
            self._lost(worker)
            return
        task, worker.task = worker.task, None
        assert task is not None
        if not fine:
            raise result
        done(task, result)

    def _lost(self, worker: Worker) -> None:
        """Do again what a dead process had in hand."""
        task = worker.task
        assert task is not None
        worker.stop()
        self._workers.remove(worker)
        task.n_tries += 1
        if task.n_tries >= MOST_TRIES:
            raise PartitionError(
                f"{task.name}: {MOST_TRIES} processes were lost over it (the last with exit code "
                f"{worker.process.exitcode}); use fewer workers, or look at its rows"
            )
        self._pending.appendleft(task)


def _serve(connection: Connection) -> None:
    """Answer calls until the other end is closed."""
    # Ctrl-C is for the parent, which ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        try:
            function, arguments = connection.recv()
        except EOFError:
            return
        try:
            answer = (True, function(*arguments))
        except Exception as error:  # noqa: BLE001  (raised by the parent)
            answer = (False, error)
        connection.send(answer)
