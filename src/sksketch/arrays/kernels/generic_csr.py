"""The specification of loops over rows in compressed form, in plain numpy.

Such rows are the ``indptr``, ``indices`` and ``data`` of a CSR array without duplicates. ``indptr``
may be a segment of the whole, so that no rows need be copied.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from sksketch._typing import Array


def add_rows_inplace(total: Array, rows: Array, shares: Array) -> None:
    """Add the sum of rows, each times its share, to ``total``, row after row."""
    for share, row in zip(shares, rows, strict=True):
        total += total.dtype.type(share) * row


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
    shape = len(indptr) - 1, len(other_indptr) - 1
    X = sp.csr_array((data, indices, indptr), shape=shape)
    Y = sp.csr_array((other_data, other_indices, other_indptr), shape=(shape[1], total.shape[1]))
    total += (X @ Y).toarray()


def scatter_csr_inplace(
    total: Array, positions: Array, signs: Array, indptr: Array, indices: Array, data: Array
) -> None:
    """Add ``signs[t]`` times row t to the row ``positions[t]`` of ``total``, row after row."""
    for t in range(len(positions)):
        row = slice(indptr[t], indptr[t + 1])
        total[positions[t], indices[row]] += signs[t] * data[row]


def split_csr_inplace(splits: Array, indptr: Array, indices: Array, bounds: Array) -> None:
    """Write where the entries of each range of columns begin in each row.

    The indices of a row ascend. ``bounds`` has the columns at which ranges begin and, last, the
    number of columns: there the entries of the row end.
    """
    for i in range(len(indptr) - 1):
        row = indices[indptr[i] : indptr[i + 1]]
        splits[i] = indptr[i] + np.searchsorted(row, bounds)


def spread_csr_inplace(
    image: Array, T: Array, splits: Array, part: int, indices: Array, data: Array
) -> None:
    """Add X'T to ``image`` for the entries of X in one range of columns, row after row."""
    for i in range(len(T)):
        inside = slice(splits[i, part], splits[i, part + 1])
        image[indices[inside]] += np.outer(data[inside].astype(T.dtype), T[i])


def times_csr_inplace(
    T: Array, W: Array, indptr: Array, indices: Array, data: Array, scale: Array, offset: Array
) -> None:
    """Write ``X W - scale offset'`` to ``T``; an empty ``scale`` stands for zeros."""
    X = sp.csr_array((data, indices, indptr), shape=(len(indptr) - 1, len(W)))
    T[...] = X @ W
    if len(scale):
        T -= np.outer(scale, offset)
