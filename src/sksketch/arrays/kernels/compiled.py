"""The kernels of `generic`, compiled by numba at their first call and kept on disk."""

from __future__ import annotations

from functools import partial

import numba  # noqa: F401  (where it is missing, the generic kernels are used)
import numpy as np

from sksketch._typing import Array
from sksketch.arrays.kernels.compiled_csr import add_rows_inplace as add_rows_inplace
from sksketch.arrays.kernels.compiled_csr import normal_csr_inplace as normal_csr_inplace
from sksketch.arrays.kernels.compiled_csr import outer_csr_inplace as outer_csr_inplace
from sksketch.arrays.kernels.compiled_csr import product_csr_inplace as product_csr_inplace
from sksketch.arrays.kernels.compiled_csr import scatter_csr_inplace as scatter_csr_inplace
from sksketch.arrays.kernels.compiled_csr import split_csr_inplace as split_csr_inplace
from sksketch.arrays.kernels.compiled_csr import spread_csr_inplace as spread_csr_inplace
from sksketch.arrays.kernels.compiled_csr import times_csr_inplace as times_csr_inplace
from sksketch.arrays.kernels.jit import jit
from sksketch.arrays.kernels.parsing import parse_svmlight_inplace as parse_svmlight_inplace
from sksketch.arrays.kernels.parsing import parse_vw_inplace as parse_vw_inplace

# Loops run over slices of rows: only then does the compiler see that they do not wrap around,
# and uses vector instructions.

# Columns whose center, origin and squares stay in the nearest cache while all rows pass by.
STRIP = 256


@jit
def center_rows_inplace(
    out: Array, squares: Array, rows: Array, weights: Array, origin: Array, center: Array
) -> None:
    """Write ``sqrt(weights) * ((rows - origin) - center)`` to ``out``; add its squares by column.

    Strip by strip of columns, and four rows at a time in each. What belongs to the columns is
    copied first: the compiler then knows that no row overlaps it, which doubles the speed.
    """
    n_rows, n_features = rows.shape
    whole = n_rows // 4 * 4
    for first in range(0, n_features, STRIP):
        last = min(first + STRIP, n_features)
        sums, near, middle = (
            squares[first:last].copy(),
            origin[first:last].copy(),
            center[first:last].copy(),
        )
        for i in range(0, whole, 4):
            a, b = rows[i, first:last], rows[i + 1, first:last]
            c, d = rows[i + 2, first:last], rows[i + 3, first:last]
            to_a, to_b = out[i, first:last], out[i + 1, first:last]
            to_c, to_d = out[i + 2, first:last], out[i + 3, first:last]
            wa, wb = np.sqrt(weights[i]), np.sqrt(weights[i + 1])
            wc, wd = np.sqrt(weights[i + 2]), np.sqrt(weights[i + 3])
            for j in range(last - first):
                p, q = near[j], middle[j]
                va, vb = ((a[j] - p) - q) * wa, ((b[j] - p) - q) * wb
                vc, vd = ((c[j] - p) - q) * wc, ((d[j] - p) - q) * wd
                to_a[j], to_b[j], to_c[j], to_d[j] = va, vb, vc, vd
                sums[j] += (va * va + vb * vb) + (vc * vc + vd * vd)
        for i in range(whole, n_rows):
            row, target, root = rows[i, first:last], out[i, first:last], np.sqrt(weights[i])
            for j in range(last - first):
                value = ((row[j] - near[j]) - middle[j]) * root
                target[j] = value
                sums[j] += value * value
        squares[first:last] = sums


@jit
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
    """Write a tile's rows around its place in the stream to ``out``, and the mean with it."""
    current, plain, ages = weights
    n_features = rows.shape[1]
    sums, center, squares = np.zeros(n_features), np.empty(n_features), bounds[3]
    column_sums_inplace(sums, rows, current, origin)
    place_center_inplace(center, sums, held, totals)
    squares[:] = 0.0
    center_rows_inplace(out, squares, rows, plain, origin, center)
    aged = squares
    if len(ages):
        aged, moved = np.zeros(n_features), out.astype(np.float64)
        column_sums_inplace(aged, moved * moved, ages, np.zeros(n_features))
    grown_mean_inplace(
        grown,
        (bounds[0], bounds[1], bounds[2]),
        held,
        (sums, squares, aged, center, origin),
        totals,
        roundings,
    )


@jit
def column_sums_inplace(sums: Array, rows: Array, weights: Array, origin: Array) -> None:
    """Add the sum of ``weights * (rows - origin)`` to ``sums``, in float64, four rows at a time."""
    n_rows, n_features = rows.shape
    whole = n_rows // 4 * 4
    for i in range(0, whole, 4):
        a, b, c, d = rows[i], rows[i + 1], rows[i + 2], rows[i + 3]
        wa, wb, wc, wd = weights[i], weights[i + 1], weights[i + 2], weights[i + 3]
        for j in range(n_features):
            p = origin[j]
            first = wa * (a[j] - p) + wb * (b[j] - p)
            sums[j] += first + (wc * (c[j] - p) + wd * (d[j] - p))
    for i in range(whole, n_rows):
        row, weight = rows[i], weights[i]
        for j in range(n_features):
            sums[j] += weight * (row[j] - origin[j])


@jit
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
    root, root_plain, root_gained = (
        np.sqrt(weight / (weight + gained)),
        np.sqrt(plain),
        np.sqrt(gained),
    )
    inverse = 1.0 / weight if weight > 0.0 else 0.0
    of_own = (1.0 - root) / gained
    total, carry, known, errors, sizes, wrong = held
    sums, squares, aged, center, origin = tile
    to_total, to_carry, to_known, to_errors, to_sizes, to_wrong = grown
    entries, distances, offs = bounds
    for j in range(len(total)):
        own, mean = sums[j] / gained, (total[j] + carry[j]) * inverse
        length = np.sqrt(squares[j])
        spread = length + root_plain * abs(center[j])
        far = 2.0 * entry_error * (spread + root_plain * abs(origin[j]))
        entry = unit * spread + of_entries * length + underflow + far
        off_sum = root_gained * (of_sums * spread + far)
        apart = root * abs(own - mean)
        off = of_own * off_sum + of_center * (abs(own) + abs(center[j])) + of_weights * apart
        off += root * (errors[j] * inverse + of_mean * abs(mean))
        new = total[j] + sums[j]
        shifted = new - total[j]
        to_total[j] = new
        # What the sum could not hold (Knuth's two-sum).
        to_carry[j] = carry[j] + ((total[j] - (new - shifted)) + (sums[j] - shifted))
        to_known[j] = known[j] + aged[j]
        to_errors[j] = errors[j] + off_sum
        entries[j], distances[j], offs[j] = entry * entry, apart * apart, off * off
        to_sizes[j] = sizes[j] + (squares[j] + gained * distances[j])
        to_wrong[j] = wrong[j] + (entries[j] + 1.01 * gained * offs[j])


@jit
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
    """Do `grown_mean_inplace` for several tiles of rows, one after the other, in some columns."""
    a, b = columns
    sums, centers = tiles
    h0, h1, h2 = held[0][a:b], held[1][a:b], held[2][a:b]
    h3, h4, h5 = held[3][a:b], held[4][a:b], held[5][a:b]
    s0, s1, s2 = spare[0][a:b], spare[1][a:b], spare[2][a:b]
    s3, s4, s5 = spare[3][a:b], spare[4][a:b], spare[5][a:b]
    mine, other = (h0, h1, h2, h3, h4, h5), (s0, s1, s2, s3, s4, s5)
    for t in range(len(sums)):
        of, r, four = totals[t], roundings[t], bounds[t]
        three, squares = (four[0, a:b], four[1, a:b], four[2, a:b]), four[3, a:b]
        tile = (sums[t, a:b], squares, squares, centers[t, a:b], origin[a:b])
        numbers = (of[0], of[1], of[2], of[3])
        rounded = (r[0], r[1], r[2], r[3], r[4], r[5], r[6])
        # From one to the other and back: a loop over the same arrays would not be vectorized.
        grown_mean_inplace(other, three, mine, tile, numbers, rounded)
        mine, other = other, mine
    if len(sums) % 2:
        for k in range(6):
            held[k][a:b] = spare[k][a:b]


@partial(jit, fused=False)
def place_center_inplace(
    center: Array, sums: Array, held: tuple[Array, ...], totals: tuple[float, ...]
) -> None:
    """Write the point around which a tile's rows are sketched to ``center``, from the origin.

    Not fused, so that rows on a device, centered by array operations, move to the same place.
    """
    weight, gained = totals[0], totals[1]
    root = np.sqrt(weight / (weight + gained))
    total, carry = held[0], held[1]
    for j in range(len(center)):
        own = sums[j] / gained
        mean = (total[j] + carry[j]) / weight if weight > 0.0 else 0.0 * total[j]
        center[j] = own + root * (mean - own)


@partial(jit, fused=False)
def place_centers_inplace(
    centers: Array, sums: Array, held: tuple[Array, ...], totals: Array, columns: tuple[int, int]
) -> None:
    """Do `place_center_inplace` for several tiles, each with the mean after the one before."""
    a, b = columns
    total, carry = held[0][a:b].copy(), held[1][a:b].copy()
    for t in range(len(sums)):
        numbers = totals[t, 0], totals[t, 1], totals[t, 2], totals[t, 3]
        own = sums[t, a:b]
        place_center_inplace(centers[t, a:b], own, (total, carry), numbers)
        for j in range(b - a):
            new = total[j] + own[j]
            shifted = new - total[j]
            carry[j] += (total[j] - (new - shifted)) + (own[j] - shifted)
            total[j] = new


@jit
def scatter_rows_inplace(total: Array, positions: Array, signs: Array, rows: Array) -> None:
    """Add ``signs[t] * rows[t]`` to the row ``positions[t]`` of ``total``, row after row."""
    for t in range(len(positions)):
        target, source = total[positions[t]], rows[t]
        sign = signs[t]
        for j in range(len(source)):
            target[j] += sign * source[j]


@jit
def uniforms_inplace(numbers: Array, key: int, start: int) -> None:
    """Fill a flat float64 array with uniform numbers between 0 and 1."""
    for i in range(len(numbers)):
        z = np.uint64(key) + np.uint64(start + i) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
        numbers[i] = (np.float64(z >> np.uint64(11)) + 0.5) * 2.0**-53


@jit
def add_squares_inplace(total: Array, numbers: Array, segment: int) -> None:
    """Add the squares of flat numbers to ``total[0]``, in float64, segment by segment."""
    double = np.float64
    for first in range(0, len(numbers), segment):
        part = numbers[first : first + segment]
        whole = len(part) // 8 * 8
        a, b, c, d, e, f, g, h = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for j in range(0, whole, 8):
            p, q, r, s = (
                double(part[j]),
                double(part[j + 1]),
                double(part[j + 2]),
                double(part[j + 3]),
            )
            t, u = double(part[j + 4]), double(part[j + 5])
            v, w = double(part[j + 6]), double(part[j + 7])
            a, b, c, d = a + p * p, b + q * q, c + r * r, d + s * s
            e, f, g, h = e + t * t, f + u * u, g + v * v, h + w * w
        own = ((a + b) + (c + d)) + ((e + f) + (g + h))
        for j in range(whole, len(part)):
            own += double(part[j]) * double(part[j])
        total[0] += own


@jit
def row_norms_inplace(norms: Array, rows: Array) -> None:
    """Write the squared norm of every row to ``norms``, summed in float64."""
    n_rows, n_features = rows.shape
    # The name of numpy: the other one keeps single precision.
    double = np.float64
    whole = n_features // 8 * 8
    for i in range(n_rows):
        row = rows[i]
        a, b, c, d, e, f, g, h = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for j in range(0, whole, 8):
            p, q, r, s = double(row[j]), double(row[j + 1]), double(row[j + 2]), double(row[j + 3])
            t, u = double(row[j + 4]), double(row[j + 5])
            v, w = double(row[j + 6]), double(row[j + 7])
            a, b, c, d = a + p * p, b + q * q, c + r * r, d + s * s
            e, f, g, h = e + t * t, f + u * u, g + v * v, h + w * w
        total = ((a + b) + (c + d)) + ((e + f) + (g + h))
        for j in range(whole, n_features):
            total += double(row[j]) * double(row[j])
        norms[i] = total


@jit
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
