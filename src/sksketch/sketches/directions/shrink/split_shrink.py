"""A shrink that hands over what it removes, as rows."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from sksketch._typing import Array
from sksketch.arrays.linalg import eigh_descending
from sksketch.arrays.namespace import cast, full_precision, joined, like, precision
from sksketch.arrays.products import norm_error, squared_norm
from sksketch.arrays.rounding import eigen_error, gamma, perturbed_gram, unit_roundoff
from sksketch.sketches.directions.shrink.compression import ShrinkState
from sksketch.sketches.directions.shrink.ledger import Ledger
from sksketch.sketches.directions.shrink.rules import shrink_uniform


def split_shrink(held: ShrinkState, rows: Array) -> tuple[ShrinkState, Array]:
    """Return the state after dense rows as well, and rows R of all that its shrink removed.

    With P the kept and the new rows, B'B + R'R = P'P to rounding. The rows of R are orthogonal:
    ``sqrt(min(s_i^2, cut)) v_i'`` for the singular values and vectors of P.

    Examples
    --------
    >>> held = ShrinkState.empty(3, sketch_size=1)
    >>> kept, removed = split_shrink(held, np.diag([3.0, 2.0, 1.0]))
    >>> abs(kept.matrix).round(9), (removed**2).sum(axis=1).round(9)
    (array([[2.23606798, 0.        , 0.        ]]), array([4., 4., 1.]))
    """
    gained = squared_norm(rows)
    total = squared_norm(held.matrix) + gained
    if total == 0.0:
        return held.without_rows(), rows[:0]
    held = held.beside(rows)
    P = joined([held.matrix, cast(rows, np.float64)])
    # Divided by their norm: squares of large and of small rows stay in range.
    scaled = P / math.sqrt(total)
    spectrum, U = eigh_descending(scaled @ scaled.T)
    spectrum = np.maximum(spectrum[: P.shape[1]], 0.0)
    kept, cut = shrink_uniform(spectrum, held.sketch_size)
    removed = spectrum.copy()
    removed[: len(kept)] -= kept
    # Both scales are at most one, so small eigenvalues, which are rounding, do no harm.
    with full_precision(P):
        images = U[:, : len(spectrum)].T @ P
    parts = np.where(spectrum > 0, spectrum, 1.0)
    keep, lose = np.flatnonzero(kept > 0), np.flatnonzero(removed > 0)
    scales = np.sqrt(kept / parts[: len(kept)])[keep, None], np.sqrt(removed / parts)[lose, None]
    matrix = images[like(keep, P)] * like(scales[0], P)
    rest = images[like(lose, P)] * like(scales[1], P)
    largest = float(spectrum[0]) * total
    n_rows, n_features = P.shape
    error = gamma(n_rows + 8) * math.sqrt(len(spectrum) * total)
    small = gamma(n_features + 4) * total + 2.0 * eigen_error(n_rows, largest)
    small += 2.0 * perturbed_gram(math.sqrt(largest), error)
    # What is handed over has to wait in the precision of the rows.
    removed_energy = float(removed.sum()) * total
    narrowed = unit_roundoff(precision(rows)) * math.sqrt(removed_energy)
    step = Ledger(
        squared_norm=gained,
        shrinkage=cut * total,
        kept_loss=cut * total,
        largest_loss=cut * total,
        allowance=small + perturbed_gram(math.sqrt(removed_energy), narrowed),
        n_shrinks=1,
        mass_error=norm_error(rows) * gained,
    )
    shrunk = replace(
        held,
        matrix=matrix,
        eigenvalues=kept[keep] * total,
        ledger=held.ledger + step,
        skew=small,
    )
    return shrunk, cast(rest, precision(rows))
