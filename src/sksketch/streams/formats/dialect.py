"""How a CSV file spells its values: separators, numbers, what is missing, what is to be skipped."""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

from sksketch.exceptions import Option
from sksketch.streams.formats.arrow import load_pyarrow

# What stands for a missing value in a column of numbers.
NO_VALUE = ("", "NA", "N/A", "n/a", "#N/A", "#NA", "NaN", "nan", "-nan", "NULL", "null")
# In the order in which they are tried.
SEPARATORS = (",", ";", "\t", "|")
SAMPLE_LINES = 30
_OTHER_WORDS = r"[-+]?(?:inf|infinity)"


@dataclass(frozen=True)
class Dialect:
    """The options of CSV, as `open_rows` takes them."""

    delimiter: str | None = None
    header: bool | None = None
    decimal: str = "."
    thousands: str | None = None
    na: tuple[str, ...] = ()
    comment: str | None = None
    skip: int = 0
    encoding: str | None = None

    def __post_init__(self) -> None:
        for name in ("delimiter", "decimal", "thousands"):
            given = getattr(self, name)
            if given is not None and (not isinstance(given, str) or len(given) != 1):
                raise ValueError(f"{name} is {given!r}; give one character")
        if self.decimal == self.thousands:
            raise ValueError(
                f"decimal and thousands are both {self.decimal!r}; give two characters"
            )
        if self.comment == "":
            raise ValueError("comment is empty; give the characters that begin a comment")
        if self.skip < 0:
            raise ValueError(f"skip is {self.skip}; give the number of lines before the table")
        if self.encoding is not None:
            try:
                codecs.lookup(self.encoding)
            except LookupError:
                raise ValueError(
                    f"encoding is {self.encoding!r}, which Python does not know; give one such as "
                    "'latin-1'"
                ) from None

    def changes(self) -> dict[str, Any]:
        """Return what is not as usual, but for delimiter and header: plain values."""
        usual = Dialect()
        given = {f.name: getattr(self, f.name) for f in fields(self)[2:]}
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in given.items()
            if value != getattr(usual, name)
        }

    @cached_property
    def null_values(self) -> tuple[str, ...]:
        """All words that stand for a missing value."""
        return (*NO_VALUE, *self.na)

    @cached_property
    def _number(self) -> str:
        """The pattern of a number, for both `re` and Arrow."""
        whole = r"\d*" if self.thousands is None else rf"(?:\d{{1,3}}(?:{self._mark}\d{{3}})+|\d*)"
        return rf"[-+]?{whole}(?:{re.escape(self.decimal)}\d*)?(?:[eE][-+]?\d+)?|{_OTHER_WORDS}"

    @property
    def _mark(self) -> str:
        return re.escape(self.thousands or "")

    def is_number(self, word: str) -> bool:
        """Return whether a field is read as a number or a missing one.

        >>> Dialect(decimal=",", thousands=".").is_number("1.234,5"), Dialect().is_number("1,5")
        (True, False)
        """
        word = word.strip(" \t")
        if word in self.null_values:
            return True
        if (self.decimal != "." or self.thousands) and not re.fullmatch(self._number, word, re.I):
            return False
        try:
            float(word.replace(self.thousands or "\n", "").replace(self.decimal, "."))
        except ValueError:
            return False
        return "_" not in word

    def as_numbers(self, column: Any) -> Any:
        """Return text as Arrow's float64; what is no number is an ``ArrowInvalid``."""
        pa = load_pyarrow()
        words = pa.compute.utf8_trim_whitespace(column)
        good = pa.compute.match_substring_regex(words, f"(?i)^(?:{self._number})$")
        if not pa.compute.all(good, min_count=0).as_py():
            raise pa.ArrowInvalid("a value is not a number")
        if self.thousands is not None:
            words = pa.compute.replace_substring(words, self.thousands, "")
        words = pa.compute.replace_substring(words, self.decimal, ".")
        return words.cast(pa.float64())

    def settled(self, lines: Iterable[str], fallback: str | None) -> Dialect:
        """Return the same with a delimiter: as given, or else found in the first lines."""
        if self.delimiter is not None:
            return self
        return replace(self, delimiter=fallback or self._sniffed(lines))

    def _sniffed(self, lines: Iterable[str]) -> str:
        """Return the first separator that cuts all lines into as many values, more than one.

        If none does, the one that cuts the first line into most.
        """
        rows = [line for line in lines if line.strip()][:SAMPLE_LINES]
        # What stands in numbers separates them only where they are quoted.
        in_numbers = (self.decimal, self.thousands)
        marks = sorted(SEPARATORS, key=lambda mark: mark in in_numbers)
        counts = {mark: _widths(rows, mark) for mark in marks}
        for mark, found in counts.items():
            if found and len(set(found)) == 1 and found[0] > 1:
                return mark
        return max(counts, key=lambda mark: counts[mark][0] if counts[mark] else 0)

    def remedies(self, words: list[str]) -> list[Option]:
        """Return the options under which most of some text would be numbers, if there are any."""
        spellings = ((",", None), (",", "."), (".", ","), (".", "'"), (",", " "))
        numbers = {
            (decimal, thousands): sum(
                map(replace(self, decimal=decimal, thousands=thousands).is_number, words)
            )
            for decimal, thousands in spellings
        }
        best = max(spellings, key=lambda spelling: numbers[spelling])
        if numbers[best] <= len(words) / 2:
            return []
        decimal, thousands = best
        found = [] if decimal == "." else [Option("decimal", decimal)]
        return found + ([] if thousands is None else [Option("thousands", thousands)])


def _widths(lines: list[str], delimiter: str) -> list[int]:
    """Return the number of values in each line; none where a quote is not closed."""
    try:
        return [len(row) for row in csv.reader(lines, delimiter=delimiter) if row]
    except csv.Error:
        return []
