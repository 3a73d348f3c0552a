"""Rows as dicts from name to value, collected into batches of Arrow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any

from sksketch.exceptions import SourceError, StreamExhaustedError
from sksketch.streams.columns import Choice, Layout
from sksketch.streams.formats.arrow import as_field, batch_rows, load_pyarrow
from sksketch.streams.formats.vectors import with_vectors
from sksketch.streams.source import RawBlock, digest, skip_rows

RECORDS = 1024


class RecordsReader:
    """The rows of a list or an iterable of dicts.

    Names and types are those of the first 1024 rows; a name that a row lacks is a missing value.
    """

    ahead = 0

    def __init__(self, rows: Iterable[Any], choice: Choice) -> None:
        pa = load_pyarrow()
        self._again = rows if isinstance(rows, list | tuple) else None
        self.reads_once = self._again is None
        items = iter(rows)
        first = [_checked(row, i) for i, row in enumerate(islice(items, RECORDS))]
        self._once: Iterator[Any] | None = chain(first, items)
        names = list(dict.fromkeys(name for row in first for name in row))
        try:
            found = pa.table({name: pa.array([row.get(name) for row in first]) for name in names})
        except pa.ArrowException as error:
            reason = " ".join(str(error).split())[:120]
            raise SourceError(f"the rows differ in the type of a value ({reason})") from None
        # An integer here may be a fraction further down.
        self._schema = pa.schema(
            [
                (field.name, pa.float64() if pa.types.is_integer(field.type) else field.type)
                for field in found.schema
            ]
        )
        fields = with_vectors([as_field(f) for f in self._schema], self._schema, found.select)
        self._layout = Layout(fields, choice, "the dicts")
        self.n_features, self.n_targets = self._layout.n_features, self._layout.n_targets
        self.feature_names = self._layout.feature_names
        self.target_names = self._layout.target_names
        self.n_rows = None if self._again is None else len(self._again)

    def read(self, start_row: int) -> Iterator[RawBlock]:
        """Yield the rows after the first ``start_row``; those of an iterable only once."""
        if self._again is not None:
            return self._raw_blocks(iter(self._again[start_row:]), start_row)
        if self._once is None:
            raise StreamExhaustedError(
                "these dicts came from an iterable that can be read only once, and it has been "
                "read; build it again"
            )
        items, self._once = self._once, None
        return skip_rows(self._raw_blocks(items, 0), start_row)

    def _raw_blocks(self, items: Iterator[Any], first: int) -> Iterator[RawBlock]:
        pa = load_pyarrow()
        step = min(RECORDS, self._layout.block_rows)
        while rows := [_checked(row, first + i) for i, row in enumerate(islice(items, step))]:

            def place(i: int, first: int = first) -> str:
                return f"dict {first + i}"

            for i, row in enumerate(rows):
                if strange := row.keys() - set(self._schema.names):
                    raise SourceError(
                        f"the name {min(map(str, strange))!r} is new; give all names in the first "
                        f"{RECORDS} rows",
                        place=place(i),
                    )
            try:
                batch = pa.RecordBatch.from_pylist(rows, schema=self._schema)
            except (pa.ArrowException, TypeError) as error:
                reason = " ".join(str(error).split())[:120]
                raise SourceError(
                    f"a value has another type than above ({reason})",
                    place=f"dicts {first} to {first + len(rows) - 1}",
                ) from None
            batch = batch.select(self._layout.reads)
            yield RawBlock(*batch_rows(batch, self._layout, place), place)
            first += len(rows)

    def fingerprint(self) -> dict[str, Any]:
        """Return the rows of a list and the digest of its ends; an iterable has none."""
        if self._again is None:
            return {"kind": "iterable of dicts"}
        n_rows = len(self._again)
        ends = [next(self.read(k), None) for k in (0, max(0, n_rows - 64))]
        parts = [part for raw in ends if raw for part in raw[:2] if part is not None]
        return {"kind": "dicts", "n_rows": n_rows, "digest": digest(*parts)}


def _checked(row: object, number: int) -> dict[str, Any]:
    if not isinstance(row, Mapping):
        raise SourceError(f"row {number} is a {type(row).__name__} and the first was a dict")
    return dict(row)
