"""Columns of a table as features and targets, and their order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sksketch._typing import Array
from sksketch.exceptions import Option, SourceError

# Less than blocks of arrays have: while reading ahead, four of them are in memory.
TABLE_BYTES = 4 * 2**20
# Columns of raw tables are worked on one by one, in some calls each.
RAW_BYTES = 6 * 2**20
# Every column of a block costs a call, so blocks of very many columns have more bytes.
WIDE_ROWS, WIDE_BYTES = 1024, 64 << 20

# The features and targets of some rows.
XY = tuple[Array, Array | None]


class NotNumericError(SourceError):
    """A column that was chosen holds something else than numbers."""


class Field(NamedTuple):
    """One column of a table: its type in words, as numbers, and the categories it declares."""

    name: str
    kind: str
    dtype: np.dtype[Any] | None
    categories: Sequence[Any] | None = None
    # Numbers in each row of a column of lists; else 0.
    width: int = 0

    def names(self) -> list[str]:
        """Return the names of its features, as numbers."""
        return [f"{self.name}[{i}]" for i in range(self.width)] if self.width else [self.name]


@dataclass(frozen=True)
class Choice:
    """The columns that the user asked for, as `open_rows` takes them."""

    columns: Any = None
    target: Any = None
    one_hot: Any = None
    categories: Mapping[Any, Sequence[Any]] | None = None
    dtype: npt.DTypeLike | None = None
    # Whether rows are given as tables of columns of any type.
    raw: bool = False

    def __post_init__(self) -> None:
        if self.raw and (self.one_hot or self.categories or self.dtype is not None):
            raise ValueError(
                "raw tables have their own types; leave one_hot, categories and dtype out"
            )
        if self.dtype is not None and np.dtype(self.dtype) not in (np.float32, np.float64):
            raise ValueError(f"dtype is {np.dtype(self.dtype)}; give float32, float64 or None")

    def wants_label(self, kind: str) -> bool:
        """Check the choice for files of numbered columns and a label; no target leaves it out."""
        if self.columns is not None or self.one_hot or self.categories:
            raise ValueError(f"{kind} files have no named columns; leave columns and one_hot out")
        if _as_list(self.target) not in ([], ["label"]):
            raise ValueError(f"target is {self.target!r}; {kind} files have only 'label'")
        return self.target is None or bool(_as_list(self.target))


class Layout:
    """The features and targets chosen among the columns of a table.

    Attributes
    ----------
    reads : list of int
        Positions of the columns to read, features first, each once.
    categories : dict from position to list
        The categories of the columns that become one feature for each category.
    """

    def __init__(self, fields: Sequence[Field], choice: Choice, where: str) -> None:
        self._fields, self._where = fields, where
        self._targets = self._find(_as_list(choice.target), "target")
        self._several = isinstance(choice.target, list | tuple)
        self._features = self._choose_features(choice.columns)
        self.categories = self._choose_categories(choice)
        self.raw = choice.raw
        for position in self._features:
            if position not in self.categories and not self.raw:
                self._check_number(fields[position])
        for position in self._targets if len(self._targets) > 1 else []:
            self._check_number(fields[position])
        self.reads = list(dict.fromkeys(self._features + self._targets))
        self.dtype = _common_dtype(choice.dtype, [fields[i] for i in self._features])
        self.target_names = [fields[i].name for i in self._targets] or None
        self.feature_names = [name for i in self._features for name in self._names_of(i)]
        self.n_features, self.n_targets = len(self.feature_names), len(self._targets)
        if not self.n_features:
            raise SourceError(f"{where}: no column is left for the features; choose columns")

    def width_of(self, position: int) -> int:
        """Return the numbers in each row of a column of lists; 0 for any other column."""
        return self._fields[position].width

    def pinned(self) -> dict[str, Any]:
        """Return the options that choose the same columns of another file."""
        names = [self._fields[i].name for i in self._targets]
        return {
            "columns": [self._fields[i].name for i in self._features],
            "target": names if self._several else names[0] if names else None,
            "categories": {self._fields[i].name: v for i, v in self.categories.items()} or None,
            "one_hot": None,
            "dtype": None if self.raw else str(self.dtype),
            "raw": self.raw,
        }

    @property
    def has_names(self) -> bool:
        """Whether the target is no number, such as the name of a class."""
        return any(self._fields[i].dtype is None for i in self._targets)

    @property
    def block_rows(self) -> int:
        """Rows that fill a block."""
        row_bytes = self.n_features * self.dtype.itemsize
        if self.raw:
            return max(1, RAW_BYTES // row_bytes)
        return max(1, TABLE_BYTES // row_bytes, min(WIDE_ROWS, WIDE_BYTES // row_bytes))

    def assemble(self, features: Sequence[Array] | Array, targets: Sequence[Array]) -> XY:
        """Lay columns side by side.

        They are numbers with NaN for the missing ones, and for a column with categories their
        positions, -1 for the missing ones. Features without categories may be one array with
        a column in each of its rows.
        """
        X = np.empty((len(features[0]), self.n_features), self.dtype)
        if isinstance(features, np.ndarray):
            X[...] = features.T
        else:
            parts = [
                _spread(part, len(self.categories[i]))
                if i in self.categories
                else part.reshape(len(part), -1)
                for i, part in zip(self._features, features, strict=True)
            ]
            np.concatenate(parts, axis=1, out=X, casting="unsafe")
        return self.beside(X, targets)

    def beside(self, X: Array, targets: Sequence[Array]) -> XY:
        """Return rows with their targets, or None if there are none."""
        if not len(targets):
            return X, None
        y = [as_targets(column) for column in targets]
        return X, np.column_stack(y) if self._several else y[0]

    def _find(self, names: Sequence[Any], what: str) -> list[int]:
        known = {field.name: i for i, field in enumerate(self._fields)}
        found = []
        for name in names:
            if name in known:
                found.append(known[name])
            elif isinstance(name, int | np.integer) and -len(known) <= name < len(known):
                found.append(int(name) % len(known))
            else:
                some = ", ".join(map(repr, list(known)[:6])) + (", ..." if len(known) > 6 else "")
                raise SourceError(f"{self._where} has no {what} {name!r}; it has {some}")
        return found

    def _choose_features(self, columns: object) -> list[int]:
        if columns is None:
            return [i for i in range(len(self._fields)) if i not in self._targets]
        chosen = self._find(whole_columns(_as_list(columns), self._fields), "column")
        if len(set(chosen)) < len(chosen) or set(chosen) & set(self._targets):
            raise SourceError("a column is chosen twice; name each column once", place=self._where)
        return chosen

    def _choose_categories(self, choice: Choice) -> dict[int, list[Any]]:
        given = dict(choice.categories or {})
        known = dict(zip(self._find(list(given), "column"), given.values(), strict=True))
        if choice.one_hot is True:
            chosen = [i for i in self._features if self._fields[i].dtype is None or i in known]
        else:
            chosen = self._find(_as_list(choice.one_hot or None), "column")
            chosen += [i for i in known if i not in chosen]
        found = {}
        for i in (i for i in chosen if i in self._features):
            field = self._fields[i]
            values = known.get(i, field.categories)
            if values is None:
                raise SourceError(
                    f"the categories of column {field.name!r} are not known before it is read; "
                    "pass ",
                    Option("categories", {field.name: ...}),
                    place=self._where,
                    column=field.name,
                )
            found[i] = list(values)
            if len(set(found[i])) < len(found[i]) or not found[i]:
                raise SourceError(
                    f"the categories of column {field.name!r} repeat or are none; list each once",
                    place=self._where,
                    column=field.name,
                )
        return found

    def _check_number(self, field: Field) -> None:
        if field.dtype is not None:
            return
        raise NotNumericError(
            f"column {field.name[:40]!r} is not numeric ({field.kind}); leave it out with ",
            Option("columns", ...),
            ", pass ",
            Option("one_hot", field.name),
            ", or give all to a TableEncoder with ",
            Option("raw", True),
            place=self._where,
            column=field.name,
        )

    def _names_of(self, position: int) -> list[str]:
        name = self._fields[position].name
        if position not in self.categories:
            return self._fields[position].names()
        return [f"{name}={category}" for category in self.categories[position]]


def is_table(X: object) -> bool:
    """Return whether rows are an Arrow table and not an array."""
    return type(X).__module__.partition(".")[0] == "pyarrow"


def as_targets(column: Array) -> Array:
    """Return targets as float64, or as they are if they are no numbers, such as names of classes.

    >>> as_targets(np.array([1, 2], dtype=np.int8)).dtype
    dtype('float64')
    """
    return column.astype(np.float64) if column.dtype.kind in "biuf" else column


def _as_list(names: object) -> list[Any]:
    if names is None:
        return []
    return list(names) if isinstance(names, list | tuple | np.ndarray) else [names]


def whole_columns(columns: list[Any], fields: Sequence[Field]) -> list[Any]:
    """Return columns where all elements of a list, in order, stand for the list.

    Models know features by the names of elements.

    >>> whole_columns(["v[0]", "v[1]", "x"], [Field("v", "list", None, width=2)])
    ['v', 'x']
    """
    lists = {f"{field.name}[0]": field for field in fields if field.width}
    found: list[Any] = []
    i = 0
    while i < len(columns):
        field = lists.get(columns[i]) if isinstance(columns[i], str) else None
        whole = field is not None and columns[i : i + field.width] == field.names()
        found.append(field.name if field is not None and whole else columns[i])
        i += field.width if field is not None and whole else 1
    return found


def _common_dtype(wanted: npt.DTypeLike | None, fields: Sequence[Field]) -> np.dtype[Any]:
    """Return float32 where nothing wider is read, else float64."""
    if wanted is not None:
        return np.dtype(wanted)
    narrow = {np.dtype(np.float16), np.dtype(np.float32)}
    return np.dtype(np.float32 if fields and {f.dtype for f in fields} <= narrow else np.float64)


def _spread(codes: Array, n_categories: int) -> Array:
    """Return one column for each category: one at its own, NaN in all where it is missing."""
    hot: Array = (codes[:, None] == np.arange(n_categories)).astype(np.float32)
    hot[codes < 0] = np.nan
    return hot
