"""Rows given as dictionaries: a column for every name, as it comes or by its hash."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping
from numbers import Real
from typing import Any, Self

import numpy as np
import scipy.sparse as sp


class NamedColumns:
    """Turns a dictionary of names and numbers into one sparse row.

    Parameters
    ----------
    size : int or None
        None gives every new name the next column. A number hashes the names to that many
        columns, which then never grow.

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

    @classmethod
    def of(cls, names: Iterable[Any]) -> Self:
        """Return the columns of these names, in their order."""
        columns = cls()
        columns._columns = {str(name): i for i, name in enumerate(names)}
        return columns

    def __contains__(self, name: Any) -> bool:
        """Say whether a name has a column of its own."""
        return str(name) in self._columns

    @property
    def width(self) -> int:
        """Columns so far."""
        return len(self._columns) if self.size is None else self.size

    @property
    def names(self) -> list[str] | None:
        """Names in the order of their columns; None if they are hashed."""
        return list(self._columns) if self.size is None else None

    def row(self, x: Mapping[Any, Any], *, grow: bool = True) -> Any:
        """Return one row; a name that is new is left out unless columns may ``grow``."""
        entries: dict[int, float] = {}
        for key, value in x.items():
            if not isinstance(value, Real) or not np.isfinite(float(value)):
                raise ValueError(
                    f"the value of {key!r} is {value!r}; give a finite number, or make a name of "
                    f"it: {{{f'{key}={value}'!r}: 1}}"
                )
            column = self._column(str(key), grow)
            if column is not None and value != 0:
                entries[column] = entries.get(column, 0.0) + float(value)
        columns = np.fromiter(entries, np.int64, len(entries))
        values = np.fromiter(entries.values(), np.float64, len(entries))
        order = np.argsort(columns, kind="stable")
        shape = (1, max(self.width, 1))
        indptr = np.array([0, len(entries)])
        return sp.csr_array((values[order], columns[order], indptr), shape=shape)

    def forget(self, width: int) -> None:
        """Leave out all names but the first ones."""
        if self.size is None:
            self._columns = dict(list(self._columns.items())[:width])

    def _column(self, name: str, grow: bool) -> int | None:
        if self.size is not None:
            return zlib.crc32(name.encode()) % self.size
        if grow:
            return self._columns.setdefault(name, len(self._columns))
        return self._columns.get(name)

    def as_text(self) -> str:
        """Return all it is as JSON."""
        return json.dumps({"size": self.size, "names": list(self._columns)})

    @classmethod
    def from_text(cls, text: str) -> NamedColumns:
        """Build it again from what `as_text` gave."""
        facts = json.loads(text)
        columns = cls.of(facts["names"])
        columns.size = facts["size"]
        return columns
