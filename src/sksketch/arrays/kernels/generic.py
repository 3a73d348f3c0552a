"""What each kernel computes, in plain numpy: the reference of the compiled ones.

Rows in compressed form are the ``indptr``, ``indices`` and ``data`` of a CSR array without
duplicates. ``indptr`` may be a stretch of the whole, so that no rows need be copied.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from sksketch._typing import Array


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
    """Add X'T to ``image`` and scale'T to ``pull``, where T = X W - scale offset'.

    With ``offset`` = W'c this is what a product of (X - scale c')' (X - scale c') with W needs;
    only ``image - c pull'`` is left to do. An empty ``scale`` stands for zeros.
    """
    X = sp.csr_array((data, indices, indptr), shape=(len(indptr) - 1, len(W)))
    T = X @ W
    if len(scale):
        T -= np.outer(scale, offset)
        pull += scale @ T
    image += X.T @ T


def outer_csr_inplace(
    total: Array, columns: Array, indptr: Array, indices: Array, data: Array
) -> None:
    """Add the sum over t of ``outer(row t, columns[t])`` to ``total``, row after row.

    ``total`` has shape (n_features, size) and ``columns`` (n_rows, size).
    """
    for t in range(len(columns)):
        row = slice(indptr[t], indptr[t + 1])
        total[indices[row]] += data[row][:, None] * columns[t]


def scatter_csr_inplace(
    total: Array, positions: Array, signs: Array, indptr: Array, indices: Array, data: Array
) -> None:
    """Add ``signs[t]`` times row t to the row ``positions[t]`` of ``total``, row after row."""
    for t in range(len(positions)):
        row = slice(indptr[t], indptr[t + 1])
        total[positions[t], indices[row]] += signs[t] * data[row]


def scatter_rows_inplace(total: Array, positions: Array, signs: Array, rows: Array) -> None:
    """Add ``signs[t] * rows[t]`` to the row ``positions[t]`` of ``total``, row after row."""
    for t in range(len(positions)):
        total[positions[t]] += signs[t] * rows[t]


def walsh_hadamard_inplace(rows: Array) -> None:
    """Replace rows, a power of two of them, by H rows.

    H has the entries ``(-1) ** popcount(i & j)``; it is not normalised.
    """
    n_rows, n_features = rows.shape
    half = 1
    while half < n_rows:
        pairs = rows.reshape(-1, 2, half, n_features)
        sums = pairs[:, 0] + pairs[:, 1]
        pairs[:, 1] = pairs[:, 0] - pairs[:, 1]
        pairs[:, 0] = sums
        half *= 2
