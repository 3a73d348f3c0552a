"""Arrays with named dimensions: those of xarray, and NetCDF files read through it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import islice, product
from math import prod
from typing import Any

import numpy as np

from sksketch._typing import Array
from sksketch.exceptions import Option, SourceError
from sksketch.streams.blocks import BLOCK_BYTES
from sksketch.streams.columns import Choice
from sksketch.streams.files import blamed
from sksketch.streams.formats.matrices.matrix import Cuttable, MatrixReader
from sksketch.streams.places.remote import File, RemoteFile


def load_xarray() -> Any:
    """Return xarray, or say what to install."""
    try:
        import xarray
    except ImportError:
        raise ImportError("NetCDF files need xarray: pip install xarray h5netcdf") from None
    return xarray


def is_labeled(source: object) -> bool:
    """Return whether an object is a DataArray or Dataset of xarray, without loading the library."""
    module = type(source).__module__.partition(".")[0]
    return module == "xarray" and hasattr(source, "dims") and hasattr(source, "isel")


def netcdf_reader(file: File, choice: Choice, key: str | None) -> MatrixReader:
    """Return the rows of a variable in a NetCDF file."""
    with _opened(file) as dataset:
        return labeled_reader(dataset, choice, key, file)


@contextmanager
def _opened(file: File) -> Iterator[Any]:
    xarray = load_xarray()
    with ExitStack() as closing:
        with blamed(file, "cut short, damaged or not NetCDF", "write or fetch it again"):
            raw: Any = file
            if isinstance(file, RemoteFile):
                raw = closing.enter_context(file.open_ranges())
            dataset = closing.enter_context(xarray.open_dataset(raw, cache=False))
        yield dataset


def labeled_reader(
    source: Any, choice: Choice, key: str | None, file: File | None = None
) -> MatrixReader:
    """Return the rows of a DataArray, or of a variable of a Dataset.

    The first dimension has the rows, unless ``columns`` names the dimensions whose labels,
    taken together, are the columns.
    """
    where = str(file) if file is not None else "the array"
    dataset = source if hasattr(source, "data_vars") else None
    array = source if dataset is None else _variable(dataset, key, where)
    if array.name is not None:
        where = f"{where}, {array.name}"
    rows = _LabeledRows(array, choice.columns, where)
    by_dimension = rows.by_dimension

    @contextmanager
    def opened() -> Iterator[Cuttable]:
        if file is None:
            yield rows
            return
        with _opened(file) as dataset:
            yield _LabeledRows(_variable(dataset, key, where), choice.columns, where)

    def annotation(name: str) -> Array:
        holder = array.coords if name in array.coords else dataset if dataset is not None else {}
        if name not in holder or holder[name].dims != (rows.row_dimension,):
            raise SourceError(
                f"{where} has no target {name!r} along {rows.row_dimension!r}; give a coordinate "
                "or variable with that dimension"
            )
        values = np.asarray(holder[name].values)
        return values if values.dtype.kind in "biuf" else values.astype(str).astype(object)

    return MatrixReader(
        rows,
        Choice(
            None if by_dimension else choice.columns,
            choice.target,
            choice.one_hot,
            choice.categories,
            choice.dtype,
        ),
        where,
        opened=opened,
        kind="xarray" if file is None else "netcdf",
        names=rows.names(),
        annotation=annotation,
        file=file,
    )


def _variable(dataset: Any, key: str | None, where: str) -> Any:
    """Return the variable to read: the one asked for, or the only one with rows and columns."""
    names = list(dataset.data_vars)
    if key is not None:
        if key not in dataset:
            raise SourceError(
                f"{where} has no variable {key!r}; it has {', '.join(map(str, names))}"
            )
        return dataset[key]
    wide = [name for name in names if dataset[name].ndim >= 2]
    if len(wide) == 1:
        return dataset[wide[0]]
    if wide:
        raise SourceError(f"{len(wide)} variables; pass ", Option("key", *wide[:3]), place=where)
    return dataset.to_array(dim="variable").transpose(..., "variable")


class _LabeledRows:
    """An array of named dimensions, one of which has the rows and the others the columns."""

    def __init__(self, array: Any, columns: object, where: str) -> None:
        dims = [str(dim) for dim in array.dims]
        wanted = [columns] if isinstance(columns, str) else columns
        self.by_dimension = (
            isinstance(wanted, list | tuple) and bool(wanted) and set(wanted) <= set(dims)
        )
        inner = list(wanted) if self.by_dimension and isinstance(wanted, list | tuple) else dims[1:]
        outer = [dim for dim in dims if dim not in inner]
        if array.ndim < 2 or len(outer) != 1 or (len(inner) > 1 and not self.by_dimension):
            sizes = " x ".join(map(str, array.shape))
            advice: list[str | Option] = ["give an array with rows and columns"]
            if array.ndim > 2:
                advice = [
                    "name the dimensions of the columns: pass ",
                    Option("columns", dims[1:]),
                    f", or array.stack(column={tuple(dims[1:])!r})",
                ]
            about = ", ".join(dims) or "none"
            raise SourceError(f"dimensions {about} ({sizes}); ", *advice, place=where)
        if array.dtype.kind not in "biuf":
            raise SourceError(f"{where}: holds {array.dtype}; give an array of numbers")
        self.row_dimension = outer[0]
        self._inner, self._array = inner, array.transpose(outer[0], *inner)
        width = prod(self._array.shape[1:])
        self.shape = int(self._array.shape[0]), int(width)
        self.step = max(1, BLOCK_BYTES // max(1, width * array.dtype.itemsize))

    def cut(self, start: int, stop: int) -> Any:
        """Return some rows."""
        part = self._array.isel({self.row_dimension: slice(start, stop)}).values
        return np.asarray(part).reshape(stop - start, -1)

    def names(self) -> list[str] | None:
        """Return the labels of the columns, where the dimensions have any."""
        array, inner = self._array, self._inner
        if any(dim not in array.coords for dim in inner):
            return None
        labels = [[_label(value) for value in array[dim].values] for dim in inner]
        if len(inner) == 1:
            return labels[0] if len(set(labels[0])) == len(labels[0]) else None
        together = product(*labels)
        return [
            " ".join(f"{dim}={label}" for dim, label in zip(inner, parts, strict=True))
            for parts in islice(together, self.shape[1])
        ]


def _label(value: object) -> str:
    if isinstance(value, tuple):
        return " ".join(map(_label, value))
    return f"{value:g}" if isinstance(value, float | np.floating) else str(value)
