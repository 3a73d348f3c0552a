"""Conditions of an archive: independent states that merge, all in the same units."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sksketch.exceptions import NotMergeableError
from sksketch.models.runner import restored
from sksketch.sketches.windows.sliding_window import SlidingWindow
from sksketch.state.persistence import State, to_bytes


def checked_state(state: Any) -> Any:
    """Return an independent copy of what is to be kept, or refuse it."""
    if not all(hasattr(state, name) for name in ("state", "merge", "compact")):
        raise TypeError(
            f"an archive keeps sketches and estimators that merge, got a {type(state).__name__}"
        )
    twin = restored(state.state())
    sketch = twin if hasattr(twin, "update") else getattr(twin, "_sketch", None)
    sketch = getattr(twin, "sketch_", None) if sketch is None else sketch
    if isinstance(sketch, SlidingWindow) or getattr(sketch, "decay", 1.0) < 1.0:
        raise NotMergeableError(
            "a state that forgets does not count all rows of its period alike; drop window and "
            "half_life"
        )
    if getattr(sketch, "n_features", 0) is None:
        raise ValueError("the state has seen no rows; add one that has")
    return twin


def check_mergeable(one: Any, other: Any) -> None:
    """Refuse a state that cannot be merged with those of an archive; changes the first one."""
    try:
        one.merge(other)
    except NotMergeableError as error:
        raise NotMergeableError(f"the state does not fit those of the archive: {error}") from None


def changed_encoder(kept: Path, state: State | None, n_periods: int) -> State | None:
    """Return the state of an encoder if it is to be kept; refuse another one than before."""
    if n_periods == 0:
        if state is None:
            kept.unlink(missing_ok=True)
        return state
    if kept.exists() != (state is not None):
        raise NotMergeableError(
            "only some periods are of encoded tables; give all or none with their encoder"
        )
    if state is not None and to_bytes(state) != kept.read_bytes():
        raise NotMergeableError(
            "the table was encoded by other rows than those of the archive, in units of its "
            "own; encode it as the archive's encoder() does"
        )
    return None
