"""Compiled parsers of text, and what they share: numbers, indices, hashes and ends of words."""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import numpy as np

from sksketch._typing import Array
from sksketch.arrays.kernels.jit import jit

# Where the rounding error of a product is computed, no product may be fused with a sum.
jit_unfused = partial(jit, fused=False)


# Powers of ten as sums of two doubles, for `decimal`.
_POWERS = [Fraction(10) ** e for e in range(-300, 281)]
_HIGH = np.array([float(power) for power in _POWERS])
_LOW = np.array([float(power - Fraction(float(power))) for power in _POWERS])
_SPLIT = 2.0**27 + 1.0


@jit_unfused
def decimal(text: Array, start: int, n: int, complaint: int) -> tuple[int, int, float]:
    """Return 0, the end and the value of the number at ``start``, correctly rounded.

    It ends before a blank, a number sign or ``n``. Its digits times a power of ten, both in
    doubled precision, are within 2^-100 of the value, or within 2^-58 if digits had to be left
    out. Where that does not settle the last bit, and for names such as nan, the code is 1; it
    is ``complaint`` for what can be no number.
    """
    at = start
    negative = at < n and text[at] == 45
    if negative or (at < n and text[at] == 43):
        at += 1
    digits, n_digits, exponent = np.uint64(0), 0, 0
    seen, inexact, point = False, False, False
    while at < n:
        letter = text[at]
        if 48 <= letter <= 57:
            seen = True
            if n_digits < 19:
                digits = digits * np.uint64(10) + np.uint64(letter - 48)
                n_digits += int(digits > 0)
                exponent -= point
            else:
                inexact = inexact or letter != 48
                exponent += not point
        elif letter == 46 and not point:
            point = True
        else:
            break
        at += 1
    if seen and at < n and (text[at] == 101 or text[at] == 69):
        at += 1
        down = at < n and text[at] == 45
        if down or (at < n and text[at] == 43):
            at += 1
        power, seen = 0, False
        while at < n and 48 <= text[at] <= 57:
            power = min(power * 10 + int(text[at]) - 48, 100_000)
            seen = True
            at += 1
        exponent += -power if down else power
    stop = at
    while stop < n and text[stop] > 32 and text[stop] != 35:
        stop += 1
    if not seen or stop > at:
        # nan, inf and their like are for the caller to read; nothing else has only letters.
        name = start + (start < n and (text[start] == 45 or text[start] == 43))
        named = stop > name
        for i in range(name, stop):
            named = named and (65 <= text[i] <= 90 or 97 <= text[i] <= 122)
        return (1 if named and not seen else complaint), stop, 0.0
    if digits == 0:
        return 0, stop, -0.0 if negative else 0.0
    if exponent < -300 or exponent > 260:
        return 1, stop, 0.0
    high = np.float64(digits)
    low = np.float64(np.int64(digits - np.uint64(high)))
    if digits < np.uint64(1 << 53) and -22 <= exponent <= 22:
        value = high * _HIGH[300 + exponent] if exponent >= 0 else high / _HIGH[300 - exponent]
        return (1 if inexact else 0), stop, -value if negative else value
    code, value = _times_power(high, low, exponent, inexact)
    return code, stop, -value if negative else value


@jit_unfused
def _times_power(high: float, low: float, exponent: int, inexact: bool) -> tuple[int, float]:
    """Return 0 and ``(high + low) 10^exponent``, or 1 where its last bit is not settled."""
    ten, rest = _HIGH[300 + exponent], _LOW[300 + exponent]
    # The product of two doubles and its rounding error, after Dekker.
    product = high * ten
    a, b = high * _SPLIT, ten * _SPLIT
    a, b = a - (a - high), b - (b - ten)
    error = ((a * b - product) + a * (ten - b) + (high - a) * b) + (high - a) * (ten - b)
    error += high * rest + low * ten
    value = product + error
    doubt = abs(product) * (2.0**-58 if inexact else 2.0**-100)
    settled = value > 1e-290 and product + (error - doubt) == product + (error + doubt)
    return (0 if settled else 1), value


@jit
def column_index(text: Array, start: int) -> tuple[int, int, int]:
    """Return 0, the position after the colon and the index at ``start``, or what is wrong."""
    at, index = start, 0
    while at < len(text) and 48 <= text[at] <= 57:
        index = min(index * 10 + int(text[at]) - 48, 1 << 31)
        at += 1
    if at < len(text) and text[at] == 58:
        return (4 if at == start or index >= 1 << 31 else 0), at + 1, index
    while at < len(text) and text[at] > 32 and text[at] != 35 and text[at] != 58:
        at += 1
    return (4 if at < len(text) and text[at] == 58 else 3), at, 0


@jit
def hash_of(text: Array, start: int, stop: int, seed: int) -> int:
    """Return ``seed`` plus the whole number that a word is, or else its MurmurHash3."""
    at, number, low = start, 0, 0xFFFFFFFF
    while at < stop and 48 <= text[at] <= 57:
        number = (10 * number + int(text[at]) - 48) & low
        at += 1
    if at == stop:
        return (seed + number) & low
    found, at = seed, start
    while at < stop:
        # Four bytes make a word, the first the lowest; the last word may be shorter.
        word, whole = 0, at + 4 <= stop
        for i in range(4 if whole else stop - at):
            word |= int(text[at + i]) << (8 * i)
        word = (word * 0xCC9E2D51) & low
        found ^= ((word << 15 | word >> 17) * 0x1B873593) & low
        if whole:
            found = (((found << 13 | found >> 19) & low) * 5 + 0xE6546B64) & low
        at += 4
    found ^= stop - start
    found = ((found ^ found >> 16) * 0x85EBCA6B) & low
    found = ((found ^ found >> 13) * 0xC2B2AE35) & low
    return found ^ found >> 16


@jit
def settled(
    text: Array, start: int, stop: int, complaint: int, odd_at: Array, odd_values: Array
) -> tuple[int, float]:
    """Return 0 and the number in a segment of text, or the complaint; minus it if unsettled."""
    code, end, value = decimal(text, start, stop, complaint)
    if code == 1:
        for i in range(len(odd_at)):
            if odd_at[i] == start:
                return 0, odd_values[i]
        return -complaint, 0.0
    return (complaint if end < stop else code), value


@jit
def word_end(text: Array, start: int, stop: int, colon: int) -> int:
    """Return the end of what begins at ``start``: at a blank, bar or ``colon``, or at ``stop``."""
    at = start
    while at < stop and text[at] > 32 and text[at] != 124 and text[at] != colon:
        at += 1
    return at


@jit
def parse_svmlight_inplace(
    progress: Array, labels: Array, indptr: Array, indices: Array, data: Array, text: Array
) -> None:
    """Read lines ``label index:value index:value ... # comment`` into labels and CSR arrays.

    A number that is out of reach here ends the call with code 1. The next call must begin after
    it; ``indptr[rows + 1]`` remembers the entries of the unfinished row, or -1 at its start.
    """
    at, rows, entries = progress[1], progress[2], progress[3]
    code, n = 0, len(text)
    begun = rows + 1 < len(indptr) and indptr[rows + 1] >= 0
    if begun:
        entries = indptr[rows + 1]
    while True:
        while at < n and (text[at] == 32 or 9 <= text[at] <= 13) and text[at] != 10:
            at += 1
        if at < n and text[at] == 35:
            while at < n and text[at] != 10:
                at += 1
        if at >= n or text[at] == 10:
            if begun:
                rows += 1
                indptr[rows] = entries
                progress[3] = entries
                begun = False
            if at >= n:
                # A last line without its end is a line, too.
                progress[4] += n > 0 and text[n - 1] != 10
                break
            progress[4] += 1
            at += 1
            continue
        if not begun:
            code, stop, labels[rows] = decimal(text, at, n, 2)
            if code < 2:
                begun = True
                indptr[rows + 1] = entries
        elif at + 3 < n and (
            text[at] == 113 and text[at + 1] == 105 and text[at + 2] == 100 and text[at + 3] == 58
        ):
            stop = at
            while stop < n and text[stop] > 32 and text[stop] != 35:
                stop += 1
        else:
            code, stop, index = column_index(text, at)
            if code == 0 and entries > progress[3] and index <= indices[entries - 1]:
                code = 6
            if code == 0:
                code, stop, data[entries] = decimal(text, stop, n, 5)
                if code < 2:
                    indices[entries] = index
                    entries += 1
                    indptr[rows + 1] = entries
        if code:
            break
        at = stop
    progress[0], progress[1], progress[2] = code, at, rows


@jit
def parse_vw_inplace(
    progress: Array,
    labels: Array,
    weights: Array,
    indptr: Array,
    indices: Array,
    data: Array,
    text: Array,
    mask: int,
    odd_at: Array,
    odd_values: Array,
) -> None:
    """Read lines ``label importance initial 'tag |space:scale name:value ...`` into CSR arrays."""
    at, n = progress[1], len(text)
    while at < n:
        end, bar = at, -1
        while end < n and text[end] != 10:
            if text[end] == 124 and bar < 0:
                bar = end
            end += 1
        code, order, label, weight, initial = 0, 0, np.nan, 1.0, 0.0
        while True:
            while at < end and text[at] <= 32:
                at += 1
            if at in (end, bar):
                break
            stop = word_end(text, at, end, 124)
            tag = text[at] == 39 or stop == bar
            if bar < 0:
                code = 3
            elif order > 2 + tag:
                code = 4
            elif tag:
                order = 4
            else:
                code, number = settled(text, at, stop, 5 + order, odd_at, odd_values)
                if order == 0:
                    label = number
                elif code == 0 and not (0.0 <= number < np.inf or order == 2):
                    code = 6
                elif order == 1:
                    weight = number
                else:
                    initial = number
                order += 1
            if code:
                progress[0], progress[1] = code, at
                return
            at = stop
        code, at, entries = _parse_features(
            text, at, end, (odd_at, odd_values), (indices, data), progress[3], mask
        )
        if code:
            progress[0], progress[1] = code, at
            return
        if bar >= 0:
            labels[progress[2]] = label
            weights[progress[2]] = weight
            progress[2] += 1
            indptr[progress[2]] = progress[3] = entries
        progress[4] += 1
        if initial != 0.0 and not progress[5]:
            progress[5] = progress[4]
        at = end + 1
        progress[1] = min(at, n)
    progress[0] = 0


@jit
def _parse_features(
    text: Array,
    at: int,
    end: int,
    odd: tuple[Array, Array],
    out: tuple[Array, Array],
    entries: int,
    mask: int,
) -> tuple[int, int, int]:
    """Read ``|space:scale name:value ...`` up to ``end`` into indices and data.

    Returns 0 or a complaint, the position of that or ``end``, and the number of entries.
    """
    (odd_at, odd_values), (indices, data) = odd, out
    seed, scale, nameless = 0, 1.0, 0
    while at < end:
        if text[at] <= 32:
            at += 1
            continue
        opens = text[at] == 124
        at += opens
        name = word_end(text, at, end, 58)
        stop, number = name, 1.0
        if name < end and text[name] == 58:
            stop = word_end(text, name + 1, end, 124)
            code, number = settled(text, name + 1, stop, 8, odd_at, odd_values)
            if code:
                return code, name + 1, entries
        if opens:
            seed, scale, nameless = hash_of(text, at, name, 0), number, 0
        else:
            column = hash_of(text, at, name, seed)
            if name == at:
                column += nameless
                nameless += 1
            indices[entries] = column & mask
            data[entries] = number * scale
            entries += 1
        at = stop
    return 0, end, entries
