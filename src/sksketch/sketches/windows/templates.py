"""The sketches that a window may be of, and how their buckets begin."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, cast

import numpy as np

from sksketch.exceptions import StateFormatError
from sksketch.sketches import planning
from sksketch.sketches.base import Sketch
from sksketch.sketches.buffer import RowBuffer
from sksketch.sketches.directions.exact_covariance import ExactCovariance
from sksketch.sketches.directions.frequent_directions import FrequentDirections
from sksketch.sketches.wrappers.centered import INNER, Centered
from sksketch.sketches.wrappers.cross_moments import CrossMoments
from sksketch.sketches.wrappers.regression import Regression
from sksketch.state.persistence import State

KINDS: dict[str, type[Sketch]] = {**INNER, Centered.kind: Centered, Regression.kind: Regression}

# Rows of a sketch that states are merged into to be read, for each that one of them keeps.
READ_MULTIPLE = 4

# Buckets among which the probability that a bound fails is divided.
MOST_BUCKETS = 1024

# Rows that wait: at least this number, and at most these bytes of them where that is more.
FEWEST_ROWS, MOST_BYTES = 16, 32 << 20
# ... and as many as fit in less memory than a state of them would pay for.
FEWEST_BYTES = 1 << 18


def check_template(sketch: Any) -> Sketch:
    """Return an empty copy of a sketch that a window can be of, or refuse it."""
    if not isinstance(sketch, tuple(KINDS.values())):
        names = ", ".join(kind.__name__ for kind in KINDS.values())
        raise TypeError(f"expected a sketch to wrap, got {sketch!r:.80}; pass an empty {names}")
    empty = cast("Sketch", sketch)
    inner = innermost(empty)
    if isinstance(sketch, Regression) and sketch.linear:
        raise TypeError(
            f"{type(inner).__name__} certifies nothing that a window could allow for; wrap a "
            "Regression of FrequentDirections or ExactCovariance"
        )
    if empty.n_features is not None:
        raise ValueError("expected an empty sketch, got one with rows; wrap it before update")
    if inner.decay < 1.0:
        raise ValueError("a window does not forget by and by; drop decay and half_life, or it")
    if getattr(inner, "sample", False):
        raise ValueError("a window needs all that is removed; drop sample=True")
    return empty.fresh()


def innermost(sketch: Sketch) -> Any:
    """Return the sketch inside of all wrappers."""
    inner: Any = sketch
    while hasattr(inner, "sketch"):
        inner = inner.sketch
    return inner


def template_of(state: State) -> Sketch:
    """Return the empty sketch that a state was taken from."""
    if state.kind not in KINDS:
        raise StateFormatError(
            f"a window of {state.kind!r} is not known to this release; upgrade sksketch"
        )
    return KINDS[state.kind].from_state(state)


def working_dtype(template: Sketch, dtype: np.dtype[Any], n_features: int) -> np.dtype[Any]:
    """Return the precision in which rows of that precision are remembered."""
    return innermost(template)._working_dtype(dtype, n_features)  # type: ignore[no-any-return]


def begun(
    template: Sketch, n_features: int, dtype: np.dtype[Any], entry_error: float = 0.0
) -> Sketch:
    """Return an empty sketch that knows its columns."""
    inner = innermost(template)
    block = isinstance(inner, FrequentDirections) and (
        planning.choose(inner.solver, n_features, inner.sketch_size) == "block"
    )
    sketch = template.for_shard(0, MOST_BUCKETS)
    if block and inner.solver == "auto":
        # The blocks here are small, for which the exact solver is as fast and certain.
        innermost(sketch).solver = "exact"
    rows_of = sketch.sketch if isinstance(sketch, Regression) else sketch
    rows_of._begin(n_features, dtype)
    sketch._round(entry_error)
    return sketch


def trimmed(sketch: Sketch) -> Sketch:
    """Return a sketch without the room that its buffers have for more rows."""
    rows_of = sketch.sketch if isinstance(sketch, Regression) else sketch
    if isinstance(rows_of, Centered):
        # Rows that wait to be centered would make each merge copy all the others.
        rows_of._cached = None
        rows_of._flush_dense()
        rows_of._flush_sparse()
    todo: list[Any] = [sketch]
    while todo:
        for part in vars(todo.pop()).values():
            if isinstance(part, RowBuffer):
                part.trim()
            elif isinstance(part, Sketch | CrossMoments):
                todo.append(part)
    return sketch


def begun_to_read(
    template: Sketch, n_features: int, dtype: np.dtype[Any], entry_error: float
) -> tuple[Sketch, int | None]:
    """Return an empty sketch that states are merged into to be read, and the rows it is to keep.

    More than each of them keeps, where that costs accuracy: it is there for a moment only.
    """
    inner = innermost(template)
    if not isinstance(inner, FrequentDirections):
        return begun(template, n_features, dtype, entry_error), None
    size = max(min(READ_MULTIPLE * inner.sketch_size, n_features), inner.sketch_size)
    wide = template.fresh()
    widened = innermost(wide)
    if inner.buffer_rows is not None:
        widened.buffer_rows = size + inner.buffer_rows - inner.sketch_size
    # Whether A'A is kept is as in the buckets.
    route = planning.choose(inner.solver, n_features, inner.sketch_size)
    widened.solver = route if inner.solver == "auto" and route != "block" else inner.solver
    widened.sketch_size, widened.max_sketch_size = size, max(widened.max_sketch_size, size)
    return begun(wide, n_features, dtype, entry_error), size


def keep_size(sketch: Sketch, size: int | None) -> None:
    """Let a sketch keep ``size`` rows, after it was merged with one that keeps fewer."""
    inner = innermost(sketch)
    if size is not None and inner._exact is None and inner._held.sketch_size != size:
        inner._held = replace(inner._held, sketch_size=size)


def rows_that_wait(template: Sketch, n_features: int, tol: float, rows: int | None) -> int:
    """Return how many of the newest rows are kept as they are, and at most twice as many.

    As many as make buckets that are worth a sketch, but a window of few rows is all of them.

    >>> rows_that_wait(FrequentDirections(50, solver="exact"), 100, 0.1, None)
    500
    """
    inner = innermost(template)
    size = getattr(inner, "sketch_size", n_features)
    if isinstance(inner, ExactCovariance) or (
        isinstance(inner, FrequentDirections)
        and planning.choose(inner.solver, n_features, inner.sketch_size) == "covariance"
    ):
        size = -(-n_features // 2)
    affordable = max(FEWEST_ROWS, MOST_BYTES // (8 * n_features))
    cheap = FEWEST_BYTES // (8 * n_features)
    least = min(max(FEWEST_ROWS, cheap, math.ceil(size / tol)), affordable)
    return least if rows is None or rows > 2 * least else rows
