"""Two views of the same rows: checked, put side by side for one centered sketch, read from it.

A sketch takes rows ``[x, b y]`` with b a power of two that makes both views about as long, see
`Balance`; the exact covariance takes them as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_consistent_length

from sksketch._typing import Array, Rows, RowsLike
from sksketch.arrays.namespace import precision
from sksketch.arrays.rows import times
from sksketch.models.checks import checked_array, checked_rows, host_rows
from sksketch.models.constraints import NOTHING, SKETCH, SKETCH_KEY, Constraints, whole
from sksketch.models.intake import Intake
from sksketch.models.runner import is_dask, lazily
from sksketch.moments.balance import Balance
from sksketch.moments.views import Views, read_views
from sksketch.sketches import Centered, ExactCovariance, Sketch, make_sketch
from sksketch.sketches.planning import exact_or_sketch

FEWEST_KEPT = 64

#: What all estimators of two views take.
VIEWS_CONSTRAINTS: Constraints = {
    "n_components": (whole(1),),
    "sketch": (SKETCH_KEY, SKETCH),
    "sketch_size": (whole(1), NOTHING),
}

# What their first rows tell beside their columns.
FACTS = ("n_features_y_", "_one_column")


class OfTwoViews(Protocol):
    """An estimator of one sketch of two views."""

    n_features_in_: int
    n_features_y_: int
    _one_column: bool
    _intake: Intake

    @property
    def sketch_(self) -> Sketch:
        """The sketch."""

    def _units(self) -> Balance: ...

    def _rows(self, X: RowsLike) -> Any: ...

    def _once(self, name: str, compute: Callable[[], Any]) -> Any: ...


def sketch_of_views(
    sketch: str | Sketch, sketch_size: int | None, n_components: int, n_columns: int
) -> Centered:
    """Return an empty sketch for both views, which have ``n_columns`` together.

    >>> sketch_of_views("auto", None, 2, 10)
    <Centered: 0 rows x ? features>
    """
    if isinstance(sketch, Sketch):
        return Centered(sketch.fresh())
    if sketch == "auto" and exact_or_sketch("coefficients", n_columns).exact:
        return Centered(ExactCovariance())
    size = sketch_size or max(FEWEST_KEPT, 4 * int(n_components))
    return Centered(make_sketch("rfd" if sketch == "auto" else sketch, size))


# Rows


def side_by_side(model: OfTwoViews, X: RowsLike, y: RowsLike | None, *, reset: bool) -> Any:
    """Return checked rows of both views as rows of one table; note their columns."""
    rows = checked_rows(model, host_rows(X), reset=reset, all_finite=False)
    others = second_view(model, y, reset=reset)
    check_consistent_length(rows, others)
    if sp.issparse(rows) or sp.issparse(others):
        return sp.csr_array(sp.hstack([rows, others], format="csr"))
    return np.hstack([rows, others])


def second_view(model: OfTwoViews, y: RowsLike | None, *, reset: bool) -> Any:
    """Return checked rows of the second view; note their columns."""
    name = type(model).__name__
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
        model.n_features_y_, model._one_column = others.shape[1], column
    elif others.shape[1] != model.n_features_y_:
        raise ValueError(
            f"y has {others.shape[1]} features, but {name} is expecting "
            f"{model.n_features_y_} features as input"
        )
    return others


def check_enough(rows: Rows) -> None:
    """Refuse a single row."""
    if rows.shape[0] < 2:
        raise ValueError(f"got {rows.shape[0]} sample, expected at least 2: one has no variance")


# Answers


def views_of(model: OfTwoViews, ridge: float = 0.0) -> Views:
    """Return both views as the sketch knows them."""

    def read() -> Views:
        sketch, units = model.sketch_, model._units()
        assert isinstance(sketch, Centered)
        if sketch.total_weight <= 0.0:
            raise ValueError("all rows so far have weight zero; give some that count")
        balance = units.of_second(model._intake.scale_now(units))
        return read_views(sketch, model.n_features_in_, balance, ridge)

    views: Views = model._once(f"views {ridge}", read)
    return views


def scores_of(rows: Any, mean: Array, weights: Array) -> Any:
    """Return rows around a mean times weights, in the precision of the rows.

    >>> scores_of(np.eye(2), np.array([1.0, 0.0]), np.array([[2.0], [3.0]]))
    array([[0.],
           [1.]])
    """
    found = times(rows, weights) - mean @ weights
    return found.astype(precision(rows), copy=False)


def transformed(
    model: OfTwoViews, X: RowsLike, y: RowsLike | None, weights: tuple[Array, Array]
) -> Any:
    """Return the scores of rows of the first view, or of both."""
    views = views_of(model)
    scores = scores_of(model._rows(host_rows(X)), views.x.mean, weights[0])
    if y is None:
        return scores
    others = second_view(model, y, reset=False)
    return scores, scores_of(others, views.y.mean, weights[1])


def lazily_one_view(model: OfTwoViews, method: str, X: RowsLike, y: RowsLike | None) -> Any:
    """Return an answer of dask for rows of dask; None for others."""
    if not is_dask(X):
        return None
    if y is not None:
        raise ValueError("rows of dask are transformed one view at a time; leave y out")
    return lazily(model, method, X)
