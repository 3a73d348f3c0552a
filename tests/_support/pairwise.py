"""Few option sets in which every two choices meet: for laws that do not depend on one alone."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import sksketch
from _support import laws

CHOICES: dict[str, tuple[Any, ...]] = {
    "correction": laws.CORRECTIONS,
    "solver": tuple(laws.SOLVERS),
    "rule": tuple(laws.RULES),
    "size": ("four", "one row", "growing", "wide"),
    "memory": ("whole", "decay", "half life"),
    "ridge": (0.0, 0.5),
    "centered": (False, True),
}
OPTIONS: dict[str, dict[str, Any]] = {
    "four": {"sketch_size": 4},
    "one row": {"sketch_size": 1},
    "growing": {"sketch_size": 4, "tol": 0.02, "max_sketch_size": 12},
    "wide": {"sketch_size": 50, "buffer_rows": 260},
    "whole": {},
    "decay": {"decay": 0.97},
    "half life": {"half_life": 20.0},
}
# What has few options of its own, each of their values at least once.
OTHERS = (
    *("exact covariance ridge", "centered exact covariance decay", "fd block uncertified"),
    *("sfd boosted", "sfd plain", "sfd eager", "sfd half", "centered sfd boosted"),
    *("2lfd small", "2lfd ridge", "2lfd sampled", *(f"{key} 20" for key in laws.LINEAR)),
    *("regression", "regression uncentered"),
    *(f"window {name}" for name in laws.WINDOWS),
)


def covering(choices: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    """Return rows, one choice of each kind, such that any two choices are together in one.

    >>> covering(["ab", "xy", "12"])
    [('a', 'x', '1'), ('a', 'y', '2'), ('b', 'x', '2'), ('b', 'y', '1')]
    """
    left = {
        (i, a, j, b)
        for i, j in itertools.combinations(range(len(choices)), 2)
        for a in choices[i]
        for b in choices[j]
    }
    rows = []
    while left:
        # Greedy: the first of the rows that have most pairs that are not covered yet.
        row = max(itertools.product(*choices), key=lambda row: len(_pairs(row) & left))
        left -= _pairs(row)
        rows.append(row)
    return rows


@functools.cache
def _pairs(row: tuple[Any, ...]) -> frozenset[tuple[int, Any, int, Any]]:
    return frozenset((i, row[i], j, row[j]) for i, j in itertools.combinations(range(len(row)), 2))


def made(row: tuple[Any, ...]) -> Any:
    """Build Frequent Directions from one choice of each kind."""
    chosen = dict(zip(CHOICES, row, strict=True))
    options = {"correction": chosen["correction"], "initial_ridge": chosen["ridge"]}
    for part in (laws.SOLVERS[chosen["solver"]], laws.RULES[chosen["rule"]]):
        options |= part
    options |= OPTIONS[chosen["size"]] | OPTIONS[chosen["memory"]]
    sketch = sksketch.FrequentDirections(**options)
    return sksketch.Centered(sketch) if chosen["centered"] else sketch


def _named(row: tuple[Any, ...]) -> str:
    *parts, centered = row
    return ("centered " if centered else "") + " ".join(map(str, parts))


SKETCHES: dict[str, Callable[[], Any]] = {
    _named(row): functools.partial(made, row) for row in covering(list(CHOICES.values()))
} | {name: laws.SKETCHES[name] for name in OTHERS}
