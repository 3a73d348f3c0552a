"""A priori error bounds, as plain functions of the data they are about.

All are written for sketches that keep ``sketch_size`` rows and cut by the next eigenvalue, with
the exact solver and but for rounding. With q = sketch_size + 1 for the uniform rule, q =
(sketch_size + 1) / 1.1 for the half rule, q what the parameterized rule reduces, and tail(rank)
the squared norm of A less its best approximation of that rank, for every rank below q::

    shrinkage <= tail(rank) / (q - rank)
"""

from __future__ import annotations

import numpy as np

from sksketch._typing import Array
from sksketch.sketches.directions.shrink.rules import n_reduced


def _tail(X: Array, rank: int) -> float:
    singular_values = np.linalg.svd(np.asarray(X, dtype=np.float64), compute_uv=False)
    return float((singular_values[rank:] ** 2).sum())


def frequent_directions(X: Array, sketch_size: int, rank: int = 0) -> float:
    """Bound ``||X'X - B'B||_2``: Luo et al. (2019), equation 1, with m = sketch_size + 1.

    >>> frequent_directions(np.eye(4), sketch_size=1)
    2.0
    """
    return _tail(X, rank) / (sketch_size + 1 - rank)


def robust_fd(X: Array, sketch_size: int, rank: int = 0) -> float:
    """Bound the error of the half read-out: Luo et al. (2019), Theorem 3.

    >>> robust_fd(np.eye(4), sketch_size=1)
    1.0
    """
    return frequent_directions(X, sketch_size, rank) / 2


def parameterized_fd(X: Array, sketch_size: int, fraction: float, rank: int = 0) -> float:
    """Bound the error of the parameterized rule, for ranks below those it reduces.

    >>> parameterized_fd(np.eye(4), sketch_size=3, fraction=0.5)
    2.0
    """
    return _tail(X, rank) / (n_reduced(sketch_size, fraction) - rank)


def projection(X: Array, sketch_size: int, rank: int) -> float:
    """Bound ``||X - X V'V||_F^2`` for the first ``rank`` components V of a uniform sketch.

    >>> projection(np.eye(4), sketch_size=3, rank=1)
    4.0
    """
    q = sketch_size + 1
    return q / (q - rank) * _tail(X, rank)
