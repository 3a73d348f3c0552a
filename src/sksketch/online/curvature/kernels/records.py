"""Named records of arrays that the compiled loops share with the learners."""

from __future__ import annotations

from typing import NamedTuple

from sksketch._typing import Array


class Task(NamedTuple):
    """The loss, its knee, and what is done to the columns."""

    kind: int
    knee: float
    constant: bool
    normalizes: bool


class Row(NamedTuple):
    """One row: its values, the columns that they belong to, and a target for each output."""

    values: Array
    columns: Array
    targets: Array


class Exact(NamedTuple):
    """Weights and curvature in the units of the columns; the constant, if any, comes first."""

    # (p, outputs), (p, p) and its upper factor with the ridge.
    W: Array
    G: Array
    U: Array
    # Of each column, as `layout` has them.
    units: Array


class Sketch(NamedTuple):
    """K = BB' and the factor L of K + alpha I, lower triangles; W = Wbar + B'beta, and BW."""

    K: Array
    L: Array
    beta: Array
    reached: Array
    # Mean target so far, of each output.
    means: Array


class Totals(NamedTuple):
    """Numbers of the whole stream, at the places that `layout` names."""

    counters: Array
    sums: Array
