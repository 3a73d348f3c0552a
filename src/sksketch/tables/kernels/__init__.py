"""The compiled loops over the cells of a table."""

from __future__ import annotations

import functools
from types import ModuleType


@functools.cache
def table_kernels() -> ModuleType:
    """Return the loops over cells; the compiler is loaded at the first call."""
    from sksketch.tables.kernels import cells

    return cells
