"""One column of a table: what kind it is, and what is known of its values."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, NoReturn, Self

import numpy as np

from sksketch._typing import Array
from sksketch.exceptions import NotMergeableError
from sksketch.state.persistence import State
from sksketch.streams.formats.arrow import load_pyarrow
from sksketch.tables.dates import PARTS, date_parts, parsed
from sksketch.tables.kernels.column_facts import N_FACTS, N_LANES
from sksketch.tables.numbers import NumberSummary
from sksketch.tables.texts import TILE_ROWS, TextSummary

Kind = Literal["empty", "number", "boolean", "date", "text", "nested"]
KINDS: tuple[Kind, ...] = ("empty", "number", "boolean", "date", "text", "nested")


def kind_of(column_type: Any) -> Kind:
    """Return what a column of an Arrow type holds.

    >>> import pyarrow as pa
    >>> [kind_of(t) for t in (pa.int8(), pa.bool_(), pa.date32(), pa.string(), pa.null())]
    ['number', 'boolean', 'date', 'text', 'empty']
    """
    types = load_pyarrow().types
    if types.is_dictionary(column_type):
        return kind_of(column_type.value_type)
    if types.is_null(column_type):
        return "empty"
    if types.is_boolean(column_type):
        return "boolean"
    if types.is_date(column_type) or types.is_timestamp(column_type):
        return "date"
    if _is_text(column_type):
        return "text"
    number = types.is_integer(column_type) or types.is_floating(column_type)
    spans = types.is_decimal(column_type) or types.is_duration(column_type)
    return "number" if number or spans or types.is_time(column_type) else "nested"


def _is_text(column_type: Any) -> bool:
    types = load_pyarrow().types
    return bool(
        types.is_string(column_type)
        or types.is_large_string(column_type)
        or types.is_string_view(column_type)
    )


class Cells(NamedTuple):
    """Some rows of a column as they are counted and encoded."""

    kind: Kind
    # Numbers of any type with NaN for holes: one array, or the parts of dates.
    numbers: tuple[Array, ...] = ()
    # An Arrow array of texts.
    texts: Any = None
    n_rows: int = 0

    @property
    def holes(self) -> Array:
        """True in rows that have no value."""
        if self.texts is not None:
            return np.asarray(self.texts.is_null().to_numpy(zero_copy_only=False))
        if self.numbers:
            return np.isnan(self.numbers[0])
        return np.full(self.n_rows, self.kind == "empty")


def one_array(column: Any) -> Any:
    """Return a column of an Arrow table as one array."""
    if column.num_chunks == 1:
        return column.chunk(0)
    merged = column.unify_dictionaries().combine_chunks()
    pa = load_pyarrow()
    return pa.concat_arrays(merged.chunks) if isinstance(merged, pa.ChunkedArray) else merged


def as_learned(column: Any, kind: Kind) -> Any:
    """Return dates as texts, or texts as dates, where that is what was learned from.

    A file of text has no type for dates, and one of Arrow has.

    >>> import datetime, pyarrow as pa
    >>> as_learned(pa.array([datetime.date(2024, 2, 29)]), "text").to_pylist()
    ['2024-02-29 00:00:00.000000']
    >>> as_learned(pa.array(["2024-02-29"]), "date").to_pylist()
    [datetime.datetime(2024, 2, 29, 0, 0)]
    """
    pa, now = load_pyarrow(), kind_of(column.type)
    if (now, kind) == ("date", "text"):
        if pa.types.is_timestamp(column.type) and column.type.tz is not None:
            column = pa.compute.local_timestamp(column)
        return column.cast(pa.timestamp("us"), safe=False).cast(pa.large_string())
    if (now, kind) == ("text", "date"):
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        found = parsed(column)
        return column if found is None else found
    return column


def cells_of(column: Any) -> Cells:
    """Return an Arrow array as numbers or texts."""
    pa = load_pyarrow()
    kind, n_rows = kind_of(column.type), len(column)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if kind == "text":
        return Cells(kind, texts=column.cast(pa.large_string()), n_rows=n_rows)
    if kind == "date":
        return Cells(kind, date_parts(column), n_rows=n_rows)
    if kind in ("number", "boolean"):
        return Cells(kind, (_as_numbers(column),), n_rows=n_rows)
    return Cells(kind, n_rows=n_rows)


def _as_numbers(column: Any) -> Array:
    """Return numbers of an Arrow array; times of the day in hours, durations in seconds."""
    pa = load_pyarrow()
    types = pa.types
    unit = 1.0
    if types.is_time(column.type) or types.is_duration(column.type):
        per_second = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}[column.type.unit]
        unit = per_second * (3600.0 if types.is_time(column.type) else 1.0)
        column = column.cast(pa.int32() if types.is_time32(column.type) else pa.int64())
    elif types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    elif types.is_decimal(column.type):
        column = column.cast(pa.float64())
    found = np.asarray(column.to_numpy(zero_copy_only=False))
    return found if unit == 1.0 else found.astype(np.float64) / unit


def refuse_infinite(name: str, row: int) -> NoReturn:
    """Refuse a number that is infinite."""
    raise ValueError(
        f"column {name!r} holds an infinite value, first in row {row} of the block; drop or "
        "replace it"
    )


class ColumnSummary:
    """The summary of one column after some rows."""

    def __init__(self) -> None:
        self.kind: Kind = "empty"
        self.n_rows = 0
        self.numbers: list[NumberSummary] = []
        self.text: TextSummary | None = None

    @property
    def n_missing(self) -> int:
        """Rows without a value."""
        if self.kind == "nested":
            return 0
        if self.text is not None:
            return self.n_rows - self.text.n_known
        return self.n_rows - (self.numbers[0].n_known if self.numbers else 0)

    def check(self, cells: Cells, name: str) -> None:
        """Refuse cells that are of another kind."""
        if cells.kind != self.kind and "empty" not in (cells.kind, self.kind):
            raise ValueError(
                f"column {name!r} is of the kind {cells.kind!r} here and was {self.kind!r} before; "
                "give every block the same types"
            )

    def with_numbers(self, cells: Cells, first_row: int, name: str) -> list[NumberSummary]:
        """Return what the numbers are known to be after some more, which must be finite."""
        if not cells.numbers:
            return self.numbers
        found = [part.copy() for part in self.numbers] or [NumberSummary() for _ in cells.numbers]
        for summary, values in zip(found, cells.numbers, strict=True):
            row = summary.add(values, first_row)
            if row >= 0:
                refuse_infinite(name, row)
        return found

    def add(self, cells: Cells, first_row: int, numbers: list[NumberSummary]) -> None:
        """Add some rows, which have passed `check` and given ``numbers``."""
        if self.kind == "empty" and cells.kind != "empty":
            self._become(cells.kind)
        self.n_rows += cells.n_rows
        self.numbers = numbers
        if self.text is None:
            return
        at = 0
        while at < cells.n_rows:
            step = min(cells.n_rows - at, TILE_ROWS - (first_row + at) % TILE_ROWS)
            if cells.texts is not None:
                self.text.add(cells.texts.slice(at, step), first_row + at)
            at += step
            if (first_row + at) % TILE_ROWS == 0:
                self.text.end_tile()

    def _become(self, kind: Kind) -> None:
        self.kind = kind
        n_numbers = {"number": 1, "boolean": 1, "date": len(PARTS)}.get(kind, 0)
        self.numbers = [NumberSummary() for _ in range(n_numbers)]
        self.text = TextSummary() if kind == "text" else None

    def merge(self, other: ColumnSummary, name: str) -> None:
        """Add the rows that another one has seen."""
        if "empty" not in (self.kind, other.kind) and self.kind != other.kind:
            raise NotMergeableError(
                f"column {name!r} is of the kind {self.kind!r} in one part and {other.kind!r} in "
                "another; give all parts the same types"
            )
        if self.kind == "empty":
            self._become(other.kind)
        self.n_rows += other.n_rows
        for mine, theirs in zip(self.numbers, other.numbers, strict=False):
            mine.merge(theirs)
        if self.text is not None and other.text is not None:
            self.text.merge(other.text)

    # Files

    def state(self) -> State:
        """Return all it is, as plain data."""
        arrays = {} if self.text is None else self.text.arrays()
        for i, part in enumerate(self.numbers):
            arrays |= {f"number{i}.{key}": array for key, array in part.arrays().items()}
        meta = {"kind_": self.kind, "n_rows": self.n_rows}
        return State("column-summary", 1, meta, arrays)

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Build the summary that ``state`` was taken from."""
        state.require(1)
        meta: Any = state.meta
        one = cls()
        one._become(KINDS[KINDS.index(meta["kind_"])])
        one.n_rows = int(meta["n_rows"])
        for i, part in enumerate(one.numbers):
            part.facts[...] = state.array(f"number{i}.facts", N_FACTS)
            part.lanes[...] = state.array(f"number{i}.lanes", 2, N_LANES)
        if one.text is not None:
            one.text = TextSummary.of(dict(state.arrays))
        return one
