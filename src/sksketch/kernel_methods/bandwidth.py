"""The median distance between rows: the bandwidth that fits most data."""

from __future__ import annotations

from typing import Any

import numpy as np

from sksketch._typing import Array, Rows
from sksketch.arrays.namespace import namespace, to_numpy
from sksketch.arrays.random import sampled
from sksketch.kernel_methods.kernels import (
    SHIFT_INVARIANT,
    canonical_name,
    squared_distances,
    sum_over_columns,
)

SAMPLE_ROWS = 1500


def resolve_bandwidth(bandwidth: str | float, kernel: str, X: Rows, seed: int) -> float:
    """Return the bandwidth as a number.

    "median" is the median distance between distinct rows of ``X``, in the norm of the
    kernel, and 1 for kernels that are no functions of a distance.

    >>> resolve_bandwidth("median", "gaussian", np.array([[0.0], [1.0], [1.0], [3.0]]), 0)
    2.0
    """
    if bandwidth != "median":
        if isinstance(bandwidth, str):
            raise ValueError(f"bandwidth is {bandwidth!r}; give a positive number or 'median'")
        return float(bandwidth)
    kernel = canonical_name(kernel)
    return median_distance(X, kernel, seed) if kernel in SHIFT_INVARIANT else 1.0


def median_distance(X: Rows, kernel: str, seed: int) -> float:
    """Return the median distance between distinct rows among at most `SAMPLE_ROWS` of them."""
    distances = finite_distances(sampled(X, SAMPLE_ROWS, seed, "bandwidth"), kernel)
    above = distances[np.triu_indices(len(distances), 1)]
    # Rounding makes equal rows a little different.
    above = above[above > 1e-7 * max(above.max(initial=0.0), 1e-300)]
    return float(np.median(above)) if len(above) else 1.0


def finite_distances(X: Rows, kernel: str) -> Array:
    """Return the distances between all rows in numpy, or refuse rows whose squares overflow."""
    with np.errstate(over="ignore", invalid="ignore"):
        distances: Array = to_numpy(distances_between(X, kernel))
    if not np.isfinite(distances).all():
        raise ValueError("distances between rows overflow; rescale the columns")
    return distances


def distances_between(X: Rows, kernel: str) -> Any:
    """Return the distances between all rows, in the norm of the kernel."""
    xp = namespace(X)
    if kernel == "laplacian":
        return sum_over_columns(X, X, lambda x, y: xp.abs(x - y))
    return xp.sqrt(squared_distances(X, X))
