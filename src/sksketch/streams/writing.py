"""Coordinates, predictions and scores on their way to a file, block by block."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import IO, Any, Protocol

import numpy as np

from sksketch._typing import Array
from sksketch.exceptions import SourceError

#: Columns by name, all of the same length: numbers, or texts as objects.
Columns = Mapping[str, Array]


class Writer(Protocol):
    """A file that is written block by block."""

    def write(self, columns: Columns) -> None:
        """Append rows."""

    def close(self) -> None:
        """Write the end of the file, which stays open."""


class NpyWriter:
    """An .npy file of numbers, whose number of rows is known at the end."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._n_rows = 0
        self._like: Array | None = None

    def write(self, columns: Columns) -> None:
        """Append rows."""
        rows = _as_matrix(columns, ".npy")
        if self._like is None:
            self._like = rows[:0]
            self._write_header()
        self._file.write(np.ascontiguousarray(rows).tobytes())
        self._n_rows += len(rows)

    def close(self) -> None:
        """Write the number of rows."""
        if self._like is not None:
            # The format leaves room for a longer number of rows.
            self._file.seek(0)
            self._write_header()

    def _write_header(self) -> None:
        assert self._like is not None
        header = np.lib.format.header_data_from_array_1_0(self._like)
        shape = (self._n_rows, *self._like.shape[1:])
        # An empty array counts as ordered both ways, but its rows come one after the other.
        header |= {"shape": shape, "fortran_order": False}
        np.lib.format.write_array_header_1_0(self._file, header)


class NpzWriter:
    """An .npz file with one array X, which is gathered before it is written."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._parts: list[Array] = []

    def write(self, columns: Columns) -> None:
        """Keep rows."""
        self._parts.append(_as_matrix(columns, ".npz"))

    def close(self) -> None:
        """Write all rows."""
        np.savez(self._file, X=np.concatenate(self._parts))


class CsvWriter:
    """CSV with a line of names, and numbers with all their digits."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._names: list[str] | None = None

    def write(self, columns: Columns) -> None:
        """Append rows."""
        if self._names is None:
            self._names = list(columns)
            self._lines([self._names])
        if _has_text(columns):
            self._lines(zip(*(_as_words(part) for part in columns.values()), strict=True))
            return
        rows = _as_matrix(columns, ".csv")
        digits = "%.9g" if rows.dtype == np.float32 else "%.17g"
        np.savetxt(self._file, rows.reshape(len(rows), -1), fmt=digits, delimiter=",")

    def _lines(self, rows: Any) -> None:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(rows)
        self._file.write(text.getvalue().encode())

    def close(self) -> None:
        """Bring all lines to the file."""
        self._file.flush()


class ParquetWriter:
    """A Parquet file of named columns.

    Parameters
    ----------
    file : binary file
        Open for writing.

    Examples
    --------
    >>> file = io.BytesIO()
    >>> writer = ParquetWriter(file)
    >>> writer.write({"a": np.array([1.0]), "b": np.array([2.0])})
    >>> writer.close()
    >>> file.getvalue()[:4]
    b'PAR1'
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._writer: Any = None

    def write(self, columns: Columns) -> None:
        """Append rows."""
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError:
            raise ImportError(
                "writing Parquet needs pyarrow: pip install 'scikit-sketch[io]'"
            ) from None
        table = pa.table({name: pa.array(part) for name, part in columns.items()})
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._file, table.schema)
        # A block without any value of a column does not tell its type.
        self._writer.write_table(table.cast(self._writer.schema))

    def close(self) -> None:
        """Write the end of the file."""
        if self._writer is not None:
            self._writer.close()


# By the end of the name; other names are CSV.
WRITERS: dict[str, Any] = {".npy": NpyWriter, ".npz": NpzWriter, ".parquet": ParquetWriter}


@contextmanager
def writing(name: str, file: IO[bytes]) -> Iterator[Writer]:
    """Give what writes the format that a name ends in, CSV for others, and close it at the end."""
    kinds = [kind for suffix, kind in WRITERS.items() if name.endswith(suffix)]
    writer: Writer = (kinds or [CsvWriter])[0](file)
    try:
        yield writer
    except BaseException:
        if isinstance(writer, ParquetWriter):
            # Or it would try to, once the file is closed, and complain on stderr.
            with suppress(OSError, ValueError):
                writer.close()
        raise
    writer.close()


def is_known(name: str) -> bool:
    """Return whether a name tells the format."""
    return name.endswith((".csv", *WRITERS))


def as_columns(names: Sequence[str], values: Array) -> dict[str, Array]:
    """Return the columns of an array of shape (n_rows, n_columns) or (n_rows,) by name."""
    columns = values.reshape(len(values), -1).T
    return dict(zip(names, columns, strict=True))


def _has_text(columns: Columns) -> bool:
    return any(part.dtype.kind not in "biuf" for part in columns.values())


def _as_matrix(columns: Columns, suffix: str) -> Array:
    if _has_text(columns):
        raise SourceError(
            f"{suffix} holds numbers, and a column is text; give a name that ends in .csv or "
            ".parquet"
        )
    parts = list(columns.values())
    return parts[0] if len(parts) == 1 else np.column_stack(parts)


def _as_words(part: Array) -> list[str]:
    if part.dtype.kind == "f":
        digits = ".9g" if part.dtype == np.float32 else ".17g"
        return [format(value, digits) for value in part.tolist()]
    return ["" if value is None else str(value) for value in part.tolist()]
