"""The compiled rows of the learners whose curvature is that of the loss."""

from __future__ import annotations

import functools
import sys
from types import SimpleNamespace


@functools.cache
def curvature_kernels() -> SimpleNamespace:
    """Return the loops by name; the compiler is loaded at the first call."""
    from sksketch.arrays.kernels.jit import is_kept
    from sksketch.online.curvature.kernels import (
        centers,
        exact_rows,
        reading,
        single_rows,
        sketched_rows,
        steps,
        units,
    )

    if sys.stderr.isatty() and not is_kept(sketched_rows.learn_sketched):
        sys.stderr.write("compiling the online learners, once: some seconds\n")
    modules = (steps, units, exact_rows, sketched_rows, centers, reading, single_rows)
    return SimpleNamespace(**{name: part for m in modules for name, part in vars(m).items()})
