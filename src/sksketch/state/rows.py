"""Rows, dense or sparse, as named arrays of a state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from sksketch._typing import Array
from sksketch.arrays.namespace import to_numpy
from sksketch.arrays.rows import without_traps

_PARTS = ("data", "indices", "indptr")


def pack_rows(X: object) -> dict[str, Array]:
    """Return rows as named numpy arrays.

    >>> sorted(pack_rows(sp.eye_array(2, format="csr")))
    ['data', 'indices', 'indptr', 'shape']
    """
    if sp.issparse(X):
        rows = sp.csr_array(X)
        return {part: getattr(rows, part) for part in _PARTS} | {"shape": np.array(rows.shape)}
    return {"dense": to_numpy(X)}


def unpack_rows(arrays: Mapping[str, Array]) -> Any:
    """Return the rows that `pack_rows` was given; a file may say anything, so look at them.

    >>> unpack_rows(pack_rows(np.ones((1, 2))))
    array([[1., 1.]])
    """
    if "dense" in arrays:
        return arrays["dense"]
    parts = tuple(arrays[part] for part in _PARTS)
    return without_traps(sp.csr_array(parts, shape=tuple(arrays["shape"].tolist())))
