"""`fit_stream`: all rows of a source through one estimator, resumable after an interruption."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from typing import Any, TypeVar

import numpy as np

from sksketch._typing import Array, PathLike
from sksketch.models.base import forget
from sksketch.models.protocols import Measuring, Settled, SeveralPasses
from sksketch.models.scikit_learn import Callbacks
from sksketch.run.checkpoints import Checkpoint
from sksketch.run.progress import Progress, reporting
from sksketch.run.settled import TILE_ROWS, settled, settling
from sksketch.run.shards import weights_option
from sksketch.sketches import Sketch
from sksketch.state.blame import using
from sksketch.streams import Block, RowSource, open_rows, reblock
from sksketch.streams.device import device_blocks

T = TypeVar("T")

# Seconds between two checkpoints, unless rows are given.
PERIOD = 30.0


def fit_stream(
    estimator: T,
    source: object,
    *,
    checkpoint: PathLike | None = None,
    every: int | None = None,
    progress: bool | Progress = True,
    resume: bool = True,
    classes: object = None,
    n_passes: int = 1,
    device: str | None = None,
) -> T:
    """Learn from all rows of a source in one pass that can be resumed.

    Parameters
    ----------
    estimator : estimator with ``partial_fit``, pipeline, or empty sketch
        As with ``fit``, what it learned before is forgotten. In a pipeline the steps before
        the last must be stateless, such as `Normalizer` or `FunctionTransformer`, or choose what
        they do by the first rows alone, such as `RandomFeatures`.
    source : RowSource or anything that `open_rows` takes
        Rows, with targets where the estimator needs them. Weights (the importance in vw files,
        the third of ``(X, y, sample_weight)`` in iterables) become its ``sample_weight``.
    checkpoint : path, default=None
        File that an interrupted run resumes from. If it exists, the run continues after
        the rows that it has; it is refused if the estimator, its parameters or the source
        are not the same. The result is that of an uninterrupted run to the last bit. Iterables
        cannot be fingerprinted: pass the same rows again from the start.
        The file stays when the run has ended; delete it once the result is saved.
    every : int, default=None
        Rows between checkpoints; by default half a minute. One is also written when the run
        ends, when the source fails and at Ctrl-C, and at SIGTERM and SIGHUP if the program has
        handlers for them that raise, as the command has.
    progress : bool or callable, default=True
        True writes one line to stderr. A callable gets the rows done and all rows, which is
        None where that is not known. Callbacks that scikit-learn's ``set_callbacks`` has set
        on the estimator are called for each block.
    resume : bool, default=True
        False starts over and replaces an existing checkpoint.
    classes : array-like, default=None
        Passed to ``partial_fit`` of a classifier.
    n_passes : int, default=1
        Times that all rows are given, for estimators that gain from seeing them again. A
        `SubspaceReduction` with power passes gets as many as it needs.
    device : str, default=None
        Where the work is done, as torch calls it: "cuda" for a GPU. Blocks are copied there
        while the one before is worked on.

    Returns
    -------
    estimator
        The same object.

    See Also
    --------
    open_rows : Opens files, tables and iterables as sources.
    load : Reads a saved result back.
    fit_dask : Learns from partitions and merges them.

    Examples
    --------
    >>> from sksketch import StreamingPCA, datasets
    >>> rows = datasets.low_rank_plus_noise(2_000, 30, rank=2, noise=0.01, seed=0)
    >>> pca = fit_stream(StreamingPCA(2), rows, progress=False)
    >>> pca.n_samples_seen_
    2000
    """
    if every is not None and every < 1:
        raise ValueError(f"every is {every}; give rows between checkpoints, or None")
    if n_passes < 1:
        raise ValueError(f"n_passes is {n_passes}; give at least 1")
    steps, model = _parts(estimator, checkpoint is not None)
    rows = source if isinstance(source, RowSource) else open_rows(source)
    keeper = None
    n_done = 0
    if checkpoint is not None:
        keeper = Checkpoint(checkpoint, estimator, rows.fingerprint())
        n_done = keeper.restore(model, *settled(steps), resume=resume)
    if not n_done and not isinstance(model, Sketch):
        forget(model)
    if isinstance(model, Measuring) and model.pilot_rows and not n_done and rows.can_start_over:
        model.measure_first(rows.n_features)
    if isinstance(model, SeveralPasses):
        n_passes = max(n_passes, model.n_passes)
    run = _Run(steps, model, keeper, every, classes)
    callbacks = Callbacks(estimator)
    n_rows = None if rows.n_rows is None else rows.n_rows * n_passes
    block_rows = run.n_tile_rows or rows.batch_rows
    n_blocks = _n_blocks(block_rows, n_rows, n_done) if n_passes == 1 else None
    with (
        reporting(progress) as report,
        callbacks.running("fit_stream", n_blocks),
        # An error that is kept would keep what reads ahead, too.
        closing(_passes(rows, n_done, n_passes, run, device)) as blocks,
    ):
        seen = settling(blocks, steps) if settled(steps) and not n_done else blocks
        run.all_rows(seen, n_done, n_rows, report, callbacks)
    if not steps:
        name_features(model, rows)
    return estimator


def name_features(model: Any, rows: RowSource) -> None:
    """Give a fitted estimator the names of its columns.

    Only now: the blocks are bare arrays, and scikit-learn would miss their names.
    """
    if rows.feature_names is not None and not isinstance(model, Sketch):
        model.feature_names_in_ = np.asarray(rows.feature_names, dtype=object)


class _Run:
    """One pass over the rows: learns block by block and keeps the checkpoint."""

    def __init__(
        self,
        steps: list[Any],
        model: Any,
        keeper: Checkpoint | None,
        every: int | None,
        classes: object,
    ) -> None:
        self._steps, self.model = steps, model
        self._settled = settled(steps)
        # What is measured in tiles does not depend on how the rows are cut.
        measured = isinstance(model, Measuring) and model.n_passes > 1
        self.n_tile_rows = TILE_ROWS if self._settled or measured else None
        if every is not None and self.n_tile_rows is not None:
            every = -(-every // self.n_tile_rows) * self.n_tile_rows
        self._keeper, self._every = keeper, every
        self._options = {} if classes is None else {"classes": classes}
        self._n_done = 0
        # Whether the model has all of the rows done and nothing of any other.
        self._whole = True
        # The file that has given the model what it is, if one has.
        self._resumed_from = keeper.path if keeper is not None and keeper.n_written else None
        self._due = time.monotonic() + PERIOD

    def all_rows(
        self,
        blocks: Iterator[Block],
        n_done: int,
        n_rows: int | None,
        report: Progress,
        callbacks: Callbacks,
    ) -> None:
        self._n_done = n_done
        report(n_done, n_rows)
        try:
            with _Interrupts() as interrupts:
                for block in _cut(blocks, self._every):
                    with interrupts.held():
                        self._learn(block)
                        self._save_if_due()
                    callbacks.block(block.X, block.y)
                    report(self._n_done, n_rows)
        except BaseException:
            # The rows so far are worth keeping; what went wrong is more worth telling.
            with suppress(OSError):
                self._save()
            raise
        if not self._n_done:
            raise ValueError("the source gave no rows; give one that has some")
        self._save()

    def _learn(self, block: Block) -> None:
        X: Any = block.X
        for step in self._steps:
            X = step.transform(X)
        self._whole = False
        with nullcontext() if self._resumed_from is None else using(self._resumed_from):
            self._give(X, block.y, block.sample_weight)
        self._n_done += block.X.shape[0]
        self._whole = True

    def _give(self, X: Any, y: Any, weights: Array | None) -> None:
        if isinstance(self.model, Sketch):
            self.model.update(X, weights, **({} if y is None else {"targets": y}))
            return
        options = self._options | weights_option(self.model, weights)
        if y is None:
            self.model.partial_fit(X, **options)
        else:
            self.model.partial_fit(X, y, **options)

    def _save_if_due(self) -> None:
        if self._keeper is None:
            return
        new = self._n_done - self._keeper.n_written
        if new >= self._every if self._every is not None else time.monotonic() >= self._due:
            self._save()

    def _save(self) -> None:
        if self._keeper is not None and self._whole and self._n_done > self._keeper.n_written:
            self._keeper.write(self.model, self._n_done, *self._settled)
            self._due = time.monotonic() + PERIOD


class _Interrupts:
    """Lets Ctrl-C wait until a block is learned from, so that what is left can be saved.

    So do SIGTERM and SIGHUP where the program handles them. A second signal does not wait.
    Outside of the main thread nothing is changed.
    """

    def __enter__(self) -> _Interrupts:
        self._busy = False
        self._pending: tuple[int, Any] | None = None
        self._former: dict[int, Any] = {}
        if threading.current_thread() is threading.main_thread():
            for name in ("SIGINT", "SIGTERM", "SIGHUP"):
                number = getattr(signal, name, None)
                former = None if number is None else signal.getsignal(number)
                if number is not None and callable(former):
                    self._former[number] = former
                    signal.signal(number, self._handle)
        return self

    def __exit__(self, *_error: object) -> None:
        for number, former in self._former.items():
            signal.signal(number, former)

    def _handle(self, number: int, frame: object) -> None:
        if self._busy and self._pending is None:
            self._pending = number, frame
        else:
            self._former[number](number, frame)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the first signal back until the end of the body."""
        self._busy = True
        try:
            yield
        finally:
            self._busy = False
        if self._pending is not None:
            (number, frame), self._pending = self._pending, None
            self._former[number](number, frame)


def _parts(estimator: object, with_checkpoint: bool) -> tuple[list[Any], Any]:
    """Return the stateless steps of a pipeline and the one that learns."""
    steps: list[Any] = []
    model = estimator
    if hasattr(estimator, "steps"):
        *before, (_, model) = estimator.steps
        steps = [step for _, step in before if step is not None and step != "passthrough"]
        for name, step in before:
            if step in steps and not isinstance(step, Settled) and not _is_stateless(step):
                raise ValueError(
                    f"the step {name!r} ({type(step).__name__}) learns from rows, and all of them "
                    "would have to pass twice; use stateless steps before the last one, or "
                    "RandomFeatures, which needs the first rows alone"
                )
    if isinstance(model, Sketch):
        if model.n_features is not None:
            raise ValueError(f"{model!r} has rows already; pass its fresh() and merge the two")
    elif not hasattr(model, "partial_fit"):
        raise TypeError(f"{type(model).__name__} has no partial_fit, so it cannot be streamed")
    if with_checkpoint and not (hasattr(model, "state") and hasattr(model, "from_state")):
        raise TypeError(
            f"{type(model).__name__} cannot be saved as plain data; leave checkpoint out, or use "
            "an estimator of sksketch"
        )
    return steps, model


def _is_stateless(step: object) -> bool:
    tags = getattr(step, "__sklearn_tags__", None)
    return hasattr(step, "transform") and tags is not None and not tags().requires_fit


def _cut(blocks: Iterator[Block], every: int | None) -> Iterator[Block]:
    """Cut blocks that are longer than the rows between two checkpoints."""
    for block in blocks:
        step = block.X.shape[0] if every is None else every
        for start in range(0, block.X.shape[0], max(step, 1)):
            yield block.rows(start, start + step)


def _passes(
    rows: RowSource, n_done: int, n_passes: int, run: _Run, device: str | None
) -> Generator[Block, None, None]:
    """Yield all rows ``n_passes`` times, leaving out the first ``n_done``."""

    def blocks(start_row: int = 0) -> Iterator[Block]:
        if device is None:
            found = rows.blocks(start_row)
        else:
            # A device finds missing values faster than the host.
            found = device_blocks(rows.unchecked().blocks(start_row), device)
        return found if run.n_tile_rows is None else reblock(found, run.n_tile_rows)

    if n_passes == 1:
        yield from blocks(n_done)
        return
    for number in range(n_passes):
        if number and isinstance(run.model, SeveralPasses):
            run.model.end_pass(number)
        for block in blocks():
            skip = min(n_done, block.X.shape[0])
            n_done -= skip
            if skip < block.X.shape[0]:
                yield block.rows(skip)


def _n_blocks(batch_rows: int | None, n_rows: int | None, n_done: int) -> int | None:
    if n_rows is None or batch_rows is None:
        return None
    return -(-(n_rows - n_done) // batch_rows)
