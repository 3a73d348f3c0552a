"""Parts of a table learned apart and merged as a tree: what all schedulers share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from inspect import signature
from itertools import pairwise
from typing import Any, NamedTuple

from sksketch.arrays.threads import one_blas_thread
from sksketch.exceptions import ExplainedError, NotMergeableError, PartitionError, parts_of
from sksketch.models.base import put
from sksketch.models.checks import check_ageless
from sksketch.models.pipelines.steps import Chain, Fixed, Learning, as_step
from sksketch.models.protocols import Converging, Piloted, SeveralPasses, Shardable
from sksketch.sketches import Sketch
from sksketch.state.persistence import State
from sksketch.streams.blocks import refuse_weights

#: Parts that are merged at a time, unless the caller gives another number.
FAN_IN = 8


class Rows(NamedTuple):
    """A block of rows with what came beside them."""

    X: Any
    y: Any = None
    weights: Any = None


class Shard(NamedTuple):
    """The state learned from the partitions ``first`` to ``stop - 1``."""

    first: int
    stop: int
    n_rows: int
    # None if they hold no rows.
    state: State | None


class Behind(NamedTuple):
    """The start of every part, behind steps that map its rows."""

    steps: Chain
    template: Any


def kind_of(template: Any) -> type:
    """Return the class of what is learned and merged."""
    return type(template.template if isinstance(template, Behind) else template)


def shard_template(estimator: object) -> Any:
    """Return what every part starts from; refuse what cannot be merged, before any work."""
    if hasattr(estimator, "steps"):
        templates = [shard_template(part) for part in _learners(estimator)]
        return templates[-1]
    if isinstance(estimator, Sketch):
        if estimator.n_features is not None:
            raise ValueError(f"{estimator!r} has rows already; pass its fresh() and merge the two")
        return check_ageless(estimator.fresh())
    if isinstance(estimator, Shardable):
        return estimator.shard_template()
    raise NotMergeableError(
        f"{type(estimator).__name__} cannot learn parts of the rows apart; use fit_stream, which "
        "takes one part after the other"
    )


def learn_shard(template: Any, blocks: Iterable[Rows], index: int, n_shards: int) -> Shard:
    """Learn one partition, whatever comes of the others.

    Errors, also those of reading the blocks, come as `PartitionError` with its number.
    """
    n_rows, model, steps = 0, None, None
    if isinstance(template, Behind):
        steps, template = template
    with _named(index, n_shards), one_blas_thread():
        for rows in blocks:
            if not rows.X.shape[0]:
                continue
            if steps is not None:
                rows = rows._replace(X=steps.transform(rows.X))
            if model is None:
                model = template.for_shard(index, n_shards)
            _learn(model, rows)
            n_rows += rows.X.shape[0]
        state = None if model is None else _state(model)
    return Shard(index, index + 1, n_rows, state)


def _learn(model: Any, rows: Rows) -> None:
    if isinstance(model, Sketch):
        targets = {} if rows.y is None else {"targets": rows.y}
        model.update(rows.X, weights=rows.weights, **targets)
        return
    model.partial_fit(rows.X, rows.y, **weights_option(model, rows.weights))


def weights_option(model: Any, weights: Any) -> dict[str, Any]:
    """Return the weights as ``partial_fit`` takes them; refuse any but 1 if it takes none."""
    if weights is None:
        return {}
    if "sample_weight" in signature(model.partial_fit).parameters:
        return {"sample_weight": weights}
    refuse_weights(weights, type(model).__name__)
    return {}


def _state(model: Sketch | Shardable) -> State:
    """Return what travels: as little as can be."""
    model.compact()
    return model.state()


def merge_shards(kind: Any, shards: Sequence[Shard]) -> Shard:
    """Merge neighbors, from left to right; ``kind`` is the class of their states.

    Each partition is in one of them exactly once, or the merge is refused.
    """
    for left, right in pairwise(shards):
        if left.stop != right.first:
            raise NotMergeableError(
                f"cannot merge partitions {left.first} to {left.stop - 1} with {right.first} to "
                f"{right.stop - 1}: each must come once, in order"
            )
    filled = [shard for shard in shards if shard.state is not None]
    state = filled[0].state if filled else None
    if len(filled) > 1:
        with one_blas_thread():
            model = kind.from_state(state)
            for shard in filled[1:]:
                with _named_range(shard):
                    model.merge(kind.from_state(shard.state))
            state = _state(model)
    n_rows = sum(shard.n_rows for shard in shards)
    return Shard(shards[0].first, shards[-1].stop, n_rows, state)


def groups(items: Sequence[Any], fan_in: int) -> list[Sequence[Any]]:
    """Cut into groups of ``fan_in`` neighbors; the last may be smaller.

    >>> groups(range(5), 2)
    [range(0, 2), range(2, 4), range(4, 5)]
    """
    return [items[start : start + fan_in] for start in range(0, len(items), fan_in)]


def merge_tree(kind: type, shards: Sequence[Shard], fan_in: int = FAN_IN) -> Shard:
    """Merge all shards in this process, in the tree that every scheduler uses."""
    check_fan_in(fan_in)
    while len(shards) > 1:
        shards = [merge_shards(kind, group) for group in groups(shards, fan_in)]
    return shards[0]


def check_fan_in(fan_in: int) -> None:
    """Refuse a tree that would not end."""
    if fan_in < 2:
        raise ValueError(f"fan_in is {fan_in}; give at least 2 parts to merge at a time")


class MergeTree:
    """The same tree for shards that come in any order: tells what can be merged.

    Examples
    --------
    >>> tree = MergeTree(n_shards=3, fan_in=2)
    >>> tree.add(0, 1, "b")
    >>> tree.add(0, 0, "a")
    (1, 0, ['a', 'b'])
    """

    def __init__(self, n_shards: int, fan_in: int) -> None:
        self._fan_in = fan_in
        self._widths = [n_shards]
        while self._widths[-1] > 1:
            self._widths.append(-(-self._widths[-1] // fan_in))
        self._waiting: dict[tuple[int, int], dict[int, Any]] = {}

    @property
    def top(self) -> int:
        """The level of the one that all are merged into."""
        return len(self._widths) - 1

    def add(self, level: int, number: int, shard: object) -> tuple[int, int, list[Any]] | None:
        """Put a shard in its place; return the place and parts of the next one, if complete."""
        group = number // self._fan_in
        parts = self._waiting.setdefault((level, group), {})
        parts[number] = shard
        first = group * self._fan_in
        if len(parts) < min(self._fan_in, self._widths[level] - first):
            return None
        del self._waiting[level, group]
        return level + 1, group, [parts[i] for i in sorted(parts)]


def fit_parts(
    estimator: Any,
    n_parts: int,
    learn: Callable[[Any], Shard],
    head: Callable[[int], Any],
) -> None:
    """Fit an estimator, sketch or pipeline in place by a scheduler's two services.

    ``learn(template)`` gives the merged shard of all parts, once for each pass, and ``head(n)``
    the first ``n`` rows, for estimators that need to see some. The steps of a pipeline that learn
    do so one after the other, each with passes of its own.
    """
    if hasattr(estimator, "steps"):
        before = Chain([])
        for name, part in estimator.steps:
            if part is estimator.steps[-1][1] or isinstance(as_step(name, part), Learning):
                _fit_behind(before, part, n_parts, learn, head)
            before = Chain([*before.steps, Fixed(part if hasattr(part, "transform") else None)])
        return
    _fit_behind(Chain([]), estimator, n_parts, learn, head)


def _learners(pipeline: Any) -> list[Any]:
    """Return the steps of a pipeline that learn, the last of which does in any case."""
    *before, (_, model) = pipeline.steps
    steps = [as_step(*pair) for pair in before]
    for step in steps:
        if not isinstance(step, Fixed | Learning):
            raise NotMergeableError(
                f"{type(step.estimator).__name__} cannot learn parts of the rows apart; use "
                "fit_stream, or a TableEncoder, whose parts merge"
            )
    return [*(step.estimator for step in steps if isinstance(step, Learning)), model]


def takes_tables(estimator: Any) -> bool:
    """Return whether rows may have columns of any type."""
    first = estimator.steps[0][1] if hasattr(estimator, "steps") else estimator
    return bool(getattr(first, "takes_tables", False))


def n_passes_of(estimator: Any) -> int:
    """Return how often all rows are read."""
    if hasattr(estimator, "steps"):
        return sum(getattr(part, "n_passes", 1) for part in _learners(estimator))
    return int(getattr(estimator, "n_passes", 1))


def _fit_behind(
    steps: Chain,
    estimator: Any,
    n_parts: int,
    learn: Callable[[Any], Shard],
    head: Callable[[int], Any],
) -> None:
    """Fit an estimator or sketch to what steps make of the rows."""
    template = shard_template(estimator)
    if isinstance(template, Piloted) and template.pilot_rows:
        template.take_pilot(steps.transform(head(template.pilot_rows)))
    n_passes = template.n_passes if isinstance(template, SeveralPasses) else 1
    fitted = template
    for number in range(n_passes):
        if number:
            fitted.end_pass(number)
            if isinstance(fitted, Converging) and fitted.has_converged:
                break
        shard = learn(Behind(steps, fitted) if steps.steps else fitted)
        if (shard.first, shard.stop) != (0, n_parts):
            raise RuntimeError(
                f"partitions {shard.first} to {shard.stop - 1} came back of {n_parts}; run it again"
            )
        if shard.state is None:
            raise ValueError("the partitions hold no rows; give some that do")
        fitted = type(estimator).from_state(shard.state)
    put(fitted, estimator)


# Errors that name their partition


def partition_error(index: int, n_shards: int, error: BaseException) -> PartitionError:
    """Return the error of a partition with its number."""
    if isinstance(error, PartitionError):
        return error
    column = error.column if isinstance(error, ExplainedError) else None
    place = f"partition {index} of {n_shards}"
    return PartitionError(*parts_of(error), place=place, column=column)


@contextmanager
def _named(index: int, n_shards: int) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise partition_error(index, n_shards, error) from error


@contextmanager
def _named_range(shard: Shard) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        last = shard.stop - 1
        where = (
            f"partition {last}" if shard.first == last else f"partitions {shard.first} to {last}"
        )
        raise PartitionError(*parts_of(error), place=where) from error
