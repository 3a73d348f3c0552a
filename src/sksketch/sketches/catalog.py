"""Sketches by name: the keys that estimators take, and the kinds that files hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sksketch.exceptions import StateFormatError
from sksketch.persistence import State
from sksketch.sketches.base import Sketch
from sksketch.sketches.exact import ExactCovariance
from sksketch.sketches.frequent_directions import FrequentDirections
from sksketch.sketches.moments import Centered

KINDS: dict[str, type[Sketch]] = {
    sketch.kind: sketch for sketch in (FrequentDirections, ExactCovariance, Centered)
}


def _directions(**fixed: Any) -> Callable[..., Sketch]:
    return lambda sketch_size, **options: FrequentDirections(sketch_size, **(fixed | options))


KEYS: dict[str, Callable[..., Sketch]] = {
    "fd": _directions(correction="none"),
    "rfd": _directions(correction="half"),
    "cfd": _directions(correction="full"),
    "pfd": _directions(correction="none", rule="parameterized"),
    "isvd": _directions(correction="none", rule="truncate"),
    "exact": lambda sketch_size=None, **options: ExactCovariance(**options),
}


def make_sketch(key: str, sketch_size: int, **options: Any) -> Sketch:
    """Build an empty sketch by its key.

    Parameters
    ----------
    key : {"fd", "rfd", "cfd", "pfd", "isvd", "exact"}
        Frequent Directions with its plain, robust and compensated read-outs, with the
        parameterized rule, with truncation, or the exact covariance.
    sketch_size : int
        Rows to keep; "exact" has no such limit and ignores it.
    **options
        Passed to the class.

    Examples
    --------
    >>> make_sketch("cfd", 10).correction
    'full'
    """
    if key not in KEYS:
        raise ValueError(f"unknown sketch {key!r}; choose from {', '.join(map(repr, KEYS))}")
    return KEYS[key](sketch_size, **options)


def load_sketch(state: State) -> Sketch:
    """Build the sketch that a state was taken from, whatever its kind."""
    if state.kind not in KINDS:
        raise StateFormatError(
            f"got a state of kind {state.kind!r}, expected one of {', '.join(map(repr, KINDS))}; "
            "it is not a sketch, or this release is too old for it"
        )
    return KINDS[state.kind].from_state(state)
