"""Columns written side by side into rows of numbers, a tile of rows at a time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sksketch._typing import Array
from sksketch.arrays.parallel import in_parallel, scratch, spans
from sksketch.tables.kernels import table_kernels

# All columns of a tile of rows stay in the processor's cache until they are written.
TILE_BYTES = 1 << 19


class Scaled(NamedTuple):
    """How numbers are written: around the center, in units of the scale; the mean for holes."""

    mean: float
    center: float
    scale: float


# Where holes are marked.
HOLES = Scaled(0.0, 0.0, 0.0)


class InfiniteError(ValueError):
    """A number to be written is infinite."""

    def __init__(self, column: int, row: int) -> None:
        super().__init__(column, row)
        self.column, self.row = column, row


class NumberColumn(NamedTuple):
    """Numbers of any type, with NaN for holes, and where they are written."""

    values: Array
    scaled: Scaled
    target: int


class CodeColumn(NamedTuple):
    """The category of each row, -1 for none, and the columns of all categories."""

    codes: Array
    start: int
    width: int


def write_rows(numbers: list[NumberColumn], codes: list[CodeColumn], out: Array) -> None:
    """Write columns of numbers and of categories to their places in rows.

    Whatever else is in these rows stays.
    """
    means, centers, scales = np.array([one.scaled for one in numbers]).reshape(-1, 3).T.copy()
    targets = np.array([one.target for one in numbers], dtype=np.int64)
    places = np.array([one[1:] for one in codes], dtype=np.int64).reshape(-1, 2)
    row_bytes = 8 * (len(numbers) + len(codes)) + 1
    tiles = spans(len(out), max(1, TILE_BYTES // row_bytes))
    kernels = table_kernels()

    def write(part: int) -> int:
        rows = out[tiles[part]]
        n_rows = len(rows)
        # Numbers of all types become doubles here, and no column is copied as a whole.
        room = scratch(((len(numbers) + len(codes)) * n_rows,), np.float64)
        values = room[: len(numbers) * n_rows].reshape(-1, n_rows)
        for k, one in enumerate(numbers):
            values[k] = one.values[tiles[part]]
        kinds = room[len(numbers) * n_rows :].view(np.int64).reshape(-1, n_rows)
        for k, column in enumerate(codes):
            kinds[k] = column.codes[tiles[part]]
        kernels.write_codes_inplace(kinds, places, rows)
        return int(kernels.write_numbers_inplace(values, means, centers, scales, targets, rows))

    for bad in in_parallel(write, len(tiles)):
        if bad >= 0:
            row = int(np.argmax(np.isinf(numbers[bad].values)))
            raise InfiniteError(numbers[bad].target, row)
