"""Targets that come with rows: one number for each row, or a few."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sksketch._typing import Array
from sksketch.arrays.namespace import to_numpy
from sksketch.arrays.rows import LARGEST_SQUARED_NORM


def described(shape: tuple[int, ...] | None) -> str:
    """Return the targets of one row in words."""
    if shape is None:
        return "no targets"
    return f"targets of shape (n_rows, {shape[0]})" if shape else "targets of shape (n_rows,)"


def check_same(shape: tuple[int, ...] | None, earlier: tuple[int, ...] | None) -> None:
    """Refuse targets of another shape than those of the earlier rows."""
    if shape != earlier:
        raise ValueError(
            f"got {described(shape)}, expected {described(earlier)} as with the earlier rows; "
            "give the same targets with every block"
        )


def as_targets(targets: object, weights: Array | None, n_rows: int, dtype: np.dtype[Any]) -> Array:
    """Return targets as numbers that ``dtype`` can hold, scaled like their rows."""
    try:
        values = to_numpy(targets)
    except ValueError:
        raise ValueError(
            f"could not read a {type(targets).__name__} as targets; give one number, or equally "
            "many of them, for each row"
        ) from None
    if values.dtype.kind not in "biuf":
        raise TypeError(
            f"expected targets as dense real numbers, got dtype {values.dtype}; "
            "encode text and categories as numbers first"
        )
    if values.ndim not in (1, 2) or len(values) != n_rows or 0 in values.shape:
        raise ValueError(
            f"got targets of shape {values.shape}, expected ({n_rows},) or ({n_rows}, n_targets)"
        )
    values = values.astype(np.float64, order="C")
    if weights is not None:
        values = (values.T * np.sqrt(weights)).T
    # A NaN fails this comparison, too.
    if not np.abs(values).max() <= math.sqrt(LARGEST_SQUARED_NORM[dtype]):
        raise ValueError(
            f"targets contain NaN, infinity or numbers whose squares overflow {dtype}; "
            "drop, impute or rescale them"
        )
    return values
