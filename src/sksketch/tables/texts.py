"""The summary of a column of text: frequent values, how many there are, words, dates."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Self

import numpy as np

from sksketch._typing import Array
from sksketch.streams.formats.arrow import load_pyarrow
from sksketch.tables.dates import PARTS, date_parts, parsed
from sksketch.tables.distinct import DistinctValues
from sksketch.tables.frequent import FrequentValues
from sksketch.tables.kernels import table_kernels
from sksketch.tables.numbers import NumberSummary

# Values are counted for this many rows before they are given on, so that what is remembered of
# more values than fit does not depend on how rows are cut into blocks.
TILE_ROWS = 1 << 14
# Values that are remembered.
MOST_VALUES = 4096


class Values(NamedTuple):
    """Frequent values with their counts, largest last, and how far these can be off."""

    counts: dict[str, int]
    error: int
    n_distinct: float
    all_differ: bool
    # On average.
    n_words: float


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
        self.n_known = 0
        # Once values were lost, what is known of all of them comes from a sample.
        self._is_sampled = False
        self._sampled_words = 0
        self.is_dates = True
        self.parts = [NumberSummary() for _ in PARTS]
        self._frequent = FrequentValues(MOST_VALUES)
        self._distinct = DistinctValues()
        self._pending: list[Any] = []

    def add(self, column: Any, first_row: int = 0) -> None:
        """Add an Arrow array of texts, which lies in one tile."""
        # Holes may come as a column without a type, too, and so are not kept.
        self._pending.append(column.drop_null())
        self.n_known += len(column) - column.null_count
        if self.is_dates and column.null_count < len(column):
            dates = parsed(column)
            if dates is None:
                self._are_no_dates()
                return
            for part, values in zip(self.parts, date_parts(dates), strict=True):
                part.add(values, first_row)

    def _are_no_dates(self) -> None:
        # Forgotten, so that it does not matter how many dates came in a block before.
        self.is_dates, self.parts = False, [NumberSummary() for _ in PARTS]

    def end_tile(self) -> None:
        """Give the values of all rows since the last tile on."""
        if not self._pending:
            return
        pa = load_pyarrow()
        texts = pa.concat_arrays(self._pending)
        self._pending = []
        if self._is_sampled and self._is_lost(texts):
            return
        found = texts.value_counts()
        values, counts = found.field(0), found.field(1).to_numpy()
        if not self._is_sampled and self._has_room(values):
            self._frequent.add(zip(values.to_pylist(), counts.tolist(), strict=True))
            return
        if not self._is_sampled:
            self._begin_sample()
            if self._is_lost(texts):
                return
        if len(counts) > MOST_VALUES:
            # As `FrequentValues` would do; most values never become objects of Python.
            cut = int(np.partition(counts, -MOST_VALUES - 1)[-MOST_VALUES - 1])
            self._frequent.error += cut
            values = values.filter(pa.array(counts > cut))
            counts = counts[counts > cut] - cut
        self._frequent.add(zip(values.to_pylist(), counts.tolist(), strict=True))

    def _has_room(self, values: Any) -> bool:
        frequent = self._frequent
        if len(values) > frequent.capacity:
            return False
        few = len(frequent.counts) + len(values) <= frequent.capacity
        return few or frequent.has_room_for(values.to_pylist())

    def _begin_sample(self) -> None:
        """Sample the values that there were before some were lost."""
        pa, known = load_pyarrow(), self._frequent.counts
        hashes, _ = hashes_of(pa.array(list(known), pa.large_string()))
        self._distinct.add(hashes, np.fromiter(known.values(), np.int64, len(known)))
        self._sampled_words = sum(n * (1 + value.count(" ")) for value, n in known.items())
        self._is_sampled = True

    def _is_lost(self, texts: Any) -> bool:
        """Sample texts; return whether there are too many, each once, for any of them to stay."""
        hashes, n_spaces = hashes_of(texts)
        self._distinct.add(hashes)
        self._sampled_words += len(hashes) + n_spaces
        if len(hashes) <= MOST_VALUES or not table_kernels().all_differ(hashes):
            return False
        self._frequent.error += 1
        return True

    @property
    def n_words(self) -> int:
        """Words of all rows up to the last tile."""
        if self._is_sampled:
            return self._sampled_words
        return sum(n * (1 + value.count(" ")) for value, n in self._frequent.counts.items())

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
        n, repeats = float(len(ranked)), bool(ranked) and ranked[-1][0] > 1
        if one._is_sampled:
            n, repeats = one._distinct.estimate, one._distinct.repeats
        words = one.n_words / max(1, self.n_known)
        return Values({value: count for count, value in ranked}, error, n, not repeats, words)

    def merge(self, other: TextSummary) -> None:
        """Add the values that another one has seen."""
        mine, theirs = self._settled(), other._settled()
        if (
            mine._is_sampled
            or theirs._is_sampled
            or not mine._frequent.has_room_for(theirs._frequent.counts)
        ):
            for one in (mine, theirs):
                if not one._is_sampled:
                    one._begin_sample()
        mine._frequent.merge(theirs._frequent)
        mine._distinct.merge(theirs._distinct)
        mine.n_known += theirs.n_known
        mine._sampled_words += theirs._sampled_words
        for part, more in zip(mine.parts, theirs.parts, strict=True):
            part.merge(more)
        if not (mine.is_dates and theirs.is_dates):
            mine._are_no_dates()
        vars(self).update(vars(mine))

    # Copies and files

    def __deepcopy__(self, memo: object) -> Self:
        return self.of(self.arrays())

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.arrays(),)

    def arrays(self) -> dict[str, Array]:
        """Return all it is, as plain arrays."""
        pa = load_pyarrow()
        # Arrays of other lengths are the same rows.
        pending = pa.chunked_array(self._pending or [pa.array([], pa.large_string())])
        frequent = self._frequent
        sample = self._is_sampled, self._sampled_words
        facts = [self.n_known, self.is_dates, frequent.error, *sample]
        found: dict[str, Array] = {
            "facts": np.array(facts, dtype=np.int64),
            "hashes": self._distinct.hashes,
            "hash_counts": self._distinct.counts,
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
        pa = load_pyarrow()
        one = cls()
        one.n_known, dates, error, sampled, one._sampled_words = (int(n) for n in arrays["facts"])
        one.is_dates, one._is_sampled = bool(dates), bool(sampled)
        counts = dict(zip(_unpacked("values", arrays), arrays["counts"].tolist(), strict=True))
        one._frequent = FrequentValues(MOST_VALUES, counts, error)
        one._distinct.hashes = arrays["hashes"].copy()
        one._distinct.counts = arrays["hash_counts"].copy()
        if one._distinct.hashes.shape != one._distinct.counts.shape:
            raise ValueError("a sample without its counts")
        pending = _unpacked("pending", arrays)
        one._pending = [pa.array(pending, pa.large_string())] if pending else []
        for name, part in zip(PARTS, one.parts, strict=True):
            part.facts[...] = arrays[f"{name}.facts"]
            part.lanes[...] = arrays[f"{name}.lanes"]
        return one


def hashes_of(texts: Any) -> tuple[Array, int]:
    """Return a hash of every text of an Arrow array that is there, and the spaces in all."""
    # In memory of its own, so that its offsets begin at 0.
    texts = load_pyarrow().concat_arrays([texts])
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]
    valid = np.asarray(texts.is_valid().to_numpy(zero_copy_only=False))
    hashes = np.empty(len(texts) - texts.null_count, dtype=np.uint64)
    text = np.frombuffer(data or b"", dtype=np.uint8)
    return hashes, int(table_kernels().hash_texts(text, ends, valid, hashes))


def _packed(name: str, texts: Iterable[str]) -> dict[str, Array]:
    """Return texts as their bytes and lengths."""
    coded = [text.encode() for text in texts]
    lengths = np.array([len(text) for text in coded], dtype=np.int64)
    joined = np.frombuffer(b"".join(coded), dtype=np.uint8)
    return {f"{name}.bytes": joined, f"{name}.lengths": lengths}


def _unpacked(name: str, arrays: Mapping[str, Array]) -> list[str]:
    """Return the texts that `_packed` was given."""
    joined, found, at = arrays[f"{name}.bytes"].tobytes(), [], 0
    lengths = arrays[f"{name}.lengths"].tolist()
    if min(lengths, default=0) < 0 or sum(lengths) != len(joined):
        raise ValueError(f"{name} of other lengths than are said")
    for length in lengths:
        found.append(joined[at : at + length].decode())
        at += length
    return found


def _restored(arrays: dict[str, Array]) -> TextSummary:
    return TextSummary.of(arrays)
