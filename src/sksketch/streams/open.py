"""`open_rows`: one door for everything that holds rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from sksketch._typing import Array
from sksketch.streams.columns import Choice, as_targets
from sksketch.streams.source import RowSource

if TYPE_CHECKING:
    from sksketch.streams.readers import Reading


def open_rows(
    source: object,
    *,
    target: object = None,
    columns: object = None,
    batch_rows: int | None = None,
    missing: Literal["error", "mean", "drop"] | float | Array = "error",
    one_hot: bool | Sequence[str] | None = None,
    categories: Mapping[str, Sequence[Any]] | None = None,
    dtype: npt.DTypeLike | None = None,
    format: str | None = None,  # noqa: A002  (what a user would call it)
    header: bool | None = None,
    delimiter: str | None = None,
    n_features: int | None = None,
    zero_based: bool | Literal["auto"] = "auto",
    read_ahead: bool = True,
    raw: bool = False,
    decimal: str = ".",
    thousands: str | None = None,
    na: Sequence[str] = (),
    comment: str | None = None,
    skip: int = 0,
    encoding: str | None = None,
    key: str | None = None,
) -> RowSource:
    """Open rows, wherever they are, to be read block by block in flat memory.

    Parameters
    ----------
    source : path, URL, array, sparse matrix, data frame, query, pair, iterable or "-"
        Files: one of the formats below, a directory of such files, a pattern such as
        ``"days/*.parquet"``, a list of those, or ``"-"``, the standard input. Files of a
        directory or pattern are read in the order of their names, and folders called
        ``year=2024`` give a column ``year``. URLs such as ``s3://``, ``gs://``, ``https://``
        and ``memory://`` are read by fsspec, Parquet and Arrow by range and text as a stream.

        Objects: arrays of numpy and other libraries, memory maps, scipy's sparse matrices;
        pandas, Polars and Arrow tables; a LazyFrame of Polars, a relation of DuckDB, and a
        Dataset, Scanner or ParquetFile of pyarrow, which run batch by batch; AnnData, also
        backed; a DataArray or Dataset of xarray; open Zarr arrays and groups; whatever has an
        Arrow C stream, read once; a pair ``(X, y)`` of rows and targets; a list of dicts.

        An iterable of arrays, frames, dicts, ``(X, y)`` pairs, triples with the weight of each
        row, or blocks, such as a DataLoader of torch, can be read once.
    target : str, int, list of those, or array, default=None
        The columns that become ``y``, by name or position, or the targets themselves. In an
        ``.npz`` file it is the name of an array. Svmlight and vw files give their labels, unless
        this is an empty list.
    columns : list of str or int, default=None
        The features, in this order; by default all columns but the targets. A column of lists
        of numbers, all of one length, gives the features ``name[0]``, ``name[1]`` and so on.
        Of arrays with named dimensions, the dimensions whose labels are the columns.
    batch_rows : int, default=None
        Rows of every block but the last. By default blocks have 4 to 8 MiB, however many
        rows that is.
    missing : "error", "mean", "drop", float or array, default="error"
        What a missing value (NaN or null) does: it is refused; it becomes the mean of the
        values above it in its column, or the first value of its block if there is none
        above; or its row is dropped; or it becomes this number, or that of its column. ``n_missing`` and ``n_dropped`` count both. A missing
        target can only be dropped, and a NaN in sparse rows is always refused.
    one_hot : bool or list of str, default=None
        Columns to turn into one feature for each category; True means all that are not
        numbers. A row with an unknown category is refused.
    categories : dict from column to list, default=None
        Categories of such columns, where the table does not declare them; a column named
        here is turned into features in any case.
    dtype : float32 or float64, default=None
        Type of the features; by default float32 if all columns are that narrow, else
        float64. Arrays keep theirs.
    format : str, default=None
        By default from the name. Tables: "csv" (``.csv .tsv``), "parquet" (``.parquet .pq``),
        "arrow" (``.feather .arrow .ipc``, and ``.arrows`` for streams), "orc" and "jsonl"
        (``.jsonl .ndjson .json``, one object in each line). Numbered columns: "svmlight"
        (``.svm .svmlight .libsvm``), "vw", "mtx" (Matrix Market; entries in the order of rows
        are streamed, others are sorted in memory), "npy", "npz", "zarr", "hdf5" (``.h5 .hdf5
        .h5ad``; CSC is read into memory) and "netcdf" (``.nc .nc4``). Text may be packed:
        ``.gz .bz2 .zst .xz``. The standard input is CSV.

        "vw" is the text of Vowpal Wabbit, ``label |namespace name:value name ...``; its names
        are hashed to columns as there, and features of the same column add up. An importance
        after the label is the weight of the row.
    header : bool, default=None
        Whether CSV files begin with names; by default they do unless all are numbers.
    delimiter : str, default=None
        Between the values of a CSV file; by default the one of comma, semicolon, tab and bar
        that divides the first lines evenly.
    n_features : int, default=None
        Columns of svmlight files. Without it they are parsed once more to find out. Columns
        of vw files, a power of two; by default 262144.
    zero_based : bool or "auto", default="auto"
        Whether svmlight indices begin at 0. "auto" looks for a zero in all lines, or in the
        first block if ``n_features`` is given.
    read_ahead : bool, default=True
        Whether files are read and parsed in a background thread, some blocks ahead.
    raw : bool, default=False
        Whether the rows of tables are given as Arrow tables, with columns of any type, for a
        `TableEncoder`. Its options then say what missing values become; here they can only be
        dropped with their rows.
    decimal : str, default="."
        Decimal mark of the numbers in CSV.
    thousands : str, default=None
        Mark between groups of three digits in CSV, such as ``"."`` or ``" "``.
    na : list of str, default=()
        Words of CSV that stand for a missing value, beside the usual ones.
    comment : str, default=None
        Beginning of CSV lines that are left out.
    skip : int, default=0
        Lines of a CSV file before the table.
    encoding : str, default=None
        Encoding of CSV files, such as "latin-1"; by default UTF-8.
    key : str, default=None
        The matrix in a file or object that holds several: the path of a dataset or sparse
        group of HDF5 or Zarr, such as "layers/counts", or the name of a variable of NetCDF.

    Returns
    -------
    RowSource
        Its ``blocks()`` gives ``Block(X, y)``, whose ``sample_weight`` has the weights of rows
        where some are not 1, and starts over at each call, ``blocks(n)``
        resumes after ``n`` rows, ``fingerprint()`` tells whether the rows are the same as
        before. It has ``n_features``, ``n_targets``, ``n_rows`` (None if unknown),
        ``feature_names``, ``target_names``, ``n_missing`` and ``n_dropped``.

    Raises
    ------
    SourceError
        A ValueError that names the file and the line or row group.

    See Also
    --------
    fit_stream : Learns from all rows of a source.

    Examples
    --------
    >>> source = open_rows(np.arange(12.0).reshape(4, 3), target=2, batch_rows=3)
    >>> source.n_features, source.n_rows
    (2, 4)
    >>> for X, y in source.blocks(start_row=2):
    ...     print(X, y)
    [[ 6.  7.]
     [ 9. 10.]] [ 8. 11.]

    Missing values are an error unless you say what to do with them.

    >>> source = open_rows([[1.0, 5.0], [3.0, np.nan], [5.0, 6.0]], missing="mean")
    >>> [block.X.tolist() for block in source.blocks()], source.n_missing
    ([[[1.0, 5.0], [3.0, 5.0], [5.0, 6.0]]], 1)

    Rows and targets that lie side by side are one source, and so are dicts.

    >>> open_rows((np.ones((4, 3)), np.arange(4.0))).n_targets
    1
    >>> open_rows([{"a": 1, "b": 2}, {"a": 3, "b": 4}], target="b").feature_names
    ['a']
    """
    # Here and not above: all formats together are many modules.
    from sksketch.streams.formats.dialect import Dialect
    from sksketch.streams.readers import Reading, reader_of

    choice = Choice(columns, target, one_hot, categories, dtype, raw)
    if isinstance(source, RowSource):
        raise TypeError("the rows are open already; pass the options where they are opened")
    if isinstance(na, str):
        raise TypeError(f"na is {na!r}; give a list of words")
    dialect = Dialect(delimiter, header, decimal, thousands, tuple(na), comment, skip, encoding)
    reading = Reading(format, dialect, n_features, zero_based, key)
    reader = reader_of(source, choice, reading)
    alone = None
    beside = getattr(reader, "has_annotations", False)
    if isinstance(target, str) and reader.target_names == [target] and reader.feature_names:
        # A target beside itself: whoever wants the labels need not read the features.
        alone = None if beside else partial(_targets_alone, source, target, reading)
    return RowSource(
        reader,
        batch_rows=batch_rows,
        missing=missing,
        in_background=read_ahead,
        # What changes the numbers but neither the files nor the names of their columns.
        options={
            "dtype": None if dtype is None else str(np.dtype(dtype)),
            "header": header,
            "delimiter": delimiter,
            "zero_based": zero_based,
            "target": target if isinstance(target, int | str) else None,
            **dialect.changes(),
            **({} if key is None else {"key": key}),
        },
        targets_alone=alone,
    )


def _targets_alone(source: object, target: str, reading: Reading) -> Iterator[Array]:
    """Yield the targets of the rows that have one; no other column is read."""
    from sksketch.streams.formats.arrow import target_values
    from sksketch.streams.readers import reader_of

    reader = reader_of(source, Choice([target], raw=True), reading)
    rows = RowSource(reader, batch_rows=None, missing="drop", in_background=True)
    for block in rows.blocks():
        table: Any = block.X
        for column in table.column(0).chunks:
            yield as_targets(target_values(column))
