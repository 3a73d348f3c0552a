"""A shrink that hands over what it removes, as rows."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from sksketch._typing import Array
from sksketch.arrays.linalg import eigh_descending, squared_norm
from sksketch.arrays.namespace import cast, full_precision, joined, like, precision
from sksketch.sketches.ledger import Ledger, rounding_allowance
from sksketch.sketches.memory import Memory
from sksketch.sketches.shrinkage import shrink_uniform


def split_shrink(memory: Memory, rows: Array) -> tuple[Memory, Array]:
    """Return the memory after dense rows as well, and rows R of all that its shrink removed.

    With P the kept and the new rows, B'B + R'R = P'P to rounding. The rows of R are orthogonal:
    ``sqrt(min(s_i^2, cut)) v_i'`` for the singular values and vectors of P.

    Examples
    --------
    >>> memory = Memory.empty(3, np.dtype(float), sketch_size=1)
    >>> kept, removed = split_shrink(memory, np.diag([3.0, 2.0, 1.0]))
    >>> abs(kept.matrix).round(9), (removed**2).sum(axis=1).round(9)
    (array([[2.23606798, 0.        , 0.        ]]), array([4., 4., 1.]))
    """
    gained = squared_norm(rows)
    total = squared_norm(memory.matrix) + gained
    if total == 0.0:
        return memory.without_rows(), rows[:0]
    memory = memory.beside(rows)
    P = joined([memory.matrix, rows])
    # Divided by their norm: squares of large and of small rows stay in range.
    scaled = cast(P, np.float64) / math.sqrt(total)
    spectrum, U = eigh_descending(scaled @ scaled.T)
    spectrum = np.maximum(spectrum[: P.shape[1]], 0.0)
    kept, cut = shrink_uniform(spectrum, memory.sketch_size)
    removed = spectrum.copy()
    removed[: len(kept)] -= kept
    # Both scales are at most one, so small eigenvalues, which are rounding, do no harm.
    dtype = precision(P)
    with full_precision(P):
        images = cast(U[:, : len(spectrum)].T, dtype) @ P
    parts = np.where(spectrum > 0, spectrum, 1.0)
    keep, lose = np.flatnonzero(kept > 0), np.flatnonzero(removed > 0)
    scales = np.sqrt(kept / parts[: len(kept)])[keep, None], np.sqrt(removed / parts)[lose, None]
    matrix = images[like(keep, P)] * like(scales[0], P)
    rest = images[like(lose, P)] * like(scales[1], P)
    step = Ledger(
        squared_norm=gained,
        shrinkage=cut * total,
        kept_loss=cut * total,
        largest_loss=cut * total,
        allowance=rounding_allowance(float(np.finfo(dtype).eps), float(spectrum[0]) * total),
        n_shrinks=1,
    )
    shrunk = replace(
        memory,
        matrix=cast(matrix, dtype),
        eigenvalues=kept[keep] * total,
        ledger=memory.ledger + step,
    )
    return shrunk, cast(rest, dtype)
