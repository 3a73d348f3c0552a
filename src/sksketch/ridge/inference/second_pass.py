"""The rows of a second pass: those of `fit`, while they are there, or given once more."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable
from typing import Any

from sksketch._typing import RowsLike
from sksketch.models.checks import one_each
from sksketch.models.runner import fit_dask, is_dask
from sksketch.ridge.inference.robust import RobustPass, numbers_of
from sksketch.streams import RowSource, open_rows

NEEDED = (
    "{!r} standard errors need a second look at the rows, which are not kept: give them once more, "
    "as X and y, or as source, or let fit_stream, fit_dask or fit_spark run "
    "robust_pass({!r}) and give that as second_pass"
)


# For least squares what is no larger is kept; of more there is only a weak reference.
KEPT_BYTES = 32 << 20


class SeenRows:
    """The rows `fit` was called with: if they are few, or as long as somebody else keeps it.

    Copies through a file or a pickle know nothing of it.

    >>> import numpy as np
    >>> X = np.ones((2, 1))
    >>> seen = SeenRows(X, [1.0, 2.0], None)
    >>> seen()[0] is X
    True
    >>> del X
    >>> seen() is None
    True
    """

    def __init__(self, *parts: object, keeps_small: bool = False) -> None:
        small = keeps_small and sum(map(_n_bytes, parts)) <= KEPT_BYTES
        self._parts = tuple(_reference(part, small) for part in parts)

    def __call__(self) -> tuple[Any, ...] | None:
        """Return the rows, targets and weights, or None if they are gone."""
        found = tuple(part() for part, _ in self._parts)
        pairs = zip(found, self._parts, strict=True)
        gone = any(kept and part is None for part, (_, kept) in pairs)
        return None if gone or not found else found

    def __reduce__(self) -> tuple[Any, ...]:
        return SeenRows, ()

    def __deepcopy__(self, memo: object) -> SeenRows:
        return self


def _n_bytes(part: object) -> float:
    if is_dask(part) or part is None:
        return 0.0
    shape = getattr(part, "shape", None)
    shape = (len(part) if hasattr(part, "__len__") else 0,) if shape is None else shape
    return 8.0 * float(getattr(part, "nnz", math.prod(shape)))


def _reference(part: object, small: bool) -> tuple[Callable[[], Any], bool]:
    """Return a function that gives the part while it exists, and whether there is one."""
    if part is None or small or isinstance(part, list | tuple):
        return (lambda: part), part is not None
    try:
        return weakref.ref(part), True
    except TypeError:
        return (lambda: None), True


def run_over(
    second: RobustPass,
    seen: SeenRows | None,
    rows: tuple[RowsLike | None, RowsLike | None, RowsLike | None],
    groups: object,
    source: object,
    checked: Callable[[Any, Any], tuple[Any, Any]],
) -> RobustPass:
    """Give all rows to the second pass: of a source, of arguments, or of `fit`.

    ``checked`` makes arrays of rows and targets.
    """
    if source is not None:
        opened = source if isinstance(source, RowSource) else open_rows(source)
        for block in opened.blocks():
            assert block.y is not None
            second.partial_fit(block.X, block.y, block.sample_weight)
        return second
    X, y, weights = rows
    if X is None and seen is not None and (found := seen()) is not None:
        X, y, weights = found
    if X is None or y is None:
        raise ValueError(NEEDED.format(second.covariance, second.covariance))
    if second.covariance == "cluster" and groups is None and not is_dask(X):
        raise ValueError(
            "standard errors by clusters need the group of each row; give groups, one for each row"
        )
    if is_dask(X):
        fitted: RobustPass = fit_dask(second, X, y, weights)
        return fitted
    arrays, targets = checked(X, y)
    weights = one_each(weights, arrays.shape[0])
    second.partial_fit(arrays, targets, weights, None if groups is None else numbers_of(groups))
    return second
