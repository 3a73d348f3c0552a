"""Copies inside of compiled loops.

An assignment of one array to another compiles the text of its error as well, which takes seconds
of the first call.
"""

from __future__ import annotations

from sksketch._typing import Array
from sksketch.arrays.kernels.jit import jit


@jit
def copy_inplace(to: Array, source: Array) -> None:
    """Copy all numbers of a flat array to the beginning of another one.

    >>> import numpy as np
    >>> to = np.zeros(3)
    >>> copy_inplace(to, np.ones(2))
    >>> to
    array([1., 1., 0.])
    """
    for i in range(len(source)):
        to[i] = source[i]


@jit
def copy_rows_inplace(to: Array, source: Array, n_rows: int) -> None:
    """Copy the first rows of a matrix to those of another one of the same width.

    >>> import numpy as np
    >>> to = np.zeros((2, 2))
    >>> copy_rows_inplace(to, np.ones((2, 2)), 1)
    >>> to
    array([[1., 1.],
           [0., 0.]])
    """
    for i in range(n_rows):
        for j in range(source.shape[1]):
            to[i, j] = source[i, j]
