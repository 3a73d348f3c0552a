"""Columns measured by their standard deviations, so that units do not matter.

Where A'A itself is kept, units are read from it, and rows are learned as they are. A sketch needs
its rows in their units from the first one on, see `models.intake`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from sksketch._typing import Array, Rows, RowsLike
from sksketch.arrays.namespace import precision
from sksketch.arrays.rounding import gamma
from sksketch.arrays.rows import as_rows, as_weights
from sksketch.exceptions import NotMergeableError
from sksketch.models.intake import FirstRows, Intake, Units
from sksketch.sketches import Centered, ExactCovariance, Regression, Sketch, SlidingWindow
from sksketch.sketches.column_moments import scale_of
from sksketch.state.persistence import State

# Rows that units are taken from where all of them cannot be read first, and the entries that these
# may have.
FIRST_ROWS, FIRST_ENTRIES = 1000, 1 << 24

FIT_AGAIN = "the rows were learned {}, which cannot be changed later; fit again with standardize={}"


def keeps_gram(sketch: Sketch) -> bool:
    """Return whether a sketch keeps A'A itself, so that its columns can be read in any units.

    >>> keeps_gram(Centered(ExactCovariance()))
    True
    """
    inner = sketch.sketch if isinstance(sketch, SlidingWindow) else sketch
    inner = inner.sketch if isinstance(inner, Regression) else inner
    inner = inner.sketch if isinstance(inner, Centered) else inner
    return isinstance(inner, ExactCovariance)


def is_centered(sketch: Sketch) -> bool:
    """Return whether a sketch is of rows around their mean."""
    inner = sketch.sketch if isinstance(sketch, SlidingWindow) else sketch
    inner = inner.sketch if isinstance(inner, Regression) else inner
    return isinstance(inner, Centered)


@dataclass(frozen=True)
class Deviations(Units):
    """Standard deviations as units, if they are asked for.

    Parameters
    ----------
    wanted : bool
        Whether they are: the ``standardize`` of an estimator.
    """

    wanted: bool

    def are_for(self, sketch: Sketch) -> bool:
        """Return whether a sketch takes rows divided by units."""
        return self.wanted and not keeps_gram(sketch)

    def n_first(self, n_features: int) -> int:
        """Return how many rows units are taken from."""
        return max(min(FIRST_ROWS, FIRST_ENTRIES // n_features), 1)

    def scale_of(self, rows: FirstRows) -> Array:
        """Return the standard deviation of each column, and one where it never changes."""
        return rows.scale()

    def rounding(self, rows: FirstRows) -> float:
        """Return the relative error of entries that were divided."""
        # A division rounds, and so may bringing rows to the precision of the first ones.
        return gamma(2, precision(rows.X))

    def difference(self, mine: Array | None, theirs: Array | None) -> str:
        """Say why rows in one of these units cannot be added to those in the other."""
        return (
            "the columns of the two are in different units, each those of its own rows; "
            "learn both parts in one run, or take sketch='exact', which needs no units first"
        )

    def stored(self, state: State, scale: Array, n_rows: int) -> State:
        """Return a state with units stored in it."""
        return state.with_more({"unit_rows": n_rows}, {"units": scale.copy()})

    def recalled(self, state: State, n_features: int) -> tuple[Array | None, int]:
        """Return the units that `stored` has stored, and how many rows they are from."""
        if "units" not in state.arrays:
            return None, 0
        n_rows: Any = state.meta["unit_rows"]
        return state.array("units", n_features), int(n_rows)

    def check(self, intake: Intake, sketch: Sketch) -> None:
        """Refuse more rows if ``standardize`` was changed after the first rows."""
        if intake.divides and not self.wanted:
            raise ValueError(FIT_AGAIN.format("in units of their own", False))
        known = keeps_gram(sketch) and (is_centered(sketch) or intake.columns is not None)
        missing = not (intake.divides or intake.measuring or known)
        if self.wanted and missing and sketch.n_rows_seen:
            raise ValueError(FIT_AGAIN.format("as they are", True))

    def check_alike(self, sketch: Sketch, other: Units, other_sketch: Sketch) -> None:
        """Refuse to merge columns in units with others."""
        if self.are_for(other_sketch) != other.are_for(other_sketch):
            raise NotMergeableError("only one of the two has columns in units; fit both alike")

    def beside(
        self, intake: Intake, sketch: Sketch, rows: Rows, sample_weight: RowsLike | None
    ) -> Intake:
        """Return the moments of the columns where A'A alone does not tell how much one varies."""
        if not self.wanted or is_centered(sketch):
            return intake
        if isinstance(sketch, SlidingWindow):
            raise ValueError(  # noqa: TRY004
                "units of the columns around zero are those of all rows and not of a window; "
                "set standardize=False, or window=None"
            )
        weights = as_weights(sample_weight, rows.shape[0])
        return intake.counted(FirstRows(as_rows(rows), None, weights), sketch.decay)

    def are_of_answers(self, intake: Intake) -> bool:
        """Return whether answers are in units."""
        return self.wanted or intake.divides

    def of_answers(self, intake: Intake, sketch: Sketch) -> Array:
        """Return the units of the columns that answers are in."""
        self.check(intake, sketch)
        if (scale := intake.scale_now(self)) is not None:
            return scale
        if intake.measuring:
            raise ValueError("the rows have only been measured so far; give all of them again")
        if intake.columns is not None:
            return intake.columns.scale()
        sketch = sketch._read() if isinstance(sketch, SlidingWindow) else sketch
        sketch = sketch.sketch if isinstance(sketch, Regression) else sketch
        assert isinstance(sketch, Centered)
        gram = sketch._exact_gram()
        squares = sketch.summary().to_dense().diagonal() if gram is None else gram.matrix.diagonal()
        return scale_of(squares, sketch.mean, sketch.total_weight)


class Standardizing(Protocol):
    """An estimator of one sketch with ``standardize``: columns in units of their own or not."""

    standardize: bool
    n_features_in_: int
    _intake: Intake

    def new_sketch(self, n_features: int) -> Sketch:
        """Return an empty sketch, as the parameters ask."""

    def _require_fitted(self) -> None: ...

    def _once(self, name: str, compute: Any) -> Any: ...

    def _unit(self) -> Array | None: ...


# Methods of such estimators: they take them into their classes by name.


def units_of(self: Standardizing) -> Deviations:
    """Return how columns are measured."""
    return Deviations(self.standardize)


def scale_(self: Standardizing) -> Array:
    """Units of the columns: standard deviations, or ones without ``standardize``."""
    unit = self._once("scale_", self._unit)
    return np.ones(self.n_features_in_) if unit is None else np.array(unit)


def is_of_plain_rows(self: Standardizing) -> bool:
    """Whether the sketch is of the rows as they came, in the user's units."""
    self._require_fitted()
    return not self._intake.divides


# Rows that come twice, or in parts


def measure_first(self: Standardizing, n_features: int) -> None:
    """Let all rows come once for the units of their columns, where those are needed.

    Parameters
    ----------
    n_features : int
        Columns of the rows to come.
    """
    measuring = self.standardize and not keeps_gram(self.new_sketch(n_features))
    self._intake = self._intake._replace(measuring=measuring)


def n_passes(self: Standardizing) -> int:
    """Return how often `fit_stream` gives all rows."""
    intake = self._intake
    measured = intake.scale is not None and not intake.n_rows
    return 2 if intake.measuring or measured else 1


def end_pass(self: Standardizing, number: int) -> None:
    """Take the units of all rows, unless that is done.

    Parameters
    ----------
    number : int
        Times that all rows have come.
    """
    intake = self._intake
    if intake.measuring and intake.columns is not None:
        self._intake = Intake(intake.columns.scale(), waiting=intake.waiting)


def pilot_rows(self: Standardizing) -> int:
    """First rows that parts need to have the same units."""
    return FIRST_ROWS if self.standardize and self._intake.scale is None else 0


def take_pilot(self: Standardizing, rows: Rows) -> None:
    """Take the units of all parts from these rows.

    Parameters
    ----------
    rows : array-like of shape (n_samples, n_features)
        The first rows.
    """
    units, found = Deviations(self.standardize), FirstRows.of(as_rows(rows), None, None)
    if not keeps_gram(self.new_sketch(found.X.shape[1])):
        found = found.head(units.n_first(found.X.shape[1]))
        found.check()
        self._intake = self._intake._replace(scale=found.scale(), n_rows=found.X.shape[0])
