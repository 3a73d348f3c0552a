"""The compiled rows of the online learners."""

from __future__ import annotations

import functools
import sys
from types import SimpleNamespace


@functools.cache
def online_kernels() -> SimpleNamespace:
    """Return the loops of the online learners by name; the compiler is loaded at the first call."""
    from sksketch.arrays.kernels.jit import is_kept
    from sksketch.online.kernels import baselines, feature_index, lazy_shrink, losses, oja

    if sys.stderr.isatty() and not is_kept(lazy_shrink.learn_rows):
        sys.stderr.write("compiling the online learners, once: 10 to 20 seconds\n")
    modules = (losses, feature_index, lazy_shrink, baselines, oja)
    return SimpleNamespace(**{name: part for m in modules for name, part in vars(m).items()})
