"""Zarr stores: dense arrays, and CSR groups and annotated matrices as AnnData lays them out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from sksketch._typing import Array
from sksketch.exceptions import SourceError
from sksketch.streams.blocks import BLOCK_BYTES
from sksketch.streams.columns import Choice
from sksketch.streams.files import blamed, fingerprint
from sksketch.streams.formats.arrays import Selection
from sksketch.streams.formats.matrices.matrix import by_name
from sksketch.streams.prefetch import BLOCKS_AHEAD
from sksketch.streams.source import Division, FilePart, RawBlock, digest

SPARSE_MEMBERS = ("data", "indices", "indptr")


def load_zarr() -> Any:
    """Return zarr, or say what to install."""
    try:
        import zarr
    except ImportError:
        raise ImportError('Zarr stores need zarr: pip install "scikit-sketch[io]"') from None
    return zarr


class ZarrReader:
    """The rows of a Zarr array or CSR group, or of ``X`` in an annotated matrix.

    Of an annotated matrix, ``columns`` may be names of variables and ``target`` the name of
    an observation's numeric annotation.
    """

    ahead = BLOCKS_AHEAD
    # Targets by name are no columns.
    has_annotations = True

    def __init__(self, store: Any, choice: Choice, key: str | None = None) -> None:
        self._path = Path(store) if isinstance(store, str | Path) else None
        self._where = str(self._path or "the Zarr store")
        target = choice.target
        self._y: Array | None = None
        self.target_names = None
        with self._blamed():
            node = _open(self._path) if self._path else store
            annotated = not _is_array(node) and "X" in node
            if key is not None and (_is_array(node) or key not in node):
                raise SourceError(f"{self._where} has no {key!r}; it has {_members(node)}")
            self._rows = node[key] if key is not None else node["X"] if annotated else node
            self._dense = _is_array(self._rows)
            self._refuse_code(self._rows)
            self.n_rows, width = self._shape()
            if annotated and "var" in node:
                self._refuse_code(node["var"])
            named = annotated and (key is None or key.partition("/")[0] in ("X", "layers"))
            names = _names(node, "var") if named else None
            if isinstance(target, str):
                self._y, self.target_names = self._annotation(node, target), [target]
        if target is not None and np.ndim(target) and len(target) == self.n_rows:
            self._y = np.asarray(target)
        left = Choice(
            by_name(choice.columns, names, self._where),
            None if self._y is not None else target,
            choice.one_hot,
            choice.categories,
            choice.dtype,
        )
        self._selection = Selection(left, width, self._where)
        chosen = self._selection.features
        self.feature_names = names if chosen is None or not names else [names[i] for i in chosen]
        self.n_features = self._selection.n_features
        self.n_targets = len(self._selection.targets)
        if self._y is not None:
            self.n_targets = 1 if self._y.ndim == 1 else self._y.shape[1]

    def _blamed(self, start: int = 0, stop: int = 0) -> AbstractContextManager[None]:
        where = f"{self._where}, rows {start} to {stop}" if stop else self._where
        return blamed(where, "damaged or not a Zarr store", "check the path or write it again")

    def _refuse_code(self, node: Any) -> None:
        """Refuse an array, or a group of them, that would have to be unpickled, before it is."""
        arrays = [node] if _is_array(node) else [array for _, array in node.arrays()]
        for array in arrays:
            if any("pickle" in name for name in _codecs(array.metadata.to_dict())):
                raise SourceError(
                    f"{self._where}: the array {array.path or '/'!r} is pickled, which may run any "
                    "code; write it as numbers or text"
                )

    def _shape(self) -> tuple[int, int]:
        if self._dense:
            if self._rows.ndim != 2 or self._rows.dtype.kind not in "biuf":
                raise SourceError(
                    f"{self._where}: holds {self._rows.dtype} of shape {self._rows.shape}; store "
                    "a 2-D array of numbers"
                )
            shape = self._rows.shape
        else:
            attributes = dict(self._rows.attrs)
            kind = attributes.get("encoding-type", "csr_matrix")
            if kind != "csr_matrix" or any(name not in self._rows for name in SPARSE_MEMBERS):
                found = kind if kind != "csr_matrix" else ", ".join(sorted(self._rows)) or "nothing"
                raise SourceError(
                    f"{self._where}: expected an array, a CSR group (data, indices, indptr) or a "
                    f"group with X, found {found}; name the array by its path"
                )
            shape = attributes.get("shape", attributes.get("h5sparse_shape"))
            if shape is None:
                raise SourceError(f"{self._where}: the CSR group has no attribute shape; add it")
        return int(shape[0]), int(shape[1])

    def _annotation(self, node: Any, name: str) -> Array:
        path = f"obs/{name}"
        if _is_array(node) or path not in node:
            raise SourceError(f"{self._where} has no target {name!r}; give an annotation in obs")
        values = node[path]
        self._refuse_code(values)
        if not _is_array(values) or values.dtype.kind not in "biuf":
            raise SourceError(
                f"{self._where}: target {name!r} is not numeric; store its codes as numbers"
            )
        return np.asarray(values[:])

    def read(self, start_row: int) -> Iterator[RawBlock]:
        """Yield the rows after the first ``start_row``."""
        step = self._step()
        start = start_row
        while start < self.n_rows:
            # Whole chunks, counted from the top: a chunk is unpacked as a whole.
            stop = min(self.n_rows, (start // step + 1) * step)
            with self._blamed(start, stop):
                X = self._rows[start:stop] if self._dense else self._csr(start, stop)
            y = None if self._y is None else self._y[start:stop]

            def place(i: int, start: int = start) -> str:
                return f"{self._where}, row {start + i}"

            yield RawBlock(*self._selection.apply(X, y), place)
            start = stop

    def _step(self) -> int:
        """Return the rows of a block: chunks of a dense array, entries of a sparse one."""
        if self._dense:
            chunk = int(self._rows.chunks[0])
            row_bytes = self._rows.shape[1] * self._rows.dtype.itemsize
            return chunk * max(1, int(BLOCK_BYTES // max(1, chunk * row_bytes)))
        entry_bytes = self._rows["data"].dtype.itemsize + self._rows["indices"].dtype.itemsize
        row_bytes = entry_bytes * self._rows["data"].shape[0] // max(1, self.n_rows) + 8
        return max(1, int(BLOCK_BYTES // row_bytes))

    def _csr(self, start: int, stop: int) -> Any:
        indptr = np.asarray(self._rows["indptr"][start : stop + 1])
        entries = slice(int(indptr[0]), int(indptr[-1]))
        data, indices = (np.asarray(self._rows[name][entries]) for name in ("data", "indices"))
        width = self._shape()[1]
        try:
            X = sp.csr_array((data, indices, indptr - indptr[0]), shape=(stop - start, width))
            X.check_format(full_check=True)
        except ValueError as error:
            raise SourceError(
                f"{self._where}, rows {start} to {stop}: broken sparse rows ({error}); write the "
                "store again"
            ) from None
        return X

    def division(self) -> Division:
        """Return blocks of whole chunks."""
        if self._path is None:
            raise SourceError("an open Zarr store cannot be sent to others; give its path")
        step = self._step()
        starts = range(0, self.n_rows, step)
        cuts = [FilePart(self._path, start, min(step, self.n_rows - start)) for start in starts]
        return Division(cuts, {})

    def fingerprint(self) -> dict[str, Any]:
        """Return what tells the store: its files, or its first rows where it has none."""
        facts = {"kind": "zarr", "shape": list(self._shape()), "chosen": self._selection.features}
        if self._path is not None and self._path.is_dir():
            files = sorted(p for p in self._path.rglob("*") if p.is_file())
            known = fingerprint(files[:: max(1, len(files) // 64)])
            return {**facts, "n_files": len(files), "files": known}
        raw = next(self.read(max(0, self.n_rows - 1)), None)
        X: Any = np.zeros(0) if raw is None else raw.X
        return {**facts, "digest": digest(X.data if sp.issparse(X) else X)}


def is_store(source: object) -> bool:
    """Return whether an object is an open Zarr array or group, without loading the library."""
    return type(source).__module__.partition(".")[0] == "zarr"


def _open(path: Path) -> Any:
    zarr = load_zarr()
    with blamed(path, "not a Zarr store", "check the path"):
        return zarr.open(str(path), mode="r")


def _is_array(node: object) -> bool:
    return isinstance(node, load_zarr().Array)


def _members(node: Any) -> str:
    return "an array alone" if _is_array(node) else ", ".join(sorted(node)) or "nothing"


def _codecs(metadata: object) -> Iterator[str]:
    """Yield the names of all codecs in an array's metadata, however deep."""
    if isinstance(metadata, dict):
        for key, value in metadata.items():
            if key in ("id", "name") and isinstance(value, str):
                yield value
            yield from _codecs(value)
    elif isinstance(metadata, list | tuple):
        for value in metadata:
            yield from _codecs(value)


def _names(node: Any, frame: str) -> list[str] | None:
    """Return the index of an annotation frame, if there is one."""
    if frame not in node:
        return None
    index = dict(node[frame].attrs).get("_index", "_index")
    return [str(name) for name in node[frame][index][:]] if index in node[frame] else None
