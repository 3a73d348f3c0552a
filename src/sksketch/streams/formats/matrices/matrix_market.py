"""Matrix Market files: entries in the order of rows are streamed, any other order is sorted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from sksketch._typing import Array
from sksketch.exceptions import SourceError
from sksketch.streams.columns import Choice
from sksketch.streams.files import TextBlock, fingerprint, text_blocks
from sksketch.streams.formats.arrays import ArrayReader, Selection
from sksketch.streams.formats.arrow import load_pyarrow
from sksketch.streams.places.remote import File
from sksketch.streams.prefetch import BLOCKS_AHEAD
from sksketch.streams.source import Division, FilePart, RawBlock, skip_rows

# Rows of a block at most: those without entries take memory as well.
MOST_ROWS = 2**16


class _Header(NamedTuple):
    """The first lines of a file."""

    coordinate: bool
    pattern: bool
    symmetry: str
    shape: tuple[int, int]
    n_entries: int
    n_lines: int


class _Entries(NamedTuple):
    """Entries of some lines, with indices from 0."""

    rows: Array
    columns: Array
    values: Array


def matrix_market_reader(file: File, choice: Choice) -> MatrixMarketReader | ArrayReader:
    """Return the rows of a file: streamed if its entries are in the order of rows.

    Else, and if it is symmetric or dense, the matrix is read into memory.
    """
    header = _read_header(file)
    if header.coordinate and header.symmetry == "general" and _is_sorted(file, header):
        return MatrixMarketReader(file, choice, header)
    X = _whole(file, header)
    return ArrayReader(X, choice, kind=str(file))


class MatrixMarketReader:
    """The rows of a file whose entries come row by row, in flat memory."""

    ahead = BLOCKS_AHEAD
    feature_names = None
    target_names = None

    def __init__(self, file: File, choice: Choice, header: _Header) -> None:
        self._file, self._header = file, header
        self.n_rows, width = header.shape
        target = choice.target
        self._y: Array | None = None
        if target is not None and np.ndim(target) and len(target) == self.n_rows:
            self._y, choice = np.asarray(target), Choice(choice.columns, dtype=choice.dtype)
        self._selection = Selection(choice, width, str(file))
        self.n_features = self._selection.n_features
        self.n_targets = len(self._selection.targets)
        if self._y is not None:
            self.n_targets = 1 if self._y.ndim == 1 else self._y.shape[1]

    def read(self, start_row: int) -> Iterator[RawBlock]:
        """Yield the rows after the first ``start_row``, by reading from the start."""
        return skip_rows(self._raw_blocks(), start_row)

    def _raw_blocks(self) -> Iterator[RawBlock]:
        first = 0
        for X in _csr_blocks(self._file, self._header):
            for start in range(0, X.shape[0], MOST_ROWS):
                part = X[start : start + MOST_ROWS]
                y = None if self._y is None else self._y[first : first + part.shape[0]]

                def place(i: int, first: int = first) -> str:
                    return f"{self._file}, row {first + i}"

                yield RawBlock(*self._selection.apply(part, y), place)
                first += part.shape[0]

    def division(self) -> Division:
        """Return the whole file."""
        return Division([FilePart(self._file, 0, None)], {})

    def fingerprint(self) -> dict[str, Any]:
        """Return what tells the file."""
        chosen = [self._selection.features]
        return {"kind": "mtx", "files": fingerprint([self._file]), "chosen": chosen}


def _read_header(file: File) -> _Header:
    """Read the banner and the sizes after the comments."""
    block = next(text_blocks(file), None)
    lines = b"" if block is None else block.text[: 2**20]
    words: list[str] = []
    for number, line in enumerate(lines.decode("latin-1").split("\n")):
        if number == 0:
            words = line.lower().split()
            if len(words) != 5 or words[:2] != ["%%matrixmarket", "matrix"]:
                raise SourceError(f"{file}, line 1: expected '%%MatrixMarket matrix ...'")
        elif line.strip() and not line.startswith("%"):
            return _parsed_header(file, words, line.split(), number + 1)
    raise SourceError(f"{file}: cut short: the line with the sizes is missing; fetch it again")


def _parsed_header(file: File, words: list[str], sizes: list[str], n_lines: int) -> _Header:
    _, _, layout, field, symmetry = words
    if (
        layout not in ("coordinate", "array")
        or field not in ("real", "double", "integer", "pattern")
        or symmetry not in ("general", "symmetric", "skew-symmetric")
    ):
        raise SourceError(
            f"{file}, line 1: a matrix of {layout} {field} {symmetry} is not supported"
        )
    expected = 3 if layout == "coordinate" else 2
    if len(sizes) != expected or not all(word.isdigit() for word in sizes):
        raise SourceError(f"{file}, line {n_lines}: expected {expected} sizes, found {sizes[:4]}")
    numbers = [int(word) for word in sizes]
    shape = numbers[0], numbers[1]
    if not min(shape) or max(shape) >= 2**31:
        raise SourceError(f"{file}, line {n_lines}: a matrix of shape {shape} is not supported")
    n_entries = numbers[2] if expected == 3 else shape[0] * shape[1]
    return _Header(expected == 3, field == "pattern", symmetry, shape, n_entries, n_lines)


def _is_sorted(file: File, header: _Header) -> bool:
    """Return whether entries come in the order of rows, by reading until one does not."""
    last = 0
    for entries in _entries(file, header):
        if len(entries.rows):
            if entries.rows[0] < last or (entries.rows[1:] < entries.rows[:-1]).any():
                return False
            last = int(entries.rows[-1])
    return True


def _entries(file: File, header: _Header) -> Iterator[_Entries]:
    """Yield the entries of a file; their number and indices are checked."""
    found = 0
    n_rows, n_columns = header.shape
    for block in text_blocks(file, comment="%", skip=header.n_lines):
        rows, columns, values = _parse(file, block, header)
        for index, size, what in ((rows, n_rows, "row"), (columns, n_columns, "column")):
            bad = np.flatnonzero((index < 1) | (index > size))
            if len(bad):
                raise SourceError(
                    f"{file}, entry {found + int(bad[0]) + 1}: {what} {int(index[bad[0]])} is not "
                    f"between 1 and {size}; repair the file"
                )
        found += len(rows)
        yield _Entries(rows - 1, columns - 1, values)
    if found != header.n_entries:
        raise SourceError(
            f"{file}: {found} entries were found where {header.n_entries} are declared; fetch the "
            "file again"
        )


def _parse(file: File, block: TextBlock, header: _Header) -> tuple[Array, Array, Array]:
    names = ("row", "column") if header.pattern else ("row", "column", "value")
    numbers = _numbers(file, block, len(names))
    values = np.ones(len(numbers)) if header.pattern else numbers[:, 2].copy()
    return numbers[:, 0].astype(np.int64), numbers[:, 1].astype(np.int64), values


def _numbers(file: File, block: TextBlock, width: int) -> Array:
    """Return the numbers of some lines, ``width`` in each."""
    pa = load_pyarrow()
    if not block.text.strip():
        return np.zeros((0, width))
    try:
        return _parsed(block.text, width)
    except pa.ArrowInvalid:
        # Blanks of any kind and number may separate; Arrow takes one.
        lines = (b" ".join(line.split()) for line in block.text.split(b"\n"))
        try:
            return _parsed(b"\n".join(lines), width)
        except pa.ArrowInvalid as error:
            raise _complaint(file, block, width, str(error)) from None


def _parsed(text: bytes, width: int) -> Array:
    pa = load_pyarrow()
    names = [str(i) for i in range(width)]
    table = pa.csv.read_csv(
        pa.BufferReader(text),
        read_options=pa.csv.ReadOptions(
            column_names=names, use_threads=False, block_size=len(text)
        ),
        parse_options=pa.csv.ParseOptions(delimiter=" ", quote_char=False),
        convert_options=pa.csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.float64()), null_values=[]
        ),
    )
    return np.column_stack([column.to_numpy() for column in table.columns])


def _complaint(file: File, block: TextBlock, width: int, otherwise: str) -> SourceError:
    """Return an error that names the first line that has other things than numbers."""
    for number, line in enumerate(block.text.split(b"\n")):
        if line.strip() and not _is_entry(line.split(), width):
            found = line.decode(errors="replace").strip()[:40]
            return SourceError(
                f"expected {width} numbers, found {found!r}; repair the line",
                place=f"{file}, line {block.first_line + number}",
            )
    reason = " ".join(otherwise.split())[:120]
    return SourceError(reason, place=f"{file}, from line {block.first_line} on")


def _is_entry(words: list[bytes], width: int) -> bool:
    try:
        return len([float(word) for word in words]) == width
    except ValueError:
        return False


def _csr_blocks(file: File, header: _Header) -> Iterator[Any]:
    """Yield whole rows of sorted entries; the last row of a block of lines may continue."""
    n_rows, width = header.shape
    first = 0
    held: list[_Entries] = []
    for entries in _entries(file, header):
        if not len(entries.rows):
            continue
        complete = int(entries.rows[-1])
        cut = int(np.searchsorted(entries.rows, complete))
        if complete > first:
            done = [*held, _Entries(*(part[:cut] for part in entries))]
            yield _as_csr(done, first, complete, width)
            held, first = [], complete
        else:
            cut = 0
        held.append(_Entries(*(part[cut:] for part in entries)))
    if first < n_rows:
        yield _as_csr(held, first, n_rows, width)


def _as_csr(entries: list[_Entries], first: int, stop: int, width: int) -> Any:
    rows, columns, values = _joined(entries)
    X = sp.csr_array((values, (rows - first, columns)), shape=(stop - first, width))
    X.sum_duplicates()
    return X


def _joined(entries: list[_Entries]) -> _Entries:
    none = _Entries(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
    return _Entries(*(np.concatenate(parts) for parts in zip(none, *entries, strict=True)))


def _whole(file: File, header: _Header) -> Any:
    """Read a whole matrix: CSR from entries, an array from a dense file."""
    n_rows, n_columns = header.shape
    if not header.coordinate:
        blocks = text_blocks(file, comment="%", skip=header.n_lines)
        parts = [_numbers(file, block, 1).ravel() for block in blocks]
        values = np.concatenate([np.zeros(0), *parts])
        if header.symmetry != "general" or len(values) != header.n_entries:
            raise SourceError(
                f"{file}: {len(values)} values of a {header.symmetry} array where "
                f"{header.n_entries} are expected; store a general one"
            )
        return values.reshape(header.shape, order="F")
    rows, columns, values = _joined([*_entries(file, header)])
    if header.symmetry != "general":
        off = rows != columns
        sign = -1.0 if header.symmetry == "skew-symmetric" else 1.0
        rows, columns, values = (
            np.concatenate([rows, columns[off]]),
            np.concatenate([columns, rows[off]]),
            np.concatenate([values, sign * values[off]]),
        )
    return sp.csr_array((values, (rows, columns)), shape=(n_rows, n_columns))
