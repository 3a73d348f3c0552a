"""Missing values: refused, filled with the mean so far, or dropped with their row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from sksketch._typing import Array, Matrix
from sksketch.arrays.kernels import hole_kernels
from sksketch.exceptions import Option, SourceError
from sksketch.streams.columns import is_table

MISSING = ("error", "mean", "drop")
# One number for all columns, or one for each.
FILL = "fill"
# Left to whoever gets the rows.
UNCHECKED = "unchecked"


class Resolved(NamedTuple):
    """Rows without missing values, how many values were missing, and how many rows were dropped."""

    X: Any
    y: Any
    n_missing: int
    n_dropped: int
    sample_weight: Any = None


class Missing:
    """Deals with the NaN of consecutive blocks of rows, in one pass.

    Under "mean" a missing value becomes the mean of the values above it in its column, and
    of the first value in the same block where there is none above. Sums run from row to row,
    so that the cuts between blocks change nothing else.
    """

    def __init__(
        self,
        mode: str,
        feature_names: list[str] | None,
        target_names: list[str] | None,
        values: Array | None = None,
    ) -> None:
        self._mode, self._values = mode, values
        self._features = feature_names
        self._targets = target_names
        self._sums: Array | None = None
        self._counts: Array | None = None

    def resolve(
        self,
        X: Matrix,
        y: Array | None,
        place: Callable[[int], str],
        weights: Array | None = None,
    ) -> Resolved:
        """Return rows and targets without NaN, and the weights of these rows."""
        if self._mode == UNCHECKED:
            return Resolved(X, y, 0, 0, weights)
        if sp.issparse(X):
            self._check_sparse(X, place)
            holes = None
        elif is_table(X):
            # Whoever encodes it fills the holes, unless rows with any are not wanted.
            holes = _holes_of_table(X) if self._mode == "drop" else None
        else:
            holes = self._holes(X, self._features, "column", place)
        y_holes = None if y is None else self._holes(y, self._targets, "target", place)
        n_missing = sum(int(h.sum()) for h in (holes, y_holes) if h is not None)
        if self._mode == "mean":
            if y_holes is not None:
                self._refuse(y_holes, self._targets, "target", place)
            return Resolved(self._with_means(X, holes, place), y, n_missing, 0, weights)
        if self._mode == FILL:
            if y_holes is not None:
                self._refuse(y_holes, self._targets, "target", place)
            return Resolved(self._filled(X, holes), y, n_missing, 0, weights)
        if not n_missing:
            return Resolved(X, y, 0, 0, weights)
        if self._mode == "error":
            if holes is not None:
                self._refuse(holes, self._features, "column", place)
            self._refuse(y_holes, self._targets, "target", place)
        bad = np.zeros(X.shape[0], dtype=bool)
        for found in (holes, y_holes):
            if found is not None:
                bad |= found.reshape(len(bad), -1).any(axis=1)
        y, weights = (None if part is None else part[~bad] for part in (y, weights))
        rows: Any = X
        left = rows.filter(~bad) if is_table(X) else rows[~bad]
        return Resolved(left, y, n_missing, int(bad.sum()), weights)

    def _holes(
        self, values: Any, names: list[str] | None, what: str, place: Callable[[int], str]
    ) -> Array | None:
        """Return where values are missing, or None if all are there; infinite ones are refused."""
        if isinstance(values, np.ndarray) and values.dtype.kind == "O":
            lost = np.asarray(values == None, dtype=np.bool_)  # noqa: E711  (by elements)
            return lost if lost.any() else None
        if _all_finite(values):
            return None
        endless = np.isinf(values)
        if endless.any():
            row, column = np.argwhere(endless.reshape(len(values), -1))[0]
            label = f"{what} {column}" if names is None else f"{what} {names[column][:40]!r}"
            raise SourceError(
                f"infinite value in {label}; repair it, or leave it empty to treat it as missing",
                place=place(int(row)),
                column=int(column) if names is None else names[column],
            )
        holes = np.isnan(values)
        return holes if holes.any() else None

    def _refuse(
        self, holes: Any, names: list[str] | None, what: str, place: Callable[[int], str]
    ) -> None:
        row, column = np.argwhere(np.reshape(holes, (len(holes), -1)))[0]
        label = f"{what} {column}" if names is None else f"{what} {names[column][:40]!r}"
        raise SourceError(
            f"missing value in {label}; pass ",
            Option("missing", *(("drop",) if what == "target" else ("mean", "drop"))),
            place=place(int(row)),
            column=int(column) if names is None else names[column],
        )

    def _check_sparse(self, X: sp.csr_array, place: Callable[[int], str]) -> None:
        if _all_finite(X.data):
            return
        bad = np.flatnonzero(~np.isfinite(X.data))
        if len(bad):
            entry = int(bad[0])
            row = int(np.searchsorted(X.indptr, entry, side="right")) - 1
            column = int(X.indices[entry])
            what = "NaN" if np.isnan(X.data[entry]) else "infinite value"
            raise SourceError(
                f"{what} in column {column} of sparse rows; leave the entry out if it is zero, or "
                "drop the row",
                place=place(row),
                column=column,
            )

    def _with_means(self, X: Matrix, holes: Array | None, place: Callable[[int], str]) -> Any:
        if sp.issparse(X) or is_table(X) or not len(X):
            return X
        if self._sums is None or self._counts is None:
            self._sums, self._counts = np.zeros(X.shape[1]), np.zeros(X.shape[1], np.int64)
        if holes is None:
            hole_kernels().add_rows_inplace(X, self._sums)
            self._counts += len(X)
            return X
        new = np.flatnonzero(self._counts == 0)
        empty = new[holes[:, new].all(axis=0)]
        if len(empty):
            self._refuse_empty(int(empty[0]), len(X), place)
        firsts = np.zeros(X.shape[1])
        firsts[new] = X[np.argmin(holes[:, new], axis=0), new]
        X = np.array(X)
        hole_kernels().fill_means_inplace(X, self._sums, self._counts, firsts)
        return X

    @property
    def means(self) -> Array | None:
        """Mean of every column so far; None if nobody wanted to know."""
        if self._sums is None or self._counts is None:
            return None
        return self._sums / np.maximum(self._counts, 1)

    def _filled(self, X: Matrix, holes: Array | None) -> Any:
        """Return rows with values given before in place of the missing ones."""
        if holes is None:
            return X
        filled: Any = np.array(X)
        filled[holes] = np.broadcast_to(np.asarray(self._values), filled.shape)[holes]
        return filled

    def _refuse_empty(self, column: int, n_rows: int, place: Callable[[int], str]) -> None:
        name = column if self._features is None else self._features[column]
        raise SourceError(
            f"column {name!r} has no value in the first {n_rows} rows, so it has no mean; leave "
            "the column out, or pass ",
            Option("missing", "drop"),
            place=place(0),
            column=name,
        )


def _holes_of_table(table: Any) -> Array | None:
    """Return which rows of an Arrow table have how many holes, as one column."""
    counts = np.zeros(len(table), dtype=np.int64)
    for column in table.columns:
        counts += column.is_null(nan_is_null=True).to_numpy()
    return counts if counts.any() else None


def _all_finite(X: Matrix) -> bool:
    """Return in one fast pass whether an array of numpy has only finite numbers, for certain."""
    if not isinstance(X, np.ndarray) or X.dtype.kind != "f" or not X.size:
        return True
    with np.errstate(all="ignore"):
        # The sum of large numbers may overflow as well, which a closer look tells.
        return bool(np.isfinite(X.sum()))
