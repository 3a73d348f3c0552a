"""Arrow batches as Spark sends them: numeric columns, arrays and vectors to rows, and back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from sksketch._typing import Array
from sksketch.arrays.rows import without_traps
from sksketch.exceptions import SourceError
from sksketch.streams.formats.arrow import load_pyarrow, target_values

if TYPE_CHECKING:
    import pyarrow as pa

# Of the struct that a vector is: the first has indices, the second only values.
SPARSE, DENSE = 0, 1

SHARD_SCHEMA = "first long, stop long, n_rows long, state binary"


class Columns(NamedTuple):
    """The columns of a Spark frame that are features, target and weight."""

    features: list[str]
    target: list[str]
    weight: str | None
    # Whether features are given as a table, of columns of any type.
    raw: bool = False


def batch_rows(batch: pa.RecordBatch, columns: Columns) -> tuple[Any, Any, Any]:
    """Return X, y and weights of a record batch; sparse vectors become a CSR array."""
    if columns.raw:
        X = load_pyarrow().Table.from_batches([batch.select(columns.features)])
    else:
        X = _features(batch, columns.features)
    y = None
    if len(columns.target) == 1 and columns.raw:
        _require_values(batch.column(columns.target[0]), columns.target[0])
        y = target_values(batch.column(columns.target[0]))
    elif columns.target:
        y = np.column_stack([_numbers(batch, name) for name in columns.target])
        y = y[:, 0] if len(columns.target) == 1 else y
    return X, y, None if columns.weight is None else _numbers(batch, columns.weight)


def _features(batch: pa.RecordBatch, names: Sequence[str]) -> Any:
    pa = load_pyarrow()
    first = batch.column(names[0])
    if len(names) == 1 and pa.types.is_struct(first.type):
        return _vectors(first, names[0])
    if len(names) == 1 and (pa.types.is_list(first.type) or pa.types.is_large_list(first.type)):
        _require_values(first, names[0])
        return _lists(first, names[0])
    return np.column_stack([_numbers(batch, name) for name in names])


def _numbers(batch: pa.RecordBatch, name: str) -> Array:
    pa = load_pyarrow()
    column = batch.column(name)
    _require_values(column, name)
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    if not pa.types.is_floating(column.type):
        column = column.cast(pa.float64())
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _require_values(column: pa.Array, name: str) -> None:
    if column.null_count:
        row = column.is_null().to_numpy(zero_copy_only=False).argmax()
        raise SourceError(
            f"column {name!r} has a missing value in row {row} of a batch; fill or drop it"
        )


def _lists(column: pa.Array, name: str) -> Array:
    """Return lists of one length as rows."""
    values = column.flatten()
    _require_values(values, name)
    lengths = np.diff(np.asarray(column.offsets))
    if not len(lengths):
        return np.zeros((0, 1))
    if (lengths != lengths[0]).any():
        raise SourceError(
            f"column {name!r} has arrays of {lengths.min()} and of {lengths.max()} numbers; all "
            "must have one length"
        )
    numbers = np.asarray(values.to_numpy(zero_copy_only=False))
    return numbers.reshape(len(lengths), int(lengths[0]))


def _vectors(column: pa.Array, name: str) -> Any:
    """Return vectors as rows: CSR if one of them is sparse."""
    _require_values(column, name)
    kinds = np.asarray(column.field("type"))
    values = column.field("values")
    if (kinds == DENSE).all():
        return _lists(values, name)
    sizes = column.field("size").fill_null(0).to_numpy(zero_copy_only=False)
    lengths = np.asarray(values.value_lengths())
    widths = np.where(kinds == SPARSE, sizes, lengths)
    if (widths != widths[0]).any():
        raise SourceError(
            f"column {name!r} has vectors of {widths.min()} and of {widths.max()} numbers; all "
            "must have one length"
        )
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    # A dense vector among sparse ones has all indices.
    inside = np.arange(indptr[-1]) - np.repeat(indptr[:-1], lengths)
    indices = inside.astype(np.int64)
    of_sparse = np.repeat(kinds == SPARSE, lengths)
    indices[of_sparse] = np.asarray(column.field("indices").flatten())
    data = np.asarray(values.flatten().to_numpy(zero_copy_only=False))
    rows = sp.csr_array((data, indices, indptr), shape=(len(kinds), int(widths[0])))
    return without_traps(rows)


# What travels between Python and Spark


def shard_batch(first: int, stop: int, n_rows: int, state: bytes | None) -> Any:
    """Return one row of `SHARD_SCHEMA`."""
    pa = load_pyarrow()
    arrays = [pa.array([number], pa.int64()) for number in (first, stop, n_rows)]
    arrays.append(pa.array([state], pa.binary()))
    return pa.RecordBatch.from_arrays(arrays, names=["first", "stop", "n_rows", "state"])


def shard_table(first: int, stop: int, n_rows: int, state: bytes | None) -> Any:
    """Return the same as a table."""
    return load_pyarrow().Table.from_batches([shard_batch(first, stop, n_rows, state)])


def packed(batches: Iterable[Any]) -> Iterator[Any]:
    """Return batches as rows of one binary column, whatever their columns are."""
    pa = load_pyarrow()
    for batch in batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        yield pa.RecordBatch.from_arrays([pa.array([sink.getvalue().to_pybytes()])], ["batch"])


def unpacked(data: bytes) -> Iterator[Any]:
    """Yield the batches that `packed` put into one row."""
    with load_pyarrow().ipc.open_stream(data) as reader:
        yield from reader


def with_column(batch: pa.RecordBatch, name: str, values: Array) -> Any:
    """Return a batch with a column more: numbers, or lists where there are several per row."""
    pa = load_pyarrow()
    flat = pa.array(np.ascontiguousarray(values).ravel())
    column = flat
    if values.ndim > 1:
        offsets = np.arange(len(values) + 1, dtype=np.int32) * values.shape[1]
        column = pa.ListArray.from_arrays(pa.array(offsets), flat)
    return pa.RecordBatch.from_arrays([*batch.columns, column], names=[*batch.schema.names, name])
