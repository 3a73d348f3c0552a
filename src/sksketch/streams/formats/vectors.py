"""Columns of lists, such as embeddings: one feature for each element, in the memory of Arrow."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from sksketch._typing import Array
from sksketch.exceptions import SourceError
from sksketch.streams.columns import Field

if TYPE_CHECKING:
    import pyarrow as pa

# Gives the first rows of some columns; None where there are no rows.
FirstRows = Callable[[list[str]], "pa.RecordBatch | pa.Table | None"]


def with_vectors(fields: list[Field], schema: pa.Schema, first_rows: FirstRows) -> list[Field]:
    """Return the fields of a schema, where lists of numbers have the length of the first one."""
    import pyarrow as pa

    found = list(fields)
    for i, column in enumerate(schema):
        fixed = pa.types.is_fixed_size_list(column.type)
        listed = fixed or pa.types.is_list(column.type) or pa.types.is_large_list(column.type)
        if not listed or not _is_number(column.type.value_type):
            continue
        width = column.type.list_size if fixed else _first_length(first_rows([column.name]))
        if width:
            dtype = np.dtype(column.type.value_type.to_pandas_dtype())
            dtype = dtype if dtype.kind == "f" else np.dtype(np.float64)
            found[i] = fields[i]._replace(dtype=dtype, width=width)
    return found


def _is_number(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind))


def _first_length(rows: pa.RecordBatch | pa.Table | None) -> int:
    import pyarrow.compute as pc

    if rows is None:
        return 0
    lengths = pc.list_value_length(rows.column(0)).drop_null()
    return int(lengths[0].as_py()) if len(lengths) else 0


def as_matrix(column: pa.Array, width: int, name: str, place: Callable[[int], str]) -> Array:
    """Return lists as rows, in Arrow's own memory unless some are missing."""
    import pyarrow.compute as pc

    lengths: Any = pc.list_value_length(column).fill_null(width).to_numpy(zero_copy_only=False)
    if (lengths != width).any():
        row = int(np.argmax(lengths != width))
        raise SourceError(
            f"column {name[:40]!r} has a list of {lengths[row]} values where the first has "
            f"{width}; give lists of one length",
            place=place(row),
            column=name,
        )
    # Without the lists that are missing, which may have values behind them.
    values = np.asarray(column.flatten().to_numpy(zero_copy_only=False)).reshape(-1, width)
    if not column.null_count:
        return values
    X = np.full((len(column), width), np.nan, values.dtype if values.dtype.kind == "f" else float)
    X[column.is_valid().to_numpy(zero_copy_only=False)] = values
    return X
