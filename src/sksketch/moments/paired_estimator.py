"""Base of what is read from two views of the same rows."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_consistent_length

from sksketch._typing import Array, Rows, RowsLike
from sksketch.arrays.namespace import precision
from sksketch.arrays.rows import times
from sksketch.exceptions import NotMergeableError
from sksketch.models.checks import checked_array, checked_rows, host_rows
from sksketch.models.constraints import NOTHING, SKETCH, SKETCH_KEY, Constraints, whole
from sksketch.models.runner import is_dask, lazily
from sksketch.models.scikit_learn import preserving_precision
from sksketch.models.sketched import SketchEstimator
from sksketch.moments.balance import Balance
from sksketch.moments.views import Views, read_views
from sksketch.sketches import Centered, ExactCovariance, Sketch, make_sketch
from sksketch.sketches.merging import refuse_mismatch
from sksketch.sketches.planning import exact_or_sketch
from sksketch.state.persistence import State

FEWEST_KEPT = 64


class PairedEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, SketchEstimator):
    """An estimator that is read from one centered sketch of two views side by side.

    A sketch takes rows ``[x, b y]`` with b a power of two that makes both views about as long, from
    the first rows; the exact covariance takes them as they are.
    """

    _shared_constraints: ClassVar[Constraints] = {
        "n_components": (whole(1),),
        "sketch": (SKETCH_KEY, SKETCH),
        "sketch_size": (whole(1), NOTHING),
    }
    n_components: int
    sketch: str | Sketch
    sketch_size: int | None
    n_features_y_: int
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

    def _units(self) -> Balance:
        return Balance(self.n_features_in_)

    def _views(self, ridge: float = 0.0) -> Views:
        def read() -> Views:
            sketch, units = self.sketch_, self._units()
            assert isinstance(sketch, Centered)
            if sketch.total_weight <= 0.0:
                raise ValueError("all rows so far have weight zero; give some that count")
            balance = units.of_second(self._intake.scale_now(units))
            return read_views(sketch, self.n_features_in_, balance, ridge)

        views: Views = self._once(f"views {ridge}", read)
        return views

    # Parts of the rows

    def _absorb(self, other: Self) -> None:
        if "_sketch" not in self.__dict__:
            self.n_features_y_, self._one_column = other.n_features_y_, other._one_column
        elif self.n_features_y_ != other.n_features_y_:
            raise NotMergeableError(
                f"cannot merge second views of {self.n_features_y_} and {other.n_features_y_} "
                "columns; fit both for the same"
            )
        else:
            # Also if their rows still wait.
            refuse_mismatch(self._sketch, other._sketch)
        super()._absorb(other)

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
        facts = {"n_features_y": self.n_features_y_, "one_column": self._one_column}
        return super()._learned(state).with_more(facts, {})

    def _recall(self, state: State) -> None:
        super()._recall(state)
        meta: Any = state.meta
        self.n_features_y_, self._one_column = int(meta["n_features_y"]), bool(meta["one_column"])
