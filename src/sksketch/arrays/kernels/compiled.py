"""The kernels of `generic`, compiled by numba at their first call and kept on disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from sksketch._typing import Array


def _compile(function: Callable[..., None]) -> Any:
    """Compile at the first call, and keep the result for later processes where possible."""
    try:
        return numba.njit(cache=True, nogil=True, fastmath={"contract"})(function)
    except RuntimeError:
        # Neither the package nor the home directory can be written to.
        return numba.njit(nogil=True, fastmath={"contract"})(function)


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
    t = np.empty(W.shape[1])
    for i in range(len(indptr) - 1):
        for k in range(len(t)):
            t[k] = -scale[i] * offset[k] if len(scale) else 0.0
        for p in range(indptr[i], indptr[i + 1]):
            # Unsigned, so that the compiler need not look for negative indices.
            source, value = W[np.uintp(indices[p])], data[p]
            for k in range(len(t)):
                t[k] += value * source[k]
        if len(scale):
            for k in range(len(t)):
                pull[k] += scale[i] * t[k]
        for p in range(indptr[i], indptr[i + 1]):
            target, value = image[np.uintp(indices[p])], data[p]
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
