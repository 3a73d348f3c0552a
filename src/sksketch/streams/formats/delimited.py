"""CSV files: blocks of whole lines, each parsed by Arrow; mistakes are named with their line."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sksketch.exceptions import Option, SourceError, StreamExhaustedError
from sksketch.streams.columns import Choice, Field, Layout, NotNumericError
from sksketch.streams.files import (
    INPUT_IS_READ,
    TextBlock,
    fingerprint,
    input_fingerprint,
    name_of,
    text_blocks,
)
from sksketch.streams.formats.arrow import as_field, batch_rows, load_pyarrow
from sksketch.streams.prefetch import BLOCKS_AHEAD
from sksketch.streams.source import Division, FilePart, RawBlock, skip_rows

# Bytes that are no UTF-8 are kept as they are, to be refused where they would be a name.
NOT_UTF8 = "surrogateescape"
# What stands for a missing value in a column of numbers.
NO_VALUE = ("", "NA", "N/A", "n/a", "#N/A", "#NA", "NaN", "nan", "-nan", "NULL", "null")


class CsvReader:
    """The rows of CSV files, gzip or not, or of the standard input (``files`` is None).

    The types of the columns come from the first block: a column that holds only numbers
    there must hold numbers to the end.
    """

    ahead = BLOCKS_AHEAD

    def __init__(
        self, files: list[Path] | None, choice: Choice, delimiter: str | None, header: bool | None
    ) -> None:
        load_pyarrow()
        self._files = files
        self.reads_once = files is None
        first = files[0] if files else None
        self._delimiter = delimiter or ("\t" if first and ".tsv" in first.suffixes else ",")
        self._blocks: Iterator[TextBlock] | None = text_blocks(first, quotes=True)
        block = next(self._blocks, None)
        if block is None:
            raise SourceError(f"{name_of(first)}: the file is empty; give one with rows")
        head = self._first_row(block)
        self._header = _has_header(head, name_of(first)) if header is None else header
        names = _as_names(head, first) if self._header else [str(i) for i in range(len(head))]
        self._names = names
        if len(set(self._names)) < len(head):
            raise SourceError(
                f"{name_of(first)}, line 1: two columns have the same name; rename one"
            )
        self._fields = self._infer(block, first)
        self._layout = self._lay_out(choice, block, first)
        self._pending = block
        self.n_features, self.n_targets = self._layout.n_features, self._layout.n_targets
        self.feature_names = self._layout.feature_names if self._header else None
        self.target_names = self._layout.target_names
        self.n_rows = None

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

    def _from_files(self, files: list[Path]) -> Iterator[RawBlock]:
        for file in files:
            blocks = text_blocks(file, quotes=True)
            block = next(blocks, None)
            if block is None:
                raise SourceError(f"{file}: the file is empty; leave it out")
            names = _as_names(self._first_row(block), file) if self._header else self._names
            known = set(names)
            lost = [f.name for f in self._reads() if f.name not in known]
            if lost:
                raise SourceError(
                    f"{file}, line 1: there is no column {lost[0]!r}, which {files[0]} has; give "
                    "files of the same columns"
                )
            yield from self._raw_blocks([block], file, names)
            yield from self._raw_blocks(blocks, file, names)

    def _raw_blocks(
        self, blocks: Iterable[TextBlock], file: Path | None, names: list[str]
    ) -> Iterator[RawBlock]:
        layout = self._layout
        for block in blocks:
            table = self._parse(block, file, names)
            # One block may have fewer or more lines than rows, if some are blank or quoted.
            skipped = self._skipped(block)
            plain = block.text.count(b"\n") - skipped in (len(table), len(table) - 1)
            first = block.first_line + skipped

            def place(i: int, first: int = first, plain: bool = plain) -> str:
                about = "line" if plain else "about line"
                return f"{name_of(file)}, {about} {first + i}"

            for part in table.combine_chunks().to_batches():
                yield RawBlock(*batch_rows(part, layout, place), place)

    def _parse(self, block: TextBlock, file: Path | None, names: list[str]) -> Any:
        pa = load_pyarrow()
        reads = self._reads()
        kinds = {"bool": pa.bool_(), "text": pa.string()}
        types = {
            f.name: pa.string() if i in self._layout.categories else kinds.get(f.kind, pa.float64())
            for i, f in zip(self._layout.reads, reads, strict=True)
        }
        convert = pa.csv.ConvertOptions(
            include_columns=[f.name for f in reads],
            column_types=types,
            null_values=NO_VALUE,
            strings_can_be_null=True,
        )
        try:
            return self._read_csv(block, names, convert)
        except pa.ArrowInvalid as error:
            numbers = [f.name for f in reads if types[f.name] == pa.float64()]
            raise self._complaint(block, file, names, numbers, str(error)) from None

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
                delimiter=self._delimiter,
                newlines_in_values=b'"' in block.text,
                # The missing value of a single column is an empty line.
                ignore_empty_lines=len(names) > 1,
            ),
            convert_options=convert,
        )

    def _skipped(self, block: TextBlock) -> int:
        """Return the lines up to the end of the header."""
        if not self._header or block.first_line > 1:
            return 0
        return next((line for line, row in self._rows(block) if row), 0)

    def _reads(self) -> list[Field]:
        return [self._fields[i] for i in self._layout.reads]

    def _rows(self, block: TextBlock) -> Iterator[tuple[int, list[str]]]:
        """Yield every row of a block with its last line, slowly; bytes that are no text stay."""
        raw = io.BytesIO(block.text)
        text = io.TextIOWrapper(raw, encoding="utf-8-sig", errors=NOT_UTF8, newline="")
        rows = csv.reader(text, delimiter=self._delimiter)
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

    def _infer(self, block: TextBlock, file: Path | None) -> list[Field]:
        """Return the columns with the types that Arrow sees in the first block."""
        pa = load_pyarrow()
        try:
            table = self._read_csv(block, self._names, pa.csv.ConvertOptions(null_values=NO_VALUE))
        except pa.ArrowInvalid as error:
            raise self._complaint(block, file, self._names, [], str(error)) from None
        fields = [as_field(field) for field in table.schema]
        kinds = {np.dtype(np.float64): "number", None: "text"}
        return [f._replace(kind=f.kind if f.kind == "bool" else kinds[f.dtype]) for f in fields]

    def _lay_out(self, choice: Choice, block: TextBlock, file: Path | None) -> Layout:
        try:
            return Layout(self._fields, choice, name_of(file))
        except NotNumericError as error:
            # If nearly all of a column is numbers, the others are mistakes: name the first.
            column = str(error.column)
            if not self._mostly_numbers(block, column):
                raise
            raise self._complaint(block, file, self._names, [column], "") from None

    def _mostly_numbers(self, block: TextBlock, name: str) -> bool:
        at, skipped = self._names.index(name), self._skipped(block)
        rows = [row for line, row in self._rows(block) if row and line > skipped]
        good = [at < len(row) and _is_number(row[at]) for row in rows]
        return bool(good) and sum(good) > len(good) / 2

    def _complaint(
        self,
        block: TextBlock,
        file: Path | None,
        names: Sequence[str],
        numbers: list[str],
        otherwise: str,
    ) -> SourceError:
        """Return an error that names the first line Arrow cannot have parsed."""
        at = [list(names).index(name) for name in numbers]
        skipped = self._skipped(block)
        for line, row in self._rows(block):
            if not row or line <= skipped:
                continue
            where = f"{name_of(file)}, line {line}"
            if len(row) != len(names):
                return SourceError(
                    f"{len(row)} values where {len(names)} columns are expected; repair or remove "
                    "the line",
                    place=where,
                )
            for i in at:
                if not _is_number(row[i]):
                    return SourceError(
                        f"column {names[i][:40]!r} holds {row[i][:40]!r}, which is not a number; "
                        "repair the line or leave the column out",
                        place=where,
                        column=names[i],
                    )
        reason = " ".join(otherwise.split())[:120]
        return SourceError(f"{name_of(file)}, from line {block.first_line} on: {reason}")

    def division(self) -> Division:
        """Return whole files."""
        options = {"header": self._header, "delimiter": self._delimiter, **self._layout.pinned()}
        return Division([FilePart(file, 0, None) for file in self._files or []], options)

    def fingerprint(self) -> dict[str, Any]:
        """Return what tells the files."""
        if self._files is None:
            return input_fingerprint(self._pending)
        return {"kind": "csv", "files": fingerprint(self._files)}


def _as_names(row: list[str], file: Path | None) -> list[str]:
    """Return the names of the columns, if they can be read."""
    for name in row:
        try:
            name.encode()
        except UnicodeEncodeError:
            raise SourceError(
                f"{name_of(file)}, line 1: the name {name.encode(errors=NOT_UTF8)[:40]!r} is not "
                "UTF-8; convert the file, such as by iconv -f latin1 -t utf-8"
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


def _has_header(row: list[str], where: str) -> bool:
    """Return whether fields are names and not values; 0, 1, 2, ... could be either."""
    if len(row) > 1 and row == [str(i) for i in range(len(row))]:
        raise SourceError(
            "0, 1, 2, ... may be names or values; pass ",
            Option("header", True, False),
            place=f"{where}, line 1",
        )
    return not all(map(_is_number, row))


def _is_number(word: str) -> bool:
    """Return whether Arrow reads a field as a number or a missing one."""
    word = word.strip(" \t")
    if word in NO_VALUE:
        return True
    try:
        float(word)
    except ValueError:
        return False
    return "_" not in word
