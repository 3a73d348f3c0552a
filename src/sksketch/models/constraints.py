"""Constraints of parameters: one table for each estimator, and the one check of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import NamedTuple, TypeAlias

import numpy as np

from sksketch.sketches import Sketch
from sksketch.sketches.catalog import KEYS

# What may be compared with any other value; arrays may not.
_SINGLE = (str, int, float, np.generic, type(None))


class Constraint(NamedTuple):
    """One kind of value of a parameter, in words and as a test.

    Parameters
    ----------
    words : str
        As they follow "give" in a message.
    accepts : callable
        Takes a value.
    """

    words: str
    accepts: Callable[[object], bool]


#: For each parameter what it may be: any one of several.
Constraints: TypeAlias = dict[str, tuple[Constraint, ...]]


def check_parameters(parameters: Mapping[str, object], constraints: Constraints) -> None:
    """Refuse the first parameter that is none of what its table allows.

    >>> check_parameters({"alpha": -1.0}, {"alpha": (number(0.0), NOTHING)})
    Traceback (most recent call last):
    ValueError: alpha is -1.0; give a number from 0 on or None
    """
    for name, allowed in constraints.items():
        value = parameters[name]
        if not any(constraint.accepts(value) for constraint in allowed):
            *most, last = (constraint.words for constraint in allowed)
            wanted = f"{', '.join(most)} or {last}" if most else last
            raise ValueError(f"{name} is {value!r:.80}; give {wanted}")


def check_value(name: str, value: object, *allowed: Constraint) -> None:
    """Refuse one value that is none of what is allowed; the message is that of parameters."""
    check_parameters({name: value}, {name: allowed})


def whole(least: int) -> Constraint:
    """Allow integers from ``least`` on."""
    return Constraint(
        f"an integer of at least {least}",
        lambda value: isinstance(value, Integral) and not _is_flag(value) and int(value) >= least,
    )


def number(low: float, high: float = np.inf, *, bounds: str = "[)") -> Constraint:
    """Allow real numbers of an interval; its ``bounds`` tell if the ends belong to it.

    >>> number(0.0, 1.0, bounds="()").words
    'a positive number below 1'
    """
    words = "a positive number" if low == 0 else f"a number above {low:g}"
    if bounds[0] == "[":
        words = f"a number from {low:g}{' on' if high == np.inf else ''}"
    if high < np.inf:
        words += f" {'up to' if bounds[1] == ']' else 'below'} {high:g}"

    def accepts(value: object) -> bool:
        if not isinstance(value, Real) or _is_flag(value):
            return False
        x = float(value)
        above = low <= x if bounds[0] == "[" else low < x
        return above and (x <= high if bounds[1] == "]" else x < high)

    return Constraint(words, accepts)


def _is_flag(value: object) -> bool:
    return isinstance(value, bool | np.bool_)


def one_of(*values: object) -> Constraint:
    """Allow one of a few values.

    >>> one_of("range", "clip").words
    "one of 'range', 'clip'"
    """
    words = ", ".join(map(repr, values))
    return Constraint(
        f"one of {words}" if len(values) > 1 else words,
        lambda value: isinstance(value, _SINGLE) and value in values,
    )


def several(words: str, each: Constraint) -> Constraint:
    """Allow a sequence of one or more numbers that are all such.

    >>> positive = several("positive numbers", number(0.0, bounds="()"))
    >>> positive.accepts([0.1, 1.0]), positive.accepts([0.1, "1.0"])
    (True, False)
    """

    def accepts(value: object) -> bool:
        try:
            given = np.array(value)
            values = given.astype(np.float64)
        except (TypeError, ValueError):
            return False
        # Text would be read as numbers.
        if given.dtype.kind not in "biufO":
            return False
        return values.ndim == 1 and len(values) > 0 and all(map(each.accepts, values.tolist()))

    return Constraint(words, accepts)


def such(words: str, *kinds: type) -> Constraint:
    """Allow values of some types."""
    return Constraint(words, lambda value: isinstance(value, kinds))


def _n_dimensions(value: object) -> int:
    if hasattr(value, "ndim"):
        return int(value.ndim)
    return 1 + max(map(_n_dimensions, value), default=0) if isinstance(value, list) else 0


NOTHING = one_of(None)
FLAG = Constraint("True or False", lambda value: isinstance(value, _SINGLE) and value in (0, 1))
SEED = such("an integer, a RandomState or None", Integral, np.random.RandomState, type(None))
DICTIONARY = such("a dictionary", dict)
SKETCH = such("a Sketch", Sketch)
SKETCH_KEY = one_of("auto", *KEYS)
ROWS = Constraint("rows", lambda value: _n_dimensions(value) == 2)
