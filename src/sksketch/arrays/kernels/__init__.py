"""Hot loops: `generic` says what they do, `compiled` does the same fast."""

from __future__ import annotations

import functools
import sys
from types import ModuleType, SimpleNamespace


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
def online_kernels() -> SimpleNamespace:
    """Return the loops of the online learners by name; the compiler is loaded at the first call."""
    from sksketch.arrays.kernels import features, lazy_shrink, losses, oja, online
    from sksketch.arrays.kernels.jit import is_kept

    if sys.stderr.isatty() and not is_kept(lazy_shrink.learn_rows):
        sys.stderr.write("compiling the online learners, once: 10 to 20 seconds\n")
    modules = (losses, features, lazy_shrink, online, oja)
    return SimpleNamespace(**{name: part for m in modules for name, part in vars(m).items()})


@functools.cache
def dual_kernels() -> ModuleType:
    """Return the loops of dual coordinate ascent; the compiler is loaded at the first call."""
    from sksketch.arrays.kernels import dual

    return dual
