"""Single rows: dictionaries, with a column for every name or its hash, or sequences of numbers."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Iterable, Mapping
from numbers import Real
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from sksketch._typing import Array

# Values of these types need no look.
PLAIN = frozenset({float, int})
# A name with its column takes some 360 bytes, and what was learned of it about as much again.
MOST_NAMES, SHARED = 1 << 18, 1 << 16


class NamedColumns:
    """Turns a dictionary of names and numbers into one sparse row.

    Parameters
    ----------
    size : int or None
        None gives every new name the next column, up to 2^18 names; all later ones share 2^16
        more columns by their hash. A number hashes the names to that many columns, which then
        never grow.

    Examples
    --------
    >>> columns = NamedColumns()
    >>> columns.row({"height": 2.0, "width": 3.0}).toarray()
    array([[2., 3.]])
    >>> columns.row({"width": 1.0, "depth": 5.0}).toarray()
    array([[0., 1., 5.]])
    """

    def __init__(self, size: int | None = None) -> None:
        self.size = size
        self._columns: dict[str, int] = {}
        self._most_names = MOST_NAMES
        # Names of the last row, which the next one mostly has as well, and their columns.
        self._last: tuple[tuple[Any, ...], Array] = (), np.zeros(0, np.int64)

    @classmethod
    def of(cls, names: Iterable[Any]) -> Self:
        """Return the columns of these names, in their order; there are no others."""
        columns = cls()
        columns._columns = {str(name): i for i, name in enumerate(names)}
        columns._most_names = len(columns._columns) + 1
        return columns

    def __contains__(self, name: object) -> bool:
        """Return whether a name has a column of its own."""
        return str(name) in self._columns

    @property
    def width(self) -> int:
        """Columns so far."""
        if self.size is not None:
            return self.size
        n_names = len(self._columns)
        return n_names if n_names < self._most_names else n_names + SHARED

    @property
    def names(self) -> list[str] | None:
        """Names in the order of their columns; None if some are hashed."""
        whole = self.size is None and len(self._columns) < self._most_names
        return list(self._columns) if whole else None

    def row(self, x: Mapping[Any, Any], *, grow: bool = True) -> Any:
        """Return one row; a name that is new is left out unless columns may ``grow``."""
        entries = self._entries(x, grow)
        columns = np.fromiter(entries, np.int64, len(entries))
        values = np.fromiter(entries.values(), np.float64, len(entries))
        order = np.argsort(columns, kind="stable")
        shape = (1, max(self.width, 1))
        indptr = np.array([0, len(entries)])
        return sp.csr_array((values[order], columns[order], indptr), shape=shape)

    def dense_row(self, x: Mapping[Any, Any], *, grow: bool = True) -> Array:
        """Return the same row with its zeros, for few columns."""
        entries = self._entries(x, grow)
        row = [0.0] * max(self.width, 1)
        for column, value in entries.items():
            row[column] = value
        return np.array([row])

    def _entries(self, x: Mapping[Any, Any], grow: bool) -> dict[int, float]:
        """Return the columns and values of a row that are not zero."""
        entries: dict[int, float] = {}
        for key, value in x.items():
            # Most values are of these types; the general test takes ten times as long.
            known = type(value) is float or type(value) is int or isinstance(value, Real)
            if not known or not math.isfinite(value):
                raise ValueError(
                    f"the value of {key!r} is {value!r}; give a finite number, or make a name of "
                    f"it: {{{f'{key}={value}'!r}: 1}}"
                )
            column = self._column(str(key), grow)
            if column is not None and value != 0:
                entries[column] = entries.get(column, 0.0) + float(value)
        return entries

    def known(self, x: Mapping[Any, Any]) -> tuple[Array, Array] | None:
        """Return the values of a row and their columns; None if it takes a closer look.

        >>> columns = NamedColumns.of(["height", "width"])
        >>> columns.known({"width": 1.0, "height": 2.0})
        (array([1., 2.]), array([1, 0]))
        >>> columns.known({"depth": 1.0}) is None
        True
        """
        names, values = tuple(x), x.values()
        if self.size is not None or not PLAIN.issuperset(map(type, values)):
            return None
        last, columns = self._last
        if names != last:
            found = [self._columns.get(name) if type(name) is str else None for name in names]
            if None in found:
                return None
            columns = np.array(found, dtype=np.int64)
            self._last = names, columns
        try:
            return np.array(list(values), dtype=np.float64), columns
        except OverflowError:
            return None

    def forget(self, width: int) -> None:
        """Leave out all names but the first ones."""
        if self.size is None and len(self._columns) > width:
            self._last = (), np.zeros(0, np.int64)
            self._columns = dict(list(self._columns.items())[:width])

    def _column(self, name: str, grow: bool) -> int | None:
        if self.size is not None:
            return zlib.crc32(name.encode()) % self.size
        column = self._columns.get(name)
        if column is None and len(self._columns) >= self._most_names:
            return len(self._columns) + zlib.crc32(name.encode()) % SHARED
        if column is None and grow:
            column = self._columns[name] = len(self._columns)
        return column

    def as_text(self) -> str:
        """Return all it is as JSON."""
        return json.dumps({"size": self.size, "names": list(self._columns)})

    @classmethod
    def from_text(cls, text: str) -> NamedColumns:
        """Build it again from what `as_text` gave."""
        facts = json.loads(text)
        columns = cls(facts["size"])
        columns._columns = {name: i for i, name in enumerate(facts["names"])}
        return columns


def row_of_numbers(x: npt.ArrayLike, width: int | None) -> Array:
    """Return one checked row from a sequence of numbers, of ``width`` columns where known.

    >>> row_of_numbers([1, 2], width=2)
    array([[1., 2.]])
    """
    row = np.reshape(np.asarray(x, dtype=np.float64), (1, -1))
    if not np.isfinite(row).all():
        raise ValueError("the row has a value that is NaN or infinite; give finite numbers")
    if width is not None and row.shape[1] != width:
        raise ValueError(f"the row has {row.shape[1]} values, expected {width}")
    return row


def row_of_known_names(x: Mapping[Any, Any], names: Iterable[Any] | None) -> Any:
    """Return one row for columns that all have their names already."""
    if names is None:
        raise ValueError(
            "got a row with names, but the estimator has learned from columns without names; "
            "give a sequence of numbers"
        )
    known = list(names)
    columns = NamedColumns.of(known)
    if (missing := next((name for name in x if name not in columns), None)) is not None:
        raise ValueError(f"there is no column {missing!r}; it has {known[:5]}")
    return columns.row(x, grow=False)
