"""Single rows, as dictionaries of names or sequences of numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from sksketch._typing import Array
from sksketch.online.named_columns import NamedColumns


def row_of_numbers(x: Any, width: int | None) -> Array:
    """Return one checked row from a sequence of numbers, of ``width`` columns where known.

    >>> row_of_numbers([1, 2], width=2)
    array([[1., 2.]])
    """
    row = np.reshape(np.asarray(x, dtype=np.float64), (1, -1))
    if not np.isfinite(row).all():
        raise ValueError("the row has a value that is NaN or infinite; give finite numbers")
    if width is not None and row.shape[1] != width:
        raise ValueError(f"the row has {row.shape[1]} values, expected {width}")
    return row


def row_of_known_names(x: Mapping[Any, Any], names: Iterable[Any] | None) -> Any:
    """Return one row for columns that all have their names already."""
    if names is None:
        raise ValueError(
            "got a row with names, but the estimator has learned from columns without names; "
            "give a sequence of numbers"
        )
    known = list(names)
    columns = NamedColumns.of(known)
    if (missing := next((name for name in x if name not in columns), None)) is not None:
        raise ValueError(f"there is no column {missing!r}; it has {known[:5]}")
    return columns.row(x, grow=False)
