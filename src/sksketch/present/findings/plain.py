"""Findings that are a sentence, facts by name and numbers to draw."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sksketch._typing import Array
from sksketch.models.inference import Inference


class Points(NamedTuple):
    """Places of some rows, and what the two directions are."""

    x: Array
    y: Array
    across: str
    upward: str


@dataclass(frozen=True, eq=False)
class PlainFindings:
    """A title, a sentence, facts by name, and the numbers that there are to draw.

    ``values`` has the name of a quantity and its numbers, largest first. ``largest`` has the
    coefficients of largest size for each outcome, by the names of their columns, and ``quality``
    sentences about predictions. ``intervals`` are certified ends of the values, and ``inference``
    the table of a model.
    """

    title: str
    sentence: str
    facts: dict[str, Any]
    values: tuple[str, Array] | None = None
    points: Points | None = None
    largest: dict[str, dict[str, float]] = field(default_factory=dict)
    quality: tuple[str, ...] = ()
    intervals: Array | None = None
    inference: Inference | None = None
