"""Windows as plain data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sksketch.exceptions import StateFormatError
from sksketch.sketches.windows.buckets import Bucket
from sksketch.sketches.windows.templates import trimmed
from sksketch.sketches.windows.times import DATES
from sksketch.sketches.windows.waiting import WaitingRows
from sksketch.state.persistence import State

if TYPE_CHECKING:
    from sksketch.sketches.windows.sliding_window import SlidingWindow


def window_state(window: SlidingWindow) -> State:
    """Return all that a window is."""
    history = window._history
    meta: dict[str, Any] = {
        "rows": window.rows,
        "duration": window.duration,
        "tol": window.tol,
        "n_features": window.n_features,
        "dtype": None if window.dtype is None else str(window.dtype),
        "n_rows_total": history.n_total,
        "reserve": history.reserve,
        "clock": history.clock,
        "latest": history.latest,
        "entry_error": window._entry_error,
        "n_buckets": len(history.buckets),
    }
    if window._target_shape is not None:
        meta["n_targets"] = window._target_shape[0] if window._target_shape else 0
    arrays = {f"waiting.{name}": part for name, part in history.waiting.arrays().items()}
    if window._origin is not None:
        arrays["origin"] = window._origin.copy()
    if history.buckets:
        _, n_rows, energies, first, last = zip(*history.buckets, strict=True)
        arrays["bucket_rows"] = np.array(n_rows, dtype=np.int64)
        arrays["bucket_energies"] = np.array(energies)
        arrays["bucket_times"] = np.array([first, last], dtype=_time_type(history.clock)).T.copy()
    inner = {f"bucket{i}": bucket.sketch.state() for i, bucket in enumerate(history.buckets)}
    inner["template"] = window.sketch.state()
    return State(window.kind, window.version, meta, arrays).with_all(inner)


def restore(window: SlidingWindow, state: State) -> None:
    """Give an empty window all that a state has."""
    meta: Any = state.meta
    n_features = meta["n_features"]
    if n_features is None:
        return
    window._begin(n_features, np.dtype(meta["dtype"]))
    history = window._history
    history.reserve = state.count("reserve")
    history.n_total = meta["n_rows_total"]
    history.clock, history.latest = meta["clock"], meta["latest"]
    window._entry_error = meta["entry_error"]
    if "n_targets" in meta:
        n_targets = meta["n_targets"]
        window._target_shape = (n_targets,) if n_targets else ()
    if "origin" in state.arrays:
        window._origin = state.array("origin", n_features)
    history.waiting = WaitingRows.of_arrays(state.behind("waiting."), n_features)
    if n_buckets := meta["n_buckets"]:
        n_rows = state.array("bucket_rows", n_buckets).tolist()
        energies = state.array("bucket_energies", n_buckets).tolist()
        times = state.array("bucket_times", n_buckets, 2).tolist()
        inner = state.all_inner([f"bucket{i}" for i in range(n_buckets)])
        kind = type(window.sketch)
        sketches = [trimmed(kind.from_state(part)) for part in inner]
        if any(sketch.n_features != n_features for sketch in sketches):
            raise StateFormatError("a bucket of the window has other columns; save it again")
        facts = zip(sketches, n_rows, energies, times, strict=True)
        history.buckets = [Bucket(sketch, n, e, *span) for sketch, n, e, span in facts]


def _time_type(clock: str | None) -> type:
    return np.int64 if clock == DATES else np.float64
