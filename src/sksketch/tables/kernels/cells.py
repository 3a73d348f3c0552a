"""Loops over the cells of one column: sums, standardized numbers, hashed words."""

from __future__ import annotations

import numpy as np

from sksketch._typing import Array
from sksketch.arrays.kernels.jit import jit
from sksketch.arrays.kernels.parsing import hash_of
from sksketch.tables.kernels.column_facts import HIGH, KNOWN, LOW, N_LANES, ORIGIN, WHOLE

# Rows that are written column by column while they stay in the processor's cache.
GROUP_ROWS = 16


@jit
def summarize_inplace(values: Array, first_row: int, facts: Array, lanes: Array) -> int:
    """Add the numbers of some rows; NaN is a hole. Return a row that is infinite, or -1.

    ``lanes`` has the sums and the sums of squares around the origin, the first number that came.
    """
    n_rows, start = len(values), 0
    if facts[KNOWN] == 0.0:
        while start < n_rows and values[start] != values[start]:
            start += 1
        if start == n_rows:
            return -1
        facts[ORIGIN] = facts[LOW] = facts[HIGH] = values[start]
        facts[WHOLE] = 1.0
    # Up to the first row of a group, group by group, and the rest.
    head = min(n_rows, start + -(first_row + start) % N_LANES)
    tail = head + (n_rows - head) // N_LANES * N_LANES
    for i in range(start, head):
        _add_inplace(values[i], (first_row + i) % N_LANES, facts, lanes)
    _add_groups_inplace(values[head:tail], facts, lanes)
    for i in range(tail, n_rows):
        _add_inplace(values[i], (first_row + i) % N_LANES, facts, lanes)
    if facts[LOW] == -np.inf or facts[HIGH] == np.inf:
        for i in range(n_rows):
            if np.isinf(values[i]):
                return i
    return -1


@jit
def _add_inplace(x: float, lane: int, facts: Array, lanes: Array) -> None:
    if x != x:
        return
    facts[KNOWN] += 1.0
    facts[LOW] = min(facts[LOW], x)
    facts[HIGH] = max(facts[HIGH], x)
    if x != np.floor(x):
        facts[WHOLE] = 0.0
    away = x - facts[ORIGIN]
    lanes[0, lane] += away
    lanes[1, lane] += away * away


@jit
def _add_groups_inplace(values: Array, facts: Array, lanes: Array) -> None:
    """Add whole groups of rows, without a branch, so that the processor adds several at once."""
    origin = facts[ORIGIN]
    sums, squares = lanes[0].copy(), lanes[1].copy()
    known, broken = np.zeros(N_LANES), np.zeros(N_LANES)
    low, high = np.full(N_LANES, facts[LOW]), np.full(N_LANES, facts[HIGH])
    for start in range(0, len(values), N_LANES):
        for k in range(N_LANES):
            x = values[start + k]
            there = x == x
            away = x - origin if there else 0.0
            sums[k] += away
            squares[k] += away * away
            known[k] += 1.0 if there else 0.0
            broken[k] += 1.0 if x != np.floor(x) and there else 0.0
            low[k] = x if x < low[k] else low[k]
            high[k] = x if x > high[k] else high[k]
    lanes[0, :], lanes[1, :] = sums, squares
    facts[KNOWN] += known.sum()
    facts[LOW], facts[HIGH] = low.min(), high.max()
    if broken.sum() > 0.0:
        facts[WHOLE] = 0.0


@jit
def write_numbers_inplace(
    columns: Array, means: Array, centers: Array, scales: Array, targets: Array, out: Array
) -> int:
    """Write ``(x - center) / scale`` of every column, with the mean where there is no number.

    A scale of 0 asks for 1 where there is no number, and 0 elsewhere. Return a column that holds
    an infinite number, or -1.
    """
    bad = -1
    for start in range(0, out.shape[0], GROUP_ROWS):
        stop = min(start + GROUP_ROWS, out.shape[0])
        for j in range(len(columns)):
            mean, center, scale, column = means[j], centers[j], scales[j], targets[j]
            for i in range(start, stop):
                x = columns[j, i]
                if scale == 0.0:
                    out[i, column] = 1.0 if x != x else 0.0
                else:
                    out[i, column] = ((mean if x != x else x) - center) / scale
                    if abs(x) == np.inf:
                        bad = j
    return bad


@jit
def write_codes_inplace(codes: Array, places: Array, out: Array) -> None:
    """Write 1 in the column of each category, and 0 in those of the others.

    A code below 0 has none. ``places`` has the first column and their number for every row of
    ``codes``.
    """
    for start in range(0, out.shape[0], GROUP_ROWS):
        stop = min(start + GROUP_ROWS, out.shape[0])
        for j in range(len(codes)):
            first, width = places[j, 0], places[j, 1]
            for i in range(start, stop):
                for k in range(first, first + width):
                    out[i, k] = 0.0
                if codes[j, i] >= 0:
                    out[i, first + codes[j, i]] = 1.0


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


@jit
def hash_texts(text: Array, offsets: Array, valid: Array, hashes: Array) -> int:
    """Write a hash of 64 bits for every text that is there, in order; return the spaces in them.

    Eight bytes at a time are mixed by the constants of splitmix64 [1]_.

    .. [1] Steele, G. L., Lea, D. and Flood, C. H. (2014). "Fast Splittable Pseudorandom Number
       Generators". OOPSLA.
    """
    n_spaces, at = 0, 0
    for i in range(len(offsets) - 1):
        if not valid[i]:
            continue
        start, stop = offsets[i], offsets[i + 1]
        found = np.uint64(stop - start) * np.uint64(0x9E3779B97F4A7C15)
        while start < stop:
            word = np.uint64(0)
            for k in range(start, min(start + 8, stop)):
                word = (word << np.uint64(8)) | np.uint64(text[k])
                n_spaces += text[k] == 32
            found = (found ^ word) + np.uint64(0x9E3779B97F4A7C15)
            found = (found ^ (found >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            found = (found ^ (found >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            found = found ^ (found >> np.uint64(31))
            start += 8
        hashes[at] = found
        at += 1
    return n_spaces


@jit
def all_differ(hashes: Array) -> bool:
    """Return whether no hash comes twice."""
    size = 1
    while size < 2 * len(hashes):
        size *= 2
    table = np.zeros(size, dtype=np.uint64)
    for found in hashes:
        # Zero marks a free place; the few hashes that are zero pass for one.
        at = found & np.uint64(size - 1)
        while table[at] != 0:
            if table[at] == found:
                return False
            at = (at + np.uint64(1)) & np.uint64(size - 1)
        table[at] = found
    return True


@jit
def split_dates(moments: Array, holes: Array, years: Array, weekdays: Array, hours: Array) -> None:
    """Write year with fraction, weekday and hour of microseconds since 1970.

    The days of 400 years repeat; within them years begin in March, so that February is the last
    month and leap days come at the end [1]_.

    .. [1] Hinnant, H. (2021). "chrono-Compatible Low-Level Date Algorithms".
    """
    day_length = 86_400_000_000
    for i in range(len(moments)):
        if holes[i]:
            years[i] = weekdays[i] = hours[i] = np.nan
            continue
        day = moments[i] // day_length
        within = moments[i] - day * day_length
        era, of_era = (day + 719_468) // 146_097, (day + 719_468) % 146_097
        year = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
        of_year = of_era - (365 * year + year // 4 - year // 100)
        year += 400 * era
        # From the first of March to the first of January there are 306 days.
        if of_year >= 306:
            year, of_year = year + 1, of_year - 306
            leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
        else:
            leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
            of_year += 60 if leap else 59
        length = 366.0 if leap else 365.0
        years[i] = year + (of_year + within / day_length) / length
        # The first of January 1970 was a Thursday.
        weekdays[i] = (day + 3) % 7
        hours[i] = within / 3_600_000_000
