"""What the online estimators accept: parameters, weights and rows."""

from __future__ import annotations

import math
import warnings
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp

from sksketch._typing import Array
from sksketch.arrays.rows import without_traps
from sksketch.models.checks import are_plain, check_choice, check_whole
from sksketch.online.catalog import METHODS
from sksketch.online.learner import LARGEST
from sksketch.online.unridged_newton import RULES

FEW = 64


def check_params(p: dict[str, Any], losses: tuple[str, ...]) -> None:
    """Refuse parameters that mean nothing, naming the first."""
    check_choice("method", p["method"], METHODS)
    check_choice("loss", p["loss"], losses)
    check_choice("null_projection", p["null_projection"], RULES)
    check_whole("sketch_size", p["sketch_size"], 2)
    check_whole("n_passes", p["n_passes"], 1)
    check_whole("random_state", p["random_state"], 0)
    if p["buffer_rows"] is not None:
        check_whole("buffer_rows", p["buffer_rows"], p["sketch_size"])
    if p["hash_size"] is not None:
        check_whole("hash_size", p["hash_size"], 1)
    _positive("fraction", p["fraction"], 1.0)
    _positive("huber_width", p.get("huber_width", 1.0))
    if p["C"] != "auto":
        _positive("C", p["C"])
    ridge = p["initial_ridge"]
    if ridge == "auto":
        return
    if not _is_number(ridge) or not 0 <= ridge < np.inf:
        raise ValueError(f"initial_ridge is {ridge!r}; give 'auto' or a number from 0 on")
    if ridge == 0.0:
        if p["method"] != "rfd":
            raise ValueError(
                f"initial_ridge=0 leaves {p['method']!r} without a curvature; give 'auto' or a "
                "positive number, or take method='rfd'"
            )
        warnings.warn(
            "without an initial ridge the first steps can be wild, and the result depends on "
            "the order of the rows; initial_ridge='auto' is steadier",
            stacklevel=5,
        )


def checked_weights(weights: Any, n_rows: int) -> Array:
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


def check_size(X: Any) -> float:
    """Return the size of the largest entry, if it is finite and not too large."""
    largest = largest_of(X)
    if math.isnan(largest) or math.isinf(largest):
        raise ValueError("Input X contains NaN or infinity; drop or impute such rows")
    if largest > LARGEST:
        raise ValueError(f"a value of {largest:.3g} is too large to learn from; scale the columns")
    return largest


def need_no_check(estimator: Any, X: Any, y: Any) -> bool:
    """Say whether rows and targets are such that only `check_size` could refuse them."""
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


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool | np.bool_)


def _positive(name: str, value: Any, most: float = np.inf) -> None:
    if not _is_number(value) or not 0 < value <= most or value == np.inf:
        upper = "" if most == np.inf else f" up to {most:g}"
        raise ValueError(f"{name} is {value!r}; give a positive number{upper}")


def given_classes(classes: Any) -> Array:
    """Return the labels that will come, in order."""
    if classes is None:
        raise ValueError("classes must be given at the first call of partial_fit")
    found = np.unique(np.asarray(classes))
    if len(found) < 2:
        raise ValueError(f"classes are {found.tolist()}; two or more are needed to learn")
    return found
