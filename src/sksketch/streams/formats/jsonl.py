"""JSON lines: one object in each line, parsed by Arrow block by block; mistakes have their line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from sksketch.exceptions import SourceError, StreamExhaustedError
from sksketch.streams.columns import Choice, Layout
from sksketch.streams.files import (
    INPUT_IS_READ,
    TextBlock,
    blamed,
    fingerprint,
    input_fingerprint,
    line_of_row,
    name_of,
    text_blocks,
)
from sksketch.streams.formats.arrow import as_field, batch_rows, load_pyarrow
from sksketch.streams.formats.vectors import with_vectors
from sksketch.streams.places.partitions import Partitions
from sksketch.streams.places.remote import File
from sksketch.streams.prefetch import BLOCKS_AHEAD
from sksketch.streams.source import Division, FilePart, RawBlock, skip_rows


class JsonLinesReader:
    """The rows of files with an object in each line, or of the standard input (``files`` is None).

    Names and types are those of the first block: names that come later are left out, and a name
    that a line lacks is a missing value.
    """

    ahead = BLOCKS_AHEAD
    n_rows = None

    def __init__(self, files: list[File] | None, choice: Choice, partitions: Partitions) -> None:
        pa = load_pyarrow()
        self._files, self._partitions = files, partitions
        self.reads_once = files is None
        first = files[0] if files else None
        self._blocks: Iterator[TextBlock] | None = text_blocks(first)
        block = next(self._blocks, None)
        if block is None:
            raise SourceError(f"{name_of(first)}: the file is empty; give one with rows")
        if block.text.lstrip().startswith(b"["):
            raise SourceError(
                f"{name_of(first)}: holds one JSON array; write an object in each line, such as by "
                "jq -c '.[]'"
            )
        self._pending = block
        table = self._read_json(block, first, None)
        with blamed(name_of(first), "a name is not UTF-8", "repair the file"):
            fields = [as_field(field) for field in table.schema]
        fields = with_vectors(fields, table.schema, table.select)
        fields += partitions.fields(fields)
        self._layout = Layout(fields, choice, name_of(first))
        self._names = [fields[i].name for i in self._layout.reads]
        # An integer here may be a fraction further down.
        self._schema = pa.schema(
            [
                (field.name, pa.float64() if pa.types.is_integer(field.type) else field.type)
                for field in table.schema
                if field.name in partitions.to_read(self._names, table.schema.names)
            ]
        )
        self.n_features, self.n_targets = self._layout.n_features, self._layout.n_targets
        self.feature_names = self._layout.feature_names
        self.target_names = self._layout.target_names

    def read(self, start_row: int) -> Iterator[RawBlock]:
        """Yield the rows after the first ``start_row``, by reading from the start."""
        if self._files is not None:
            self._blocks = None
            files = self._files
            rows = (raw for file in files for raw in self._raw_blocks(text_blocks(file), file))
            return skip_rows(rows, start_row)
        if self._blocks is None:
            raise StreamExhaustedError(INPUT_IS_READ)
        blocks, self._blocks = self._blocks, None
        return skip_rows(self._from_input(blocks), start_row)

    def _from_input(self, blocks: Iterator[TextBlock]) -> Iterator[RawBlock]:
        yield from self._raw_blocks([self._pending], None)
        yield from self._raw_blocks(blocks, None)

    def _raw_blocks(self, blocks: Iterable[TextBlock], file: File | None) -> Iterator[RawBlock]:
        for block in blocks:
            table = self._read_json(block, file, self._schema)
            table = self._partitions.complete(table, file, self._names)

            def place(i: int, block: TextBlock = block) -> str:
                return f"{name_of(file)}, line {line_of_row(block, i)}"

            for batch in table.combine_chunks().to_batches():
                yield RawBlock(*batch_rows(batch, self._layout, place), place)

    def _read_json(self, block: TextBlock, file: File | None, schema: Any) -> Any:
        pa = load_pyarrow()
        if not block.text.strip():
            return (schema or pa.schema([])).empty_table()
        behavior = "infer" if schema is None else "ignore"
        try:
            return pa.json.read_json(
                pa.BufferReader(block.text),
                read_options=pa.json.ReadOptions(block_size=len(block.text), use_threads=False),
                parse_options=pa.json.ParseOptions(
                    explicit_schema=schema, unexpected_field_behavior=behavior
                ),
            )
        except pa.ArrowInvalid as error:
            raise _complaint(block, file, schema, str(error)) from None

    def division(self) -> Division:
        """Return whole files."""
        parts = [FilePart(file, 0, None) for file in self._files or []]
        return Division(parts, self._layout.pinned())

    def fingerprint(self) -> dict[str, Any]:
        """Return what tells the files."""
        if self._files is None:
            return input_fingerprint(self._pending)
        return {"kind": "jsonl", "files": fingerprint(self._files)}


def _complaint(block: TextBlock, file: File | None, schema: Any, otherwise: str) -> SourceError:
    """Return an error that names the first line Arrow cannot have parsed."""
    pa = load_pyarrow()
    numbers = [f.name for f in schema or [] if pa.types.is_floating(f.type)]
    seen: dict[str, type] = {}
    for number, line in enumerate(block.text.split(b"\n")):
        if not line.strip():
            continue
        where = f"{name_of(file)}, line {block.first_line + number}"
        try:
            row = json.loads(line)
        except ValueError as error:
            reason = " ".join(str(error).split())[:80]
            return SourceError(f"not a JSON object ({reason}); repair the line", place=where)
        if not isinstance(row, dict):
            return SourceError(
                f"a {type(row).__name__} where an object is expected; repair the line", place=where
            )
        for name, value in row.items():
            kind = float if isinstance(value, int) and not isinstance(value, bool) else type(value)
            expected = float if name in numbers else None if schema else seen.get(name)
            if value is not None and expected not in (None, kind):
                return SourceError(
                    f"{name[:40]!r} is {json.dumps(value)[:40]}, unlike in the lines above; repair "
                    "the line",
                    place=where,
                    column=name,
                )
            if value is not None:
                seen.setdefault(name, kind)
    reason = " ".join(otherwise.split())[:120]
    return SourceError(reason, place=f"{name_of(file)}, from line {block.first_line} on")
