"""CSV files: blocks of whole lines, each parsed by Arrow; mistakes are named with their line."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from sksketch.exceptions import Option, SourceError, StreamExhaustedError
from sksketch.streams.columns import Choice, Field, Layout, NotNumericError
from sksketch.streams.files import (
    INPUT_IS_READ,
    TextBlock,
    fingerprint,
    input_fingerprint,
    line_of_row,
    name_of,
    text_blocks,
)
from sksketch.streams.formats.arrow import as_field, batch_rows, load_pyarrow
from sksketch.streams.formats.dialect import SAMPLE_LINES, Dialect
from sksketch.streams.places.partitions import Partitions
from sksketch.streams.places.remote import File
from sksketch.streams.prefetch import BLOCKS_AHEAD
from sksketch.streams.source import Division, FilePart, Place, RawBlock, skip_rows

# Bytes that are no UTF-8 are kept as they are, to be refused where they would be a name.
NOT_UTF8 = "surrogateescape"


class CsvReader:
    """The rows of CSV files, compressed or not, or of the standard input (``files`` is None).

    The types of the columns come from the first block: a column that holds only numbers
    there must hold numbers to the end.
    """

    ahead = BLOCKS_AHEAD

    def __init__(
        self,
        files: list[File] | None,
        choice: Choice,
        dialect: Dialect,
        partitions: Partitions,
    ) -> None:
        load_pyarrow()
        self._files = files
        self._dialect, self._partitions = dialect, partitions
        self.reads_once = files is None
        first = files[0] if files else None
        self._blocks: Iterator[TextBlock] | None = self._text(first)
        block = next(self._blocks, None)
        if block is None:
            raise SourceError(f"{name_of(first)}: the file is empty; give one with rows")
        self._dialect = dialect.settled(
            block.text[: 2**18].decode(errors="replace").splitlines()[: 2 * SAMPLE_LINES],
            "\t" if first and ".tsv" in first.suffixes else None,
        )
        head = self._first_row(block)
        self._header = self._has_header(head, first) if dialect.header is None else dialect.header
        names = _as_names(head, first) if self._header else [str(i) for i in range(len(head))]
        self._names = names
        if len(set(self._names)) < len(head):
            raise SourceError(
                "two columns have the same name; rename one",
                place=f"{name_of(first)}, line {block.first_line}",
            )
        stored = self._infer(block, first)
        self._fields = stored + partitions.fields(stored)
        self._layout = self._lay_out(choice, block, first)
        self._pending = block
        self.n_features, self.n_targets = self._layout.n_features, self._layout.n_targets
        self.feature_names = self._layout.feature_names if self._header else None
        self.target_names = self._layout.target_names
        self.n_rows = None

    def _text(self, file: File | None) -> Iterator[TextBlock]:
        given = self._dialect
        return text_blocks(
            file, quotes=True, encoding=given.encoding, comment=given.comment, skip=given.skip
        )

    def read(self, start_row: int) -> Iterator[RawBlock]:
        """Yield the rows after the first ``start_row``, by reading from the start."""
        if self._files is not None:
            # What was looked at when it was opened is read again.
            self._blocks = None
            return skip_rows(self._from_files(self._files), start_row)
        if self._blocks is None:
            raise StreamExhaustedError(INPUT_IS_READ)
        blocks, self._blocks = self._blocks, None
        return skip_rows(self._from_input(blocks), start_row)

    def _from_input(self, blocks: Iterator[TextBlock]) -> Iterator[RawBlock]:
        yield from self._raw_blocks([self._pending], None, self._names)
        yield from self._raw_blocks(blocks, None, self._names)

    def _from_files(self, files: list[File]) -> Iterator[RawBlock]:
        for file in files:
            blocks = self._text(file)
            block = next(blocks, None)
            if block is None:
                raise SourceError(f"{file}: the file is empty; leave it out")
            names = _as_names(self._first_row(block), file) if self._header else self._names
            known = set(names)
            lost = [f.name for f in self._stored() if f.name not in known]
            if lost:
                raise SourceError(
                    f"there is no column {lost[0]!r}, which {files[0]} has; give files of the same "
                    "columns",
                    place=f"{file}, line {block.first_line}",
                )
            yield from self._raw_blocks([block], file, names)
            yield from self._raw_blocks(blocks, file, names)

    def _raw_blocks(
        self, blocks: Iterable[TextBlock], file: File | None, names: list[str]
    ) -> Iterator[RawBlock]:
        layout = self._layout
        for block in blocks:
            table = self._parse(block, file, names)
            places = self._places(block, file, table.num_rows)
            for part in table.combine_chunks().to_batches():
                yield RawBlock(*batch_rows(part, layout, places), places)

    def _places(self, block: TextBlock, file: File | None, n_rows: int) -> Place:
        """Return what tells the line of each row of a block."""
        # One block may have fewer or more lines than rows, if some are blank or quoted.
        skipped = self._skipped(block)
        plain = block.text.count(b"\n") - skipped in (n_rows, n_rows - 1)
        first = block.first_line + skipped

        def place(i: int) -> str:
            if plain:
                return f"{name_of(file)}, line {first + i}"
            if b'"' not in block.text:
                return f"{name_of(file)}, line {line_of_row(block, i + bool(skipped))}"
            return f"{name_of(file)}, about line {first + i}"

        return place

    def _parse(self, block: TextBlock, file: File | None, names: list[str]) -> Any:
        pa = load_pyarrow()
        stored = self._stored()
        encoded = {self._fields[i].name for i in self._layout.categories}
        numbers = [f.name for f in stored if f.kind == "number" and f.name not in encoded]
        read_as = pa.float64() if self._dialect.thousands is None else pa.string()
        are_numbers = set(numbers)
        types = {
            f.name: read_as
            if f.name in are_numbers
            else pa.bool_()
            if f.kind == "bool"
            else pa.string()
            for f in stored
        }
        types |= dict.fromkeys(encoded & set(types), pa.string())
        convert = self._convert(
            include_columns=[f.name for f in stored], column_types=types, strings_can_be_null=True
        )
        try:
            table = self._read_csv(block, names, convert)
            if self._dialect.thousands is not None:
                for name in numbers:
                    at = table.column_names.index(name)
                    table = table.set_column(at, name, self._dialect.as_numbers(table.column(at)))
        except pa.ArrowInvalid as error:
            raise self._complaint(block, file, names, numbers, str(error)) from None
        return self._partitions.complete(table, file, [f.name for f in self._reads()])

    def _convert(self, **options: Any) -> Any:
        given = self._dialect
        return load_pyarrow().csv.ConvertOptions(
            null_values=given.null_values, decimal_point=given.decimal, **options
        )

    def _read_csv(self, block: TextBlock, names: list[str], convert: object) -> Any:
        pa = load_pyarrow()
        return pa.csv.read_csv(
            pa.BufferReader(_in_arrow(block.text)),
            read_options=pa.csv.ReadOptions(
                column_names=names,
                skip_rows=self._skipped(block),
                use_threads=True,
                # No row may be cut, however long it is.
                block_size=len(block.text),
            ),
            parse_options=pa.csv.ParseOptions(
                delimiter=self._dialect.delimiter,
                newlines_in_values=b'"' in block.text,
                # The missing value of a single column is an empty line, as a comment is.
                ignore_empty_lines=len(names) > 1 or self._dialect.comment is not None,
            ),
            convert_options=convert,
        )

    def _skipped(self, block: TextBlock) -> int:
        """Return the lines up to the end of the header."""
        if not self._header or block.first_line > 1 + self._dialect.skip:
            return 0
        end = next((line for line, row in self._rows(block) if row), 0)
        return max(0, end - block.first_line + 1)

    def _reads(self) -> list[Field]:
        return [self._fields[i] for i in self._layout.reads]

    def _stored(self) -> list[Field]:
        """Return the columns to read that are not those of folders."""
        chosen = [field.name for field in self._reads()]
        names = self._partitions.to_read(chosen, [field.name for field in self._fields])
        known = {field.name: field for field in self._fields}
        return [known[name] for name in names]

    def _rows(self, block: TextBlock) -> Iterator[tuple[int, list[str]]]:
        """Yield every row of a block with its last line, slowly; bytes that are no text stay."""
        raw = io.BytesIO(block.text)
        text = io.TextIOWrapper(raw, encoding="utf-8-sig", errors=NOT_UTF8, newline="")
        rows = csv.reader(text, delimiter=self._dialect.delimiter or ",")
        try:
            for row in rows:
                yield block.first_line + rows.line_num - 1, row
        except csv.Error as error:
            line = block.first_line + rows.line_num - 1
            raise SourceError(
                f"{name_of(block.file)}, about line {line}: {error}; check for a quote that is "
                "not closed"
            ) from None

    def _first_row(self, block: TextBlock) -> list[str]:
        return next((row for _, row in self._rows(block) if row), [])

    def _has_header(self, row: list[str], file: File | None) -> bool:
        """Return whether fields are names and not values; 0, 1, 2, ... could be either."""
        if len(row) > 1 and row == [str(i) for i in range(len(row))]:
            raise SourceError(
                "0, 1, 2, ... may be names or values; pass ",
                Option("header", True, False),
                place=f"{name_of(file)}, line 1",
            )
        return not all(map(self._dialect.is_number, row))

    def _infer(self, block: TextBlock, file: File | None) -> list[Field]:
        """Return the columns with the types that Arrow sees in the first block."""
        pa = load_pyarrow()
        try:
            table = self._read_csv(block, self._names, self._convert())
            fields = [as_field(field) for field in table.schema]
            if self._dialect.thousands is not None:
                text = {name: pa.string() for name in self._names}
                options = self._convert(column_types=text, strings_can_be_null=True)
                table = self._read_csv(block, self._names, options)
                fields = [
                    f._replace(dtype=np.dtype(np.float64)) if self._are_numbers(column) else f
                    for f, column in zip(fields, table.columns, strict=True)
                ]
        except pa.ArrowInvalid as error:
            raise self._complaint(block, file, self._names, [], str(error)) from None
        kinds = {np.dtype(np.float64): "number", None: "text"}
        return [f._replace(kind=f.kind if f.kind == "bool" else kinds[f.dtype]) for f in fields]

    def _are_numbers(self, column: Any) -> bool:
        try:
            self._dialect.as_numbers(column)
        except load_pyarrow().ArrowInvalid:
            return False
        return True

    def _lay_out(self, choice: Choice, block: TextBlock, file: File | None) -> Layout:
        try:
            return Layout(self._fields, choice, name_of(file))
        except NotNumericError as error:
            # If nearly all of a column is numbers, the others are mistakes: name the first.
            column = str(error.column)
            words = self._words(block, column)
            if words and sum(map(self._dialect.is_number, words)) > len(words) / 2:
                raise self._complaint(block, file, self._names, [column], "") from None
            remedies = self._dialect.remedies(words)
            if not remedies:
                raise
            raise SourceError(
                f"column {column[:40]!r} holds {words[0][:40]!r}, which is not a number; pass ",
                *[part for option in remedies for part in (" and ", option)][1:],
                place=name_of(file),
                column=column,
            ) from None

    def _words(self, block: TextBlock, name: str) -> list[str]:
        """Return the values of a column in a block, as they stand there."""
        if name not in self._names:
            return []
        at, last = self._names.index(name), block.first_line + self._skipped(block) - 1
        rows = [row for line, row in self._rows(block) if row and line > last]
        return [row[at] if at < len(row) else "" for row in rows]

    def _complaint(
        self,
        block: TextBlock,
        file: File | None,
        names: Sequence[str],
        numbers: list[str],
        otherwise: str,
    ) -> SourceError:
        """Return an error that names the first line Arrow cannot have parsed."""
        at = [list(names).index(name) for name in numbers]
        last = block.first_line + self._skipped(block) - 1
        for line, row in self._rows(block):
            if not row or line <= last:
                continue
            where = f"{name_of(file)}, line {line}"
            if len(row) != len(names):
                return SourceError(
                    f"{len(row)} values where {len(names)} columns are expected; repair or remove "
                    "the line",
                    place=where,
                )
            for i in at:
                if not self._dialect.is_number(row[i]):
                    return SourceError(
                        f"column {names[i][:40]!r} holds {row[i][:40]!r}, which is not a number; "
                        "repair the line or leave the column out",
                        place=where,
                        column=names[i],
                    )
        reason = " ".join(otherwise.split())[:120]
        where = f"{name_of(file)}, from line {block.first_line} on"
        if "UTF8" in reason:
            return SourceError(f"{reason}; pass ", Option("encoding", "latin-1"), place=where)
        return SourceError(reason, place=where)

    def division(self) -> Division:
        """Return whole files."""
        options = {
            "header": self._header,
            "delimiter": self._dialect.delimiter,
            **self._layout.pinned(),
        }
        return Division([FilePart(file, 0, None) for file in self._files or []], options)

    def fingerprint(self) -> dict[str, Any]:
        """Return what tells the files."""
        if self._files is None:
            return input_fingerprint(self._pending)
        return {"kind": "csv", "files": fingerprint(self._files)}


def _as_names(row: list[str], file: File | None) -> list[str]:
    """Return the names of the columns, if they can be read."""
    for name in row:
        try:
            name.encode()
        except UnicodeEncodeError:
            raise SourceError(
                f"the name {name.encode(errors=NOT_UTF8)[:40]!r} is not UTF-8; pass ",
                Option("encoding", "latin-1"),
                " or another",
                place=f"{name_of(file)}, line 1",
            ) from None
    return row


def _in_arrow(text: bytes) -> Any:
    """Return the text in Arrow's own memory.

    Its threads let go of the memory a moment later than they give the rows. To give bytes back to
    Python they would need the interpreter, which may be on its way down by then.
    """
    buffer = load_pyarrow().allocate_buffer(len(text))
    memoryview(buffer).cast("B")[:] = text
    return buffer
