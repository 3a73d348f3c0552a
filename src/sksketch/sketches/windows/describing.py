"""Windows in words."""

from __future__ import annotations

from sksketch.sketches.base import Sketch, megabytes
from sksketch.sketches.windows.history import History
from sksketch.sketches.wrappers.regression import Regression


def described_window(size: str, history: History, state: Sketch, n_features: int) -> str:
    """Return one sentence: what waits, and what is in states of which kind."""
    least = history.reserve
    if history.rows is not None and least >= history.rows:
        return f"SlidingWindow of {size}: keeps them all as they are."
    waiting = megabytes(16.0 * least * n_features)
    rows_of = state.sketch if isinstance(state, Regression) else state
    return (
        f"SlidingWindow of {size}: the last {least} to {2 * least} rows as they are, in {waiting}, "
        f"and older ones in {len(history.buckets)} states, of which the one at the edge has at "
        f"most {history.tol:.3g} of the energy. {rows_of.plan()}"
    )
