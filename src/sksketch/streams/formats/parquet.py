"""Parquet files: row groups decoded in batches, only the columns asked for, never a whole file."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from sksketch.exceptions import SourceError
from sksketch.streams.columns import TABLE_BYTES, XY, Choice, Field, Layout
from sksketch.streams.files import fingerprint
from sksketch.streams.formats.arrow import as_field, batch_rows, load_pyarrow
from sksketch.streams.formats.vectors import with_vectors
from sksketch.streams.places.partitions import Partitions
from sksketch.streams.places.remote import File, RemoteFile
from sksketch.streams.prefetch import BLOCKS_AHEAD
from sksketch.streams.source import Division, FilePart, Place, RawBlock, cut_block

if TYPE_CHECKING:
    from pyarrow.parquet import ColumnChunkMetaData, ParquetFile

# Columns of a row group are read through buffers of this size, or a whole row group would be held.
BUFFER_BYTES = 2**15
# Row groups up to this size are decoded whole, a few columns at a time that stay in the caches,
# which is fastest. Larger ones are decoded block by block with all columns side by side, which
# holds a page and twice the dictionary of each, unless that is even more.
WHOLE_BYTES = 48 * 2**20
MOST_WHOLE_BYTES = 128 * 2**20
# With little memory: a row group that is decoded whole is held so often, as the last one, as
# columns and as the next; columns that are decoded side by side for two row groups.
WHOLE_COPIES, SIDE_COPIES = 3, 2
CACHED_BYTES = 2 * 2**20
PAGE_BYTES = 2**18


class _Groups(NamedTuple):
    """Consecutive row groups of a file that are decoded together."""

    file: File
    groups: range
    first_row: int
    n_rows: int


class ParquetReader:
    """The rows of Parquet files, in order; all must have the columns that are read."""

    def __init__(self, files: list[File], choice: Choice, partitions: Partitions) -> None:
        self._files, self._partitions = files, partitions
        # What decoding side by side takes, once there is little memory.
        self._spared: int | None = None
        self._parts: list[_Groups] = []
        self.n_rows = 0
        for number, file in enumerate(files):
            with _explained(file):
                opened = _open(file)
                schema, metadata = opened.schema_arrow, opened.metadata
                fields = [as_field(field) for field in schema]
                fields = with_vectors(fields, schema, partial(_first_rows, opened))
            if number == 0:
                fields += partitions.fields(fields)
                self._layout = Layout(fields, choice, str(file))
                self._names = [fields[i].name for i in self._layout.reads]
                self._stored = partitions.to_read(self._names, [field.name for field in fields])
                self._wanted = frozenset(self._stored)
                self._row_bytes = sum(_bytes_of(fields[i]) for i in self._layout.reads)
                self._numeric = {f.name: f.dtype is not None for f in fields}
                if len(set(self._numeric)) < len(fields):
                    raise SourceError(f"{file}: two columns have the same name; rename one")
            else:
                self._check(file, {field.name: field for field in fields}, files[0])
            self._add(
                file, [metadata.row_group(g).num_rows for g in range(metadata.num_row_groups)]
            )
        # The next part is decoded while one is used. Fewer blocks ahead than a part has, or
        # three of them would be in memory.
        longest = max((s.n_rows for s in self._parts), default=0)
        longest = min(longest, WHOLE_BYTES // self._row_bytes)
        self.ahead = max(BLOCKS_AHEAD, longest // self._layout.block_rows - 1)
        self.n_features, self.n_targets = self._layout.n_features, self._layout.n_targets
        self.feature_names = self._layout.feature_names
        self.target_names = self._layout.target_names

    def _check(self, file: File, fields: dict[str, Any], first: File) -> None:
        for name in self._stored:
            if name not in fields:
                raise SourceError(
                    f"{file}: there is no column {name!r}, which {first} has; give files of the "
                    "same columns"
                )
            if self._numeric[name] and fields[name].dtype is None:
                raise SourceError(
                    f"{file}: column {name!r} is {fields[name].kind}, not a number as in {first}; "
                    "repair the file or leave the column out"
                )

    def _add(self, file: File, sizes: list[int]) -> None:
        """Collect row groups until they fill a block: short ones cost less together."""
        start, rows = 0, 0
        for group, size in enumerate(sizes):
            rows += size
            if rows >= self._layout.block_rows or group == len(sizes) - 1:
                self._parts.append(_Groups(file, range(start, group + 1), self.n_rows, rows))
                self.n_rows += rows
                start, rows = group + 1, 0

    def only(self, names: Sequence[str]) -> ParquetReader:
        """Return a reader of the same blocks of raw tables with no more than these columns."""
        if not self._layout.raw:
            return self
        n_features = len(self._names) - self.n_targets
        wanted = {*names, *self._names[n_features:]}
        twin = copy.copy(self)
        twin._names = [name for name in self._names if name in wanted]
        twin._stored = self._partitions.to_read(twin._names, self._stored)
        twin._wanted = frozenset(twin._stored)
        return twin

    def read(self, start_row: int) -> Iterator[RawBlock]:
        """Yield the rows after the first ``start_row``; row groups before it are not decoded."""
        left = [s for s in self._parts if s.first_row + s.n_rows > start_row]
        for part in left:
            first = part.first_row
            for raw in self._decoded(part):
                skip = start_row - first
                first += len(raw.X)
                if skip < len(raw.X):
                    yield cut_block(raw, max(0, skip))

    def _decoded(self, part: _Groups) -> Iterator[RawBlock]:
        """Yield the rows of a part, block by block."""
        file, groups, *_ = part
        several = len(groups) > 1
        label = f"row groups {groups[0]} to {groups[-1]}" if several else f"row group {groups[0]}"
        given = 0

        def place(i: int) -> str:
            return f"{file}, {label}, row {i} of it"

        with _explained(file, label):
            opened = _open(file)
            whole = self._is_better_whole(opened, groups)
        decoded = (self._by_columns if whole else self._side_by_side)(opened, part, label)
        for X, y in decoded:
            yield RawBlock(X, y, partial(_shifted, place, given))
            given += len(X)
            # The next ones are decoded before the loop lets go of these.
            del X, y
        if given != part.n_rows:
            raise SourceError(
                f"{file}, {label}: {given} rows were found where {part.n_rows} are declared; "
                "write the file again"
            )

    def _is_better_whole(self, opened: ParquetFile, groups: range) -> bool:
        """Return whether all rows of some row groups are to be decoded at once."""
        n_rows = sum(opened.metadata.row_group(group).num_rows for group in groups)
        whole = n_rows * self._row_bytes
        if self._spared is not None:
            return bool(WHOLE_COPIES * whole <= max(TABLE_BYTES, self._spared))
        if whole <= WHOLE_BYTES:
            return True
        return bool(whole <= min(self._bytes_side_by_side(opened, groups), MOST_WHOLE_BYTES))

    def _bytes_side_by_side(self, opened: ParquetFile, groups: range) -> int:
        """Return what it takes to decode all columns of some row groups side by side."""
        held = 0
        for number in groups:
            # Reading a row refuses a damaged column; only to look at one would end the process.
            next(opened.iter_batches(1, row_groups=[number], columns=self._stored), None)
            group = opened.metadata.row_group(number)
            columns = (group.column(k) for k in range(group.num_columns))
            # A column of lists is called after what is in it.
            wanted = (c for c in columns if self._wanted & {c.path_in_schema, _top(c)})
            held = max(held, sum(map(_bytes_to_decode, wanted)))
        return held

    def spare(self) -> int:
        """Read with as little memory as possible; return what that takes beside some blocks."""
        longest = max(self._parts, key=lambda part: part.n_rows, default=None)
        if longest is None:
            return 0
        with _explained(longest.file):
            opened = _open(longest.file)
            self._spared = SIDE_COPIES * self._bytes_side_by_side(opened, longest.groups)
        self.ahead = BLOCKS_AHEAD
        return min(self._spared, WHOLE_COPIES * longest.n_rows * self._row_bytes)

    def _side_by_side(self, opened: ParquetFile, part: _Groups, label: str) -> Iterator[XY]:
        """Decode all columns of a block, then the next block."""
        done = 0

        def place(i: int) -> str:
            return f"{part.file}, {label}, row {done + i} of it"

        with _explained(part.file, label):
            batches = opened.iter_batches(
                self._layout.block_rows, row_groups=list(part.groups), columns=self._stored
            )
        while True:
            with _explained(part.file, label):
                batch = next(batches, None)
            if batch is None:
                return
            # Arrow gives the columns in the order of the file.
            batch = self._partitions.complete(batch, part.file, self._names)
            yield batch_rows(batch, self._layout, place)
            done += batch.num_rows

    def _by_columns(self, opened: ParquetFile, part: _Groups, label: str) -> Iterator[XY]:
        """Decode all rows of the part, a few columns at a time."""
        columns: list[Any] = []

        def place(i: int) -> str:
            return f"{part.file}, {label}, row {i} of it"

        row_bytes = max(1, self._row_bytes // len(self._names))
        step = max(1, CACHED_BYTES // (row_bytes * max(1, part.n_rows)))
        for start in range(0, len(self._stored), step):
            names = self._stored[start : start + step]
            with _explained(part.file, label):
                # One thread, ours: more of them would each keep memory of their own.
                table = opened.read_row_groups(list(part.groups), columns=names, use_threads=False)
                (batch,) = table.select(names).combine_chunks().to_batches()
            columns += batch.columns
        batch = load_pyarrow().RecordBatch.from_arrays(columns, self._stored)
        batch = self._partitions.complete(batch, part.file, self._names)
        for start in range(0, batch.num_rows, self._layout.block_rows):
            block = batch.slice(start, self._layout.block_rows)
            yield batch_rows(block, self._layout, partial(_shifted, place, start))

    def division(self) -> Division:
        """Return the row groups."""
        top: dict[File, int] = {}
        parts = []
        for part in self._parts:
            first = part.first_row - top.setdefault(part.file, part.first_row)
            parts.append(FilePart(part.file, first, part.n_rows))
        return Division(parts, self._layout.pinned())

    def fingerprint(self) -> dict[str, Any]:
        """Return what tells the files."""
        return {"kind": "parquet", "n_rows": self.n_rows, "files": fingerprint(self._files)}


def _open(file: File) -> Any:
    open_file = load_pyarrow().parquet.ParquetFile
    if isinstance(file, RemoteFile):
        # Ranges that lie close together are fetched as one, as each costs a journey.
        return open_file(file.open_ranges(), pre_buffer=True, page_checksum_verification=True)
    return open_file(
        file, buffer_size=BUFFER_BYTES, pre_buffer=False, page_checksum_verification=True
    )


def _first_rows(opened: ParquetFile, names: list[str]) -> Any:
    return next(opened.iter_batches(16, columns=names), None)


def _bytes_of(field: Field) -> int:
    return max(1, field.width) * (8 if field.dtype is None else field.dtype.itemsize)


def _top(column: ColumnChunkMetaData) -> str:
    return str(column.path_in_schema).partition(".")[0]


def _shifted(place: Place, by: int, i: int) -> str:
    return place(by + i)


def _bytes_to_decode(column: ColumnChunkMetaData) -> int:
    """Return about what Arrow holds while it decodes one column step by step."""
    size = column.total_uncompressed_size
    dictionary = 0
    if column.dictionary_page_offset is not None:
        packed = column.data_page_offset - column.dictionary_page_offset
        dictionary = packed * size // max(1, column.total_compressed_size)
    return int(min(size, PAGE_BYTES) + 2 * dictionary)


@contextmanager
def _explained(file: File, group: str = "") -> Iterator[None]:
    """Turn what Arrow says about a damaged file into one sentence that names it."""
    pa = load_pyarrow()
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        reason = str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
        where = f"{file}, {group}" if group else str(file)
        raise SourceError(
            f"{where}: cut short, damaged or not Parquet ({reason[:120]}); write or fetch it again"
        ) from None
