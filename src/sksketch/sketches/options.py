"""Checks of the options that sketches share; a bad one is refused in one sentence."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np


def whole_number(name: str, value: object, least: int = 1) -> int:
    """Return an integer option that is at least ``least``.

    >>> whole_number("sketch_size", np.int64(7))
    7
    """
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        kind = "a positive integer" if least == 1 else f"an integer of at least {least}"
        raise ValueError(f"{name} must be {kind}, got {value!r}")
    return int(value)


def fraction_of_one(name: str, value: object) -> float:
    """Return a number in (0, 1], such as a probability.

    >>> fraction_of_one("failure_probability", 0.01)
    0.01
    """
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
        raise ValueError(f"{name} must be a number in (0, 1], got {value!r}")  # noqa: TRY004
    if not 0 < value <= 1:
        raise ValueError(f"{name} must be in (0, 1], got {value!r}")
    return float(value)


def one_of(name: str, value: object, choices: Collection[str]) -> str:
    """Return an option that is one of the given words.

    >>> one_of("rule", "uniform", ("uniform", "truncate"))
    'uniform'
    """
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")
    return str(value)


def above(name: str, value: int | None, least_name: str, least: int) -> int | None:
    """Return a whole number that exceeds another one, or None.

    >>> above("buffer_rows", 5, "sketch_size", 4)
    5
    """
    if value is not None and whole_number(name, value) <= least:
        raise ValueError(f"{name} must exceed {least_name}, got {value} and {least}")
    return value


def positive(name: str, value: float | None) -> float | None:
    """Return a number above zero, or None."""
    if value is not None and not value > 0:
        raise ValueError(f"{name} must be positive, got {value!r}")
    return value


def check_ridge(initial_ridge: float) -> float:
    """Return a ridge that is finite and not negative."""
    if not 0 <= initial_ridge < np.inf:
        raise ValueError(f"initial_ridge must be finite and not negative, got {initial_ridge!r}")
    return float(initial_ridge)
