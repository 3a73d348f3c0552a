"""Parameters of estimators: what they may be, and as text for a saved file."""

from __future__ import annotations

import json
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_random_state


def check_choice(name: str, value: Any, known: Any) -> None:
    """Refuse what is not one of those known."""
    if value not in known:
        raise ValueError(f"{name} is {value!r}; give one of {', '.join(map(repr, known))}")


def check_whole(name: str, value: Any, least: int) -> None:
    """Refuse what is not a whole number from ``least`` on."""
    if not isinstance(value, Integral) or str(value) == "True" or int(value) < least:
        raise ValueError(f"{name} is {value!r}; give an integer of at least {least}")


def seed_of(random_state: Any) -> int:
    """Return a seed: an integer as it is, or a number drawn from a generator."""
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def as_text(value: Any) -> str:
    """Return a parameter as JSON."""
    if isinstance(value, dict):
        # JSON has only strings for keys.
        value = [[_plain(key), _plain(part)] for key, part in value.items()]
        return json.dumps({"pairs": value})
    return json.dumps(_plain(value))


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def from_text(text: str) -> Any:
    """Return the parameter that `as_text` was given."""
    value = json.loads(text)
    return dict(map(tuple, value["pairs"])) if isinstance(value, dict) else value
