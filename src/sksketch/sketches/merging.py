"""Checks before two sketches are merged; what differs is refused in one sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sksketch.arrays.rows import LARGEST_SQUARED_NORM
from sksketch.exceptions import NotMergeableError
from sksketch.state.guard import refuse_if_written

if TYPE_CHECKING:
    from sksketch.sketches.base import Sketch


def refuse_mismatch(mine: Sketch, other: Sketch) -> None:
    """Raise `NotMergeableError` unless ``other`` can be merged into ``mine``."""
    if type(other) is not type(mine):
        raise NotMergeableError(
            f"cannot merge a {type(other).__name__} into a {type(mine).__name__}; "
            "build both as the same kind of sketch"
        )
    mine._require_whole()
    refuse_if_written(other)
    other._require_whole()
    if None not in (mine.n_features, other.n_features) and mine.n_features != other.n_features:
        raise NotMergeableError(
            f"cannot merge sketches of {mine.n_features} and {other.n_features} features; "
            "build both for the same columns"
        )
    narrower = mine.n_features is not None and mine.dtype == np.float32 != other.dtype
    if narrower and other.squared_norm > LARGEST_SQUARED_NORM[np.dtype(np.float32)]:
        raise NotMergeableError(
            f"cannot merge rows of squared norm {other.squared_norm:.3g} into float32; "
            "merge the other way round, or rescale the columns"
        )
    if (reason := mine._refusal(other)) is not None:
        raise NotMergeableError(f"cannot merge: {reason}")
