"""Data frames of pandas, Polars and others that narwhals knows, one or an iterable of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from sksketch._typing import Array
from sksketch.exceptions import SourceError, StreamExhaustedError
from sksketch.streams.columns import Choice, Field, Layout
from sksketch.streams.formats.arrow import batch_rows, load_pyarrow
from sksketch.streams.source import Place, RawBlock, digest, skip_rows


def as_frame(table: object) -> nw.DataFrame[Any] | None:
    """Return a data frame in narwhals' clothes, or None for anything else."""
    frame = nw.from_native(table, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        raise TypeError(
            f"a {type(table).__name__} has no rows yet; collect it, or write it to Parquet and "
            "open the file"
        )
    return frame if isinstance(frame, nw.DataFrame) else None


class FrameReader:
    """The rows of a data frame, or of frames of the same columns that come one by one."""

    ahead = 0

    def __init__(self, frames: Any, choice: Choice) -> None:
        whole = as_frame(frames)
        self._where = "the frame" if whole is not None else "the first frame"
        rest: Iterator[Any] = iter([]) if whole is not None else iter(frames)
        first = whole if whole is not None else _as_frame_of_iterable(next(rest), 0)
        self.reads_once = self._once = whole is None
        self._layout = Layout(_fields(first), choice, self._where)
        self._names = [first.columns[i] for i in self._layout.reads]
        # Targets that are no numbers.
        self._has_names = self._layout.has_names
        self._frames: Iterable[Any] | None = [whole] if whole is not None else chain([first], rest)
        self.n_rows = len(whole) if whole is not None else None
        self.n_features, self.n_targets = self._layout.n_features, self._layout.n_targets
        self.feature_names = self._layout.feature_names
        self.target_names = self._layout.target_names

    def read(self, start_row: int) -> Iterator[RawBlock]:
        """Yield the rows after the first ``start_row``; those of an iterable only once."""
        if self._frames is None:
            raise StreamExhaustedError(
                "these frames came from an iterable that can be read only once, and it has been "
                "read; build it again"
            )
        frames = self._frames
        if self._once:
            self._frames = None
            return skip_rows(self._raw_blocks(frames, 0), start_row)
        return self._raw_blocks(frames, start_row)

    def _raw_blocks(self, frames: Iterable[Any], start_row: int) -> Iterator[RawBlock]:
        step = self._layout.block_rows
        for number, item in enumerate(frames):
            frame = _as_frame_of_iterable(item, number) if self._once else item
            where = f"frame {number}" if self._once else "the frame"
            frame = self._select(frame, where)
            for start in range(0 if self._once else start_row, len(frame), step):

                def place(i: int, where: str = where, start: int = start) -> str:
                    return f"{where}, row {start + i}"

                part = frame[start : start + step]
                if self._layout.raw or self._has_names:
                    batch = as_arrow(part, where).combine_chunks().to_batches()
                    if batch:
                        yield RawBlock(*batch_rows(batch[0], self._layout, place), place)
                    continue
                columns = self._columns(part, place)
                n_features = len(columns) - self.n_targets
                rows = self._layout.assemble(columns[:n_features], columns[n_features:])
                yield RawBlock(*rows, place)

    def _select(self, frame: nw.DataFrame[Any], where: str) -> nw.DataFrame[Any]:
        lost = [name for name in self._names if name not in frame.columns]
        if lost:
            raise SourceError(f"{where} has no column {lost[0]!r}, which the first frame has")
        return frame.select(self._names)

    def _columns(self, part: nw.DataFrame[Any], place: Place) -> Any:
        categories = self._layout.categories
        if not categories:
            # One call for all columns, where the library can: thousands of columns are common.
            table = np.asarray(part.to_numpy())
            if table.dtype.kind in "biuf":
                return table.T
        return [
            _codes(part[name], categories[i], name, place)
            if i in categories
            else _numbers(part[name], name, place)
            for i, name in zip(self._layout.reads, self._names, strict=True)
        ]

    def fingerprint(self) -> dict[str, Any]:
        """Return the rows of a frame and the digest of its ends."""
        if self._once:
            return {"kind": "iterable of frames"}
        n_rows = int(self.n_rows or 0)
        ends = (
            next(self._raw_blocks(self._frames or [], k), None) for k in (0, max(0, n_rows - 64))
        )
        parts = [part for raw in ends if raw for part in raw[:2] if part is not None]
        return {"kind": "frame", "n_rows": n_rows, "digest": digest(*parts)}


def as_arrow(frame: nw.DataFrame[Any], where: str) -> Any:
    """Return a frame as an Arrow table, which has one type in each column."""
    pa = load_pyarrow()
    try:
        return frame.to_arrow()
    except (pa.ArrowException, TypeError) as error:
        reason = " ".join(str(error).split())[:120]
        raise SourceError(
            f"{where} has a column of several types ({reason}); convert it to one, for example "
            "with frame.astype(str)"
        ) from None


def _as_frame_of_iterable(item: object, number: int) -> nw.DataFrame[Any]:
    frame = item if isinstance(item, nw.DataFrame) else as_frame(item)
    if frame is None:
        raise TypeError(
            f"item {number} of the iterable is a {type(item).__name__} and the first was a frame; "
            "let it give frames only"
        )
    return frame


def _fields(frame: nw.DataFrame[Any]) -> list[Field]:
    names = list(frame.columns)
    if not all(isinstance(name, str) for name in names):
        raise TypeError(
            f"the frame has the column {names[0]!r}, a {type(names[0]).__name__}; let all names "
            "be strings, for example with frame.columns.astype(str)"
        )
    return [_field(name, dtype, frame) for name, dtype in frame.schema.items()]


def _field(name: str, dtype: Any, frame: nw.DataFrame[Any]) -> Field:
    if dtype.is_numeric() or dtype == nw.Boolean:
        narrow = dtype == nw.Float32
        return Field(name, str(dtype), np.dtype(np.float32 if narrow else np.float64))
    known = None
    if dtype in (nw.Categorical, nw.Enum):
        known = frame[name].cat.get_categories().to_list()
    kind = "categories" if known is not None else str(dtype)
    return Field(name, kind, None, known)


def _numbers(series: nw.Series[Any], name: str, place: Place) -> Array:
    if not (series.dtype.is_numeric() or series.dtype == nw.Boolean):
        raise SourceError(
            f"{place(0)}: column {name!r} is {series.dtype} here, and was numeric before; give "
            "frames of the same columns"
        )
    if series.dtype == nw.Boolean:
        series = series.cast(nw.Int8)
    return np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64)


def _codes(series: nw.Series[Any], categories: list[Any], name: str, place: Place) -> Array:
    """Return the position of each value among the categories, -1 where it is missing."""
    known = {category: code for code, category in enumerate(categories)}
    missing = series.is_null().to_list()
    found = [-1 if hole else known.get(v, -2) for v, hole in zip(series, missing, strict=True)]
    if -2 in found:
        row = found.index(-2)
        raise SourceError(
            f"{place(row)}: column {name!r} has the value {str(series[row])!r}, which is not among "
            "its categories; add it to categories"
        )
    return np.asarray(found, dtype=np.int64)
