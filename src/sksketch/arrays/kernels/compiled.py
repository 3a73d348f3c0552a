"""The kernels of `generic`, compiled by numba at their first call and kept on disk."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numba
import numpy as np

from sksketch._typing import Array


def _compile(function: Callable[..., Any], fused: bool = True) -> Any:
    """Compile at the first call, and keep the result for later processes where possible."""
    options: dict[str, Any] = {"nogil": True, "fastmath": {"contract"} if fused else False}
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:
        # Neither the package nor the home directory can be written to.
        return numba.njit(**options)(function)


# Where the rounding error of a product is computed, no product may be fused with a sum.
_compile_unfused = partial(_compile, fused=False)


# Powers of ten as sums of two doubles, for `_decimal`.
_POWERS = [Fraction(10) ** e for e in range(-300, 281)]
_HIGH = np.array([float(power) for power in _POWERS])
_LOW = np.array([float(power - Fraction(float(power))) for power in _POWERS])
_SPLIT = 2.0**27 + 1.0


@_compile_unfused
def _decimal(text: Array, start: int, complaint: int) -> tuple[int, int, float]:
    """Return 0, the end and the value of the number at ``start``, correctly rounded.

    Its digits times a power of ten, both in doubled precision, are within 2^-100 of the value,
    or within 2^-58 if digits had to be left out. Where that does not settle the last bit, and
    for names such as nan, the code is 1; it is ``complaint`` for what can be no number.
    """
    at, n = start, len(text)
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
    return (0 if settled else 1), stop, -value if negative else value


@_compile
def _index(text: Array, start: int) -> tuple[int, int, int]:
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


# Loops run over slices of rows: only then does the compiler see that they do not wrap around,
# and uses vector instructions.


@_compile
def normal_csr_inplace(
    image: Array,
    pull: Array,
    W: Array,
    indptr: Array,
    indices: Array,
    data: Array,
    scale: Array,
    offset: Array,
) -> None:
    """Add X'T to ``image`` and scale'T to ``pull``, where T = X W - scale offset'."""
    # All numbers in the precision of W, or its vector instructions would not be used.
    number = W.dtype.type
    t = np.empty(W.shape[1], W.dtype)
    for i in range(len(indptr) - 1):
        share = number(scale[i]) if len(scale) else number(0.0)
        for k in range(len(t)):
            t[k] = -share * offset[k]
        for p in range(indptr[i], indptr[i + 1]):
            # Unsigned, so that the compiler need not look for negative indices.
            source, value = W[np.uintp(indices[p])], number(data[p])
            for k in range(len(t)):
                t[k] += value * source[k]
        if len(scale):
            for k in range(len(t)):
                pull[k] += share * t[k]
        for p in range(indptr[i], indptr[i + 1]):
            target, value = image[np.uintp(indices[p])], number(data[p])
            for k in range(len(t)):
                target[k] += value * t[k]


@_compile
def outer_csr_inplace(
    total: Array, columns: Array, indptr: Array, indices: Array, data: Array
) -> None:
    """Add the sum over t of ``outer(row t, columns[t])`` to ``total``, row after row."""
    for t in range(len(columns)):
        column = columns[t]
        for k in range(indptr[t], indptr[t + 1]):
            target = total[np.uintp(indices[k])]
            value = data[k]
            for i in range(len(column)):
                target[i] += value * column[i]


@_compile
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
            code, stop, labels[rows] = _decimal(text, at, 2)
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
            code, stop, index = _index(text, at)
            if code == 0 and entries > progress[3] and index <= indices[entries - 1]:
                code = 6
            if code == 0:
                code, stop, data[entries] = _decimal(text, stop, 5)
                if code < 2:
                    indices[entries] = index
                    entries += 1
                    indptr[rows + 1] = entries
        if code:
            break
        at = stop
    progress[0], progress[1], progress[2] = code, at, rows


@_compile
def scatter_csr_inplace(
    total: Array, positions: Array, signs: Array, indptr: Array, indices: Array, data: Array
) -> None:
    """Add ``signs[t]`` times row t to the row ``positions[t]`` of ``total``, row after row."""
    for t in range(len(positions)):
        target = total[positions[t]]
        sign = signs[t]
        for k in range(indptr[t], indptr[t + 1]):
            target[np.uintp(indices[k])] += sign * data[k]


@_compile
def scatter_rows_inplace(total: Array, positions: Array, signs: Array, rows: Array) -> None:
    """Add ``signs[t] * rows[t]`` to the row ``positions[t]`` of ``total``, row after row."""
    for t in range(len(positions)):
        target, source = total[positions[t]], rows[t]
        sign = signs[t]
        for j in range(len(source)):
            target[j] += sign * source[j]


@_compile
def walsh_hadamard_inplace(rows: Array) -> None:
    """Replace rows, a power of two of them, by H rows, two stages in one pass."""
    n_rows, n_features = rows.shape
    half = 1
    while 4 * half <= n_rows:
        for start in range(0, n_rows, 4 * half):
            for i in range(start, start + half):
                a, b, c, d = rows[i], rows[i + half], rows[i + 2 * half], rows[i + 3 * half]
                for j in range(n_features):
                    p, q, r, s = a[j] + b[j], a[j] - b[j], c[j] + d[j], c[j] - d[j]
                    a[j], b[j], c[j], d[j] = p + r, q + s, p - r, q - s
        half *= 4
    if half < n_rows:
        for i in range(half):
            a, b = rows[i], rows[i + half]
            for j in range(n_features):
                a[j], b[j] = a[j] + b[j], a[j] - b[j]
