"""Numbers for the features that were met, in the order in which they came."""

from __future__ import annotations

from sksketch._typing import Array
from sksketch.arrays.kernels.jit import jit


@jit
def number_sparse(
    indptr: Array,
    indices: Array,
    data: Array,
    index: Array,
    met: Array,
    n_known: int,
    constant: bool,
    new_indptr: Array,
    ids: Array,
    values: Array,
) -> int:
    """Write CSR rows with numbered features, and return how many features are known now.

    ``index`` has the number of each column plus one, or 0 if the column has not been met; ``met``
    has the columns in the order of their numbers, without the constant. Zeros
    are left out. ``constant`` adds feature 0 with the value one to each row.
    """
    at = 0
    for i in range(len(indptr) - 1):
        new_indptr[i] = at
        if constant:
            ids[at], values[at] = 0, 1.0
            at += 1
        for p in range(indptr[i], indptr[i + 1]):
            if data[p] == 0.0:
                continue
            column = indices[p]
            if index[column] == 0:
                met[n_known - constant] = column
                n_known += 1
                index[column] = n_known
            ids[at], values[at] = index[column] - 1, data[p]
            at += 1
    new_indptr[len(indptr) - 1] = at
    return n_known


@jit
def number_dense(
    X: Array,
    index: Array,
    met: Array,
    n_known: int,
    constant: bool,
    new_indptr: Array,
    ids: Array,
    values: Array,
) -> int:
    """Do the same for dense rows."""
    at = 0
    for i in range(len(X)):
        new_indptr[i] = at
        if constant:
            ids[at], values[at] = 0, 1.0
            at += 1
        for column in range(X.shape[1]):
            value = X[i, column]
            if value == 0.0:
                continue
            if index[column] == 0:
                met[n_known - constant] = column
                n_known += 1
                index[column] = n_known
            ids[at], values[at] = index[column] - 1, value
            at += 1
    new_indptr[len(X)] = at
    return n_known
