"""Times of rows and lengths of time, as users write them, in numbers that compare exactly."""

from __future__ import annotations

import datetime
import math
import re
from typing import Any

import numpy as np

from sksketch._typing import Array
from sksketch.arrays.namespace import to_numpy

# Seconds in the units of a length of time that is a text.
UNITS = {
    "ns": 1e-9,
    "us": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "min": 60.0,
    "h": 3600.0,
    "d": 86400.0,
    "w": 604800.0,
}
_DURATION = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*(ns|us|ms|s|min|h|d|w)\s*")

# Whole numbers up to here are numbers of float64.
LARGEST_WHOLE = 2**53
NANOSECONDS = 10**9

#: What the times of a stream are: moments, or numbers in a unit of the user's.
DATES, NUMBERS = "dates", "numbers"


def as_duration(duration: object) -> float:
    """Return a length of time in seconds, or in whatever unit times are numbers of.

    >>> as_duration("7d"), as_duration(datetime.timedelta(hours=2)), as_duration(5)
    (604800.0, 7200.0, 5.0)
    """
    seconds: Any = None
    if isinstance(duration, str):
        found = _DURATION.fullmatch(duration)
        seconds = float(found[1]) * UNITS[found[2]] if found else None
    elif isinstance(duration, datetime.timedelta):
        seconds = duration.total_seconds()
    elif isinstance(duration, np.timedelta64):
        seconds = None if np.isnat(duration) else duration / np.timedelta64(1, "s")
    elif isinstance(duration, (int, float, np.number)) and not isinstance(duration, bool):
        seconds = duration
    if seconds is None or not 0 < float(seconds) < math.inf:
        raise ValueError(
            f"duration is {duration!r}; give a positive number, a timedelta, or a text such as "
            f"'7d' with a unit of {', '.join(UNITS)}"
        )
    return float(seconds)


def as_times(times: object, n_rows: int) -> tuple[Array, str]:
    """Return the times of rows as numbers in order, and what they are.

    Moments become nanoseconds since 1970 in int64, numbers float64.

    >>> as_times(np.array(["2026-03-01", "2026-03-02"], dtype="datetime64[D]"), 2)[1]
    'dates'
    >>> as_times([1, 2.5], 2)
    (array([1. , 2.5]), 'numbers')
    """
    values = _as_array(times)
    if values.shape != (n_rows,):
        raise ValueError(
            f"got times of shape {values.shape}, expected one time for each of {n_rows} rows"
        )
    if values.dtype.kind == "M":
        return _nanoseconds(values), DATES
    if values.dtype.kind not in "iuf":
        raise TypeError(
            f"expected times as numbers or datetime64, got dtype {values.dtype}; convert them first"
        )
    if values.dtype.kind in "iu" and (np.abs(values.astype(np.float64)) > LARGEST_WHOLE).any():
        raise ValueError(
            f"times reach {values.max()}, more than float64 counts exactly; give datetime64, or "
            "count from a later moment"
        )
    numbers = values.astype(np.float64)
    if not np.isfinite(numbers).all():
        row = int(np.flatnonzero(~np.isfinite(numbers))[0])
        raise ValueError(f"the time of row {row} is {numbers[row]}; drop or repair such rows")
    return numbers, NUMBERS


def as_moment(time: object) -> tuple[int | float, str]:
    """Return one time as a number, and what it is.

    >>> as_moment("1970-01-02")
    (86400000000000, 'dates')
    """
    values, kind = as_times([time], 1)
    return (int(values[0]) if kind == DATES else float(values[0])), kind


def of_moment(moment: int | float, kind: str) -> Any:
    """Return a time as users have it.

    >>> of_moment(86_400_000_000_000, "dates")
    np.datetime64('1970-01-02T00:00:00.000000000')
    """
    return np.datetime64(int(moment), "ns") if kind == DATES else float(moment)


def shown(moment: int | float, kind: str) -> str:
    """Return a time for messages.

    >>> shown(86_400_000_000_000, "dates"), shown(2.0, "numbers")
    ('1970-01-02', '2')
    """
    if kind != DATES:
        return f"{moment:.15g}"
    text = str(np.datetime64(int(moment), "ns"))
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return text.removesuffix("T00:00:00")


def check_order(times: Array, latest: int | float | None, kind: str) -> None:
    """Refuse times that go back, with the number of the row in its block."""
    before = times[:-1] if latest is None else np.concatenate([[latest], times[:-1]])
    after = times[1:] if latest is None else times
    back = np.flatnonzero(after < before)
    if len(back):
        i = int(back[0])
        row = i + (latest is None)
        raise ValueError(
            f"row {row} of the block has the time {shown(after[i].item(), kind)}, before "
            f"{shown(before[i].item(), kind)} of the row before it; give rows in order of time"
        )


def _as_array(times: object) -> Array:
    """Return times as an array of numbers or of datetime64."""
    kind = getattr(times, "dtype", None)
    if kind is not None and str(kind).startswith("datetime64[ns,"):
        # Of pandas, with a time zone: moments are moments.
        return np.asarray(times, dtype="datetime64[ns]")
    values = np.asarray(times) if isinstance(times, (list, tuple)) else to_numpy(times)
    if values.dtype.kind in "OUT" and values.size:
        first = values.ravel()[0]
        if isinstance(first, (str, datetime.datetime, datetime.date, np.datetime64)):
            return _parsed(values)
    return np.asarray(values)


def _parsed(values: Array) -> Array:
    """Return texts and objects as datetime64."""
    moments = [
        v.astimezone(datetime.UTC).replace(tzinfo=None)
        if isinstance(v, datetime.datetime) and v.tzinfo is not None
        else v
        for v in values.ravel().tolist()
    ]
    try:
        return np.array(moments, dtype="datetime64[ns]").reshape(values.shape)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"could not read times ({error}); give numbers, datetime64 or texts as "
            "'2026-03-01T12:00'"
        ) from None


def _nanoseconds(values: Array) -> Array:
    if (lost := np.isnat(values)).any():
        row = int(np.flatnonzero(lost)[0])
        raise ValueError(f"the time of row {row} is missing (NaT); drop or repair such rows")
    seconds = values.astype("datetime64[s]").astype(np.int64)
    # What int64 nanoseconds hold: the years 1678 to 2261.
    if len(seconds) and not (seconds.min() > -9.2e9 and seconds.max() < 9.2e9):
        raise ValueError(
            f"times from {values.min()} to {values.max()} leave the years 1678 to 2261; "
            "give them as numbers"
        )
    return np.asarray(values.astype("datetime64[ns]").astype(np.int64))
