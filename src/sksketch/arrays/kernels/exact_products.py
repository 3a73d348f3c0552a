"""Products of columns without any rounding: slices of few bits, and sums of many."""

from __future__ import annotations

import functools

import numpy as np

from sksketch._typing import Array
from sksketch.arrays.kernels.jit import jit

jit_unfused = functools.partial(jit, fused=False)

# Bits of the first slice and of each later one; their products are summed over up to 2048 rows.
FIRST_BITS, SLICE_BITS = 21, 22
LIMB_BITS = 32
LIMB_MASK = (1 << LIMB_BITS) - 1


@jit_unfused
def slice_rows_inplace(
    out: Array, left: Array, work: Array, rows: Array, factors: Array, units: Array
) -> tuple[int, int]:
    """Write rows as integers of few bits, the columns of each slice side by side.

    ``rows * factors[0] * factors[1]`` are below the first of ``units`` times ``2^FIRST_BITS``.
    Returns how many rows were written, and how many need more slices: ``left`` has their numbers.
    """
    n_columns = rows.shape[1]
    n_done, n_left = 0, 0
    for i in range(rows.shape[0]):
        for j in range(n_columns):
            work[j] = (rows[i, j] * factors[0, j]) * factors[1, j]
        for k in range(units.shape[0]):
            unit, per_unit = units[k], 1.0 / units[k]
            for j in range(n_columns):
                digits = np.rint(work[j] * per_unit)
                out[n_done, k * n_columns + j] = digits
                work[j] -= digits * unit
        whole = True
        for j in range(n_columns):
            whole = whole and work[j] == 0.0
        if whole:
            n_done += 1
        else:
            left[n_left] = i
            n_left += 1
    return n_done, n_left


@jit_unfused
def add_products_inplace(
    limbs: Array, products: Array, left: Array, right: Array, n_slices: int, lowest: int
) -> None:
    """Add integer products of slices to sums of many bits.

    ``products`` has those of all columns of all slices on the left with those on the right, and
    ``left`` and ``right`` the power of two that the first slice of each column counts in. On the
    right there may be several sets of columns, which are added. A sum is
    ``limbs[k] * 2^(32 (lowest + k))`` over all k; there is one for each pair of columns.
    """
    n_columns, n_right = left.shape[0], right.shape[0]
    entry = 0
    for i in range(n_columns):
        for j in range(i, n_columns):
            for k in range(n_slices):
                for m in range(n_slices):
                    for b in range(j, n_right, n_columns):
                        value = products[k * n_columns + i, m * n_right + b]
                        if value == 0.0:
                            continue
                        place = left[i] + right[b] - SLICE_BITS * (k + m)
                        place -= LIMB_BITS * lowest
                        q, shift = place >> 5, place & 31
                        whole = np.int64(abs(value))
                        sign = 1 if value > 0.0 else -1
                        first = (whole & LIMB_MASK) << shift
                        second = (whole >> LIMB_BITS) << shift
                        limbs[q, entry] += sign * (first & LIMB_MASK)
                        middle = (first >> LIMB_BITS) + (second & LIMB_MASK)
                        limbs[q + 1, entry] += sign * middle
                        limbs[q + 2, entry] += sign * (second >> LIMB_BITS)
            entry += 1


@jit_unfused
def carry_inplace(limbs: Array) -> None:
    """Bring all limbs but the last into 32 bits; equal sums then have equal limbs."""
    for k in range(limbs.shape[0] - 1):
        for entry in range(limbs.shape[1]):
            over = limbs[k, entry] >> LIMB_BITS
            limbs[k, entry] -= over << LIMB_BITS
            limbs[k + 1, entry] += over
