"""HDF5 files: a dense dataset or a sparse group, also as AnnData lays them out (.h5ad)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from sksketch._typing import Array
from sksketch.exceptions import Option, SourceError
from sksketch.streams.columns import Choice
from sksketch.streams.files import blamed
from sksketch.streams.formats.matrices.matrix import (
    Cuttable,
    DenseRows,
    MatrixReader,
    MemoryRows,
    SparseRows,
)
from sksketch.streams.places.remote import File, RemoteFile

if TYPE_CHECKING:
    import h5py

SPARSE_MEMBERS = ("data", "indices", "indptr")


def load_h5py() -> Any:
    """Return h5py, or say what to install."""
    try:
        import h5py
    except ImportError:
        raise ImportError('HDF5 files need h5py: pip install "scikit-sketch[io]"') from None
    return h5py


def hdf5_reader(file: File, choice: Choice, key: str | None) -> MatrixReader:
    """Return the rows of a matrix in an HDF5 file.

    Of an annotated matrix they are those of ``X``, ``columns`` may be the names of variables and
    ``target`` that of an annotation of observations.
    """
    where = str(file)
    with _opened(file) as opened:
        with _blamed(file):
            node = _chosen(opened, key, where)
            path = str(node.name)
            rows = rows_of(node, f"{where}, {path}")
            # The columns of a matrix in obsm have other names, or none.
            named = path.strip("/").partition("/")[0] in ("X", "layers")
            names = _index(opened, "var") if named else None
        return MatrixReader(
            rows,
            choice,
            f"{where}, {path}",
            opened=lambda: _rows_in(file, path),
            kind="hdf5",
            names=names if names is not None and len(names) == rows.shape[1] else None,
            annotation=lambda name: _annotation(opened, name, where),
            file=file,
        )


def _blamed(file: File) -> AbstractContextManager[None]:
    return blamed(file, "cut short, damaged or not HDF5", "write or fetch it again")


@contextmanager
def _opened(file: File) -> Iterator[Any]:
    h5py = load_h5py()
    with ExitStack() as closing:
        with _blamed(file):
            raw: Any = file
            if isinstance(file, RemoteFile):
                raw = closing.enter_context(file.open_ranges())
            opened = closing.enter_context(h5py.File(raw, "r"))
        yield opened


@contextmanager
def _rows_in(file: File, path: str) -> Iterator[Cuttable]:
    with _opened(file) as opened:
        with _blamed(file):
            rows = rows_of(opened[path], f"{file}, {path}")
        yield rows


def _chosen(opened: h5py.Group, key: str | None, where: str) -> Any:
    """Return the dataset or sparse group to read: the one asked for, X, or the only one."""
    if key is not None:
        if key not in opened:
            some = ", ".join(_matrices(opened)) or "no matrix"
            raise SourceError(f"there is no {key!r}; it has {some}", place=where)
        return opened[key]
    found = list(_matrices(opened))
    if "X" in opened:
        return opened["X"]
    if len(found) == 1:
        return opened[found[0]]
    if not found:
        raise SourceError(f"{where}: holds no 2-D dataset of numbers and no sparse group")
    raise SourceError(
        f"{len(found)} matrices; pass ", Option("key", *found[:3]), " or another", place=where
    )


def _matrices(group: h5py.Group, prefix: str = "") -> Iterator[str]:
    """Yield the paths of all matrices in a group."""
    for name, node in group.items():
        if _is_sparse(node) or (hasattr(node, "dtype") and _is_dense(node)):
            yield prefix + name
        elif not hasattr(node, "dtype"):
            yield from _matrices(node, f"{prefix}{name}/")


def _is_dense(node: h5py.Dataset | h5py.Group) -> bool:
    return len(node.shape) == 2 and node.dtype.kind in "biuf"


def _is_sparse(node: h5py.Dataset | h5py.Group) -> bool:
    return not hasattr(node, "dtype") and all(name in node for name in SPARSE_MEMBERS)


def rows_of(node: h5py.Dataset | h5py.Group, where: str) -> Cuttable:
    """Return the rows of a dataset or sparse group; those of a CSC one are read into memory."""
    if hasattr(node, "dtype"):
        return DenseRows(node, where, int(node.chunks[0]) if node.chunks else 1)
    if not _is_sparse(node):
        found = ", ".join(sorted(node)) or "nothing"
        raise SourceError(
            f"{where}: expected a dataset or a sparse group (data, indices, indptr), found {found}"
        )
    kind = _text(node.attrs.get("encoding-type", node.attrs.get("h5sparse_format", "csr_matrix")))
    shape = node.attrs.get("shape", node.attrs.get("h5sparse_shape"))
    if shape is None and "shape" in node:
        shape = node["shape"][:]
    if shape is None:
        raise SourceError(f"{where}: the sparse group has no attribute shape; add it")
    n_rows, n_columns = int(shape[0]), int(shape[1])
    if not kind.startswith("csc"):
        return SparseRows(node, (n_rows, n_columns), where)
    data, indices, indptr = (np.asarray(node[name][:]) for name in SPARSE_MEMBERS)
    return MemoryRows(sp.csc_array((data, indices, indptr), shape=(n_rows, n_columns)))


def _index(opened: h5py.Group, frame: str) -> list[str] | None:
    """Return the index of an annotation frame, if there is one."""
    if frame not in opened or hasattr(opened[frame], "dtype"):
        return None
    index = _text(opened[frame].attrs.get("_index", "_index"))
    return [_text(name) for name in opened[frame][index][:]] if index in opened[frame] else None


def _annotation(opened: h5py.Group, name: str, where: str) -> Array:
    """Return a column of obs: numbers, or the names of categories with None for the missing."""
    path = f"obs/{name}"
    with blamed(where, f"the annotation {name!r} is damaged", "write or fetch the file again"):
        if path not in opened:
            if name in opened and hasattr(opened[name], "dtype") and len(opened[name].shape) == 1:
                return np.asarray(opened[name][:])
            raise SourceError(f"{where} has no target {name!r}; give an annotation in obs")
        node = opened[path]
        if not hasattr(node, "dtype"):
            categories = [_text(value) for value in node["categories"][:]]
            codes = node["codes"][:].tolist()
            return np.array([None if c < 0 else categories[c] for c in codes], dtype=object)
        values = np.asarray(node[:])
        if values.dtype.kind in "biuf":
            return values
        return np.array([_text(value) for value in values], dtype=object)


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
