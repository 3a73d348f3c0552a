"""Rows of a source with every column in units of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from sksketch._typing import Array
from sksketch.arrays.sparse import in_units
from sksketch.streams.blocks import Block
from sksketch.streams.source import RowSource, digest


class SourceInUnits(RowSource):
    """The rows of another source, with columns divided by numbers, in float64.

    Parameters
    ----------
    source : RowSource
        Rows as they are.
    units : array of shape (n_features,)
        Positive numbers.

    Examples
    --------
    >>> from sksketch.streams import open_rows
    >>> source = SourceInUnits(open_rows(np.array([[2.0, 3.0]])), np.array([2.0, 1.0]))
    >>> next(source.blocks()).X
    array([[1., 3.]])
    """

    def __init__(self, source: RowSource, units: Array) -> None:
        vars(self).update(vars(source))
        self._source, self.units = source, units

    @property
    def n_rows(self) -> int | None:
        """Rows in all; None where they are not known."""
        return self._source.n_rows

    def blocks(self, start_row: int = 0) -> Iterator[Block]:
        """Yield the rows in order, leaving out the first ``start_row``.

        Parameters
        ----------
        start_row : int, default=0
            Rows to leave out.

        Returns
        -------
        iterator of Block
            Rows in their units.
        """
        for block in self._source.blocks(start_row):
            X = in_units(block.X.astype(np.float64, copy=False), self.units)
            yield Block(X, block.y, block.sample_weight)

    def fingerprint(self) -> dict[str, Any]:
        """Return plain values that tell these rows from others, to check before resuming.

        Returns
        -------
        dict
            That of the source, with a digest of the units.
        """
        return {**self._source.fingerprint(), "units": digest(self.units)}
