"""Checks of the online estimators beyond the table of parameters: weights and rows."""

from __future__ import annotations

import math
import warnings
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp

from sksketch._typing import Array, Rows, RowsLike
from sksketch.arrays.rows import without_traps
from sksketch.models.base import Estimator
from sksketch.models.checks import are_plain
from sksketch.models.runner import is_dask
from sksketch.online.learner import LARGEST

FEW = 64
# Labels that come in pairs, so that the first of them lets expect the other.
PAIRS: tuple[tuple[object, object], ...] = ((False, True), (0, 1), (-1, 1))


def check_together(p: dict[str, Any]) -> None:
    """Refuse parameters that make no sense beside each other, and warn of a bold start."""
    if p["buffer_rows"] is not None and p["buffer_rows"] < p["sketch_size"]:
        raise ValueError(
            f"buffer_rows is {p['buffer_rows']!r}; give an integer of at least {p['sketch_size']}, "
            "the sketch_size"
        )
    if p["initial_ridge"] == 0.0:
        if p["curvature"] == "loss":
            raise ValueError(
                "initial_ridge is 0, which leaves directions that no row has shown without "
                "curvature; give a small positive number, or curvature='gradient' for RFD0"
            )
        if p["method"] != "rfd":
            raise ValueError(
                f"initial_ridge=0 leaves {p['method']!r} without a curvature; give 'auto' or a "
                "positive number, or take method='rfd'"
            )
        warnings.warn(
            "without an initial ridge the first steps can be wild, and the result depends on "
            "the order of the rows; initial_ridge='auto' is steadier",
            stacklevel=6,
        )


def refuse_dask(estimator: Estimator, X: object) -> None:
    """Refuse partitions, which are learned from apart; `shard_template` says why not."""
    if is_dask(X):
        estimator.shard_template()


def checked_weights(weights: RowsLike | None, n_rows: int) -> Array:
    """Return one weight for each row; unlike scikit-learn's check, a block may have none."""
    if weights is None:
        return np.ones(n_rows)
    plain = np.asarray(without_traps(weights))
    if plain.dtype.kind == "c":
        raise TypeError("sample_weight holds complex numbers; give real ones")
    given = plain.astype(np.float64)
    found = np.full(n_rows, given) if given.ndim == 0 else given
    if found.shape != (n_rows,):
        raise ValueError(
            f"sample_weight has the shape {found.shape}, expected one number for each of {n_rows} "
            "rows"
        )
    if not np.isfinite(found).all() or (found < 0).any():
        raise ValueError("sample_weight has a number that is negative, NaN or infinite")
    return found


def check_size(X: Rows) -> float:
    """Return the size of the largest entry, if it is finite and not too large."""
    largest = largest_of(X)
    if math.isnan(largest) or math.isinf(largest):
        raise ValueError("Input X contains NaN or infinity; drop or impute such rows")
    if largest > LARGEST:
        raise ValueError(f"a value of {largest:.3g} is too large to learn from; scale the columns")
    return largest


def need_no_check(estimator: object, X: Any, y: Any) -> bool:
    """Return whether rows and targets are such that only `check_size` could refuse them."""
    return (
        are_plain(estimator, X, y)
        and X.dtype == np.float64
        and y.dtype.kind in "biuf"
        and bool(np.isfinite(y).all())
    )


def largest_of(X: Any) -> float:
    """Return the size of the largest entry, NaN if there is one.

    >>> largest_of(np.array([[1.0, -3.0]]))
    3.0
    """
    values = X.data if sp.issparse(X) else X
    if values.size > FEW:
        return float(max(values.max(), -values.min()))
    # Reductions of numpy take longer to begin than a few numbers to be looked at.
    few = values.ravel().tolist()
    return math.nan if math.isnan(sum(few)) else max(map(abs, few), default=0.0)


def running_sum(total: float, terms: Array) -> float:
    """Return a sum after more terms, one after the other, so that blocks do not change its bits.

    >>> running_sum(1.0, np.array([2.0, 3.0]))
    6.0
    """
    return float(running_sums(total, terms)[-1])


def running_sums(total: float, terms: Array) -> Array:
    """Return a sum before and after each of more terms.

    >>> running_sums(1.0, np.array([2.0, 3.0]))
    array([1., 3., 6.])
    """
    return np.asarray(np.add.accumulate(np.append(total, terms)))


def check_classes(classes: RowsLike, known: Array) -> None:
    """Refuse other labels than those that learning began with."""
    found = np.unique(np.asarray(classes))
    if not np.array_equal(known, found):
        raise ValueError(
            f"classes are {found.tolist()}, but learning began with {known.tolist()}; give the same"
        )


def first_labels(y: object) -> tuple[Array, int | None]:
    """Return the labels to begin with, and the place of the one that is only expected, if any.

    >>> first_labels(1)
    (array([0, 1]), 0)
    >>> first_labels("ham")
    (array(['ham'], dtype='<U3'), None)
    """
    pairs = (p for p in PAIRS if any(y == label and type(y) is type(label) for label in p))
    labels = next(pairs, (y,))
    # Another label may come in its place.
    return np.array(labels), 1 - labels.index(y) if len(labels) == 2 else None


def labels_with(
    y: object, classes: Array, guess: int | None, *, is_open: bool
) -> tuple[Array, int | None]:
    """Return the labels with one that may be new, and the place of one that is only expected.

    >>> labels_with("c", np.array(["a", "b"]), None, is_open=True)[0]
    array(['a', 'b', 'c'], dtype='<U1')
    """
    labels = classes.tolist()
    if guess is not None and y != labels[1 - guess]:
        labels[guess], guess = y, None
    elif y not in labels:
        labels.append(y)
    if labels == classes.tolist():
        return classes, guess
    found = np.array(labels)
    if not is_open or found.dtype.kind != classes.dtype.kind:
        refuse_label(y, classes)
    return found, guess


def check_labels(y: Array, classes: Array, *, several: bool) -> None:
    """Refuse labels that are not among the classes, and where asked a class by itself."""
    if several and len(classes) < 2:
        raise ValueError(f"got one class, {classes.tolist()[0]!r}; two or more are needed to learn")
    strange = ~np.isin(y, classes)
    if strange.any():
        refuse_label(np.asarray(y)[strange].tolist()[0], classes)


def refuse_label(label: object, classes: Array) -> NoReturn:
    """Refuse a label that was not named."""
    raise ValueError(
        f"the label {label!r} is not one of {classes.tolist()}; name all labels as classes at the "
        "first partial_fit"
    )


def signs(classes: Array, y: RowsLike) -> Array:
    """Return 1 and -1: for the second of two labels, or for each of several.

    >>> signs(np.array(["ham", "spam"]), ["spam", "ham"])
    array([[ 1.],
           [-1.]])
    """
    positive = classes if len(classes) > 2 else classes[1:2]
    labels = np.asarray(y)
    columns = np.full((len(labels), max(len(positive), 1)), -1.0)
    columns[:, : len(positive)][labels[:, None] == positive] = 1.0
    return columns


def given_classes(classes: RowsLike | None) -> Array:
    """Return the labels that will come, in order."""
    if classes is None:
        raise ValueError("classes must be given at the first call of partial_fit")
    found = np.unique(np.asarray(classes))
    if len(found) < 2:
        raise ValueError(f"classes are {found.tolist()}; two or more are needed to learn")
    return found
