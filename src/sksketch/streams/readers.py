"""The reader for a source: by the ending of a path, or by the kind of an object."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any, Literal, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
from array_api_compat import is_array_api_obj

from sksketch.exceptions import SourceError
from sksketch.streams.blocks import BlockSource, is_iterable_of_blocks
from sksketch.streams.columns import Choice
from sksketch.streams.files import INPUT_FORMATS, LOCAL_FORMATS, STDIN, find_files, format_of
from sksketch.streams.formats.arrays import ArrayReader, BlocksReader, NpyReader, npz_reader
from sksketch.streams.formats.arrow import ArrowReader, load_pyarrow
from sksketch.streams.formats.columnar import arrow_reader, orc_reader
from sksketch.streams.formats.delimited import CsvReader
from sksketch.streams.formats.dialect import Dialect
from sksketch.streams.formats.frames import FrameReader, as_frame
from sksketch.streams.formats.jsonl import JsonLinesReader
from sksketch.streams.formats.matrices.annotated import annotated_reader, is_annotated
from sksketch.streams.formats.matrices.hdf5 import hdf5_reader
from sksketch.streams.formats.matrices.labeled import is_labeled, labeled_reader, netcdf_reader
from sksketch.streams.formats.matrices.matrix_market import matrix_market_reader
from sksketch.streams.formats.objects.dicts import RecordsReader
from sksketch.streams.formats.objects.pairs import PairReader, is_pair
from sksketch.streams.formats.objects.queries import query_reader
from sksketch.streams.formats.parquet import ParquetReader
from sksketch.streams.formats.svmlight import SvmlightReader
from sksketch.streams.formats.vw import VwReader
from sksketch.streams.formats.zarr import ZarrReader, is_store
from sksketch.streams.places.partitions import Partitions
from sksketch.streams.places.remote import File, RemoteFile
from sksketch.streams.source import Reader, is_sparse


class Reading(NamedTuple):
    """How files are to be read, beside the choice of columns; as `open_rows` takes it."""

    format: str | None
    dialect: Dialect
    n_features: int | None
    zero_based: bool | Literal["auto"]
    key: str | None


def reader_of(source: object, choice: Choice, reading: Reading) -> Reader:
    """Return the reader of whatever holds rows."""
    found = _paths_reader(source, choice, reading)
    return found or _object_reader(source, choice, reading.key)


def _paths_reader(source: object, choice: Choice, reading: Reading) -> Reader | None:
    """Return the reader of files, or None for what is no path."""
    wanted = reading.format
    files: list[File] | None
    if source == STDIN if isinstance(source, str) else False:
        if wanted not in (None, *INPUT_FORMATS):
            raise ValueError(
                f"format is {wanted!r}; the standard input is one of {', '.join(INPUT_FORMATS)}"
            )
        files, kind, partitions = None, wanted or "csv", Partitions([], choice)
    elif _is_path(source) or (
        isinstance(source, list | tuple) and source and all(map(_is_path, source))
    ):
        found = find_files(source)
        files = [file for file, _ in found]
        kind, partitions = format_of(files, wanted), Partitions(found, choice)
    else:
        return None
    if kind == "csv":
        return CsvReader(files, choice, reading.dialect, partitions)
    if kind == "jsonl":
        return JsonLinesReader(files, choice, partitions)
    if kind == "svmlight":
        return SvmlightReader(files, choice, reading.n_features, reading.zero_based)
    if kind == "vw":
        return VwReader(files, choice, reading.n_features)
    return _binary_reader(files or [], kind, choice, partitions, reading.key)


def _binary_reader(
    files: list[File], kind: str, choice: Choice, partitions: Partitions, key: str | None
) -> Reader:
    """Return the reader of files of a format that is no text."""
    tables: dict[str, Any] = {"parquet": ParquetReader, "arrow": arrow_reader, "orc": orc_reader}
    if kind in tables:
        table: Reader = tables[kind](files, choice, partitions)
        return table
    for file in files:
        if isinstance(file, RemoteFile) and kind in LOCAL_FORMATS:
            raise SourceError(f"{file}: {kind} is read from a disk; copy it there")
    if kind == "npy":
        return NpyReader([file for file in files if isinstance(file, Path)], choice)
    one = _one(files, {"zarr": "Zarr store"}.get(kind, f"{kind} file"))
    if kind == "mtx":
        return matrix_market_reader(one, choice)
    if kind == "hdf5":
        return hdf5_reader(one, choice, key)
    if kind == "netcdf":
        return netcdf_reader(one, choice, key)
    return npz_reader(one, choice) if kind == "npz" else ZarrReader(one, choice, key)


def _one(files: list[File], kind: str) -> File:
    if len(files) > 1:
        raise SourceError(f"{files[0]} and {files[1]}: open one {kind} at a time")
    return files[0]


def _is_path(source: object) -> bool:
    return isinstance(source, str | PathLike)


def _object_reader(source: Any, choice: Choice, key: str | None) -> Reader:
    """Return the reader of a table, matrix, query or iterable in memory."""
    if is_pair(source):
        if choice.target is not None:
            raise ValueError(
                "the source is a pair (X, y) and target is given; leave one of them out"
            )
        return PairReader(_object_reader(source[0], choice, key), source[1])
    query = query_reader(source, choice)
    if query is not None:
        return query
    if type(source).__module__.partition(".")[0] == "pyarrow":
        if not hasattr(source, "schema") or not hasattr(source, "__arrow_c_stream__"):
            raise TypeError(
                f"a {type(source).__name__} of pyarrow is no table; pass a Table, Dataset, Scanner "
                "or RecordBatchReader, or the path of the file"
            )
        return ArrowReader(source, choice)
    if is_store(source):
        return ZarrReader(source, choice, key)
    if is_annotated(source):
        return annotated_reader(source, choice, key)
    if is_labeled(source):
        return labeled_reader(source, choice, key)
    if is_array_api_obj(source) or is_sparse(source):
        return ArrayReader(source, choice)
    frame = as_frame(source)
    if frame is not None:
        has_lists = any(kind in (nw.List, nw.Array) for kind in frame.schema.values())
        return ArrowReader(frame.to_arrow(), choice) if has_lists else FrameReader(source, choice)
    if isinstance(source, BlockSource):
        return BlocksReader(source, choice)
    if hasattr(source, "__arrow_c_stream__"):
        stream = load_pyarrow().RecordBatchReader.from_stream(source)
        return ArrowReader(stream, choice)
    if isinstance(source, list | tuple) and source and isinstance(source[0], Mapping):
        return RecordsReader(source, choice)
    if not is_iterable_of_blocks(source):
        return ArrayReader(np.asarray(source), choice)
    return _iterable_reader(iter(source), choice)


def _iterable_reader(items: Iterator[Any], choice: Choice) -> Reader:
    """Return the reader of what an iterable gives: dicts, frames or blocks."""
    first = next(items, None)
    if first is None:
        raise SourceError("the iterable gave no block, so its columns are unknown; give one")
    again: Iterable[Any] = chain([first], items)
    if isinstance(first, Mapping):
        return RecordsReader(again, choice)
    if as_frame(first) is not None:
        return FrameReader(again, choice)
    return BlocksReader(again, choice)
