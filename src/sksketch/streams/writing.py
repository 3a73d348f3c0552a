"""Coordinates and predictions on their way to a Parquet file, block by block."""

from __future__ import annotations

from typing import IO, Any

from sksketch._typing import Array


class ParquetWriter:
    """A Parquet file of named columns of numbers.

    Parameters
    ----------
    file : binary file
        Open for writing.
    names : list of str
        Of the columns.

    Examples
    --------
    >>> import io, numpy as np
    >>> file = io.BytesIO()
    >>> writer = ParquetWriter(file, ["a", "b"])
    >>> writer.write(np.array([[1.0, 2.0]]))
    >>> writer.close()
    >>> file.getvalue()[:4]
    b'PAR1'
    """

    def __init__(self, file: IO[bytes], names: list[str]) -> None:
        self._file, self._names = file, names
        self._writer: Any = None

    def write(self, rows: Array) -> None:
        """Append rows, of shape (n_rows, n_columns) or (n_rows,)."""
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError:
            raise ImportError(
                "writing Parquet needs pyarrow: pip install 'scikit-sketch[io]'"
            ) from None
        columns = rows.reshape(len(rows), -1).T
        table = pa.table(dict(zip(self._names, map(pa.array, columns), strict=True)))
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._file, table.schema)
        self._writer.write_table(table)

    def close(self) -> None:
        """Write the end of the file."""
        if self._writer is not None:
            self._writer.close()
