"""Parameters with which an estimator forgets: a window of the last rows, or a half-life."""

from __future__ import annotations

import datetime
from numbers import Integral
from typing import Any

import numpy as np

from sksketch.exceptions import NotMergeableError
from sksketch.models.constraints import NOTHING, Constraint, Constraints, number
from sksketch.sketches import Sketch, SlidingWindow
from sksketch.sketches.windows.templates import innermost
from sksketch.sketches.windows.times import as_duration

# States in a window times its ``tol``, about; and what they may take.
STATES, WINDOW_BYTES = 6, 24e6
FINEST, COARSEST = 0.005, 0.05

# Sketches that forget by and by.
FORGETTING = ("auto", "fd", "rfd", "cfd", "pfd", "isvd", "exact")


def _is_window(value: object) -> bool:
    if isinstance(value, bool | np.bool_):
        return False
    if isinstance(value, Integral):
        return int(value) >= 1
    if not isinstance(value, (str, datetime.timedelta, np.timedelta64)):
        return False
    try:
        return as_duration(value) > 0
    except ValueError:
        return False


WINDOW = Constraint("a number of rows, a length of time such as '7d'", _is_window)
CONSTRAINTS: Constraints = {
    "window": (WINDOW, NOTHING),
    "half_life": (number(0.0, bounds="()"), NOTHING),
}


def check_forgetting(window: object, half_life: float | None, sketch: str | Sketch) -> None:
    """Refuse two ways of forgetting at once, and sketches that cannot."""
    if half_life is None:
        return
    if window is not None:
        raise ValueError(
            f"got window={window!r} and half_life={half_life!r}, expected at most one of them"
        )
    if isinstance(sketch, Sketch):
        raise ValueError("got half_life and a sketch; give it to that")  # noqa: TRY004
    if sketch not in FORGETTING:
        raise ValueError(
            f"half_life needs a sketch that forgets, got sketch={sketch!r}; "
            f"choose from {', '.join(map(repr, FORGETTING))}"
        )


def windowed(sketch: Sketch, window: Any, n_features: int) -> Sketch:
    """Return an empty sketch, of the last rows alone if a window is given.

    Its edge is as fine as memory allows, and at least as fine as by default.

    >>> from sksketch import ExactCovariance
    >>> windowed(ExactCovariance(), "7d", 100)
    <SlidingWindow: 0 rows x ? features>
    """
    if window is None:
        return sketch
    size = getattr(innermost(sketch), "sketch_size", n_features)
    tol = min(max(STATES * 8.0 * size * n_features / WINDOW_BYTES, FINEST), COARSEST)
    if isinstance(window, Integral):
        return SlidingWindow(sketch, rows=int(window), tol=tol)
    return SlidingWindow(sketch, duration=window, tol=tol)


def plain_window(window: Any) -> Any:
    """Return a window as a number or text, for a saved state.

    >>> plain_window(datetime.timedelta(hours=1)), plain_window(5)
    ('3600.0s', 5)
    """
    if isinstance(window, (datetime.timedelta, np.timedelta64)):
        return f"{as_duration(window)!r}s"
    return int(window) if isinstance(window, Integral) else window


def exact_bytes(window: object, n_features: int) -> int | None:
    """Return what exact matrices of a window take; None for a single one of all rows."""
    return None if window is None else round(STATES / COARSEST) * 8 * n_features**2


def check_parts(window: Any, half_life: float | None) -> None:
    """Refuse parts of rows that are learned side by side, where forgetting needs their order.

    The last rows of parts in order are the last rows of all; times would have to come with them.
    """
    if half_life is not None:
        raise NotMergeableError(
            "forgetting counts rows in their order, and parts are learned side by side; drop "
            "half_life, or use fit_stream"
        )
    if window is not None and not isinstance(window, Integral):
        raise NotMergeableError(
            f"window={window!r} needs the times of rows, which parts do not have; give a number "
            "of rows, or use partial_fit with times"
        )
