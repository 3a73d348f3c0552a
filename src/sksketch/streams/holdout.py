"""A share of the rows kept apart: which ones depends on their numbers alone."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from sksketch._typing import Array
from sksketch.streams.blocks import Block
from sksketch.streams.source import RowSource

# Rows whose places are found at a time.
STEP = 1 << 20
# Beyond this many rows it is not counted beforehand how many are kept apart.
COUNTED = 1 << 26


def is_held(start: int, stop: int, fraction: float) -> Array:
    """Return which rows, by their numbers, are kept apart.

    >>> round(float(is_held(0, 100_000, 0.1).mean()), 2)
    0.1
    """
    # splitmix64: neighbors fall far apart, and every machine agrees.
    x = np.arange(start + 1, stop + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
    x = x ^ (x >> np.uint64(31))
    return np.asarray((x >> np.uint64(11)) * 2.0**-53 < fraction)


class Share(RowSource):
    """The rows of a source that are kept apart, or all others.

    Parameters
    ----------
    source : RowSource
        All rows.
    fraction : float
        Part of the rows to keep apart.
    held : bool
        Whether these are the rows kept apart.

    Examples
    --------
    >>> from sksketch.streams import open_rows
    >>> rows = open_rows(np.arange(100.0)[:, None])
    >>> [sum(len(b.X) for b in Share(rows, 0.2, held=held).blocks()) for held in (True, False)]
    [19, 81]
    """

    def __init__(self, source: RowSource, fraction: float, *, held: bool) -> None:
        vars(self).update(vars(source))
        self._source, self._fraction, self._held = source, fraction, held

    def only(self, names: Sequence[str]) -> RowSource:
        """Return the same rows without columns that nobody needs, where that saves reading them.

        Parameters
        ----------
        names : sequence of str
            Features that are needed.

        Returns
        -------
        RowSource
            The share.
        """
        share = copy.copy(self)
        share._source = self._source.only(names)
        return share

    def _taken(self, start: int, stop: int) -> Array:
        return np.asarray(is_held(start, stop, self._fraction) == self._held)

    @property
    def n_rows(self) -> int | None:
        """Rows of this share; None where those of the source are not known, or too many."""
        whole = self._source.n_rows
        if whole is None or whole > COUNTED:
            return None
        steps = range(0, whole, STEP)
        return sum(int(self._taken(start, min(start + STEP, whole)).sum()) for start in steps)

    def blocks(self, start_row: int = 0) -> Iterator[Block]:
        """Yield the rows of this share in order, leaving out the first ``start_row``.

        Parameters
        ----------
        start_row : int, default=0
            Rows of the share to leave out.

        Returns
        -------
        iterator of Block
            Rows with what came beside them.
        """
        number = self._place(start_row)
        for block in self._source.blocks(number):
            taken = np.flatnonzero(self._taken(number, number + block.X.shape[0]))
            number += block.X.shape[0]
            if len(taken):
                y, weights = (
                    None if p is None else p[taken] for p in (block.y, block.sample_weight)
                )
                yield Block(block.X[taken], y, weights)

    def _place(self, start_row: int) -> int:
        """Return the number, among all rows, after that many rows of the share."""
        number, left = 0, start_row
        while left:
            taken = np.flatnonzero(self._taken(number, number + STEP))
            if len(taken) >= left:
                return number + int(taken[left - 1]) + 1
            number, left = number + STEP, left - len(taken)
        return number

    def fingerprint(self) -> dict[str, Any]:
        """Return plain values that tell these rows from others, to check before resuming.

        Returns
        -------
        dict
            That of the source, with the share.
        """
        return {**self._source.fingerprint(), "holdout": [self._fraction, self._held]}
