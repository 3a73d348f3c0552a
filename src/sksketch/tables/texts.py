"""What is known of a column of text: frequent values, how many there are, words, dates."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Self

import numpy as np

from sksketch._typing import Array
from sksketch.exceptions import StateFormatError
from sksketch.streams.formats.arrow import load_pyarrow
from sksketch.tables.dates import PARTS, date_parts, parsed
from sksketch.tables.frequent import FrequentValues
from sksketch.tables.numbers import NumberSummary

# Values are counted for this many rows before they are given on, so that what is remembered of
# more values than fit does not depend on how rows are cut into blocks.
TILE_ROWS = 1 << 14
# Values that are remembered.
MOST_VALUES = 4096
LOG_DISTINCT = 12


def load_datasketches() -> Any:
    """Return Apache DataSketches, or say what to install."""
    try:
        import datasketches
    except ImportError:
        raise ImportError(
            "TableEncoder counts values with Apache DataSketches: pip install "
            '"scikit-sketch[tables]"'
        ) from None
    return datasketches


class Values(NamedTuple):
    """Frequent values with their counts, largest last, and how far these can be off."""

    counts: dict[str, int]
    error: int
    n_distinct: float
    all_differ: bool


class TextSummary:
    """Frequent values, the number of different ones, words and dates of a column of text.

    Counts are exact up to 4096 values; beyond, each is too small by no more than is said.

    Examples
    --------
    >>> import pyarrow as pa
    >>> text = TextSummary()
    >>> text.add(pa.array(["red", None, "blue", "red"]))
    >>> text.values().counts
    {'blue': 1, 'red': 2}
    """

    def __init__(self) -> None:
        sketches = load_datasketches()
        self.n_known = 0
        self.n_words = 0
        self.is_dates = True
        self.parts = [NumberSummary() for _ in PARTS]
        self._frequent = FrequentValues(MOST_VALUES)
        self._distinct = sketches.hll_sketch(LOG_DISTINCT, sketches.tgt_hll_type.HLL_8)
        self._pending: list[Any] = []

    def add(self, column: Any, first_row: int = 0) -> None:
        """Add an Arrow array of texts, which lies in one tile."""
        pa = load_pyarrow()
        self._pending.append(column)
        self.n_known += len(column) - column.null_count
        if self.is_dates and column.null_count < len(column):
            dates = parsed(column)
            self.is_dates = dates is not None
            for part, values in zip(
                self.parts, date_parts(dates) if self.is_dates else (), strict=False
            ):
                part.add(values, first_row)
        spaces = pa.compute.count_substring(column, " ")
        self.n_words += (pa.compute.sum(spaces).as_py() or 0) + len(column) - column.null_count

    def end_tile(self) -> None:
        """Give the values of all rows since the last tile on."""
        found = self._counted()
        self._frequent.add(found)
        for value, _ in found:
            self._distinct.update(value)
        self._pending = []

    def _counted(self) -> list[tuple[str, int]]:
        pa = load_pyarrow()
        if not self._pending:
            return []
        found = pa.chunked_array(self._pending).drop_null().value_counts()
        return list(zip(found.field(0).to_pylist(), found.field(1).to_pylist(), strict=True))

    def _settled(self) -> TextSummary:
        """Return a copy that has given all values on."""
        one = copy.deepcopy(self)
        one.end_tile()
        return one

    def values(self) -> Values:
        """Return the most frequent values, and how many different ones there are."""
        one = self._settled()
        counts, error = one._frequent.counts, one._frequent.error
        ranked = sorted((count, value) for value, count in counts.items())
        # All values are there if none was ever lost.
        n = float(len(ranked)) if not error else one._distinct.get_estimate()
        most = len(ranked) if not error else one._distinct.get_upper_bound(3)
        repeats = bool(ranked) and ranked[-1][0] > 1
        return Values(
            {value: count for count, value in ranked},
            error,
            n,
            all_differ=not repeats and most >= self.n_known,
        )

    def merge(self, other: TextSummary) -> None:
        """Add the values that another one has seen."""
        sketches = load_datasketches()
        mine, theirs = self._settled(), other._settled()
        mine._frequent.merge(theirs._frequent)
        union = sketches.hll_union(LOG_DISTINCT)
        union.update(mine._distinct)
        union.update(theirs._distinct)
        mine._distinct = union.get_result(sketches.tgt_hll_type.HLL_8)
        mine.n_known += theirs.n_known
        mine.n_words += theirs.n_words
        mine.is_dates &= theirs.is_dates
        for part, more in zip(mine.parts, theirs.parts, strict=True):
            part.merge(more)
        vars(self).update(vars(mine))

    # Copies and files

    def __deepcopy__(self, memo: object) -> Self:
        return self.of(self.arrays())

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.arrays(),)

    def arrays(self) -> dict[str, Array]:
        """Return all it is, as plain arrays."""
        pa = load_pyarrow()
        # Chunks of other lengths are the same rows.
        pending = pa.chunked_array(self._pending or [pa.array([], pa.large_string())])
        frequent = self._frequent
        facts = [self.n_known, self.n_words, self.is_dates, frequent.error]
        found: dict[str, Array] = {
            "facts": np.array(facts, dtype=np.int64),
            "distinct": np.frombuffer(self._distinct.serialize_updatable(), dtype=np.uint8),
            "counts": np.fromiter(frequent.counts.values(), np.int64, len(frequent.counts)),
            **_packed("values", frequent.counts),
            **_packed("pending", pending.to_pylist()),
        }
        for name, part in zip(PARTS, self.parts, strict=True):
            found |= {f"{name}.{key}": array for key, array in part.arrays().items()}
        return found

    @classmethod
    def of(cls, arrays: dict[str, Array]) -> Self:
        """Build the summary that `arrays` was taken from."""
        pa, sketches = load_pyarrow(), load_datasketches()
        one = cls()
        one.n_known, one.n_words, dates, error = (int(n) for n in arrays["facts"])
        one.is_dates = bool(dates)
        counts = dict(zip(_unpacked("values", arrays), arrays["counts"].tolist(), strict=True))
        one._frequent = FrequentValues(MOST_VALUES, counts, error)
        try:
            one._distinct = sketches.hll_sketch.deserialize(arrays["distinct"].tobytes())
        except (RuntimeError, ValueError, IndexError) as error_:
            raise StateFormatError(f"the count of values cannot be read ({error_})") from None
        pending = _unpacked("pending", arrays)
        one._pending = [pa.array(pending, pa.large_string())] if pending else []
        for name, part in zip(PARTS, one.parts, strict=True):
            part.facts[...] = arrays[f"{name}.facts"]
            part.lanes[...] = arrays[f"{name}.lanes"]
        return one


def _packed(name: str, texts: Iterable[str | None]) -> dict[str, Array]:
    """Return texts as their bytes and lengths, -1 for none."""
    coded = [None if text is None else text.encode() for text in texts]
    lengths = np.array([-1 if text is None else len(text) for text in coded], dtype=np.int64)
    joined = np.frombuffer(b"".join(text or b"" for text in coded), dtype=np.uint8)
    return {f"{name}.bytes": joined, f"{name}.lengths": lengths}


def _unpacked(name: str, arrays: Mapping[str, Array]) -> list[Any]:
    """Return the texts that `_packed` was given."""
    joined, found, at = arrays[f"{name}.bytes"].tobytes(), [], 0
    for length in arrays[f"{name}.lengths"].tolist():
        found.append(None if length < 0 else joined[at : at + length].decode())
        at += max(0, length)
    return found


def _restored(arrays: dict[str, Array]) -> TextSummary:
    return TextSummary.of(arrays)
