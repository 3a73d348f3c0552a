"""Encodings of a column: numbers, categories, parts of dates, hashed words, or nothing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from itertools import count
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from sksketch._typing import Array
from sksketch.streams.formats.arrow import load_pyarrow
from sksketch.tables.column_summary import Cells, ColumnSummary
from sksketch.tables.dates import PARTS, date_parts, parsed
from sksketch.tables.kernels import table_kernels
from sksketch.tables.lookalikes import word_on_numbers
from sksketch.tables.numbers import NumberSummary
from sksketch.tables.texts import Values
from sksketch.tables.writing import HOLES, InfiniteError, NumberColumn, Scaled, write_rows

# Texts of at least this many words on average are free text, and no names of categories.
TEXT_WORDS = 4.0
# Columns that the words of a column of free text are hashed to.
WORD_BUCKETS = 1024
# Holes in more rows than this share are worth a column of their own.
OFTEN = 0.1
MISSING_NAME, OTHER_NAME = "(missing)", "(other)"


class ColumnPlan(NamedTuple):
    """The fate of a column.

    Attributes
    ----------
    kind : str
        "number", "boolean", "date", "categories", "text" or "dropped".
    features : tuple of str
        The columns that it became.
    text : str
        The same in words.
    """

    kind: str
    features: tuple[str, ...]
    text: str

    def __str__(self) -> str:
        """Return the words."""
        return self.text


class Options(NamedTuple):
    """The parameters of the encoder."""

    numeric: str
    max_categories: int
    missing: str
    text: str
    dates: str
    reference: bool


class Encoding(ABC):
    """How a column is written into rows of numbers."""

    plan: ColumnPlan
    # Expected entries of a row that are not zero.
    n_filled: float = 0.0

    def numbers(self, cells: Cells) -> Iterator[tuple[Array, Scaled]]:
        """Yield the columns that are numbers, as they are, and how they are written."""
        yield from ()

    def codes(self, cells: Cells) -> Array | None:
        """Return the column that is 1 in each row, -1 for none, or None if it has no such."""
        return None

    def write(self, cells: Cells, out: Array, start: int) -> None:  # noqa: B027  (few write)
        """Write what is neither to its columns from ``start`` on."""

    @abstractmethod
    def sparse(self, cells: Cells) -> sp.csr_array:
        """Return some rows as a sparse matrix."""


class Dropped(Encoding):
    """Nothing."""

    def __init__(self, why: str) -> None:
        self.plan = ColumnPlan("dropped", (), f"dropped: {why}")

    def sparse(self, cells: Cells) -> sp.csr_array:
        """Return no columns."""
        return sp.csr_array((cells.n_rows, 0))


class Numbers(Encoding):
    """Columns of numbers, each standardized or as it is, and one for holes where that is asked."""

    def __init__(
        self,
        kind: str,
        column: str,
        names: list[str],
        scaled: list[Scaled | None],
        holes: str | None,
        text: str,
    ) -> None:
        self._column, self._scaled, self._holes = column, scaled, holes is not None
        features = tuple(n for n, part in zip(names, scaled, strict=True) if part is not None)
        self.plan = ColumnPlan(kind, features + (() if holes is None else (holes,)), text)
        self.n_filled = float(len(self.plan.features))

    def numbers(self, cells: Cells) -> Iterator[tuple[Array, Scaled]]:
        """Yield the columns."""
        arrays = cells.numbers or self._parts_of(cells)
        for values, scaled in zip(arrays, self._scaled, strict=True):
            if scaled is not None:
                yield values, scaled
        if self._holes:
            yield arrays[0], HOLES

    def sparse(self, cells: Cells) -> sp.csr_array:
        """Return some rows as a sparse matrix, which has few zeros."""
        out = np.zeros((cells.n_rows, len(self.plan.features)))
        write_rows([NumberColumn(*pair, i) for i, pair in enumerate(self.numbers(cells))], [], out)
        return sp.csr_array(out)

    def _parts_of(self, cells: Cells) -> tuple[Array, ...]:
        if cells.texts is not None:
            dates = parsed(cells.texts)
            if dates is None and cells.texts.null_count < len(cells.texts):
                raise ValueError(
                    f"column {self._column!r} holds a text that is no date of ISO 8601, and held "
                    "only dates in the rows learned from"
                )
            if dates is not None:
                return date_parts(dates)
        return tuple(np.full(cells.n_rows, np.nan) for _ in self._scaled)


class Categories(Encoding):
    """A column for each of the most frequent values; the first has none if it is a reference."""

    n_filled = 1.0

    def __init__(
        self,
        name: str,
        values: list[str],
        missing: bool,
        other: bool,
        text: str,
        *,
        reference: bool = False,
    ) -> None:
        self._values = load_pyarrow().array(values, load_pyarrow().large_string())
        self._first = int(reference)
        self._n, self._missing, self._other = len(values) - self._first, missing, other
        ends = [*values[self._first :], *([MISSING_NAME] * missing), *([OTHER_NAME] * other)]
        self.plan = ColumnPlan("categories", tuple(f"{name}={end}" for end in ends), text)

    def codes(self, cells: Cells) -> Array:
        """Return the column of each row, -1 for none."""
        pa = load_pyarrow()
        texts = cells.texts
        if texts is None:
            texts = pa.nulls(cells.n_rows, pa.large_string())
        found = pa.compute.index_in(texts, value_set=self._values, skip_nulls=True)
        rest = self._n + self._missing if self._other else -1
        codes = np.asarray(found.fill_null(rest + self._first).to_numpy(zero_copy_only=False))
        codes = codes - self._first if self._first else codes
        if self._missing and texts.null_count:
            codes = np.where(cells.holes, self._n, codes)
        return codes

    def sparse(self, cells: Cells) -> sp.csr_array:
        """Return some rows as a sparse matrix."""
        codes = self.codes(cells)
        known = codes >= 0
        indptr = np.concatenate([[0], np.cumsum(known)])
        shape = (cells.n_rows, len(self.plan.features))
        return sp.csr_array((np.ones(indptr[-1]), codes[known], indptr), shape=shape)


class Words(Encoding):
    """The words of free text, hashed, with rows of length 1."""

    def __init__(self, name: str, n_words: float, text: str) -> None:
        names = tuple(f"{name}#{i}" for i in range(WORD_BUCKETS))
        self.plan = ColumnPlan("text", names, text)
        self.n_filled = n_words

    def write(self, cells: Cells, out: Array, start: int) -> None:
        """Write the words."""
        out[:, start : start + WORD_BUCKETS] = self.sparse(cells).toarray()

    def sparse(self, cells: Cells) -> sp.csr_array:
        """Return the words of some rows as a sparse matrix."""
        pa = load_pyarrow()
        shape = (cells.n_rows, WORD_BUCKETS)
        if cells.texts is None:
            return sp.csr_array(shape)
        # In memory of its own, so that its offsets begin at 0.
        lowered = pa.concat_arrays([pa.compute.utf8_lower(cells.texts.fill_null(""))])
        _, offsets, data = lowered.buffers()
        ends = np.frombuffer(offsets, dtype=np.int64)[: cells.n_rows + 1]
        text = np.frombuffer(data or b"", dtype=np.uint8)
        indptr = np.zeros(cells.n_rows + 1, dtype=np.int64)
        found, signs = table_kernels().hash_words(text, ends, WORD_BUCKETS, indptr)
        rows = sp.csr_array((signs, found, indptr), shape=shape)
        rows.sum_duplicates()
        rows.eliminate_zeros()
        lengths = np.sqrt(rows.multiply(rows).sum(axis=1))
        rows.data /= np.repeat(lengths, np.diff(rows.indptr))
        return rows


def encoding_of(name: str, column: ColumnSummary, options: Options) -> Encoding:
    """Return what becomes of a column, by what is known of it."""
    if column.kind == "nested":
        return Dropped("lists and structures are no single value")
    if column.n_missing == column.n_rows:
        return Dropped("no row has a value")
    if column.text is not None:
        return _of_text(name, column, options)
    if column.kind == "date":
        return _of_dates(name, column, column.numbers, options)
    (numbers,) = column.numbers
    holes = _holes_name(name, column, options)
    if numbers.is_constant and holes is None:
        return Dropped(f"the only value is {numbers.low:g}")
    if column.kind == "number" and not column.n_missing and numbers.counts_rows:
        return Dropped(f"it numbers the rows, from {numbers.low:.0f} to {numbers.high:.0f}")
    standardize = column.kind == "number" and options.numeric == "standardize"
    scaled = None if numbers.is_constant else _scaled(numbers, column.n_rows, standardize)
    words = "number, standardized" if standardize else column.kind
    text = _with_holes(words, column, holes)
    return Numbers(column.kind, name, [name], [scaled], holes, text)


def _scaled(numbers: NumberSummary, n_rows: int, standardize: bool) -> Scaled:
    mean = numbers.mean
    if not standardize:
        return Scaled(mean, 0.0, 1.0)
    return Scaled(mean, mean, numbers.deviation(n_rows) or 1.0)


def _holes_name(name: str, column: ColumnSummary, options: Options) -> str | None:
    often = column.n_missing > OFTEN * column.n_rows
    if options.missing == "indicator":
        often = column.n_missing > 0
    return f"{name}={MISSING_NAME}" if often and options.missing != "error" else None


def _with_holes(words: str, column: ColumnSummary, holes: str | None) -> str:
    if not column.n_missing:
        return words
    share = column.n_missing / column.n_rows
    more = " and marked in a column of their own" if holes is not None else ""
    return f"{words}; {share:.1%} missing, filled with the mean{more}"


def _of_dates(
    name: str, column: ColumnSummary, parts: list[NumberSummary], options: Options
) -> Encoding:
    if options.dates == "drop":
        return Dropped("dates are not wanted")
    standardize = options.numeric == "standardize"
    scaled = [
        None if part.is_constant else _scaled(part, column.n_rows, standardize) for part in parts
    ]
    holes = _holes_name(name, column, options)
    kept = [part for part, one in zip(PARTS, scaled, strict=True) if one is not None]
    if not kept and holes is None:
        return Dropped("the only value is one date")
    words = f"date: {', '.join(kept)}" + (", standardized" if standardize else "")
    names = [f"{name}:{part}" for part in PARTS]
    return Numbers("date", name, names, scaled, holes, _with_holes(words, column, holes))


def _of_text(name: str, column: ColumnSummary, options: Options) -> Encoding:
    text = column.text
    assert text is not None
    if text.is_dates:
        return _of_dates(name, column, text.parts, options)
    values = text.values()
    n_missing = column.n_missing
    if values.n_distinct == 1 and not n_missing:
        return Dropped(f"the only value is {next(iter(values.counts))[:40]!r}")
    many = values.n_distinct + (n_missing > 0) > options.max_categories
    words = values.n_words
    if many and words >= TEXT_WORDS:
        if options.text == "drop":
            return Dropped("free text is not wanted")
        return Words(name, words, f"free text of about {words:.0f} words, hashed to {WORD_BUCKETS}")
    if many and values.all_differ:
        hint = word_on_numbers(values.counts)
        return Dropped(f"an identifier: all {text.n_known:,} values are different{hint}")
    return _of_categories(name, values, n_missing, options)


def _of_categories(name: str, values: Values, n_missing: int, options: Options) -> Encoding:
    """Return the encoding by the most frequent values; as in scikit-learn, holes are one of them.

    Of equally frequent ones the last in the order of the alphabet stay, holes behind all.
    """
    most = options.max_categories
    ranked: list[tuple[int, bool, str]] = sorted(
        [(n, False, value) for value, n in values.counts.items()]
        + ([(n_missing, True, "")] if n_missing else [])
    )
    other = values.n_distinct + (n_missing > 0) > most
    kept = ranked[-(most - 1) :] if other and most > 1 else [] if other else ranked
    kept.reverse()
    names = [value for _, hole, value in kept if not hole]
    missing = any(hole for _, hole, _ in kept)
    if other and not kept:
        return Dropped(f"about {values.n_distinct:,.0f} different values, none of them frequent")
    text = f"{len(names)} categories" if len(names) != 1 else "1 category"
    if other:
        about = "" if values.error == 0 and values.n_distinct.is_integer() else "about "
        text = f"the {len(names)} most frequent of {about}{values.n_distinct:,.0f} values"
        if values.error:
            text += f" (counts within {values.error:,})"
        text += ", the others together"
    if n_missing:
        text += ", and missing" if missing else "; missing is one of the others"
    reference = options.reference and bool(names) and len(names) + missing + other > 1
    if reference:
        text += f"; {names[0]!r} is the reference"
    text += word_on_numbers(values.counts)
    return Categories(name, names, missing, other, text, reference=reference)


def name_apart(encodings: list[Encoding]) -> None:
    """Give columns new names where two have the same, by a number behind the later one.

    A column "a=b" and the value "b" of a column "a" would both be "a=b".
    """
    seen: set[str] = set()
    for one in encodings:
        names = []
        for name in one.plan.features:
            free = (f"{name} ({i})" for i in count(2))
            names.append(name if name not in seen else next(n for n in free if n not in seen))
            seen.add(names[-1])
        one.plan = one.plan._replace(features=tuple(names))


def is_worth_sparse(encodings: list[Encoding]) -> bool:
    """Return whether a sparse matrix is smaller, since most entries of the rows are zero."""
    width = sum(len(one.plan.features) for one in encodings)
    return width > 100 and sum(one.n_filled for one in encodings) < 0.1 * width


def sparse_rows(encodings: list[Encoding], cells: list[Cells]) -> sp.csr_array:
    """Return rows as a sparse matrix."""
    parts: list[Any] = []
    start = 0
    for one, part in zip(encodings, cells, strict=True):
        if one.plan.features:
            try:
                parts.append(one.sparse(part))
            except InfiniteError as error:
                raise InfiniteError(start + error.column, error.row) from None
        start += len(one.plan.features)
    return sp.csr_array(sp.hstack(parts, format="csr"))
