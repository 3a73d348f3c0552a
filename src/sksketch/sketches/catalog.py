"""Sketches by name: the keys that estimators take, and the kinds that files hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sksketch.exceptions import StateFormatError
from sksketch.sketches.base import Sketch
from sksketch.sketches.directions.exact_covariance import ExactCovariance
from sksketch.sketches.directions.frequent_directions import FrequentDirections
from sksketch.sketches.directions.sparse_frequent_directions import SparseFrequentDirections
from sksketch.sketches.directions.two_level_frequent_directions import TwoLevelFrequentDirections
from sksketch.sketches.projections.count_sketch import CountSketch
from sksketch.sketches.projections.projection import GaussianSketch, HadamardSketch, SignSketch
from sksketch.sketches.projections.row_sample_sketch import RowSampleSketch
from sksketch.sketches.windows.sliding_window import SlidingWindow
from sksketch.sketches.wrappers.centered import Centered
from sksketch.sketches.wrappers.regression import Regression
from sksketch.state.persistence import State

KINDS: dict[str, type[Sketch]] = {
    sketch.kind: sketch
    for sketch in (
        *(FrequentDirections, ExactCovariance, Centered, Regression),
        *(SparseFrequentDirections, TwoLevelFrequentDirections),
        *(GaussianSketch, SignSketch, CountSketch, HadamardSketch, RowSampleSketch),
        SlidingWindow,
    )
}


def _directions(**fixed: Any) -> Callable[..., Sketch]:
    return lambda sketch_size, **options: FrequentDirections(sketch_size, **(fixed | options))


def _two_level(sketch_size: int, rank: int | None = None, **options: Any) -> Sketch:
    # Half of the rows for the first level, at three to a direction.
    rank = max(1, sketch_size // 6) if rank is None else rank
    return TwoLevelFrequentDirections(sketch_size, rank=rank, **options)


KEYS: dict[str, Callable[..., Sketch]] = {
    "fd": _directions(correction="none"),
    "rfd": _directions(correction="half"),
    "cfd": _directions(correction="full"),
    "pfd": _directions(correction="none", rule="parameterized"),
    "isvd": _directions(correction="none", rule="truncate"),
    "sfd": SparseFrequentDirections,
    "2lfd": _two_level,
    "exact": lambda sketch_size=None, **options: ExactCovariance(**options),
    "gaussian": GaussianSketch,
    "sign": SignSketch,
    "countsketch": CountSketch,
    "srht": HadamardSketch,
    "sample": RowSampleSketch,
}


def make_sketch(key: str, sketch_size: int, **options: object) -> Sketch:
    """Build an empty sketch by its key.

    Parameters
    ----------
    key : {"fd", "rfd", "cfd", "pfd", "isvd", "sfd", "2lfd", "exact", "gaussian", "sign", \
            "countsketch", "srht", "sample"}
        Frequent Directions with its plain, robust and compensated read-outs, with the
        parameterized rule, with truncation; its sparse and its two-level variant (whose
        ``rank`` is by default a sixth of ``sketch_size``); the exact covariance; random
        projections (Gaussian, signs, CountSketch, Hadamard transform) and row sampling.
    sketch_size : int
        Rows to keep; "exact" has no such limit and ignores it.
    **options
        Passed to the class.

    Returns
    -------
    Sketch
        An empty sketch of the class that the key stands for.

    See Also
    --------
    FrequentDirections : The class behind "fd", "rfd", "cfd", "pfd" and "isvd".
    SparseFrequentDirections : The class behind "sfd".
    ExactCovariance : The class behind "exact".

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
