"""Merging two Frequent Directions: kept rows are rows, and losses add up."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from sksketch.arrays.namespace import cast, to_numpy
from sksketch.arrays.rounding import gamma
from sksketch.sketches.directions.exact_covariance import ExactCovariance
from sksketch.sketches.directions.shrink.compression import compress

if TYPE_CHECKING:
    from sksketch.sketches.directions.frequent_directions import FrequentDirections


def refusal(mine: FrequentDirections, other: FrequentDirections) -> str | None:
    """Return why ``other`` cannot be merged, or None."""
    names = ["rule", "decay", "initial_ridge"]
    names += ["fraction"] if mine.rule == "parameterized" else []
    names += ["seed"] if mine.correction == "energy" else []
    if reason := mine._differing(other, *names):
        return reason
    if mine.correction == "energy" != other.correction:
        return 'only one of the two has the probes of correction="energy"; build both with it'
    return None


def absorb(mine: FrequentDirections, other: FrequentDirections) -> None:
    """Add all that ``other``, which is compatible and not empty, remembers."""
    mine._cached = None
    if mine._exact is not None and other._exact is not None:
        mine._exact._absorb(other._exact)
        mine._held = mine._held.with_losses_of(other._held)
        return
    # Waiting rows can keep waiting here, unless they have aged or are in a covariance.
    waiting = mine.decay == 1.0 and mine._exact is None and other._exact is None
    theirs = other._held.allowing(other._owed) if waiting else other._whole()
    if mine._exact is not None:
        mine._held = mine._held.with_losses_of(theirs)
        if len(theirs.matrix):
            mine._exact._absorb(ExactCovariance().update(to_numpy(theirs.matrix)))
        return
    if mine.decay < 1.0:
        # Both streams ran at the same time, so neither ages the other.
        mine._flush()
    elif waiting:
        if mine.dtype == np.float32 != other.dtype:
            mine._round(gamma(1, np.float32))
        mine._take(other._buffer.rows)
        mine._take(other._sparse.rows.astype(mine.dtype, copy=False))
    rows = theirs.matrix
    if mine.decay < 1.0:
        mine._held = mine._held.with_losses_of(theirs)
        scratch = mine._buffer.scratch
        mine._held = compress(mine._held, rows, None, mine._settings(), scratch)
        return
    if mine.dtype == np.float32 and len(rows):
        # To wait with rows in single precision, kept rows have to be rounded.
        mine._round(gamma(1, np.float32))
        rows = cast(rows, np.float32)
        theirs = replace(theirs, matrix=cast(rows, np.float64))
    mine._held = mine._held.with_losses_of(theirs)
    mine._take(rows)
