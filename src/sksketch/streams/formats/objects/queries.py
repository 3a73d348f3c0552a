"""Queries that have not run yet, and open data sets: batches of Arrow, anew for each reading."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sksketch.exceptions import StreamExhaustedError
from sksketch.streams.columns import Choice
from sksketch.streams.files import blamed
from sksketch.streams.formats.arrow import load_pyarrow
from sksketch.streams.formats.batches import Batches, BatchesReader

if TYPE_CHECKING:
    import duckdb
    import polars as pl
    import pyarrow as pa
    import pyarrow.dataset as pds
    import pyarrow.parquet as pq

# Rows that a query is asked for at a time; blocks are cut from them.
QUERY_ROWS = 2**16


def query_reader(source: Any, choice: Choice) -> BatchesReader | None:
    """Return the reader of a query or data set, or None for anything else."""
    module, name = type(source).__module__.partition(".")[0], type(source).__name__
    table: Batches
    if module == "polars" and name == "LazyFrame":
        table = _Lazy(source)
    elif module == "duckdb" and name == "DuckDBPyRelation":
        table = _Relation(source)
    elif module == "pyarrow" and name == "ParquetFile":
        table = _OpenParquet(source)
    elif module == "pyarrow" and hasattr(source, "projected_schema"):
        table = _Scanned(source)
    elif module == "pyarrow" and hasattr(source, "scanner"):
        table = _Dataset(source)
    else:
        return None
    return BatchesReader([table], choice, table.where)


class _Query(ABC):
    """A source whose rows are asked for from the first one on."""

    file = None
    jumps = False
    # Those that the library raises for a query that fails.
    errors: tuple[type[Exception], ...] = ()
    n_rows: int | None = None
    schema: Any
    where: str

    def batches(self, names: list[str], start_row: int) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield all batches, from the first row on."""
        first = 0
        found = None
        while True:
            with blamed(self.where, "the rows cannot be read", "check the query and its files"):
                try:
                    found = self._run(names) if found is None else found
                    batch = next(found, None)
                except self.errors as error:
                    raise ValueError(str(error)) from None
            if batch is None:
                return
            yield first, batch.select(names)
            first += batch.num_rows

    @abstractmethod
    def _run(self, names: list[str]) -> Iterator[pa.RecordBatch]:
        """Ask for all rows of some columns."""


class _Lazy(_Query):
    """A LazyFrame of Polars, collected in batches."""

    where = "the LazyFrame"

    def __init__(self, frame: pl.LazyFrame) -> None:
        load_pyarrow()
        self._frame = frame
        self.errors = (sys.modules["polars"].exceptions.PolarsError,)
        self.schema = frame.collect_schema().to_frame().to_arrow().schema

    def _run(self, names: list[str]) -> Iterator[pa.RecordBatch]:
        chosen = self._frame.select(names)
        for frame in chosen.collect_batches(chunk_size=QUERY_ROWS, maintain_order=True):
            yield from frame.to_arrow().to_batches()


class _Relation(_Query):
    """A relation of DuckDB, run anew for each reading."""

    where = "the relation"

    def __init__(self, relation: duckdb.DuckDBPyRelation) -> None:
        load_pyarrow()
        self._relation = relation
        self.errors = (sys.modules["duckdb"].Error,)
        self.schema = relation.limit(0).to_arrow_reader().schema

    def _run(self, names: list[str]) -> Iterator[pa.RecordBatch]:
        quoted = ", ".join('"' + name.replace('"', '""') + '"' for name in names)
        return iter(self._relation.project(quoted).to_arrow_reader(QUERY_ROWS))


class _Dataset(_Query):
    """A data set of pyarrow, scanned anew for each reading."""

    where = "the dataset"

    def __init__(self, dataset: pds.Dataset) -> None:
        self._dataset, self.schema = dataset, dataset.schema
        if getattr(getattr(dataset, "format", None), "default_extname", "") == "parquet":
            # From the ends of the files, which have it.
            self.n_rows = dataset.count_rows()

    def _run(self, names: list[str]) -> Iterator[pa.RecordBatch]:
        scanner = self._dataset.scanner(columns=names, batch_size=QUERY_ROWS, fragment_readahead=1)
        return iter(scanner.to_batches())


class _Scanned(_Query):
    """A scanner of pyarrow, which has chosen its columns already."""

    where = "the scanner"

    def __init__(self, scanner: pds.Scanner) -> None:
        self._scanner, self.schema = scanner, scanner.projected_schema

    def _run(self, names: list[str]) -> Iterator[pa.RecordBatch]:
        try:
            yield from self._scanner.to_batches()
        except load_pyarrow().ArrowInvalid as error:
            if "already scanned" not in str(error):
                raise
            raise StreamExhaustedError(
                "this scanner can be read only once, and it has been read; build it again"
            ) from None


class _OpenParquet(_Query):
    """An open Parquet file, from its first row group on."""

    where = "the Parquet file"

    def __init__(self, opened: pq.ParquetFile) -> None:
        self._opened, self.schema = opened, opened.schema_arrow
        self.n_rows = opened.metadata.num_rows

    def _run(self, names: list[str]) -> Iterator[pa.RecordBatch]:
        return iter(self._opened.iter_batches(QUERY_ROWS, columns=names))
