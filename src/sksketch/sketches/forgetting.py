"""Exponential forgetting: each new row lessens the weight of all earlier ones."""

from __future__ import annotations

import numpy as np

from sksketch._typing import Array
from sksketch.arrays.namespace import cast, like, precision


def decay_factor(decay: float | None, half_life: float | None) -> float:
    """Return the factor per row from either way of saying it; 1.0 forgets nothing.

    >>> decay_factor(None, half_life=1.0)
    0.5
    """
    if decay is not None and half_life is not None:
        raise ValueError("got both decay and half_life, expected at most one; drop either")
    if half_life is not None:
        if not half_life > 0:
            raise ValueError(f"half_life must be a positive number of rows, got {half_life!r}")
        return float(0.5 ** (1.0 / half_life))
    if decay is None:
        return 1.0
    if not 0 < decay <= 1:
        raise ValueError(f"decay must be a factor in (0, 1], got {decay!r}")
    return float(decay)


def age_weights(n_rows: int, decay: float) -> Array:
    """Return the weight of each of ``n_rows`` rows once the last of them has come.

    >>> age_weights(3, 0.5)
    array([0.25, 0.5 , 1.  ])
    """
    return np.asarray(decay ** np.arange(n_rows - 1, -1, -1, dtype=np.float64))


def accumulated_weight(before: float, weights: Array, decay: float) -> float:
    """Return the total weight after more rows, the same however they were cut into blocks.

    >>> accumulated_weight(1.0, np.array([1.0, 2.0]), decay=0.5)
    2.75
    """
    if decay == 1.0 and before.is_integer() and (weights == 1.0).all():
        return before + len(weights)
    # Here, because it takes half a second to load and few streams forget.
    from scipy.signal import lfilter

    # One after the other, so that no order of summation depends on the blocks.
    return float(lfilter([1.0], [1.0, -decay], weights, zi=[decay * before])[0][-1])


def aged(rows: Array, decay: float) -> Array:
    """Return the rows scaled to the weight they have once the last of them has come."""
    if decay == 1.0 or not len(rows):
        return rows
    roots = np.sqrt(age_weights(len(rows), decay))[:, None]
    scaled: Array = cast(rows * like(roots, rows), precision(rows))
    return scaled
