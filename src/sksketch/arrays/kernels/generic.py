"""The specification of every kernel, in plain numpy."""

from __future__ import annotations

import math
import re

import numpy as np
from array_api_compat import array_namespace, device

from sksketch._typing import Array
from sksketch.arrays.kernels.generic_csr import add_rows_inplace as add_rows_inplace
from sksketch.arrays.kernels.generic_csr import normal_csr_inplace as normal_csr_inplace
from sksketch.arrays.kernels.generic_csr import outer_csr_inplace as outer_csr_inplace
from sksketch.arrays.kernels.generic_csr import product_csr_inplace as product_csr_inplace
from sksketch.arrays.kernels.generic_csr import scatter_csr_inplace as scatter_csr_inplace
from sksketch.arrays.kernels.generic_csr import split_csr_inplace as split_csr_inplace
from sksketch.arrays.kernels.generic_csr import spread_csr_inplace as spread_csr_inplace
from sksketch.arrays.kernels.generic_csr import times_csr_inplace as times_csr_inplace


def center_rows_inplace(
    out: Array, squares: Array, rows: Array, weights: Array, origin: Array, center: Array
) -> None:
    """Write ``sqrt(weights) * ((rows - origin) - center)`` to ``out``; add its squares by column.

    All but ``rows`` and ``out`` are float64, and so are the differences. The first of them is a
    rounding relative to itself, however far from zero rows and origin are.
    """
    centered = ((rows - origin) - center) * np.sqrt(weights)[:, None]
    out[...] = centered
    squares += (centered**2).sum(axis=0)


def center_tile_inplace(
    out: Array,
    grown: tuple[Array, ...],
    bounds: Array,
    held: tuple[Array, ...],
    rows: Array,
    origin: Array,
    weights: tuple[Array, ...],
    totals: tuple[float, ...],
    roundings: tuple[float, ...],
) -> None:
    """Write a tile's rows around its place in the stream to ``out``, and the mean with it.

    That is `column_sums_inplace`, `place_center_inplace`, `center_rows_inplace` and
    `grown_mean_inplace` in one call, which counts where tiles are small. ``weights`` has one
    weight a row with its age, one without, and the ages, which may be empty. ``bounds`` has a
    fourth row: the squares of the rows around the center, by column.
    """
    current, plain, ages = weights
    sums, center = np.zeros(rows.shape[1]), np.empty(rows.shape[1])
    column_sums_inplace(sums, rows, current, origin)
    place_center_inplace(center, sums, held, totals)
    squares = bounds[3]
    squares[...] = 0.0
    center_rows_inplace(out, squares, rows, plain, origin, center)
    aged = ages @ np.square(out, dtype=np.float64) if len(ages) else squares
    tile = sums, squares, aged, center, origin
    grown_mean_inplace(grown, tuple(bounds[:3]), held, tile, totals, roundings)


def add_squares_inplace(total: Array, numbers: Array, segment: int) -> None:
    """Add the squares of flat numbers to ``total[0]``, in float64, segment by segment."""
    squares = np.asarray(numbers, dtype=np.float64) ** 2
    for i in range(0, len(squares), segment):
        total[0] += squares[i : i + segment].sum()


def column_sums_inplace(sums: Array, rows: Array, weights: Array, origin: Array) -> None:
    """Add the sum of ``weights * (rows - origin)`` to ``sums``, in float64."""
    sums += weights @ (rows - origin)


def grown_mean_inplace(
    grown: tuple[Array, ...],
    bounds: tuple[Array, ...],
    held: tuple[Array, ...],
    tile: tuple[Array, ...],
    weights: tuple[float, ...],
    roundings: tuple[float, ...],
) -> None:
    """Write what `running_mean.RunningMean` holds after a tile of rows to ``grown``, from ``held``.

    ``tile`` has sums around the origin, squares around the center, the same aged, the
    center, and the origin. ``weights`` are those of earlier rows, of the tile with and without
    ages, and the relative error of entries; ``roundings`` are those of `tile_roundings`.

    ``bounds`` become the squares of: the errors of the moved rows, by column; how far
    the tile's mean is from the center; and what the center is off by.
    """
    weight, gained, plain, entry_error = weights
    of_sums, of_entries, unit, of_mean, of_center, of_weights, underflow = roundings
    total, carry, _, errors, *_ = held
    sums, squares, aged, center, origin = tile
    root = np.sqrt(weight / (weight + gained))
    own = sums / gained
    mean = (total + carry) / weight if weight > 0.0 else 0.0 * total
    lengths = np.sqrt(squares)
    spread = lengths + np.sqrt(plain) * np.abs(center)
    far = 2.0 * entry_error * (spread + np.sqrt(plain) * np.abs(origin))
    entries = unit * spread + of_entries * lengths + underflow + far
    off_sums = np.sqrt(gained) * (of_sums * spread + far)
    apart = root * np.abs(own - mean)
    off = (1.0 - root) / gained * off_sums + of_center * (np.abs(own) + np.abs(center))
    off += of_weights * apart
    if weight > 0.0:
        off += root * (errors / weight + of_mean * np.abs(mean))
    new = total + sums
    # What the sum could not hold (Knuth's two-sum).
    shifted = new - total
    rest = (total - (new - shifted)) + (sums - shifted)
    squared = entries**2, apart**2, off**2
    sizes, wrong = squares + gained * squared[1], squared[0] + 1.01 * gained * squared[2]
    added = sums, rest, aged, off_sums, sizes, wrong
    for target, value in zip(grown, (h + a for h, a in zip(held, added, strict=True)), strict=True):
        target[...] = value
    for target, value in zip(bounds, squared, strict=True):
        target[...] = value


def grown_means_inplace(
    held: tuple[Array, ...],
    spare: tuple[Array, ...],
    bounds: Array,
    tiles: tuple[Array, ...],
    origin: Array,
    totals: Array,
    roundings: Array,
    columns: tuple[int, int],
) -> None:
    """Do `grown_mean_inplace` for several tiles of rows, one after the other, in some columns.

    ``held`` is changed, and ``spare`` is room for as much. ``tiles`` has the sums and the center
    of each tile, ``bounds`` its three rows and, as a fourth, its squares; ``totals`` and
    ``roundings`` have a row for each.
    """
    part = slice(*columns)
    sums, centers = tiles
    for t in range(len(sums)):
        squares = bounds[t, 3, part]
        tile = sums[t, part], squares, squares, centers[t, part], origin[part]
        before = tuple(row[part].copy() for row in held)
        after = tuple(row[part] for row in held)
        numbers = tuple(totals[t]), tuple(roundings[t])
        grown_mean_inplace(after, tuple(bounds[t, :3, part]), before, tile, *numbers)


def parse_svmlight_inplace(
    progress: Array, labels: Array, indptr: Array, indices: Array, data: Array, text: Array
) -> None:
    """Read lines ``label index:value index:value ... # comment`` into labels and CSR arrays.

    ``text`` holds whole lines as bytes. ``progress`` has a code, the position in the text, and
    the rows, entries and lines that are complete; a second call continues from there. Code 0: all
    was read. Codes 2 to 6 say what is wrong with what begins at the position: 2 the label, 3 no
    colon, 4 the index, 5 the value, 6 an index not above the one before. (Code 1, which only the
    compiled kernel gives: the number there needs more care; put it into its place and call
    again.) Entries named ``qid`` are skipped.
    """
    raw = text.tobytes()
    while progress[1] < len(raw):
        stop = raw.find(b"\n", progress[1]) + 1 or len(raw)
        line = raw[progress[1] : stop].partition(b"#")[0]
        start, entries, last = int(progress[1]), int(progress[3]), -1
        for order, word in enumerate(re.finditer(rb"[^ \t\r\n\f\v]+", line)):
            name, colon, number = word[0].partition(b":")
            if order == 0:
                code, labels[progress[2]] = _number(word[0], 2)
            elif name == b"qid" and colon:
                continue
            elif not colon:
                code = 3
            elif not re.fullmatch(rb"[0-9]+", name) or int(name) >= 2**31:
                code = 4
            elif int(name) <= last:
                code = 6
            else:
                last = indices[entries] = int(name)
                code, data[entries] = _number(number, 5)
                entries += 1
            if code:
                progress[0], progress[1] = code, start + word.start()
                return
        progress[4] += 1
        progress[1] = stop
        if line.strip():
            progress[2] += 1
            indptr[progress[2]] = progress[3] = entries


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
    """Read lines ``label importance initial 'tag |space:scale name:value ...`` into CSR arrays.

    ``progress`` is that of the other parser, and the first line, from 1, whose initial prediction
    is not 0. The column of an entry is its name hashed with its space, in the bits of ``mask``;
    entries stay in the order of the line, and equal columns apart. A line without label has the
    label NaN, one without importance the weight 1. Codes: 3 a line without bar, 4 too many words
    before it, 5 the label, 6 an importance that is no weight, 7 an initial prediction that is no
    number, 8 a value or scale. (A negative code, which only the compiled kernel gives: that number
    needs more care; put its position and value into ``odd_at`` and ``odd_values`` and call
    again from the start of the line.)
    """
    raw = text.tobytes()
    while progress[1] < len(raw):
        start = int(progress[1])
        stop = raw.find(b"\n", start) + 1 or len(raw)
        code, place, head, entries = _vw_line(raw[start:stop].replace(b"\n", b" "))
        if code:
            progress[0], progress[1] = code, start + place
            return
        if entries is not None:
            first = progress[3]
            for i, (column, value) in enumerate(entries):
                indices[first + i], data[first + i] = column & mask, value
            labels[progress[2]], weights[progress[2]], initial = head
            progress[2] += 1
            indptr[progress[2]] = progress[3] = first + len(entries)
            if initial != 0.0 and not progress[5]:
                progress[5] = progress[4] + 1
        progress[4] += 1
        progress[1] = stop
    progress[0] = 0


def _vw_line(
    line: bytes,
) -> tuple[int, int, tuple[float, ...], list[tuple[int, float]] | None]:
    """Return code, position, the numbers before the bar and the entries; None if it is blank."""
    head, bar, _ = line.partition(b"|")
    words = list(re.finditer(rb"[^\x00- ]+", head))
    if not bar:
        return (3, words[0].start(), (), None) if words else (0, 0, (), None)
    numbers, order = [math.nan, 1.0, 0.0], 0
    for word in words:
        tag = word[0].startswith(b"'") or word.end() == len(head)
        if order > 2 + tag:
            return 4, word.start(), (), None
        if tag:
            order = 4
            continue
        code, number = _number(word[0], 5 + order)
        if code or (order == 1 and not 0.0 <= number < math.inf):
            return 5 + order, word.start(), (), None
        numbers[order], order = number, order + 1
    entries: list[tuple[int, float]] = []
    seed, scale, nameless = 0, 1.0, 0
    for word in re.finditer(rb"(\|?)([^\x00- |:]*)(:?)([^\x00- |]*)", line[len(head) :]):
        opens, name, colon, value = word.groups()
        code, number = _number(value, 8) if colon else (0, 1.0)
        if code:
            return code, len(head) + word.start(4), (), None
        if opens:
            seed, scale, nameless = _hash(name, 0), number, 0
        elif word[0]:
            entries.append((_hash(name, seed) + (0 if name else nameless), number * scale))
            nameless += not name
    return 0, 0, tuple(numbers), entries


def _hash(name: bytes, seed: int) -> int:
    """Return ``seed`` plus the whole number that a name is, or else its MurmurHash3.

    Without a name there is only the seed. Both are as in Vowpal Wabbit.
    """
    if not name or re.fullmatch(rb"[0-9]+", name):
        return (seed + int(name or b"0")) % 2**32
    whole = len(name) // 4 * 4
    words = [int.from_bytes(name[i : i + 4], "little") for i in range(0, whole, 4)]
    found = seed
    for word in words:
        found = (_rotated(found ^ _scrambled(word), 13) * 5 + 0xE6546B64) % 2**32
    found ^= _scrambled(int.from_bytes(name[whole:], "little")) ^ len(name)
    found = (found ^ found >> 16) * 0x85EBCA6B % 2**32
    found = (found ^ found >> 13) * 0xC2B2AE35 % 2**32
    return found ^ found >> 16


def _scrambled(word: int) -> int:
    return _rotated(word * 0xCC9E2D51 % 2**32, 15) * 0x1B873593 % 2**32


def _rotated(number: int, bits: int) -> int:
    return (number << bits | number >> (32 - bits)) % 2**32


def _number(word: bytes, complaint: int) -> tuple[int, float]:
    """Return 0 and the number that a word is, or the complaint."""
    try:
        return (complaint, 0.0) if b"_" in word else (0, float(word))
    except ValueError:
        return complaint, 0.0


def place_center_inplace(
    center: Array, sums: Array, held: tuple[Array, ...], totals: tuple[float, ...]
) -> None:
    """Write the point around which a tile's rows are sketched to ``center``, from the origin.

    It lies between the mean of the rows before (``held``, see `running_mean.RunningMean`) and the
    tile's own, ``sums`` over its weight; ``totals`` begin with the weights of both.
    """
    weight, gained = totals[:2]
    own = sums / gained
    mean = (held[0] + held[1]) / weight if weight > 0.0 else 0.0 * sums
    center[...] = own + math.sqrt(weight / (weight + gained)) * (mean - own)


def place_centers_inplace(
    centers: Array, sums: Array, held: tuple[Array, ...], totals: Array, columns: tuple[int, int]
) -> None:
    """Do `place_center_inplace` for several tiles, each with the mean after the one before."""
    part = slice(*columns)
    total, carry = held[0][part].copy(), held[1][part].copy()
    for t in range(len(sums)):
        place_center_inplace(centers[t, part], sums[t, part], (total, carry), tuple(totals[t]))
        new = total + sums[t, part]
        shifted = new - total
        carry += (total - (new - shifted)) + (sums[t, part] - shifted)
        total = new


def scatter_rows_inplace(total: Array, positions: Array, signs: Array, rows: Array) -> None:
    """Add ``signs[t] * rows[t]`` to the row ``positions[t]`` of ``total``, row after row."""
    for t in range(len(positions)):
        total[positions[t]] += signs[t] * rows[t]


def row_norms_inplace(norms: Array, rows: Array) -> None:
    """Write the squared norm of every row to ``norms``, summed in float64."""
    norms[...] = np.square(rows, dtype=np.float64).sum(axis=1)


def uniforms_inplace(numbers: Array, key: int, start: int) -> None:
    """Fill a flat float64 array with uniform numbers between 0 and 1.

    The array may be of any library. They are those from ``start`` on. Number i is the 53
    leading bits of a mix of key + i times the golden ratio (Steele, Lea and Flood 2014,
    SplitMix64), and half a unit; it is never 0 or 1. 64-bit integers wrap around.
    """
    xp = array_namespace(numbers)
    z = xp.arange(start, start + len(numbers), dtype=xp.int64, device=device(numbers))
    z = z * -0x61C8864680B583EB + key
    z = (z ^ ((z >> 30) & 0x3FFFFFFFF)) * -0x40A7B892E31B1A47
    z = (z ^ ((z >> 27) & 0x1FFFFFFFFF)) * -0x6B2FB644ECCEEE15
    z = z ^ ((z >> 31) & 0x1FFFFFFFF)
    numbers[:] = (xp.astype((z >> 11) & 0x1FFFFFFFFFFFFF, xp.float64) + 0.5) * 2.0**-53


def walsh_hadamard_inplace(rows: Array) -> None:
    """Replace rows, a power of two of them, by H rows.

    H has the entries ``(-1) ** popcount(i & j)``; it is not normalized.
    """
    n_rows, n_features = rows.shape
    half = 1
    while half < n_rows:
        pairs = rows.reshape(-1, 2, half, n_features)
        sums = pairs[:, 0] + pairs[:, 1]
        pairs[:, 1] = pairs[:, 0] - pairs[:, 1]
        pairs[:, 0] = sums
        half *= 2
