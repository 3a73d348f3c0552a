"""Columns that folders stand for: ``year=2024/month=3/x.parquet`` has the columns year, month."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np

from sksketch.streams.columns import Choice, Field
from sksketch.streams.formats.arrow import load_pyarrow
from sksketch.streams.places.remote import File

_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_WHOLE = re.compile(r"[-+]?\d{1,18}")


class Partitions:
    """The names and values in the folders of files, one value for each file.

    Parameters
    ----------
    found : list of pairs
        Every file with the folders that lie below the directory or pattern it was found by.
    choice : Choice
        Folders above those count only where a column or target has their name.
    """

    def __init__(self, found: Sequence[tuple[File, tuple[str, ...]]], choice: Choice) -> None:
        inner = [_values(folders) for _, folders in found]
        whole = [_values(Path(str(file)).parts[:-1]) for file, _ in found]
        wanted = _names_in(choice)
        shared = [set(values) for values in inner]
        names = [name for name in (inner[0] if inner else {}) if all(name in s for s in shared)]
        names += [
            name
            for name in (whole[0] if whole else {})
            if name in wanted and name not in names and all(name in values for values in whole)
        ]
        self._given = {name: list(map(str, v)) for name, v in (choice.categories or {}).items()}
        self._values = {
            str(file): {name: values[name] for name in names}
            for (file, _), values in zip(found, whole, strict=True)
        }
        self._found = names
        self.names: list[str] = []

    def fields(self, stored: Sequence[Field]) -> list[Field]:
        """Return the columns to add to those that files store; a stored one comes first."""
        known = {field.name for field in stored}
        self.names = [name for name in self._found if name not in known]
        return [self._field(name) for name in self.names]

    def to_read(self, chosen: Sequence[str], stored: Sequence[str]) -> list[str]:
        """Return those of the chosen columns that files store; one at least, to count the rows."""
        return [name for name in chosen if name not in self.names] or list(stored[:1])

    def _field(self, name: str) -> Field:
        if self._are_whole(name):
            return Field(name, "int64", np.dtype(np.float64))
        given = {values[name] for values in self._values.values()}
        return Field(name, "string", None, sorted(value for value in given if value is not None))

    def _are_whole(self, name: str) -> bool:
        given = [values[name] for values in self._values.values()]
        given += self._given.get(name, [])
        return all(value is None or _WHOLE.fullmatch(value) for value in given)

    def complete(self, table: Any, file: File | None, names: Sequence[str]) -> Any:
        """Return the columns of a batch or table in the order of ``names``, with those of folders.

        ``file`` is where its rows come from.
        """
        if not self.names:
            return table.select(list(names))
        pa = load_pyarrow()
        columns = []
        for name in names:
            if name not in self.names:
                columns.append(table.column(name))
                continue
            value, whole = self._values[str(file)][name], self._are_whole(name)
            scalar = pa.scalar(
                int(value) if whole and value is not None else value,
                pa.int64() if whole else pa.string(),
            )
            columns.append(pa.repeat(scalar, table.num_rows))
        return type(table).from_arrays(columns, names=list(names))


def _values(folders: Sequence[str]) -> dict[str, str | None]:
    pairs = (folder.partition("=") for folder in folders)
    return {
        unquote(name): None if value == _NO_VALUE else unquote(value)
        for name, equals, value in pairs
        if name and equals and value
    }


def _names_in(choice: Choice) -> set[str]:
    """Return all names of columns that a choice has."""
    found: set[str] = set()
    for given in (choice.columns, choice.target, choice.categories):
        if isinstance(given, str):
            found.add(given)
        elif isinstance(given, list | tuple | dict):
            found |= {name for name in given if isinstance(name, str)}
    return found
