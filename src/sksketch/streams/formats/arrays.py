"""Arrays in memory, .npy and .npz files, and iterables, as readers of rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import scipy.sparse as sp

from sksketch._typing import Array, Matrix
from sksketch.arrays.rows import without_traps
from sksketch.exceptions import SourceError
from sksketch.streams.blocks import BLOCK_BYTES, ArraySource, Block, BlockSource, IterableSource
from sksketch.streams.columns import Choice
from sksketch.streams.files import blamed, fingerprint
from sksketch.streams.places.remote import File
from sksketch.streams.prefetch import BLOCKS_AHEAD
from sksketch.streams.source import (
    Division,
    FilePart,
    RawBlock,
    digest,
    is_sparse,
    skip_rows,
)

SPARSE_NAMES = ("data", "indices", "indptr", "shape")


class Selection:
    """Features and targets of rows whose columns have only numbers."""

    def __init__(self, choice: Choice, n_columns: int, where: str) -> None:
        if choice.one_hot or choice.categories:
            raise ValueError(f"{where} has no columns to encode; leave one_hot and categories out")
        several = isinstance(choice.target, list | tuple)
        targets = [] if choice.target is None else choice.target if several else [choice.target]
        self.targets = _positions(targets, n_columns, "target", where)
        self.y_index: Any = self.targets if several or not self.targets else self.targets[0]
        given = choice.columns
        wanted = None if given is None else [given] if np.ndim(given) == 0 else list(given)
        features = None if wanted is None else _positions(wanted, n_columns, "column", where)
        if features is None and self.targets:
            features = [i for i in range(n_columns) if i not in self.targets]
        if features is not None and (set(features) & set(self.targets) or not features):
            raise ValueError(f"{where}: choose at least one column, and none of the targets")
        self.features = features
        self.n_features = n_columns if features is None else len(features)
        self.dtype = None if choice.dtype is None else np.dtype(choice.dtype)

    def apply(self, X: Matrix, y: Any) -> tuple[Any, Any]:
        """Return the features and targets of a block."""
        if self.targets:
            y = X[:, self.y_index]
            y = y.toarray() if is_sparse(y) else y
            y = y.ravel() if isinstance(self.y_index, int) else y
        if self.features is not None:
            X = X[:, self.features]
        return X if self.dtype is None else X.astype(self.dtype, copy=False), y


class ArrayReader:
    """The rows of an array or sparse matrix in memory or in a memory map."""

    feature_names = None
    target_names: list[str] | None = None

    def __init__(
        self, X: Matrix, choice: Choice, *, kind: str = "array", names: list[str] | None = None
    ) -> None:
        y = None
        if choice.target is not None and np.ndim(choice.target) and len(choice.target) == len_of(X):
            y, choice = choice.target, Choice(choice.columns, dtype=choice.dtype)
        self._source = ArraySource(X, y)
        self._kind = kind
        self._selection = Selection(choice, self._source.n_features, f"the {kind}")
        self.ahead = BLOCKS_AHEAD if isinstance(self._source.X, np.memmap) else 0
        self.n_rows: int | None = self._source.n_rows
        self.n_features = self._selection.n_features
        self.n_targets = _n_targets(self._source.y, self._selection)
        self.target_names = names

    def read(self, start_row: int) -> Iterator[RawBlock]:
        """Yield the rows after the first ``start_row``."""
        source = self._source
        for start in range(start_row, source.n_rows, source.batch_rows):
            stop = start + source.batch_rows
            y = None if source.y is None else source.y[start:stop]

            def place(i: int, start: int = start) -> str:
                return f"the {self._kind}, row {start + i}"

            yield RawBlock(*self._selection.apply(source.X[start:stop], y), place)

    def fingerprint(self) -> dict[str, Any]:
        """Return the shape and type of the rows, and a digest of some."""
        X: Any = self._source.X
        y = self._source.y
        parts = [X.data, X.indices, X.indptr] if is_sparse(X) else [X]
        known = [a for a in (*parts, y) if isinstance(a, np.ndarray)]
        facts = {"shape": list(X.shape), "dtype": str(X.dtype), "digest": digest(*known)}
        return {"kind": self._kind, **facts, "chosen": [self._selection.features]}


class NpyReader:
    """The rows of .npy files, read block by block."""

    ahead = BLOCKS_AHEAD
    feature_names = None
    target_names = None

    def __init__(self, files: list[Path], choice: Choice) -> None:
        self._files = files
        self._maps = [_map(file) for file in files]
        width = self._maps[0].shape[1]
        for file, rows in zip(files, self._maps, strict=True):
            if rows.shape[1] != width:
                raise SourceError(
                    f"{file}: {rows.shape[1]} columns where {files[0]} has {width}; give files of "
                    "the same columns"
                )
        self._sizes = [len(rows) for rows in self._maps]
        self.n_rows: int | None = sum(self._sizes)
        self._maps = []
        y = choice.target
        self._y: Array | None = None
        if y is not None and np.ndim(y) and len(y) == self.n_rows:
            self._y, choice = np.asarray(y), Choice(choice.columns, dtype=choice.dtype)
        self._selection = Selection(choice, width, str(files[0]))
        self.n_features = self._selection.n_features
        self.n_targets = _n_targets(self._y, self._selection)

    def read(self, start_row: int) -> Iterator[RawBlock]:
        """Yield the rows after the first ``start_row``."""
        first = 0
        for file, size in zip(self._files, self._sizes, strict=True):
            rows = _map(file)
            step = max(1, BLOCK_BYTES // max(1, rows.shape[1] * rows.dtype.itemsize))
            for start in range(max(0, start_row - first), size, step):
                # A copy and a fresh map: pages of a map that was read count as ours.
                X = np.array(_map(file)[start : start + step])
                y = None if self._y is None else self._y[first + start : first + start + len(X)]

                def place(i: int, file: Path = file, start: int = start) -> str:
                    return f"{file}, row {start + i}"

                yield RawBlock(*self._selection.apply(X, y), place)
            first += size

    def division(self) -> Division:
        """Return every row, in steps of a block."""
        if self._y is not None:
            raise SourceError(f"{self._files[0]}: targets in memory cannot be cut; store them")
        step = max(1, BLOCK_BYTES // (8 * max(1, self._selection.n_features)))
        return Division(
            [
                FilePart(file, start, min(step, size - start))
                for file, size in zip(self._files, self._sizes, strict=True)
                for start in range(0, size, step)
            ],
            {},
        )

    def fingerprint(self) -> dict[str, Any]:
        """Return what tells the files."""
        parts = [] if self._y is None else [self._y]
        facts = {"targets": digest(*parts), "chosen": [self._selection.features]}
        return {"kind": "npy", "files": fingerprint(self._files), **facts}


def _map(file: Path) -> Array:
    with blamed(file, "cut short or not an array of numbers", "save it again"):
        rows = np.load(file, mmap_mode="r", allow_pickle=False)
    if not isinstance(rows, np.ndarray) or rows.ndim != 2 or rows.dtype.kind not in "biuf":
        about = f"{rows.dtype} of shape {rows.shape}" if isinstance(rows, np.ndarray) else "others"
        raise SourceError(f"{file}: holds {about}; save a 2-D array of numbers")
    return rows


def npz_reader(file: File, choice: Choice) -> ArrayReader:
    """Return the rows of an .npz file, which is read into memory.

    Arrays ``data``, ``indices``, ``indptr`` and ``shape`` are a CSR matrix, and so is what
    scipy saves. Else the rows are the array ``X``, or the only one with two dimensions.
    """
    with (
        blamed(file, "cut short or not an .npz file of numbers", "save it again"),
        file.open("rb") as raw,
        ZipFile(raw) as saved,
    ):
        arrays = {name.removesuffix(".npy"): _npz_member(saved, name) for name in saved.namelist()}
    name, target = None, choice.target
    if isinstance(target, str):
        if target not in arrays:
            raise SourceError(f"{file} has no array {target!r}; it has {', '.join(sorted(arrays))}")
        name, target = target, arrays[target]
    X = _npz_rows(file, {k: v for k, v in arrays.items() if k != name})
    if name is not None and len(target) != X.shape[0]:
        raise SourceError(f"{file}: {len(target)} targets {name!r} for {X.shape[0]} rows")
    chosen = Choice(choice.columns, target, choice.one_hot, choice.categories, choice.dtype)
    names = None if name is None or target.ndim > 1 else [name]
    return ArrayReader(X, chosen, kind=str(file), names=names)


def _npz_member(saved: ZipFile, name: str) -> Array:
    with saved.open(name) as member:
        array = np.lib.format.read_array(member, allow_pickle=False)
        # Read to the end, where the checksum is compared; numpy stops before it.
        if member.read():
            raise ValueError(f"the array {name} is longer than it says")
    return np.asarray(array)


def _npz_rows(file: File, arrays: dict[str, Array]) -> Any:
    with blamed(file, "the sparse arrays do not fit together", "save them again"):
        if "format" in arrays and "shape" in arrays:
            with file.open("rb") as raw:
                return without_traps(sp.load_npz(raw))
        if all(name in arrays for name in SPARSE_NAMES):
            data, indices, indptr, shape = (arrays[name] for name in SPARSE_NAMES)
            rows = sp.csr_array((data, indices, indptr), shape=tuple(int(n) for n in shape))
            return without_traps(rows)
    tables = [name for name, array in arrays.items() if array.ndim == 2]
    chosen = "X" if "X" in tables else tables[0] if len(tables) == 1 else None
    if chosen is None:
        found = ", ".join(sorted(arrays)) or "nothing"
        raise SourceError(f"{file}: holds {found}; name the array of rows X")
    return arrays[chosen]


class BlocksReader:
    """The blocks of another source, such as an iterable that can be read once."""

    ahead = 0
    feature_names = None
    target_names = None
    n_rows = None

    def __init__(self, source: Any, choice: Choice) -> None:
        if (
            choice.target is not None
            and np.ndim(choice.target)
            and not isinstance(choice.target, list | tuple)
        ):
            raise ValueError("target is an array beside an iterable; let it give (X, y) pairs")
        self._source = source if isinstance(source, BlockSource) else IterableSource(source)
        self.reads_once = isinstance(self._source, IterableSource)
        self._selection = Selection(choice, self._source.n_features, "the iterable")
        self.n_features = self._selection.n_features
        self.n_targets = len(self._selection.targets) or getattr(self._source, "n_targets", 0)

    def read(self, start_row: int) -> Iterator[RawBlock]:
        """Yield the rows after the first ``start_row``, which are consumed."""
        return skip_rows(self._raw_blocks(self._source.blocks()), start_row)

    def _raw_blocks(self, blocks: Iterator[Any]) -> Iterator[RawBlock]:
        for number, given in enumerate(blocks):
            block = given if isinstance(given, Block) else Block(*given)

            def place(i: int, number: int = number) -> str:
                return f"block {number} of the iterable, row {i} of it"

            X, y = self._selection.apply(block.X, block.y)
            yield RawBlock(X, y, place, block.sample_weight)

    def fingerprint(self) -> dict[str, Any]:
        """Return nothing to tell one iterable from another."""
        return {"kind": "iterable"}


def len_of(X: Matrix) -> int:
    """Return the rows of whatever has a shape or a length."""
    return int(X.shape[0]) if getattr(X, "shape", None) else len(X)


def _n_targets(y: Array | None, selection: Selection) -> int:
    if y is None:
        return len(selection.targets)
    return int(y.shape[1]) if len(y.shape) > 1 else 1


def _positions(wanted: Any, n_columns: int, what: str, where: str) -> list[int]:
    found = []
    for index in wanted:
        if not isinstance(index, int | np.integer) or not -n_columns <= index < n_columns:
            raise ValueError(
                f"{where} has no {what} {index!r}; its columns have no names, give numbers from "
                f"0 to {n_columns - 1}"
            )
        found.append(int(index) % n_columns)
    if len(set(found)) < len(found):
        raise ValueError(f"{where}: a {what} is chosen twice; give each once")
    return found
