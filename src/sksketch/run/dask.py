"""Dask: every partition is learned where it lies, and states, not rows, travel to be merged."""

from __future__ import annotations

import inspect
import time
import uuid
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

from sksketch.exceptions import PartitionError
from sksketch.models.scikit_learn import Callbacks
from sksketch.run import workers
from sksketch.run.dask_rows import collect, first_rows, load_dask, rows_of
from sksketch.run.dask_workers import Workers, patience
from sksketch.run.progress import Progress, reporting
from sksketch.run.shards import (
    FAN_IN,
    Shard,
    check_fan_in,
    fit_parts,
    groups,
    kind_of,
    learn_shard,
    merge_shards,
    partition_error,
    shard_template,
)
from sksketch.run.stream import name_features
from sksketch.run.workers import learn_part
from sksketch.sketches import Sketch
from sksketch.streams import Part, RowSource

__all__ = ["fit_dask", "sketch_dask"]

# Seconds between two looks whether something is done.
POLL = 0.02

T = TypeVar("T")
S = TypeVar("S", bound=Sketch)


def fit_dask(
    estimator: T,
    X: object,
    y: object = None,
    sample_weight: object = None,
    *,
    fan_in: int = FAN_IN,
    progress: bool | Progress = False,
) -> T:
    """Learn from a dask collection: each partition on its worker, then a tree of merges.

    The current scheduler does the work: threads, processes, or the cluster of a
    ``distributed.Client``. For the same partitions and ``fan_in`` the result is the same to the
    last bit, on any scheduler and in whatever order partitions finish; one that is learned again,
    because its worker was lost, counts once.

    Parameters
    ----------
    estimator : estimator or empty sketch
        One that can be merged. As with ``fit``, what it learned before is forgotten.
    X : dask array, dask DataFrame or list of Delayed
        Rows. An array may have dense or sparse blocks, of unknown length, and blocks of columns.
        Each Delayed stands for a block of rows: an array, sparse matrix or data frame.
    y : dask array, Series or DataFrame, or list of Delayed, default=None
        Targets, in the same partitions; those of an array of known lengths are cut to fit.
    sample_weight : dask array or Series, or list of Delayed, default=None
        Row ``i`` counts as ``sample_weight[i]`` copies of itself.
    fan_in : int, default=8
        Partitions that are merged at a time.
    progress : bool or callable, default=False
        True writes one line to stderr; a callable gets the rows done and all rows.

    Returns
    -------
    estimator
        The same object.

    Raises
    ------
    PartitionError
        A ValueError that begins with the number of the partition.
    RuntimeError
        If the cluster has lost all of its workers.

    See Also
    --------
    sketch_dask : The same for a sketch alone.
    fit_stream : One process, with checkpoints.
    fit_spark : The same for a Spark frame.

    Notes
    -----
    What a lost worker had in hand is done again by another, as often as the setting
    ``distributed.scheduler.allowed-failures`` says for each task. If all workers are lost and none
    comes back for five minutes, or for as long as ``distributed.scheduler.no-workers-timeout``
    says, a RuntimeError ends the run. A cluster that has had no worker yet is waited for, with a
    warning after the same time.

    Examples
    --------
    >>> import dask.array as da
    >>> from sksketch import StreamingPCA
    >>> X = da.random.default_rng(0).standard_normal((4_000, 30), chunks=(1_000, 30))
    >>> fit_dask(StreamingPCA(2), X).n_samples_seen_
    4000
    """
    check_fan_in(fan_in)
    n_passes = getattr(shard_template(estimator), "n_passes", 1)
    if sample_weight is not None and not _takes_weights(estimator):
        raise TypeError(f"{type(estimator).__name__} takes no sample_weight")
    parts = collect(X, y, sample_weight)
    n_rows = None if parts.n_rows is None else parts.n_rows * n_passes
    with reporting(progress) as report, Callbacks(estimator).running("fit_dask"):
        run = Run(report, n_rows, fan_in)

        def learn(template: object) -> Shard:
            sent = run.send(template)
            leaves = [(learn_partition, sent, *blocks) for blocks in parts.blocks]
            return run.merged(kind_of(template), leaves)

        fit_parts(estimator, len(parts.blocks), learn, lambda n: first_rows(parts, n, run.computed))
    return estimator


def sketch_dask(
    sketch: S, X: object, *, fan_in: int = FAN_IN, progress: bool | Progress = False
) -> S:
    """Sketch a dask collection: each partition on its worker, then a tree of merges.

    Parameters
    ----------
    sketch : Sketch
        An empty one; random sketches number the partitions as their shards.
    X : dask array, dask DataFrame or list of Delayed
        Rows, as for `fit_dask`.
    fan_in : int, default=8
        Partitions that are merged at a time.
    progress : bool or callable, default=False
        True writes one line to stderr; a callable gets the rows done and all rows.

    Returns
    -------
    sketch
        The same object.

    See Also
    --------
    fit_dask : The same for estimators.
    Sketch.merge : Merges two sketches.

    Examples
    --------
    >>> import dask.array as da
    >>> from sksketch import FrequentDirections
    >>> X = da.random.default_rng(0).standard_normal((4_000, 30), chunks=(1_000, 30))
    >>> sketch_dask(FrequentDirections(8), X)
    <FrequentDirections: 4000 rows x 30 features>
    """
    if not isinstance(sketch, Sketch):
        raise TypeError(f"expected a sketch, got {sketch!r:.80}; call fit_dask for an estimator")
    return fit_dask(sketch, X, fan_in=fan_in, progress=progress)


def fit_dask_parts(
    estimator: T,
    source: RowSource,
    parts: Sequence[Part],
    address: str,
    *,
    fan_in: int = FAN_IN,
    progress: bool | Progress = False,
) -> T:
    """Learn from parts of files on the cluster whose scheduler has this address.

    The parts and the result are those of `fit_workers`; all workers must reach the files.
    """
    check_fan_in(fan_in)
    n_passes = getattr(shard_template(estimator), "n_passes", 1)
    client = _load_distributed().Client
    n_rows = None if source.n_rows is None else source.n_rows * n_passes
    with reporting(progress) as report, client(address):
        run = Run(report, n_rows, fan_in)

        def learn(template: object) -> Shard:
            sent = run.send(template)
            return run.merged(kind_of(template), [(learn_part, sent, part) for part in parts])

        fit_parts(estimator, len(parts), learn, lambda n: workers.first_rows(parts, n))
    name_features(estimator, source)
    return estimator


def _takes_weights(estimator: Any) -> bool:
    if isinstance(estimator, Sketch):
        return True
    return "sample_weight" in inspect.signature(estimator.partial_fit).parameters


def learn_partition(
    template: object, X: object, y: object, weights: object, index: int, n: int
) -> Shard:
    """Learn one partition on a worker; ``X`` may be a list of blocks of columns."""
    return learn_shard(template, rows_of(X, y, weights), index, n)


def n_rows_of(shard: Shard) -> int:
    """Return the rows of a shard: all that the client needs to know of it."""
    return shard.n_rows


class Leaf(NamedTuple):
    """A partition's task, and the small one that says when it is done."""

    shard: Any
    count: Any


class Run:
    """Leaves and merges on the current scheduler, with progress over all passes."""

    def __init__(self, report: Progress, n_rows: int | None, fan_in: int) -> None:
        self._dask = load_dask()
        self._client = current_client()
        self._report, self._n_rows, self._fan_in = report, n_rows, fan_in
        self._n_done = 0

    def send(self, template: object) -> Any:
        """Return the template as something that tasks can share."""
        return self._dask.delayed(template, pure=False, traverse=False)

    def merged(self, kind: type, leaves: Sequence[tuple[Any, ...]]) -> Shard:
        """Run ``leaf[0](*leaf[1:], index, n)`` for every leaf and merge what they return."""
        delayed, n = self._dask.delayed, len(leaves)
        # A name of its own for each run, or a cluster might give back an earlier result.
        token = uuid.uuid4().hex
        tasks = []
        for index, (function, *arguments) in enumerate(leaves):
            learn = delayed(function, pure=False, traverse=False)
            count = delayed(n_rows_of, pure=False)
            task = learn(*arguments, index, n, dask_key_name=f"learn-{token}-{index}")
            tasks.append(Leaf(task, count(task, dask_key_name=f"rows-{token}-{index}")))
        level, nodes = 0, [task.shard for task in tasks]
        while len(nodes) > 1:
            level += 1
            merge = delayed(merge_shards, pure=False)
            nodes = [
                merge(kind, list(group), dask_key_name=f"merge-{token}-{level}-{number}")
                for number, group in enumerate(groups(nodes, self._fan_in))
            ]
        self._report(self._n_done, self._n_rows)
        run = self._locally if self._client is None else self._on_cluster
        return run(nodes[0], tasks)

    def _add(self, n_rows: int) -> None:
        self._n_done += n_rows
        self._report(self._n_done, self._n_rows)

    def _on_cluster(self, root: object, tasks: list[Leaf]) -> Shard:
        root_future, *counts = self._client.compute([root, *(task.count for task in tasks)])
        numbers = {future.key: index for index, future in enumerate(counts)}
        try:
            for future in self._completed([root_future, *counts]):
                number = numbers.get(future.key)
                if number is None:
                    continue
                if future.status != "finished":
                    error = future.exception()
                    raise partition_error(number, len(tasks), _explained(error)) from error
                self._add(future.result())
            shard: Shard = root_future.result()
            return shard
        except BaseException:
            # What is left has no use once one partition has failed.
            self._client.cancel([root_future, *counts])
            raise

    def _completed(self, futures: list[Any]) -> Iterator[Any]:
        """Yield futures as they are done, as long as there is somebody to work on them."""
        left = _load_distributed().as_completed(futures)
        workers = Workers(self._client, patience(self._dask))
        while not left.is_empty():
            if left.has_ready():
                for future in left.next_batch(block=False):
                    if future.status in ("pending", "lost"):
                        # Its worker died between the news and this look: it is computed again.
                        left.add(future)
                    else:
                        yield future
            else:
                workers.check()
                time.sleep(POLL)

    def computed(self, task: Any) -> Any:
        """Return what a task gives."""
        if self._client is None:
            return task.compute()
        (future,) = self._completed([self._client.compute(task)])
        return future.result()

    def _locally(self, root: object, tasks: list[Leaf]) -> Shard:
        from dask.callbacks import Callback

        counts = {task.count.key for task in tasks}
        running: set[Any] = set()

        def after_task(key: object, value: Any, *_: object) -> None:
            if key in counts:
                self._add(value)

        def at_end(_dsk: object, state: Any, failed: bool) -> None:
            if failed:
                running.update(state["running"])

        try:
            with Callback(posttask=after_task, finish=at_end):
                shard: Shard = self._dask.compute(root, *(t.count for t in tasks))[0]
                return shard
        except PartitionError:
            raise
        except Exception as error:
            self._blame(tasks, running, error)
            raise

    def _blame(self, tasks: list[Leaf], running: set[Any], error: Exception) -> None:
        """Find the partition whose rows could not be read, among those that were at work."""
        for index, task in enumerate(tasks):
            needed = self._dask.utils.ensure_dict(task.shard.__dask_graph__())
            if running & ancestors(needed, task.shard.key):
                try:
                    task.shard.compute(scheduler="sync")
                except Exception as again:  # noqa: BLE001  (whatever reading rows may raise)
                    raise partition_error(index, len(tasks), again) from error


def ancestors(graph: Any, key: Any) -> set[Any]:
    """Return the keys of a graph that one of them needs."""
    from dask.core import get_dependencies

    found, left = set(), [key]
    while left:
        key = left.pop()
        if key not in found and key in graph:
            found.add(key)
            left.extend(get_dependencies(graph, key))
    return found


def current_client() -> Any:
    """Return the client of the current cluster; None if threads or processes do the work."""
    from dask.base import get_scheduler

    owner = getattr(get_scheduler(), "__self__", None)
    if owner is None or type(owner).__module__.partition(".")[0] != "distributed":
        return None
    return owner


def _load_distributed() -> Any:
    try:
        import distributed
    except ImportError:
        raise ImportError(
            "a cluster needs dask's distributed: pip install 'scikit-sketch[dask]'"
        ) from None
    return distributed


def _explained(error: BaseException) -> BaseException:
    """Explain the error that distributed raises for a task that no worker has survived."""
    if type(error).__name__ != "KilledWorker":
        return error
    return RuntimeError(
        "every worker that ran this partition died (out of memory or crashed); "
        "give smaller partitions, or raise distributed.scheduler.allowed-failures"
    )
