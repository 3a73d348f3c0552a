"""Parameters of estimators: what they may be, and as text for a saved file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from sksketch.arrays.device_sparse import is_sparse_on_device
from sksketch.arrays.namespace import finite, on_device, to_numpy
from sksketch.arrays.rows import as_rows, laid_out, without_traps
from sksketch.exceptions import NotMergeableError
from sksketch.sketches import Sketch


def checked_rows(estimator: Any, X: Any, *, reset: bool, all_finite: bool = True) -> Any:
    """Return rows as numpy, CSR, or as they are on their device; the estimator hears of them.

    They are laid out unless it is left to a sketch to look at them, which does so in pieces.
    """
    if not (reset or all_finite) and is_plain(estimator, X):
        return without_traps(X)
    if not (on_device(X) or is_sparse_on_device(X)):
        rows = validate_data(
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


def is_plain(estimator: Any, X: Any) -> bool:
    """Say whether `validate_data` would only look at X, but for values that are not finite.

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


def are_plain(estimator: Any, X: Any, y: Any) -> bool:
    """Say the same of rows and one target for each."""
    return is_plain(estimator, X) and type(y) is np.ndarray and y.shape == X.shape[:1]


def checked_on_device(X: Any, *, all_finite: bool = True) -> Any:
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


def host_rows(X: Any) -> Any:
    """Return rows of a device in numpy or scipy, for what is done on the host; refuse traps."""
    if is_sparse_on_device(X):
        return as_rows(X).on_host()
    return to_numpy(X) if on_device(X) else without_traps(X)


@contextmanager
def or_as_before(estimator: Any) -> Iterator[None]:
    """Bring back what the estimator had learned before if the body fails."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


def check_choice(name: str, value: Any, known: Any) -> None:
    """Refuse what is not one of those known."""
    if value not in known:
        raise ValueError(f"{name} is {value!r}; give one of {', '.join(map(repr, known))}")


def check_whole(name: str, value: Any, least: int) -> None:
    """Refuse what is not a whole number from ``least`` on."""
    if not isinstance(value, Integral) or str(value) == "True" or int(value) < least:
        raise ValueError(f"{name} is {value!r}; give an integer of at least {least}")


def seed_of(random_state: Any) -> int:
    """Return a seed: an integer as it is, or a number drawn from a generator."""
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def as_text(value: Any) -> str:
    """Return a parameter as JSON."""
    if isinstance(value, dict):
        # JSON has only strings for keys.
        value = [[_plain(key), _plain(part)] for key, part in value.items()]
        return json.dumps({"pairs": value})
    return json.dumps(_plain(value))


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def from_text(text: str) -> Any:
    """Return the parameter that `as_text` was given."""
    value = json.loads(text)
    return dict(map(tuple, value["pairs"])) if isinstance(value, dict) else value


def check_ageless(sketch: Sketch) -> Sketch:
    """Refuse a sketch that forgets: parts that are learned side by side have no order."""
    if sketch.decay < 1.0:
        raise NotMergeableError(
            "forgetting counts rows in their order, and parts are learned side by side; drop "
            "decay and half_life, or use fit_stream"
        )
    return sketch
