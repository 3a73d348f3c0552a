"""Loops over the cells of one column: sums, standardized numbers, hashed words."""

from __future__ import annotations

import numpy as np

from sksketch._typing import Array
from sksketch.arrays.kernels.jit import jit
from sksketch.arrays.kernels.parsing import hash_of

# Partial sums of a column; a row adds to the one of its number. Their order is that of the rows,
# however these are cut into blocks, and the processor adds several at once.
N_LANES = 8
# What is known of a column of numbers.
KNOWN, ORIGIN, LOW, HIGH, WHOLE = range(5)
N_FACTS = 5


@jit
def summarize_inplace(values: Array, first_row: int, facts: Array, lanes: Array) -> int:
    """Add the numbers of some rows; return the first row that is infinite, or -1.

    ``lanes`` has the sums and the sums of squares around the origin, the first number that came.
    """
    known = facts[KNOWN]
    for i in range(len(values)):
        x = values[i]
        if x != x:
            continue
        if np.isinf(x):
            return i
        if known == 0.0:
            facts[ORIGIN] = facts[LOW] = facts[HIGH] = x
            facts[WHOLE] = 1.0
        known += 1.0
        if x < facts[LOW]:
            facts[LOW] = x
        if x > facts[HIGH]:
            facts[HIGH] = x
        if x != np.floor(x):
            facts[WHOLE] = 0.0
        away = x - facts[ORIGIN]
        lane = (first_row + i) % N_LANES
        lanes[0, lane] += away
        lanes[1, lane] += away * away
    facts[KNOWN] = known
    return -1


@jit
def write_numbers_inplace(
    values: Array, mean: float, center: float, scale: float, out: Array, column: int
) -> None:
    """Write ``(x - center) / scale``, with the mean where there is no number."""
    for i in range(len(values)):
        x = values[i]
        out[i, column] = ((mean if x != x else x) - center) / scale


@jit
def write_holes_inplace(values: Array, out: Array, column: int) -> None:
    """Write 1 where there is no number."""
    for i in range(len(values)):
        out[i, column] = 1.0 if values[i] != values[i] else 0.0


@jit
def write_codes_inplace(codes: Array, out: Array, start: int) -> None:
    """Write 1 in the column of each category; a code below 0 has none."""
    for i in range(len(codes)):
        if codes[i] >= 0:
            out[i, start + codes[i]] = 1.0


@jit
def is_letter(byte: int) -> bool:
    """Return whether a byte belongs to a word: letters, digits, and all beyond ASCII."""
    return byte >= 128 or 97 <= byte <= 122 or 65 <= byte <= 90 or 48 <= byte <= 57 or byte == 95


@jit
def hash_words(text: Array, offsets: Array, buckets: int, indptr: Array) -> tuple[Array, Array]:
    """Return bucket and sign of every word of at least two bytes, and where rows begin."""
    n_words = 0
    for i in range(len(offsets) - 1):
        at = offsets[i]
        while at < offsets[i + 1]:
            stop = at
            while stop < offsets[i + 1] and is_letter(text[stop]):
                stop += 1
            n_words += stop - at > 1
            at = stop + 1
    found, signs = np.empty(n_words, np.int32), np.empty(n_words)
    n_words = 0
    for i in range(len(offsets) - 1):
        indptr[i] = n_words
        at = offsets[i]
        while at < offsets[i + 1]:
            stop = at
            while stop < offsets[i + 1] and is_letter(text[stop]):
                stop += 1
            if stop - at > 1:
                code = hash_of(text, at, stop, 0)
                # The highest bit is the sign, so that words of one bucket do not all add up.
                signs[n_words] = 1.0 if code < 0x80000000 else -1.0
                found[n_words] = code % buckets
                n_words += 1
            at = stop + 1
    indptr[len(offsets) - 1] = n_words
    return found, signs
