"""Arrow's record batches as blocks; also what Parquet and CSV are read through."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from sksketch._typing import Array
from sksketch.exceptions import SourceError, StreamExhaustedError
from sksketch.streams.columns import XY, Choice, Field, Layout
from sksketch.streams.formats.vectors import as_matrix, with_vectors
from sksketch.streams.source import Place, RawBlock, digest, skip_rows

if TYPE_CHECKING:
    import pyarrow as pa


@functools.cache
def load_pyarrow() -> Any:
    """Return pyarrow with the parts in use, or say what to install."""
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.csv
        import pyarrow.ipc
        import pyarrow.json
        import pyarrow.orc
        import pyarrow.parquet
    except ImportError:
        raise ImportError(
            'CSV, Parquet and Arrow need pyarrow: pip install "scikit-sketch[io]"'
        ) from None
    return pyarrow


def spare_memory() -> None:
    """Let Arrow give back what it has freed, for the whole process; its own allocator keeps it."""
    with suppress(ImportError):
        pa = load_pyarrow()
        pa.set_memory_pool(pa.system_memory_pool())


def as_field(field: pa.Field) -> Field:
    """Return what matters of a field of an Arrow schema."""
    types = load_pyarrow().types
    dtype = None
    if types.is_floating(field.type):
        dtype = np.dtype(field.type.to_pandas_dtype())
    elif (
        types.is_integer(field.type)
        or types.is_boolean(field.type)
        or types.is_decimal(field.type)
        or types.is_null(field.type)
    ):
        dtype = np.dtype(np.float64)
    return Field(field.name, str(field.type), dtype)


def batch_rows(batch: pa.RecordBatch, layout: Layout, place: Place) -> XY:
    """Return the features and targets of a batch whose columns are those of ``layout.reads``."""
    pa = load_pyarrow()
    n_features = batch.num_columns - layout.n_targets
    chosen = batch.select(range(n_features))
    wanted = pa.from_numpy_dtype(layout.dtype)
    targets = [target_values(column) for column in batch.columns[n_features:]]
    if layout.raw:
        return layout.beside(pa.Table.from_batches([chosen]), targets)
    if not layout.categories and all(kind == wanted for kind in chosen.schema.types):
        # All columns in one call, during which other threads run.
        return layout.beside(chosen.to_tensor(null_to_nan=True).to_numpy(), targets)
    features = [
        _codes(column, layout.categories[i], name, place)
        if i in layout.categories
        else as_matrix(column, layout.width_of(i), name, place)
        if layout.width_of(i)
        else _numbers(column)
        for i, name, column in zip(layout.reads, chosen.schema.names, chosen.columns, strict=False)
    ]
    if len(features) == 1 and features[0].ndim == 2 and features[0].dtype == layout.dtype:
        # Embeddings lie row by row as they are.
        return layout.beside(features[0], targets)
    return layout.assemble(features, targets)


def _numbers(column: pa.Array) -> Array:
    """Return numbers, without a copy unless some are missing or are of a type numpy lacks."""
    pa = load_pyarrow()
    if not (pa.types.is_floating(column.type) or pa.types.is_integer(column.type)):
        if pa.types.is_boolean(column.type):
            column = column.cast(pa.uint8())
        column = column.cast(pa.float64())
    return np.asarray(column.to_numpy(zero_copy_only=False))


def target_values(column: pa.Array) -> Array:
    """Return numbers, or names with None where one is missing."""
    if as_field(load_pyarrow().field("target", column.type)).dtype is not None:
        return _numbers(column)
    pa = load_pyarrow()
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    # Few values become objects of Python, however many rows there are.
    known = [None if value is None else str(value) for value in coded.dictionary.to_pylist()]
    names = np.array([*known, None], dtype=object)
    return np.asarray(names[coded.indices.fill_null(len(known)).to_numpy(zero_copy_only=False)])


def _codes(column: pa.Array, categories: list[Any], name: str, place: Place) -> Array:
    """Return the position of each value among the categories, -1 where it is missing."""
    pa = load_pyarrow()
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    try:
        known = pa.array(categories).cast(column.type)
    except pa.ArrowException:
        raise SourceError(
            f"{place(0)}: the categories {categories[:3]} of column {name!r} are not of its type, "
            f"{column.type}; list its own values"
        ) from None
    codes = pa.compute.index_in(column, value_set=known, skip_nulls=True)
    found = codes.fill_null(-1).to_numpy(zero_copy_only=False)
    strange = (found < 0) & column.is_valid().to_numpy(zero_copy_only=False)
    if strange.any():
        row = int(np.argmax(strange))
        raise SourceError(
            f"{place(row)}: column {name!r} has the value {_shown(column[row])!r}, which is not "
            "among its categories; add it to categories"
        )
    return np.asarray(found)


def _shown(value: pa.Scalar) -> str:
    try:
        return str(value)
    except UnicodeDecodeError:
        return "bytes that are no text"


class ArrowReader:
    """The rows of an Arrow table, record batch or record batch reader."""

    ahead = 0

    def __init__(self, source: Any, choice: Choice) -> None:
        pa = load_pyarrow()
        self.reads_once = self._once = isinstance(source, pa.RecordBatchReader)
        if isinstance(source, pa.RecordBatch):
            source = pa.Table.from_batches([source])
        fields = [as_field(field) for field in source.schema]
        schema = source.schema
        if self._once:
            # Only the first rows tell how long lists are.
            first = next(iter(source), None)
            fields = with_vectors(fields, schema, lambda names: first and first.select(names))
            source = source if first is None else chain([first], source)
        else:
            fields = with_vectors(fields, schema, source.select)
            source = source.unify_dictionaries()
            for i, field in enumerate(source.schema):
                if pa.types.is_dictionary(field.type) and source.column(i).num_chunks:
                    values = source.column(i).chunk(0).dictionary.to_pylist()
                    fields[i] = fields[i]._replace(categories=values)
        self._layout = Layout(fields, choice, "the Arrow table")
        self._source: Any = source
        self.n_features, self.n_targets = self._layout.n_features, self._layout.n_targets
        self.feature_names = self._layout.feature_names
        self.target_names = self._layout.target_names
        self.n_rows = None if self._once else source.num_rows

    def read(self, start_row: int) -> Iterator[RawBlock]:
        """Yield the rows after the first ``start_row``; those of a reader only once."""
        if not self._once:
            return self._raw_blocks(self._source.slice(start_row), start_row)
        if self._source is None:
            raise StreamExhaustedError(
                "an Arrow record batch reader can be read only once, and it has been read; "
                "open a new one"
            )
        source, self._source = self._source, None
        return skip_rows(self._raw_blocks(source, 0), start_row)

    def _raw_blocks(self, source: Any, first: int) -> Iterator[RawBlock]:
        layout = self._layout
        chosen = source if self._once else source.select(layout.reads)
        for batch in chosen if self._once else chosen.to_batches(layout.block_rows):
            batch = batch.select(layout.reads) if self._once else batch
            for start in range(0, batch.num_rows, layout.block_rows):
                part = batch.slice(start, layout.block_rows)

                def place(i: int, first: int = first) -> str:
                    return f"the Arrow table, row {first + i}"

                yield RawBlock(*batch_rows(part, layout, place), place)
                first += part.num_rows

    def fingerprint(self) -> dict[str, Any]:
        """Return the rows of the table and the digest of its ends."""
        if self._once:
            return {"kind": "arrow reader"}
        ends = [next(self._raw_blocks(self._source.slice(k, 64), k), None) for k in self._ends()]
        parts = [part for raw in ends if raw for part in raw[:2] if part is not None]
        return {"kind": "arrow", "n_rows": self.n_rows, "digest": digest(*parts)}

    def _ends(self) -> tuple[int, int]:
        return 0, max(0, self._source.num_rows - 64)
