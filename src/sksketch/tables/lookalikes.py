"""Texts that look like numbers written in another way, and what to say about them."""

from __future__ import annotations

import re
from collections.abc import Mapping

# From this share of the values on it is worth a word.
MOST = 0.9
_PLAIN = re.compile(r"\s*[+-]?\d+(\.\d+)?([eE][+-]?\d+)?\s*")
_COMMA = re.compile(r"\s*[+-]?\d+,\d+([eE][+-]?\d+)?\s*")


def word_on_numbers(counts: Mapping[str, int]) -> str:
    """Return a word on values most of which are numbers, but for some; "" where there is none.

    Codes that are all digits are left alone.

    >>> word_on_numbers({"1,5": 3, "2,25": 1, "3": 1})
    '; most look like numbers with a decimal comma: read them with decimal ","'
    >>> word_on_numbers({"1.5": 30, "-": 1})
    "; most look like numbers, but for '-': read it as missing with na"
    >>> word_on_numbers({"8001": 3, "3012": 1})
    ''
    """
    total = sum(counts.values())
    commas = sum(n for value, n in counts.items() if _COMMA.fullmatch(value))
    plain = sum(n for value, n in counts.items() if _PLAIN.fullmatch(value))
    if not total or commas + plain < MOST * total:
        return ""
    if 2 * commas > total:
        return '; most look like numbers with a decimal comma: read them with decimal ","'
    others = [value for value in counts if not (_PLAIN.fullmatch(value) or _COMMA.fullmatch(value))]
    if commas or not others:
        return ""
    common = max(others, key=lambda value: (counts[value], value))
    return f"; most look like numbers, but for {common[:20]!r}: read it as missing with na"
