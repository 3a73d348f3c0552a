"""The compiled rows of dual coordinate ascent."""

from __future__ import annotations

import functools
from types import ModuleType


@functools.cache
def dual_kernels() -> ModuleType:
    """Return the loops of dual coordinate ascent; the compiler is loaded at the first call."""
    from sksketch.reduction.kernels import dual

    return dual
