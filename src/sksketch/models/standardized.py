"""Estimators that can measure every column by its standard deviation, so that units do not matter.

Where A'A itself is kept, units are read from it, and rows are learned as they are. A sketch needs
its rows in their units from the first one on: those of all rows where they can be read twice, else
those of the first rows, which wait for it.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from sksketch._typing import Array, Rows, RowsLike
from sksketch.arrays.namespace import precision
from sksketch.arrays.rounding import gamma
from sksketch.arrays.rows import as_rows, as_weights
from sksketch.arrays.sparse import in_units
from sksketch.exceptions import NotMergeableError
from sksketch.models.first_rows import FirstRows
from sksketch.models.sketched import SketchEstimator
from sksketch.sketches import (
    Centered,
    Certificate,
    ExactCovariance,
    Regression,
    Sketch,
    SlidingWindow,
)
from sksketch.sketches.base import Answer
from sksketch.sketches.column_moments import ColumnMoments, scale_of
from sksketch.sketches.directions.gram_answer import answer_in_units
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


class StandardizingEstimator(SketchEstimator):
    """An estimator of one sketch with ``standardize``: columns in units of their own or not.

    What subclasses read is in units, ``_read()`` and all that comes of it; ``_unit()`` takes it
    back to the user's. The sketch is of rows in units only where it does not keep A'A.
    """

    _fitted = "_sketch"
    standardize: bool
    _sketch: Sketch
    # Units that rows were divided by on their way in, and how many rows they are from: 0 if all.
    _scale: Array | None = None
    _scale_rows = 0
    # Rows that wait for units.
    _waiting: tuple[FirstRows, ...] = ()
    # Means and variances: of all rows while they are measured, or beside A'A around zero.
    _columns: ColumnMoments | None = None
    _measuring = False

    # The sketch, of rows that wait as well

    @property
    def sketch_(self) -> Sketch:
        """The sketch that remembers the rows, with a window those in it."""
        if "_sketch" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute 'sketch_'")
        sketch = self._sketch
        if self._waiting:
            sketch = self._once("sketch_", self._with_waiting)
        return sketch._read() if isinstance(sketch, SlidingWindow) else sketch

    @sketch_.setter
    def sketch_(self, sketch: Sketch) -> None:
        self._sketch = sketch

    def _with_waiting(self) -> Sketch:
        """Return the sketch with the rows that wait, in units that are those of them so far."""
        sketch, waiting = self._sketch.copy(), FirstRows.joined(self._waiting)
        self._give_in_units(sketch, waiting, waiting.scale())
        return sketch

    @property
    def is_of_plain_rows(self) -> bool:
        """Whether the sketch is of the rows as they came, in the user's units."""
        self._require_fitted()
        return self._scale is None and not self._waiting

    # Learning

    def _look(self, sketch: Sketch, rows: Rows, sample_weight: RowsLike | None) -> None:
        self._scale, self._waiting, self._columns, self._measuring = None, (), None, False
        if self.standardize and not keeps_gram(sketch):
            found = FirstRows.of(as_rows(rows), None, sample_weight)
            self._scale, self._scale_rows = found.scale(), 0

    def _update(
        self, sketch: Sketch, rows: Rows, targets: Array | None, sample_weight: RowsLike | None
    ) -> None:
        self._require_alike(sketch)
        if self.standardize and not keeps_gram(sketch):
            self._update_in_units(sketch, FirstRows.of(as_rows(rows), targets, sample_weight))
            return
        self._give(sketch, rows, targets, sample_weight)
        self.sketch_, self._answers = sketch, {}
        if self.standardize and not is_centered(sketch):
            if isinstance(sketch, SlidingWindow):
                raise ValueError(
                    "units of the columns around zero are those of all rows and not of a window; "
                    "set standardize=False, or window=None"
                )
            # Around zero A'A alone does not tell how much a column varies.
            weights = as_weights(sample_weight, rows.shape[0])
            before = self._columns or ColumnMoments.empty(rows.shape[1])
            self._columns = before.updated(as_rows(rows), weights, sketch.decay)

    def _update_in_units(self, sketch: Sketch, rows: FirstRows) -> None:
        rows.check()
        if self._times is not None:
            raise ValueError(
                "standardize needs the units of columns before the first row of a window with "
                "times; take sketch='exact', which reads them from the window"
            )
        if self._measuring:
            before = self._columns or ColumnMoments.empty(rows.X.shape[1])
            self._columns = before.updated(rows.X, rows.weights)
        elif self._scale is not None:
            self._give_in_units(sketch, rows, self._scale)
        else:
            self._wait(sketch, rows)
        self.sketch_ = sketch
        self._answers = {}

    def _wait(self, sketch: Sketch, rows: FirstRows) -> None:
        """Keep rows until there are enough of them, and let all of them in then."""
        limit = _n_first(rows.X.shape[1])
        if sum(part.X.shape[0] for part in (*self._waiting, rows)) < limit:
            self._waiting = (*self._waiting, rows.owned())
            return
        rows = FirstRows.joined([*self._waiting, rows])
        scale = rows.head(limit).scale()
        self._give_in_units(sketch, rows, scale)
        self._scale, self._scale_rows, self._waiting = scale, limit, ()

    def _give_in_units(self, sketch: Sketch, rows: FirstRows, scale: Array) -> None:
        # A division rounds, and so may bringing rows to the precision of the first ones.
        sketch._round(gamma(2, precision(rows.X)))
        self._give(sketch, in_units(rows.X, scale), rows.targets, rows.weights)

    def _require_alike(self, sketch: Sketch) -> None:
        """Refuse rows if ``standardize`` was changed after the first ones."""
        scaled = self._scale is not None or bool(self._waiting)
        if scaled and not self.standardize:
            raise ValueError(FIT_AGAIN.format("in units of their own", False))
        missing = not (scaled or self._measuring or self._has_units(sketch))
        if self.standardize and missing and sketch.n_rows_seen:
            raise ValueError(FIT_AGAIN.format("as they are", True))

    def _has_units(self, sketch: Sketch) -> bool:
        """Return whether units can be read from a sketch of rows as they are."""
        return keeps_gram(sketch) and (is_centered(sketch) or self._columns is not None)

    # Rows that come twice, or in parts

    def measure_first(self, n_features: int) -> None:
        """Let all rows come once for the units of their columns, where those are needed.

        Parameters
        ----------
        n_features : int
            Columns of the rows to come.
        """
        self._measuring = self.standardize and not keeps_gram(self.new_sketch(n_features))

    @property
    def n_passes(self) -> int:
        """Times that `fit_stream` gives all rows."""
        measured = self._scale is not None and not self._scale_rows
        return 2 if self._measuring or measured else 1

    def end_pass(self, number: int) -> None:
        """Take the units of all rows, unless that is done.

        Parameters
        ----------
        number : int
            Times that all rows have come.
        """
        if self._measuring and self._columns is not None:
            self._scale, self._scale_rows = self._columns.scale(), 0
            self._columns, self._measuring = None, False

    @property
    def pilot_rows(self) -> int:
        """First rows that parts need to have the same units."""
        return FIRST_ROWS if self.standardize and self._scale is None else 0

    def take_pilot(self, rows: Rows) -> None:
        """Take the units of all parts from these rows.

        Parameters
        ----------
        rows : array-like of shape (n_samples, n_features)
            The first rows.
        """
        found = FirstRows.of(as_rows(rows), None, None)
        if not keeps_gram(self.new_sketch(found.X.shape[1])):
            found = found.head(_n_first(found.X.shape[1]))
            found.check()
            self._scale, self._scale_rows = found.scale(), found.X.shape[0]

    def _beside(self) -> Self:
        twin = super()._beside()
        twin._scale, twin._scale_rows = self._scale, self._scale_rows
        return twin

    def _part(self, index: int, n_shards: int) -> Self:
        twin = super()._part(index, n_shards)
        twin._scale, twin._scale_rows = self._scale, self._scale_rows
        return twin

    def _absorb(self, other: Self) -> None:
        if self.standardize != other.standardize and not keeps_gram(other._sketch):
            raise NotMergeableError("only one of the two has columns in units; fit both alike")
        if "_sketch" not in self.__dict__:
            self._sketch = other._sketch.fresh()
            self._take_columns(other.n_features_in_, getattr(other, "feature_names_in_", None))
            self._scale, self._scale_rows = other._scale, other._scale_rows
        if self.standardize and not keeps_gram(self._sketch):
            self._absorb_in_units(other)
            return
        if self._sketch.n_rows_seen == 0 or self._columns is None:
            self._columns = None if self._sketch.n_rows_seen else other._columns
        else:
            self._columns = other._columns and self._columns.merged(other._columns)
        self._sketch.merge(other._sketch)

    def _absorb_in_units(self, other: Self) -> None:
        if self._scale is None and other._scale is not None:
            # Rows that wait take the units that the other has.
            self._sketch.merge(other._sketch)
            self._scale, self._scale_rows = other._scale, other._scale_rows
            waiting, self._waiting = self._waiting, ()
            if waiting:
                self._update_in_units(self._sketch, FirstRows.joined(waiting))
        elif other._waiting:
            self._update_in_units(self._sketch, FirstRows.joined(other._waiting))
        elif not np.array_equal(self._scale, other._scale):  # type: ignore[arg-type]
            raise NotMergeableError(
                "the columns of the two are in different units, each those of its own rows; "
                "learn both parts in one run, or take sketch='exact', which needs no units first"
            )
        else:
            self._sketch.merge(other._sketch)

    # Answers

    def _unit(self) -> Array | None:
        """Return the units of the columns that answers are in; None for the user's."""
        if not (self.standardize or self._scale is not None or self._waiting):
            return None
        unit: Array = self._once("unit", self._find_unit)
        return unit

    def _find_unit(self) -> Array:
        self._require_alike(self._sketch)
        if self._scale is not None:
            return self._scale
        if self._waiting:
            return FirstRows.joined(self._waiting).scale()
        if self._measuring:
            raise ValueError("the rows have only been measured so far; give all of them again")
        if self._columns is not None:
            return self._columns.scale()
        sketch = self.sketch_
        sketch = sketch.sketch if isinstance(sketch, Regression) else sketch
        assert isinstance(sketch, Centered)
        gram = sketch._exact_gram()
        squares = sketch.summary().to_dense().diagonal() if gram is None else gram.matrix.diagonal()
        return scale_of(squares, sketch.mean, sketch.total_weight)

    def _unit_of_sketch(self) -> Array | float:
        """Return the units of the rows that the sketch has taken."""
        unit = self._unit()
        return 1.0 if unit is None or keeps_gram(self._sketch) else unit

    @property
    def scale_(self) -> Array:
        """Units of the columns: standard deviations, or ones without ``standardize``."""
        unit = self._once("scale_", self._unit)
        return np.ones(self.n_features_in_) if unit is None else np.array(unit)

    def _read(self) -> Answer:
        """Return the summary and certificate of the rows in units."""

        def read() -> Answer:
            unit = self._unit()
            if unit is None or not keeps_gram(self._sketch):
                return self.sketch_._answer()
            return answer_in_units(self.sketch_, unit)

        answer: Answer = self._once("read", read)
        return answer

    @property
    def certificate_(self) -> Certificate:
        """Certificate: what is certain about the rows, with its error bounds; print it."""
        certificate: Certificate = self._once("certificate_", lambda: self._read().certificate)
        return certificate

    @property
    def plan_(self) -> str:
        """One sentence: how the rows are remembered, why, and in how much memory."""
        return str(self._once("plan_", self._plan))

    def _plan(self) -> str:
        plan = (self.sketch_ if self._waiting else self._sketch).plan()
        if self._unit() is None:
            return plan
        if keeps_gram(self._sketch):
            return f"{plan} Columns are divided by their standard deviations when it is read."
        n_rows = sum(part.X.shape[0] for part in self._waiting) or self._scale_rows
        whose = f"the first {n_rows:,} rows" if n_rows else "all rows"
        return f"{plan} Columns are divided by the standard deviations of {whose} on their way in."

    # Saving

    def compact(self) -> None:
        """Shrink the rows that wait in the sketch, before its state travels."""
        self._sketch.compact()

    def _learned(self, state: State) -> State:
        state = state.with_inner("sketch", self._sketch.state())
        facts: dict[str, Any] = {}
        arrays: dict[str, Array] = {}
        if self._scale is not None:
            facts["unit_rows"], arrays["units"] = self._scale_rows, self._scale.copy()
        if self._columns is not None:
            arrays |= self._columns.arrays()
            facts["measuring"] = self._measuring
        if self._waiting:
            arrays |= FirstRows.joined(self._waiting).arrays()
        return state.with_more(facts, arrays)

    def _recall(self, state: State) -> None:
        super()._recall(state)
        meta: Any = state.meta
        arrays = state.arrays
        if "units" in arrays:
            self._scale = state.array("units", self.n_features_in_)
            self._scale_rows = int(meta["unit_rows"])
        if "moments" in arrays:
            state.array("moments", 3, self.n_features_in_)
            self._columns = ColumnMoments.of_arrays(arrays)
            self._measuring = bool(meta["measuring"])
        waiting = state.behind("waiting.")
        if waiting:
            self._waiting = (FirstRows.of_arrays(waiting),)


def _n_first(n_features: int) -> int:
    """Return how many rows units are taken from."""
    return max(min(FIRST_ROWS, FIRST_ENTRIES // n_features), 1)
