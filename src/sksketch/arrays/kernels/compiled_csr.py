"""Loops over rows in compressed form, compiled by numba at their first call."""

from __future__ import annotations

import numba  # noqa: F401  (where it is missing, the generic kernels are used)
import numpy as np

from sksketch._typing import Array
from sksketch.arrays.kernels.jit import jit


@jit
def add_rows_inplace(total: Array, rows: Array, shares: Array) -> None:
    """Add the sum of rows, each times its share, to ``total``, row after row."""
    number = total.dtype.type
    for i in range(len(rows)):
        row, share = rows[i], number(shares[i])
        for k in range(len(total)):
            total[k] += share * row[k]


@jit
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


@jit
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


@jit
def product_csr_inplace(
    total: Array,
    indptr: Array,
    indices: Array,
    data: Array,
    other_indptr: Array,
    other_indices: Array,
    other_data: Array,
) -> None:
    """Add X Y to ``total`` for rows X and Y in compressed form."""
    for i in range(len(indptr) - 1):
        target = total[i]
        for p in range(indptr[i], indptr[i + 1]):
            row, value = np.uintp(indices[p]), data[p]
            for q in range(other_indptr[row], other_indptr[row + np.uintp(1)]):
                target[np.uintp(other_indices[q])] += value * other_data[q]


@jit
def scatter_csr_inplace(
    total: Array, positions: Array, signs: Array, indptr: Array, indices: Array, data: Array
) -> None:
    """Add ``signs[t]`` times row t to the row ``positions[t]`` of ``total``, row after row."""
    for t in range(len(positions)):
        target = total[positions[t]]
        sign = signs[t]
        for k in range(indptr[t], indptr[t + 1]):
            target[np.uintp(indices[k])] += sign * data[k]


@jit
def split_csr_inplace(splits: Array, indptr: Array, indices: Array, bounds: Array) -> None:
    """Write where the entries of each range of columns begin in each row."""
    for i in range(len(indptr) - 1):
        p, end = indptr[i], indptr[i + 1]
        for r in range(len(bounds)):
            while p < end and indices[p] < bounds[r]:
                p += 1
            splits[i, r] = p


@jit
def spread_csr_inplace(
    image: Array, T: Array, splits: Array, part: int, indices: Array, data: Array
) -> None:
    """Add X'T to ``image`` for the entries of X in one range of columns, row after row."""
    number = T.dtype.type
    for i in range(len(T)):
        t = T[i]
        for p in range(splits[i, part], splits[i, part + 1]):
            target, value = image[np.uintp(indices[p])], number(data[p])
            for k in range(len(t)):
                target[k] += value * t[k]


@jit
def times_csr_inplace(
    T: Array, W: Array, indptr: Array, indices: Array, data: Array, scale: Array, offset: Array
) -> None:
    """Write ``X W - scale offset'`` to ``T``; an empty ``scale`` stands for zeros."""
    number = W.dtype.type
    for i in range(len(indptr) - 1):
        t = T[i]
        share = number(scale[i]) if len(scale) else number(0.0)
        for k in range(len(t)):
            t[k] = -share * offset[k]
        for p in range(indptr[i], indptr[i + 1]):
            source, value = W[np.uintp(indices[p])], number(data[p])
            for k in range(len(t)):
                t[k] += value * source[k]
