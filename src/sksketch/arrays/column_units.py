"""Rows in other units: every column divided by a number of its own."""

from __future__ import annotations

from typing import Any

from sksketch._typing import Array, Matrix
from sksketch.arrays.device_sparse import on_host
from sksketch.arrays.namespace import cast, like, precision
from sksketch.arrays.sparse import csr, is_sparse


def in_units(rows: Matrix, units: Array) -> Any:
    """Return rows, wherever they are, with columns divided by ``units``, in their precision.

    >>> import numpy as np
    >>> in_units(np.array([[2.0, 3.0]], dtype=np.float32), np.array([2.0, 1.0]))
    array([[1., 3.]], dtype=float32)
    """
    dtype = precision(rows)
    if is_sparse(rows):
        rows = on_host(rows)
        data = (rows.data / units[rows.indices]).astype(dtype, copy=False)
        return csr(data, rows.indices, rows.indptr, rows.shape[1])
    return cast(rows / like(units, rows), dtype)
