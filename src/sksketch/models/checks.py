"""Rows on their way into an estimator: checked once, laid out, on the host where needed."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any, TypeVar

import narwhals as nw
import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from sksketch._typing import Array, OneRow, Rows, RowsLike
from sksketch.arrays.device_sparse import is_sparse_on_device
from sksketch.arrays.namespace import finite, on_device, to_numpy
from sksketch.arrays.rows import as_rows, columns_without_numbers, laid_out, without_traps
from sksketch.exceptions import NotMergeableError
from sksketch.models.base import or_as_before
from sksketch.sketches import Sketch

Model = TypeVar("Model", bound=Any)


def checked_rows(estimator: BaseEstimator, X: Any, *, reset: bool, all_finite: bool = True) -> Any:
    """Return rows as numpy, CSR, or as they are on their device; note their columns.

    They are laid out unless it is left to a sketch to look at them, which does so tile by tile.
    """
    if not (reset or all_finite) and is_plain(estimator, X):
        return without_traps(X)
    if not (on_device(X) or is_sparse_on_device(X)):
        rows = validated(
            estimator,
            without_traps(X),
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            reset=reset,
            ensure_all_finite=all_finite,
        )
        return laid_out(rows) if all_finite else rows
    rows = checked_on_device(X, all_finite=all_finite)
    if reset:
        estimator.__dict__.pop("feature_names_in_", None)
        estimator.n_features_in_ = rows.shape[1]
    elif rows.shape[1] != estimator.n_features_in_:
        raise ValueError(
            f"X has {rows.shape[1]} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input"
        )
    return rows


def validated(estimator: BaseEstimator, X: Rows, *y: object, **options: object) -> Any:
    """Return what scikit-learn's `validate_data` does, or name the columns that are not numbers."""
    try:
        return validate_data(estimator, X, *y, **options)
    except (TypeError, ValueError) as error:
        others = columns_without_numbers(X)
        # Another number of columns than was learned from is another mistake, and a column of
        # objects may hold numbers.
        known = None if options.get("reset", True) else estimator.n_features_in_
        if not others or known not in (None, X.shape[1]) or _are_numbers(X, list(others)):
            raise
        kinds = [(name, kind.split("(")[0].lower()) for name, kind in others.items()]
        named = ", ".join(f"{name!r} ({kind})" for name, kind in kinds[:5])
        more = f" and {len(others) - 5} more" if len(others) > 5 else ""
        raise ValueError(
            f"columns are not numbers: {named}{more}; drop them, or make numbers of them with "
            f"make_pipeline(TableEncoder(), {type(estimator).__name__}(...))"
        ) from error


def _are_numbers(frame: Any, columns: list[str]) -> bool:
    chosen = nw.from_native(frame, eager_only=True).select(columns)
    try:
        np.asarray(chosen.to_numpy(), dtype=np.float64)
    except (TypeError, ValueError):
        return False
    return True


def is_plain(estimator: object, X: Any) -> bool:
    """Return whether `validate_data` would only look at X, but for values that are not finite.

    It takes about a millisecond to find that out, as long as it takes to learn from many rows.
    """
    return (
        type(X) in (np.ndarray, sp.csr_array, sp.csr_matrix)
        and X.dtype in (np.float64, np.float32)
        and X.ndim == 2
        and X.shape[0] > 0
        and X.shape[1] == getattr(estimator, "n_features_in_", None)
        and not hasattr(estimator, "feature_names_in_")
    )


def are_plain(estimator: object, X: Any, y: Any) -> bool:
    """Say the same of rows and one target for each."""
    return is_plain(estimator, X) and type(y) is np.ndarray and y.shape == X.shape[:1]


def checked_on_device(X: Rows, *, all_finite: bool = True) -> Any:
    """Return rows of torch or cupy, dense or sparse, in floating-point numbers, or refuse them."""
    if X.ndim != 2:
        raise ValueError(f"expected a 2-D array of rows, got {X.ndim}-D; reshape it")
    if 0 in X.shape:
        raise ValueError(
            f"found array with {X.shape[0]} sample(s) and {X.shape[1]} feature(s), expected at "
            "least one of each"
        )
    rows = as_rows(X)
    if all_finite and not finite(rows.data if is_sparse_on_device(X) else rows):
        raise ValueError("input X contains NaN or infinity; drop or impute such rows")
    return rows


def checked_array(X: Rows, name: str) -> Any:
    """Return rows in numpy or CSR, checked in full, that the estimator does not count."""
    return check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32], input_name=name)


def host_rows(X: RowsLike | None) -> Any:
    """Return rows of a device in numpy or scipy, for what is done on the host; refuse traps."""
    if is_sparse_on_device(X):
        return as_rows(X).on_host()
    return to_numpy(X) if on_device(X) else without_traps(X)


def one_row(estimator: object, x: OneRow) -> Array:
    """Return one row for an estimator, the values of a mapping in the order of its columns."""
    known = getattr(estimator, "feature_names_in_", None)
    n_features = getattr(estimator, "n_features_in_", None)
    if isinstance(x, Mapping):
        given = {str(name): value for name, value in x.items()}
        names = list(given) if n_features is None else range(n_features) if known is None else known
        expected = [str(name) for name in names]
        if given.keys() != set(expected):
            raise ValueError(
                f"got columns {list(x)[:5]}, expected {expected[:5]} as in the first row"
            )
        x = [given[name] for name in expected]
    row = np.asarray(to_numpy(x), dtype=np.float64).reshape(1, -1)
    if n_features not in (None, row.shape[1]):
        raise ValueError(
            f"X has {row.shape[1]} features, but {type(estimator).__name__} is expecting "
            f"{n_features} features as input"
        )
    if not np.isfinite(row).all():
        place = int(np.flatnonzero(~np.isfinite(row))[0])
        raise ValueError(f"column {place} of the row is {row[0, place]}; drop or impute such rows")
    return row


def learn_one(self: Model, x: OneRow) -> Model:
    """Learn from one row, as models of River do.

    Parameters
    ----------
    x : mapping of names to numbers, or array-like of shape (n_features,)
        The row; the names of the first one are the columns.

    Returns
    -------
    self
        This estimator.
    """
    row = one_row(self, x)
    if self._fitted not in self.__dict__:
        self.partial_fit(row)._take_columns(row.shape[1], _names_of(x))
        return self
    with or_as_before(self):
        self._update(self._sketch, row, None, None)
    return self


def _names_of(x: OneRow) -> list[str] | None:
    """Return the names of the columns of one row; None if they are numbered."""
    names = list(x) if isinstance(x, Mapping) else []
    return None if names == list(range(len(names))) else [str(name) for name in names]


def one_each(weights: object, n_rows: int) -> Any:
    """Return weights of rows; a single number is that of all.

    >>> one_each(2.0, 3), one_each(None, 3)
    (array([2., 2., 2.]), None)
    """
    return np.full(n_rows, float(weights)) if isinstance(weights, Real) else weights


def as_precise(found: Array, X: object) -> Array:
    """Return answers in single precision where the rows are in it.

    >>> as_precise(np.ones(1), np.ones((1, 2), dtype=np.float32)).dtype
    dtype('float32')
    """
    dtype = getattr(X, "dtype", None) if isinstance(X, np.ndarray) or sp.issparse(X) else None
    return found.astype(np.float32) if dtype == np.float32 else found


def check_ageless(sketch: Sketch) -> Sketch:
    """Refuse a sketch that forgets: parts that are learned side by side have no order."""
    if sketch.decay < 1.0:
        raise NotMergeableError(
            "forgetting counts rows in their order, and parts are learned side by side; drop "
            "decay and half_life, or use fit_stream"
        )
    return sketch
