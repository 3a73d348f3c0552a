"""Holes in rows of numbers, filled with the mean of the numbers above."""

from __future__ import annotations

from sksketch._typing import Array
from sksketch.arrays.kernels.jit import jit


@jit
def fill_means_inplace(X: Array, sums: Array, counts: Array, firsts: Array) -> None:
    """Fill NaN with the mean of all numbers above it, or with the first number if there is none.

    ``sums`` and ``counts`` are those of the rows before, and grow row after row.
    """
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            x = X[i, j]
            if x == x:
                sums[j] += x
                counts[j] += 1
            else:
                X[i, j] = sums[j] / counts[j] if counts[j] > 0 else firsts[j]


@jit
def add_rows_inplace(X: Array, sums: Array) -> None:
    """Add rows without holes to the sums, row after row."""
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            sums[j] += X[i, j]
