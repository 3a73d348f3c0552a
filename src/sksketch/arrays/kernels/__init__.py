"""Hot loops: `generic` says what they do, `compiled` does the same fast."""

from __future__ import annotations

import functools
from types import ModuleType


@functools.cache
def kernels() -> ModuleType:
    """Return the module of kernels to use; the compiler is loaded at the first call.

    >>> import numpy as np
    >>> rows = np.array([[1.0, 5.0], [1.0, 2.0]])
    >>> kernels().walsh_hadamard_inplace(rows)
    >>> rows
    array([[2., 7.],
           [0., 3.]])
    """
    try:
        from sksketch.arrays.kernels import compiled
    except ImportError:  # a Python that numba does not support yet
        from sksketch.arrays.kernels import generic

        return generic
    return compiled


@functools.cache
def hole_kernels() -> ModuleType:
    """Return the loops that fill holes; the compiler is loaded at the first call."""
    from sksketch.arrays.kernels import holes

    return holes
