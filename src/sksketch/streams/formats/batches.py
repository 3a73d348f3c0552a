"""Tables that come as record batches of Arrow, from files or from objects of other libraries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from sksketch.exceptions import SourceError
from sksketch.streams.columns import Choice, Field, Layout
from sksketch.streams.files import blamed, fingerprint
from sksketch.streams.formats.arrow import as_field, batch_rows
from sksketch.streams.formats.vectors import with_vectors
from sksketch.streams.places.partitions import Partitions
from sksketch.streams.places.remote import File
from sksketch.streams.prefetch import BLOCKS_AHEAD
from sksketch.streams.source import Division, FilePart, RawBlock, digest

if TYPE_CHECKING:
    import pyarrow as pa


class Batches(Protocol):
    """A file or object that gives record batches, again and again."""

    @property
    def where(self) -> str:
        """The name that messages call it by."""

    @property
    def n_rows(self) -> int | None:
        """Rows in all; None where only reading tells."""

    @property
    def file(self) -> File | None:
        """The file that it is."""

    @property
    def jumps(self) -> bool:
        """Whether rows can be reached without those before them."""

    @property
    def schema(self) -> pa.Schema:
        """The columns."""

    def batches(self, names: list[str], start_row: int) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield batches with the number of their first row; those before a row may be left out."""


class BatchesReader:
    """The rows of one or several tables with the same columns, one after the other."""

    def __init__(
        self,
        tables: Sequence[Batches],
        choice: Choice,
        kind: str,
        partitions: Partitions | None = None,
        ahead: int = BLOCKS_AHEAD,
    ) -> None:
        self._tables, self._kind, self.ahead = tables, kind, ahead
        self._partitions = partitions or Partitions([], choice)
        first = tables[0]
        fields = _fields(first)
        if len({field.name for field in fields}) < len(fields):
            raise SourceError(f"{first.where}: two columns have the same name; rename one")
        fields = with_vectors(fields, first.schema, lambda names: _first_batch(first, names))
        fields += self._partitions.fields(fields)
        self._layout = Layout(fields, choice, first.where)
        self._names = [fields[i].name for i in self._layout.reads]
        self._stored = self._partitions.to_read(self._names, [field.name for field in fields])
        self._numeric = {field.name: field.dtype is not None for field in fields}
        for table in tables[1:]:
            self._check(table)
        sizes = [table.n_rows for table in tables]
        self.n_rows = None if None in sizes else sum(size for size in sizes if size is not None)
        self.n_features, self.n_targets = self._layout.n_features, self._layout.n_targets
        self.feature_names = self._layout.feature_names
        self.target_names = self._layout.target_names

    def _check(self, table: Batches) -> None:
        first = self._tables[0].where
        fields = {field.name: field for field in _fields(table)}
        for name in self._stored:
            if name not in fields:
                raise SourceError(
                    f"{table.where}: there is no column {name!r}, which {first} has; give files of "
                    "the same columns"
                )
            if (
                self._numeric[name]
                and fields[name].dtype is None
                and "list" not in (kind := fields[name].kind)
            ):
                raise SourceError(
                    f"{table.where}: column {name!r} is {kind}, not a number as in {first}; repair "
                    "the file or leave the column out"
                )

    def read(self, start_row: int) -> Iterator[RawBlock]:
        """Yield the rows after the first ``start_row``."""
        for table in self._tables:
            if table.n_rows is not None and start_row >= table.n_rows > 0:
                start_row -= table.n_rows
                continue
            end = 0
            for first, batch in table.batches(self._stored, start_row):
                end = first + batch.num_rows
                if end > start_row:
                    skip = max(0, start_row - first)
                    yield from self._raw_blocks(table, first + skip, batch.slice(skip))
            if table.n_rows is not None and end != table.n_rows:
                raise SourceError(
                    f"{end} rows were found where {table.n_rows} are declared; write it again",
                    place=table.where,
                )
            start_row = max(0, start_row - end)
        if start_row:
            raise SourceError(f"the source ended {start_row} rows before the row to resume from")

    def _raw_blocks(self, table: Batches, first: int, batch: pa.RecordBatch) -> Iterator[RawBlock]:
        """Yield the rows of a batch, in blocks."""
        layout = self._layout
        batch = self._partitions.complete(batch, table.file, self._names)
        for start in range(0, batch.num_rows, layout.block_rows):

            def place(i: int, row: int = first + start) -> str:
                return f"{table.where}, row {row + i}"

            part = batch.slice(start, layout.block_rows)
            yield RawBlock(*batch_rows(part, layout, place), place)

    def division(self) -> Division:
        """Return blocks of rows, or whole files where rows only come from the start."""
        parts = []
        for table in self._tables:
            if table.file is None:
                raise SourceError(f"{table.where} cannot be sent to others; give files of rows")
            if not table.jumps or table.n_rows is None:
                parts.append(FilePart(table.file, 0, None))
                continue
            step = self._layout.block_rows
            parts += [
                FilePart(table.file, start, min(step, table.n_rows - start))
                for start in range(0, table.n_rows, step)
            ]
        return Division(parts, self._layout.pinned())

    def fingerprint(self) -> dict[str, Any]:
        """Return what tells the files, or the first rows of what is none."""
        facts = {"kind": self._kind, "n_rows": self.n_rows}
        files = [table.file for table in self._tables if table.file is not None]
        if files:
            return {**facts, "files": fingerprint(files)}
        raw = next(self.read(0), None)
        parts = [] if raw is None else [part[:64] for part in raw[:2] if part is not None]
        return {**facts, "digest": digest(*parts)}


def _fields(table: Batches) -> list[Field]:
    with blamed(table.where, "the names of the columns are damaged", "write the file again"):
        return [as_field(field) for field in table.schema]


def _first_batch(table: Batches, names: list[str]) -> pa.RecordBatch | None:
    return next((batch for _, batch in table.batches(names, 0) if batch.num_rows), None)
