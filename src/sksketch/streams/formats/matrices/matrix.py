"""A matrix whose rows can be cut out anywhere, with names and annotations beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from sksketch._typing import Array
from sksketch.arrays.rows import without_traps
from sksketch.exceptions import SourceError
from sksketch.streams.blocks import BLOCK_BYTES
from sksketch.streams.columns import Choice
from sksketch.streams.files import blamed, fingerprint
from sksketch.streams.formats.arrays import Selection
from sksketch.streams.places.remote import File
from sksketch.streams.prefetch import BLOCKS_AHEAD
from sksketch.streams.source import Division, FilePart, RawBlock, digest


class Cuttable(Protocol):
    """A dense or sparse matrix; ``step`` is the number of rows to read at a time."""

    shape: tuple[int, int]
    step: int

    def cut(self, start: int, stop: int) -> Any:
        """Return some rows, dense or CSR."""


class DenseRows:
    """A two-dimensional array that is read by slices, such as one in a file.

    ``together`` is the number of rows that are stored, and so unpacked, as one.
    """

    def __init__(self, array: Any, where: str, together: int = 1) -> None:
        if array.ndim != 2 or array.dtype.kind not in "biuf":
            raise SourceError(
                f"{where}: holds {array.dtype} of shape {tuple(array.shape)}; give a 2-D array of "
                "numbers"
            )
        self._array = array
        self.shape = int(array.shape[0]), int(array.shape[1])
        row_bytes = max(1, self.shape[1] * array.dtype.itemsize)
        self.step = together * max(1, BLOCK_BYTES // (together * row_bytes))

    def cut(self, start: int, stop: int) -> Any:
        """Return some rows."""
        return np.asarray(self._array[start:stop])


class SparseRows:
    """A CSR matrix in three arrays that are read by slices."""

    def __init__(self, parts: Any, shape: tuple[int, int], where: str) -> None:
        self._parts, self._where, self.shape = parts, where, shape
        data, indices = parts["data"], parts["indices"]
        if parts["indptr"].shape[0] != shape[0] + 1 or data.shape != indices.shape:
            raise SourceError(f"{where}: the sparse arrays do not fit together; write them again")
        entry_bytes = data.dtype.itemsize + indices.dtype.itemsize
        row_bytes = entry_bytes * data.shape[0] // max(1, shape[0]) + 8
        self.step = max(1, int(BLOCK_BYTES // row_bytes))

    def cut(self, start: int, stop: int) -> Any:
        """Return some rows, after a look at their indices."""
        indptr = np.asarray(self._parts["indptr"][start : stop + 1])
        entries = slice(int(indptr[0]), int(indptr[-1]))
        data, indices = (np.asarray(self._parts[name][entries]) for name in ("data", "indices"))
        return without_traps(
            sp.csr_array((data, indices, indptr - indptr[0]), shape=(stop - start, self.shape[1]))
        )


class MemoryRows:
    """A sparse matrix in memory."""

    def __init__(self, X: Any) -> None:
        self._X = without_traps(X).tocsr()
        self.shape = int(X.shape[0]), int(X.shape[1])
        self.step = max(1, BLOCK_BYTES // (16 * max(1, self._X.nnz // max(1, self.shape[0]))))

    def cut(self, start: int, stop: int) -> Any:
        """Return some rows."""
        return self._X[start:stop]


class MatrixReader:
    """The rows of a matrix, with the names of its columns and annotations as targets.

    ``opened`` gives the matrix for one reading; that of a file is closed after it.
    """

    ahead = BLOCKS_AHEAD
    # Targets by name are no columns.
    has_annotations = True

    def __init__(
        self,
        rows: Cuttable,
        choice: Choice,
        where: str,
        *,
        opened: Callable[[], AbstractContextManager[Cuttable]],
        kind: str,
        names: list[str] | None = None,
        annotation: Callable[[str], Array] | None = None,
        file: File | None = None,
    ) -> None:
        self._opened, self._where, self._kind, self._file = opened, where, kind, file
        self._step, self._width = rows.step, rows.shape[1]
        self.n_rows, width = rows.shape
        target = choice.target
        self._y: Array | None = None
        self.target_names = None
        if isinstance(target, str):
            if annotation is None:
                raise SourceError(f"{where} has no target {target!r}; give the number of a column")
            self._y, self.target_names = annotation(target), [target]
        elif target is not None and np.ndim(target) and len(target) == self.n_rows:
            self._y = np.asarray(target)
        left = Choice(
            by_name(choice.columns, names, where),
            None if self._y is not None else target,
            choice.one_hot,
            choice.categories,
            choice.dtype,
        )
        self._selection = Selection(left, width, where)
        chosen = self._selection.features
        self.feature_names = names if chosen is None or not names else [names[i] for i in chosen]
        self.n_features = self._selection.n_features
        self.n_targets = len(self._selection.targets)
        if self._y is not None:
            self.n_targets = 1 if self._y.ndim == 1 else self._y.shape[1]

    def _blamed(self, start: int, stop: int) -> AbstractContextManager[None]:
        where = f"{self._where}, rows {start} to {stop}"
        return blamed(where, "the rows are damaged", "write or fetch the file again")

    def read(self, start_row: int) -> Iterator[RawBlock]:
        """Yield the rows after the first ``start_row``."""
        start = start_row
        with self._opened() as rows:
            while start < self.n_rows:
                # Counted from the top, so that rows stored together are read together.
                stop = min(self.n_rows, (start // self._step + 1) * self._step)
                with self._blamed(start, stop):
                    X = rows.cut(start, stop)
                y = None if self._y is None else self._y[start:stop]

                def place(i: int, start: int = start) -> str:
                    return f"{self._where}, row {start + i}"

                yield RawBlock(*self._selection.apply(X, y), place)
                start = stop

    def division(self) -> Division:
        """Return blocks of rows."""
        if self._file is None:
            raise SourceError(f"{self._where} cannot be sent to others; give the path of a file")
        step = self._step
        starts = range(0, self.n_rows, step)
        cuts = [FilePart(self._file, start, min(step, self.n_rows - start)) for start in starts]
        return Division(cuts, {})

    def fingerprint(self) -> dict[str, Any]:
        """Return what tells the file, or the last rows of what is none."""
        shape, chosen = [self.n_rows, self._width], self._selection.features
        facts = {"kind": self._kind, "shape": shape, "chosen": chosen}
        if self._file is not None:
            return {**facts, "files": fingerprint([self._file])}
        raw = next(self.read(max(0, self.n_rows - 64)), None)
        X: Any = np.zeros(0) if raw is None else raw.X
        return {**facts, "digest": digest(X.data if sp.issparse(X) else X)}


def by_name(columns: Any, names: list[str] | None, where: str) -> Any:
    """Return the numbers of columns that are given by their names."""
    if columns is None or names is None:
        return columns
    listed = [columns] if isinstance(columns, str | int) else list(columns)
    known = {name: i for i, name in enumerate(names)}
    lost = [name for name in listed if isinstance(name, str) and name not in known]
    if lost:
        raise SourceError(f"{where} has no column {lost[0]!r}; it has {', '.join(names[:6])}, ...")
    return [known[name] if isinstance(name, str) else name for name in listed]
