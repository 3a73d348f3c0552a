"""A source of rows: what a reader gives, checked for missing values, cut and read ahead."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import scipy.sparse as sp

from sksketch._typing import Array
from sksketch.exceptions import SourceError
from sksketch.streams.blocks import Block, reblock
from sksketch.streams.columns import is_table
from sksketch.streams.missing import FILL, MISSING, UNCHECKED, Missing, Resolved
from sksketch.streams.places.remote import File
from sksketch.streams.prefetch import read_ahead

DIGEST_BYTES = 4 * 2**20

# Says where the i-th row of a raw stands: "rows.csv, line 12".
Place = Callable[[int], str]


class RawBlock(NamedTuple):
    """Rows as a reader gives them, with NaN where a value is missing."""

    X: Any
    y: Any
    place: Place
    # One for each row; None where all are 1.
    sample_weight: Any = None


class Reader(Protocol):
    """A reader of one format: the columns, and the rows from any row on."""

    @property
    def n_features(self) -> int:
        """Columns of X."""

    @property
    def n_targets(self) -> int:
        """Columns of y; 0 means that y is None."""

    @property
    def feature_names(self) -> list[str] | None:
        """Names of the columns of X, where there are any."""

    @property
    def target_names(self) -> list[str] | None:
        """Names of the columns of y, where there are any."""

    @property
    def n_rows(self) -> int | None:
        """Rows in all, where that is known."""

    @property
    def ahead(self) -> int:
        """Blocks to read before they are asked for; 0 where reading takes no time."""

    def read(self, start_row: int) -> Iterator[RawBlock]:
        """Yield the rows after the first ``start_row``, or raise `StreamExhaustedError`."""

    def fingerprint(self) -> dict[str, Any]:
        """Return plain values that change when the rows change."""


class FilePart(NamedTuple):
    """Rows of one file that can be read without those before them; None is all to its end."""

    file: File
    first_row: int
    n_rows: int | None


class Division(NamedTuple):
    """The places where rows can be cut, and how to open each part as the whole was opened."""

    parts: list[FilePart]
    options: dict[str, Any]


@runtime_checkable
class Divisible(Protocol):
    """A reader of files that can be read in parts."""

    def division(self) -> Division:
        """Return where the rows can be cut."""


@runtime_checkable
class Sparing(Protocol):
    """A reader that can do with less memory, on demand."""

    def spare(self) -> int:
        """Read with as little memory as possible; return what that takes beside some blocks."""


@runtime_checkable
class Narrowing(Protocol):
    """A reader that reads less where some columns are not needed."""

    def only(self, names: Sequence[str]) -> Reader:
        """Return a reader of the same blocks with no more than these features."""


class _Between:
    """Some rows of another reader."""

    def __init__(self, reader: Reader, start: int, stop: int) -> None:
        self._whole, self._start, self._stop = reader, start, stop
        self.n_features, self.n_targets = reader.n_features, reader.n_targets
        self.feature_names, self.target_names = reader.feature_names, reader.target_names
        self.n_rows, self.ahead = stop - start, reader.ahead

    def read(self, start_row: int) -> Iterator[RawBlock]:
        left = self.n_rows - start_row
        for raw in self._whole.read(self._start + start_row):
            yield cut_block(raw, 0, left)
            left -= raw.X.shape[0]
            if left <= 0:
                return

    def fingerprint(self) -> dict[str, Any]:
        return {**self._whole.fingerprint(), "rows": [self._start, self._stop]}


class RowSource:
    """Rows from a file, table or iterable, block by block; built by `open_rows`.

    Attributes
    ----------
    n_features, n_targets : int
        Columns of every ``X`` and ``y``; no targets means that ``y`` is None.
    feature_names, target_names : list of str or None
        Names of those columns, where the source has names.
    n_rows : int or None
        Rows in all, where that is known before they are read.
    n_missing, n_dropped : int
        Missing values met, and rows dropped because of them, in the blocks given since
        ``blocks`` was called.
    encoder : TableEncoder or None
        What makes rows of numbers of the tables of a file, where that is done.
    """

    encoder: Any = None

    def __init__(
        self,
        reader: Reader,
        *,
        batch_rows: int | None,
        missing: object,
        in_background: bool,
        options: dict[str, Any] | None = None,
        targets_alone: Callable[[], Iterator[Array]] | None = None,
    ) -> None:
        if batch_rows is not None and batch_rows < 1:
            raise ValueError(f"batch_rows is {batch_rows}; give at least 1, or None")
        values = None
        if not isinstance(missing, str):
            missing, values = FILL, _as_fill(missing, reader.n_features)
        elif missing not in MISSING:
            known = ", ".join(map(repr, MISSING))
            raise ValueError(f"missing is {missing!r}; give one of {known}, or numbers")
        self._fill = values
        self._resolver: Missing | None = None
        self._reader = reader
        self._options = options or {}
        self._targets_alone = targets_alone
        self.batch_rows = batch_rows
        self.missing = missing
        self._in_background = in_background and reader.ahead > 0
        self.n_features = reader.n_features
        self.n_targets = reader.n_targets
        self.feature_names = reader.feature_names
        self.target_names = reader.target_names
        self.n_missing = self.n_dropped = 0

    @property
    def in_background(self) -> bool:
        """Whether a thread of its own reads ahead."""
        return self._in_background

    @property
    def n_rows(self) -> int | None:
        """Rows in all; None where they are not known, or some may be dropped."""
        return None if self.missing == "drop" else self._reader.n_rows

    @property
    def means(self) -> Array | None:
        """Means of the columns in the blocks given, where they were taken to fill holes."""
        return None if self._resolver is None else self._resolver.means

    @property
    def reads_once(self) -> bool:
        """Whether the rows can be read only once."""
        return bool(getattr(self._reader, "reads_once", False))

    @property
    def is_of_files(self) -> bool:
        """Whether the rows lie in files, which can be read from any row on as often as needed."""
        return isinstance(self._reader, Divisible) and not self.reads_once

    def targets(self) -> Iterator[Array]:
        """Yield the targets of all rows that have one, without the features where possible."""
        if self._targets_alone is None:
            yield from (block.y for block in self.blocks() if block.y is not None)
            return
        yield from self._targets_alone()

    def blocks(self, start_row: int = 0) -> Iterator[Block]:
        """Yield the rows in order, leaving out the first ``start_row``.

        Each call starts over, or raises `StreamExhaustedError` where the rows can be read only
        once. ``start_row`` counts rows that were given: with ``missing="drop"`` or ``"mean"``
        the rows before it are read again, so that the rest comes out the same.
        """
        known = self.n_rows
        if start_row < 0 or (known is not None and start_row > known):
            raise ValueError(f"cannot resume after row {start_row} of {known}; give 0 to {known}")
        self.n_missing = self.n_dropped = 0
        again = self.missing not in ("error", FILL, UNCHECKED)
        resolved = self._resolved_ahead if self._in_background else self._resolved
        raw_blocks = self._reader.read(0 if again else start_row)
        blocks = self._counted(resolved(raw_blocks), start_row if again else 0)
        return blocks if self.batch_rows is None else reblock(blocks, self.batch_rows)

    def _resolved(self, raw_blocks: Iterator[RawBlock]) -> Iterator[Resolved]:
        """Deal with missing values."""
        missing = Missing(self.missing, self.feature_names, self.target_names, self._fill)
        self._resolver = missing
        for raw in raw_blocks:
            yield missing.resolve(*raw)

    def _resolved_ahead(self, raw_blocks: Iterator[RawBlock]) -> Iterator[Resolved]:
        """Deal with missing values while the next blocks are read."""
        # Closed at once: whoever keeps an error would keep the thread as well.
        with closing(read_ahead(raw_blocks, self._reader.ahead)) as ahead:
            yield from self._resolved(ahead)

    def _counted(self, resolved: Iterator[Resolved], n_skip: int) -> Iterator[Block]:
        """Count what was missing, and leave out the first ``n_skip`` rows."""
        for X, y, n_missing, n_dropped, weights in resolved:
            self.n_missing += n_missing
            self.n_dropped += n_dropped
            skip = min(n_skip, X.shape[0])
            n_skip -= skip
            if skip < X.shape[0]:
                yield Block(X, y, weights).rows(skip)
        if n_skip:
            raise SourceError(f"the source ended {n_skip} rows before the row to resume from")

    def unchecked(self) -> RowSource:
        """Return the same rows without a look for missing values, if those would be an error.

        For users that look themselves, as sketches do.
        """
        source = copy.copy(self)
        source.missing = UNCHECKED if self.missing == "error" else self.missing
        return source

    def spare_memory(self) -> int:
        """Read with as little memory as possible; return the bytes it takes beside some blocks."""
        return self._reader.spare() if isinstance(self._reader, Sparing) else 0

    def only(self, names: Sequence[str]) -> RowSource:
        """Return the same rows, of raw tables, without columns that nobody needs.

        They are left out where that saves reading them, and where they do not decide which rows
        are dropped.
        """
        source = copy.copy(self)
        if isinstance(self._reader, Narrowing) and self.missing not in ("drop", FILL):
            source._reader = self._reader.only(names)
        return source

    def between(self, start: int, stop: int) -> RowSource:
        """Return the rows from ``start`` up to ``stop`` as a source of their own."""
        part = copy.copy(self)
        part._reader = _Between(self._reader, start, stop)
        return part

    def division(self) -> Division:
        """Return where the rows can be cut; `SourceError` if they only come from the start."""
        if not isinstance(self._reader, Divisible):
            raise SourceError(f"{self!r} cannot be cut into parts; give files of rows")
        return self._reader.division()

    def fingerprint(self) -> dict[str, Any]:
        """Return plain values that tell these rows from others, to check before resuming.

        Files are identified by name, size, time of change and the digest of both ends, arrays by
        shape, type and the digest of some rows, and all by how they are to be read. Iterables
        cannot be fingerprinted.
        """
        names = {"features": self.feature_names, "targets": self.target_names}
        facts = {"n_features": self.n_features, "n_targets": self.n_targets, **names}
        found = {**self._reader.fingerprint(), **facts, **self._options, "missing": self.missing}
        return found if self._fill is None else {**found, "fill": digest(self._fill)}

    def __repr__(self) -> str:
        rows = "unknown" if self.n_rows is None else f"{self.n_rows:,}"
        kind = self._reader.fingerprint()["kind"]
        return f"<RowSource of {kind}: {rows} rows, {self.n_features:,} columns>"


def _as_fill(values: Any, n_features: int) -> Array:
    """Return the numbers that fill holes, one or one for each column."""
    found = np.asarray(values, dtype=np.float64)
    if found.shape not in ((), (n_features,)) or not np.isfinite(found).all():
        raise ValueError(
            f"missing is {found!r:.60}; give one finite number, or one for each of the "
            f"{n_features} columns"
        )
    return found


def skip_rows(raw_blocks: Iterator[RawBlock], n_skip: int) -> Iterator[RawBlock]:
    """Leave out the first rows of blocks that can only be read from the start."""
    for raw in raw_blocks:
        if n_skip >= raw.X.shape[0]:
            n_skip -= raw.X.shape[0]
            continue
        yield cut_block(raw, n_skip)
        n_skip = 0
    if n_skip:
        raise SourceError(f"the source ended {n_skip} rows before the row to resume from")


def cut_block(raw: RawBlock, start: int, stop: int | None = None) -> RawBlock:
    """Leave out the first ``start`` rows of one raw, and those from ``stop`` on."""
    if not start and stop is None:
        return raw
    X, y, place, weights = raw
    X, y, weights = (None if part is None else part[start:stop] for part in (X, y, weights))
    return RawBlock(X, y, lambda i: place(start + i), weights)


def digest(*arrays: Array) -> str:
    """Return a digest of each array, or of some rows from end to end of a large one."""
    found = hashlib.blake2b(digest_size=16)
    for array in arrays:
        if is_table(array) or array.dtype.hasobject:
            rows: Any = array[:64]
            found.update(repr(rows.to_pydict() if is_table(rows) else rows.tolist()).encode())
            continue
        found.update(str((array.shape, array.dtype.str)).encode())
        if array.nbytes > DIGEST_BYTES:
            array = array[np.linspace(0, len(array) - 1, 64).astype(np.int64)]
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()


def is_sparse(X: object) -> bool:
    """Return whether an object is one of scipy's sparse arrays or matrices."""
    return bool(sp.issparse(X))
