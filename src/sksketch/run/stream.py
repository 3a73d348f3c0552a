"""`fit_stream`: all rows of a source through one estimator, resumable after an interruption."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, nullcontext, suppress
from typing import Any, TypeVar

import numpy as np

from sksketch._typing import PathLike
from sksketch.models.base import forget
from sksketch.models.pipelines.plain_states import is_plain
from sksketch.models.pipelines.steps import Chain, as_step
from sksketch.models.protocols import Measuring, SeveralPasses
from sksketch.models.scikit_learn import Callbacks
from sksketch.run.checkpoints import Checkpoint
from sksketch.run.classes import classes_to_learn
from sksketch.run.passes.all_passes import Passes, check_passes
from sksketch.run.passes.interrupts import Interrupts
from sksketch.run.passes.settled import settled_by_first_rows
from sksketch.run.progress import Progress, reporting
from sksketch.run.shards import weights_option
from sksketch.sketches import Sketch
from sksketch.state.blame import using
from sksketch.streams import Block, RowSource, open_rows

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
    pilot: int | None = None,
) -> T:
    """Learn from all rows of a source in one pass that can be resumed.

    Parameters
    ----------
    estimator : estimator with ``partial_fit``, pipeline, or empty sketch
        As with ``fit``, what it learned before is forgotten. Each step of a pipeline before the
        last that learns by ``partial_fit``, such as `TableEncoder` or scikit-learn's
        StandardScaler, gets a pass over the rows of its own; those in a ColumnTransformer or
        FeatureUnion learn side by side. Others must be stateless, frozen in a FrozenEstimator,
        fitted, or choose what they do by the first rows alone, as `RandomFeatures` does.
    source : RowSource or anything that `open_rows` takes
        Rows, with targets where the estimator needs them. Where the first step takes tables, as
        `TableEncoder` does, it is opened with ``raw=True``. Weights (the importance in vw files,
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
        Passed to ``partial_fit`` of a classifier. By default those of a source that can be read
        again are found by a look at all targets.
    n_passes : int, default=1
        Times that all rows are given, for estimators that gain from seeing them again. A
        `SubspaceReduction` with power passes gets as many as it needs.
    device : str, default=None
        Where the work is done, as torch calls it: "cuda" for a GPU. Blocks are copied there
        while the one before is worked on.
    pilot : int, default=None
        Let the steps of a pipeline learn from this many first rows instead of all, so that a
        single pass is enough, also over rows that can be read only once.

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

    A table with columns of any type, by a pipeline whose first step learns in a pass of its own:

    >>> import pandas as pd
    >>> from sklearn.pipeline import make_pipeline
    >>> from sksketch import TableEncoder
    >>> table = pd.DataFrame({"size": [1.0, 2.0, 9.0, None], "city": ["Rome", "Bern"] * 2})
    >>> pipeline = make_pipeline(TableEncoder(), StreamingPCA(2))
    >>> fit_stream(pipeline, table, progress=False)[-1].n_samples_seen_
    4
    """
    if every is not None and every < 1:
        raise ValueError(f"every is {every}; give rows between checkpoints, or None")
    if n_passes < 1:
        raise ValueError(f"n_passes is {n_passes}; give at least 1")
    if pilot is not None and pilot < 1:
        raise ValueError(f"pilot is {pilot}; give rows to learn from, or None")
    steps, model = _parts(estimator, checkpoint is not None)
    rows = source if isinstance(source, RowSource) else open_rows(source, raw=steps.takes_tables)
    check_passes(rows, steps, pilot)
    learners = [*settled_by_first_rows(steps), *steps.learners()]
    keeper = None
    n_done = 0
    if checkpoint is not None:
        keeper = Checkpoint(checkpoint, estimator, rows.fingerprint(), pilot=pilot)
        n_done = keeper.restore(model, *learners, resume=resume)
    if not n_done:
        for part in (model, *steps.learners()):
            if not isinstance(part, Sketch):
                forget(part)
        again = not (rows.reads_once or steps.steps)
        if again and isinstance(model, Measuring) and model.pilot_rows:
            model.measure_first(rows.n_features)
    if isinstance(model, SeveralPasses):
        n_passes = max(n_passes, model.n_passes)
    passes = Passes(rows, steps, model, n_passes, pilot, device)
    passes.pass_rows = 0 if keeper is None else keeper.pass_rows
    if classes is None:
        classes = classes_to_learn(model, rows)
    run = _Run(passes, steps, model, learners, keeper, every, classes)
    callbacks = Callbacks(estimator)
    n_rows = None if rows.n_rows is None else rows.n_rows * passes.n_all
    block_rows = passes.n_tile_rows or rows.batch_rows
    n_blocks = _n_blocks(block_rows, n_rows, n_done) if passes.n_all == 1 else None
    with (
        reporting(progress) as report,
        callbacks.running("fit_stream", n_blocks),
        # An error that is kept would keep what reads ahead, too.
        closing(passes.blocks(n_done)) as blocks,
    ):
        run.all_rows(blocks, n_done, n_rows, report, callbacks)
    if not steps.steps:
        name_features(model, rows)
    return estimator


def name_features(model: Any, rows: RowSource) -> None:
    """Give a fitted estimator the names of its columns.

    Only now: the blocks are bare arrays, and scikit-learn would miss their names.
    """
    named = isinstance(model, Sketch) or hasattr(model, "steps") or hasattr(model, "takes_tables")
    if rows.feature_names is not None and not named:
        model.feature_names_in_ = np.asarray(rows.feature_names, dtype=object)


class _Run:
    """One run over the rows: learns block by block and keeps the checkpoint."""

    def __init__(
        self,
        passes: Passes,
        steps: Chain,
        model: Any,
        learners: list[Any],
        keeper: Checkpoint | None,
        every: int | None,
        classes: object,
    ) -> None:
        self._passes, self._steps, self.model = passes, steps, model
        self._learners = learners
        if every is not None and passes.n_tile_rows is not None:
            every = -(-every // passes.n_tile_rows) * passes.n_tile_rows
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
            with Interrupts() as interrupts:
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
        self._whole = False
        with nullcontext() if self._resumed_from is None else using(self._resumed_from):
            if self._passes.is_early:
                self._steps.learn(self._passes.number, block.X, block.y)
            else:
                self._give(block)
        self._n_done += block.X.shape[0]
        self._whole = True

    def _give(self, block: Block) -> None:
        X, y, weights = block.X, block.y, block.sample_weight
        times = {} if block.times is None else {"times": block.times}
        if isinstance(self.model, Sketch):
            targets = {} if y is None else {"targets": y}
            self.model.update(X, weights=weights, **targets, **times)
            return
        options = self._options | weights_option(self.model, weights) | times
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
            self._keeper.pass_rows = self._passes.pass_rows
            self._keeper.write(self.model, self._n_done, *self._learners)
            self._due = time.monotonic() + PERIOD


def _parts(estimator: Any, with_checkpoint: bool) -> tuple[Chain, Any]:
    """Return the steps of a pipeline before the last, and the last, which learns."""
    steps = Chain([])
    model = estimator
    if hasattr(estimator, "steps"):
        *before, (_, model) = estimator.steps
        steps = Chain([as_step(*pair) for pair in before])
    if isinstance(model, Sketch):
        if model.n_features is not None:
            raise ValueError(f"{model!r} has rows already; pass its fresh() and merge the two")
    elif not hasattr(model, "partial_fit"):
        raise TypeError(f"{type(model).__name__} has no partial_fit, so it cannot be streamed")
    for part in (model, *steps.learners()) if with_checkpoint else ():
        if not (is_plain(part) or (hasattr(part, "state") and hasattr(part, "from_state"))):
            raise TypeError(
                f"{type(part).__name__} cannot be saved as plain data; leave checkpoint out, or "
                "use an estimator of sksketch"
            )
    return steps, model


def _cut(blocks: Iterator[Block], every: int | None) -> Iterator[Block]:
    """Cut blocks that are longer than the rows between two checkpoints."""
    for block in blocks:
        step = block.X.shape[0] if every is None else every
        for start in range(0, block.X.shape[0], max(step, 1)):
            yield block.rows(start, start + step)


def _n_blocks(batch_rows: int | None, n_rows: int | None, n_done: int) -> int | None:
    if n_rows is None or batch_rows is None:
        return None
    return -(-(n_rows - n_done) // batch_rows)
