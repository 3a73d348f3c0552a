"""Base of what is read from two views of the same rows."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_consistent_length

from sksketch._typing import Array, Rows, RowsLike
from sksketch.arrays.namespace import precision
from sksketch.arrays.rows import as_rows, times
from sksketch.arrays.sparse import in_units
from sksketch.exceptions import NotMergeableError
from sksketch.models.checks import checked_array, checked_rows, host_rows
from sksketch.models.constraints import NOTHING, SKETCH, SKETCH_KEY, Constraints, whole
from sksketch.models.first_rows import FirstRows
from sksketch.models.runner import is_dask, lazily
from sksketch.models.scikit_learn import preserving_precision
from sksketch.models.sketched import SketchEstimator
from sksketch.models.standardized import keeps_gram
from sksketch.moments.views import Views, read_views
from sksketch.sketches import Centered, ExactCovariance, Sketch, make_sketch
from sksketch.sketches.column_moments import ColumnMoments
from sksketch.sketches.planning import exact_or_sketch
from sksketch.state.persistence import State

# Rows whose sizes balance the two views, unless all are known.
FIRST_ROWS = 1000
FEWEST_KEPT = 64


class PairedEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, SketchEstimator):
    """An estimator that is read from one centered sketch of two views side by side.

    A sketch takes rows ``[x, b y]`` with b a power of two that makes both views about as long, from
    the first rows; the exact covariance takes them as they are.
    """

    _fitted = "_sketch"
    _shared_constraints: ClassVar[Constraints] = {
        "n_components": (whole(1),),
        "sketch": (SKETCH_KEY, SKETCH),
        "sketch_size": (whole(1), NOTHING),
    }
    n_components: int
    sketch: str | Sketch
    sketch_size: int | None
    n_features_y_: int
    _sketch: Centered
    _balance: float | None = None
    _waiting: tuple[FirstRows, ...] = ()
    _one_column: bool = False

    def _sketch_for(self, n_features: int) -> Sketch:
        if isinstance(self.sketch, Sketch):
            return Centered(self.sketch.fresh())
        if self.sketch == "auto" and exact_or_sketch("coefficients", n_features).exact:
            return Centered(ExactCovariance())
        size = self.sketch_size or max(FEWEST_KEPT, 4 * int(self.n_components))
        return Centered(make_sketch("rfd" if self.sketch == "auto" else self.sketch, size))

    def __sklearn_tags__(self) -> Tags:
        tags = preserving_precision(super().__sklearn_tags__())
        tags.target_tags.required = True
        return tags

    # Rows

    def _checked(self, X: RowsLike, y: RowsLike | None, reset: bool) -> tuple[Any, Any]:
        rows = checked_rows(self, host_rows(X), reset=reset, all_finite=False)
        others = self._checked_other(y, reset=reset)
        check_consistent_length(rows, others)
        if sp.issparse(rows) or sp.issparse(others):
            return sp.csr_array(sp.hstack([rows, others], format="csr")), None
        return np.hstack([rows, others]), None

    def _checked_other(self, y: RowsLike | None, *, reset: bool) -> Any:
        name = type(self).__name__
        if y is None:
            raise ValueError(
                f"{name} requires y to be passed, but the target y is None: give the rows of the "
                "second view"
            )
        plain = host_rows(y)
        plain = plain if getattr(plain, "ndim", 1) == 2 else np.asarray(plain)
        column = plain.ndim == 1
        others = checked_array(plain.reshape(-1, 1) if column else plain, "y")
        if reset:
            self.n_features_y_, self._one_column = others.shape[1], column
        elif others.shape[1] != self.n_features_y_:
            raise ValueError(
                f"y has {others.shape[1]} features, but {name} is expecting "
                f"{self.n_features_y_} features as input"
            )
        return others

    def _check_enough(self, rows: Rows) -> None:
        if rows.shape[0] < 2:
            raise ValueError(
                f"got {rows.shape[0]} sample, expected at least 2: one has no variance"
            )

    def _look(self, sketch: Sketch, rows: Rows, sample_weight: RowsLike | None) -> None:
        self._waiting = ()
        self._balance = None
        if not keeps_gram(sketch):
            self._balance = self._balance_of(FirstRows.of(as_rows(rows), None, sample_weight))

    def _balance_of(self, rows: FirstRows) -> float:
        """Return the power of two that makes the second view about as long as the first."""
        rows.check()
        columns = ColumnMoments.empty(rows.X.shape[1]).updated(rows.X, rows.weights)
        scales = np.where(columns.squares > 0.0, columns.scale(), 0.0)
        x, y = (float(np.linalg.norm(part)) for part in np.split(scales, [self.n_features_in_]))
        return 2.0 ** round(math.log2(x / y)) if x > 0.0 and y > 0.0 else 1.0

    def _update(
        self, sketch: Sketch, rows: Rows, targets: Array | None, sample_weight: RowsLike | None
    ) -> None:
        if keeps_gram(sketch):
            sketch.update(rows, weights=sample_weight)
        else:
            given = FirstRows.of(as_rows(rows), None, sample_weight)
            given.check()
            if self._balance is not None:
                self._give_balanced(sketch, given, self._balance)
            else:
                self._wait(sketch, given)
        self._sketch, self._answers = sketch, {}  # type: ignore[assignment]

    def _wait(self, sketch: Sketch, rows: FirstRows) -> None:
        """Keep rows until there are enough of them to balance the views, and let them in then."""
        if sum(part.X.shape[0] for part in (*self._waiting, rows)) < FIRST_ROWS:
            self._waiting = (*self._waiting, rows.owned())
            return
        rows = FirstRows.joined([*self._waiting, rows])
        balance = self._balance_of(rows.head(FIRST_ROWS))
        self._give_balanced(sketch, rows, balance)
        self._balance, self._waiting = balance, ()

    def _give_balanced(self, sketch: Sketch, rows: FirstRows, balance: float) -> None:
        units = np.ones(rows.X.shape[1], dtype=precision(rows.X))
        units[self.n_features_in_ :] = 1.0 / balance
        X = rows.X if balance == 1.0 else in_units(rows.X, units)
        sketch.update(X, weights=rows.weights)

    @property  # type: ignore[override]
    def sketch_(self) -> Centered:
        """The sketch that remembers both views side by side."""
        if "_sketch" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute 'sketch_'")
        if not self._waiting:
            return self._sketch
        sketch: Centered = self._once("sketch_", self._with_waiting)
        return sketch

    @sketch_.setter
    def sketch_(self, sketch: Centered) -> None:
        self._sketch = sketch

    def _with_waiting(self) -> Centered:
        sketch, rows = self._sketch.copy(), FirstRows.joined(self._waiting)
        self._give_balanced(sketch, rows, self._balance_of(rows))
        return sketch

    def _balance_now(self) -> float:
        if self._waiting:
            return self._balance_of(FirstRows.joined(self._waiting))
        return 1.0 if self._balance is None else self._balance

    def _views(self, ridge: float = 0.0) -> Views:
        def read() -> Views:
            sketch = self.sketch_
            if sketch.total_weight <= 0.0:
                raise ValueError("all rows so far have weight zero; give some that count")
            return read_views(sketch, self.n_features_in_, self._balance_now(), ridge)

        views: Views = self._once(f"views {ridge}", read)
        return views

    # Parts of the rows

    def compact(self) -> None:
        """Shrink the rows that wait in the sketch, before its state travels."""
        self._sketch.compact()

    def _absorb(self, other: Self) -> None:
        if "_sketch" not in self.__dict__:
            self._sketch = other._sketch.fresh()
            self._take_columns(other.n_features_in_, getattr(other, "feature_names_in_", None))
            self.n_features_y_, self._one_column = other.n_features_y_, other._one_column
        elif self.n_features_y_ != other.n_features_y_:
            raise NotMergeableError(
                f"cannot merge second views of {self.n_features_y_} and {other.n_features_y_} "
                "columns; fit both for the same"
            )
        sketch = self._sketch.copy()
        if self._balance is None:
            waiting, self._waiting = self._waiting, ()
            sketch.merge(other._sketch)
            self._balance = other._balance
            for part in (*waiting, *other._waiting):
                self._update(sketch, part.X, None, part.weights)
        elif other._balance in (None, self._balance):
            sketch.merge(other._sketch)
            for part in other._waiting:
                self._update(sketch, part.X, None, part.weights)
        else:
            raise NotMergeableError(
                f"the second view of one is multiplied by {self._balance:g}, that of the other by "
                f"{other._balance:g}, each for its own first rows; bring the views to about the "
                "same size, learn both parts in one run, or take sketch='exact'"
            )
        self._sketch = sketch

    # Answers

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components)

    def _scores(self, rows: Any, mean: Array, weights: Array) -> Any:
        """Return rows around a mean times weights."""
        found = times(rows, weights) - mean @ weights
        return found.astype(precision(rows), copy=False)

    def _transformed(self, X: RowsLike, y: RowsLike | None, weights: tuple[Array, Array]) -> Any:
        views = self._views()
        scores = self._scores(self._rows(host_rows(X)), views.x.mean, weights[0])
        if y is None:
            return scores
        others = self._checked_other(y, reset=False)
        return scores, self._scores(others, views.y.mean, weights[1])

    def _lazily(self, method: str, X: RowsLike, y: RowsLike | None) -> Any:
        """Return an answer of dask for rows of dask; None for others."""
        if not is_dask(X):
            return None
        if y is not None:
            raise ValueError("rows of dask are transformed one view at a time; leave y out")
        return lazily(self, method, X)

    # Saving

    def _learned(self, state: State) -> State:
        state = state.with_inner("sketch", self._sketch.state())
        facts: dict[str, Any] = {"n_features_y": self.n_features_y_, "one_column": self._one_column}
        if self._balance is not None:
            facts["balance"] = self._balance
        arrays = FirstRows.joined(self._waiting).arrays() if self._waiting else {}
        return state.with_more(facts, arrays)

    def _recall(self, state: State) -> None:
        super()._recall(state)
        meta: Any = state.meta
        self.n_features_y_, self._one_column = int(meta["n_features_y"]), bool(meta["one_column"])
        if "balance" in meta:
            self._balance = float(meta["balance"])
        waiting = state.behind("waiting.")
        if waiting:
            self._waiting = (FirstRows.of_arrays(waiting),)
