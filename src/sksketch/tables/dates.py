"""Dates as numbers: the year with its fraction, the weekday and the hour."""

from __future__ import annotations

from typing import Any

import numpy as np

from sksketch._typing import Array
from sksketch.streams.formats.arrow import load_pyarrow
from sksketch.tables.kernels import table_kernels

PARTS = ("year", "weekday", "hour")


def date_parts(column: Any) -> tuple[Array, ...]:
    """Return year with fraction, weekday (Monday is 0) and hour of an Arrow array of dates.

    Times with a zone are those of its clocks. NaN where there is no date.

    >>> import datetime, pyarrow as pa
    >>> [part.tolist() for part in date_parts(pa.array([datetime.datetime(2023, 7, 2, 12)]))]
    [[2023.5], [6.0], [12.0]]
    """
    pa = load_pyarrow()
    if pa.types.is_timestamp(column.type) and column.type.tz is not None:
        column = pa.compute.local_timestamp(column)
    moments = column.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
    holes = _holes(moments)
    found = tuple(np.empty(len(moments)) for _ in PARTS)
    values = moments.fill_null(0).to_numpy(zero_copy_only=False)
    table_kernels().split_dates(values, holes, *found)
    return found


def _holes(column: Any) -> Array:
    if not column.null_count:
        return np.zeros(len(column), dtype=np.bool_)
    return np.asarray(column.is_null().to_numpy(zero_copy_only=False))


def parsed(values: Any) -> Any:
    """Return an Arrow array of texts as dates, or None if one of them is no date of ISO 8601.

    >>> import pyarrow as pa
    >>> parsed(pa.array(["2024-02-29", "2024-03-01"])).type
    TimestampType(timestamp[us])
    >>> parsed(pa.array(["2024-02-30"])) is None
    True
    """
    pa = load_pyarrow()
    known = values.drop_null()
    if not len(known) or not _looks_like_date(known[0].as_py()):
        return None
    try:
        return values.cast(pa.timestamp("us"))
    except pa.ArrowInvalid:
        return None


def _looks_like_date(text: str) -> bool:
    return len(text) >= 10 and text[:4].isdigit() and text[4] == "-" and text[5:7].isdigit()
