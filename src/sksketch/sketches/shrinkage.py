"""Shrink rules: which eigenvalues survive when a sketch must drop to ``sketch_size`` rows.

Each takes the eigenvalues of the full buffer, largest first, and returns those of the
rows to keep and the ``cut``, the most that any direction lost. All satisfy
``0 <= eigenvalues - kept <= cut``, which is all that a certificate needs.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sksketch._typing import Array


def shrink_uniform(
    eigenvalues: Array, sketch_size: int, fraction: float = 1.0
) -> tuple[Array, float]:
    """Cut every kept eigenvalue by the first dropped one.

    With eigenvalues e_1 >= e_2 >= ... of the buffer::

        cut    = e[sketch_size]
        kept_i = e_i - cut        for the first sketch_size of them

    No direction loses more than ``cut`` and at least ``sketch_size + 1`` lose
    all of it, which is what bounds the sum of all cuts [1]_.

    Examples
    --------
    >>> kept, cut = shrink_uniform(np.array([25.0, 9.0, 4.0]), sketch_size=2)
    >>> kept, cut
    (array([21.,  5.]), 4.0)

    References
    ----------
    .. [1] Luo et al. (2019), JMLR 20(45), Algorithm 2 line 5, with m = sketch_size + 1.
    """
    return _shrink(eigenvalues, sketch_size, first_reduced=0)


def shrink_half(eigenvalues: Array, sketch_size: int, fraction: float = 1.0) -> tuple[Array, float]:
    """Cut every kept eigenvalue by half of the first dropped one.

    Read with half of the cut as a ridge, as robust FD is, the kept directions are what they
    were before and the dropped ones are wrong by at most half of the cut: no worse than after
    a cut in full, which takes from the kept directions as well. A stream's leading directions
    are followed more closely for it.

    Every shrink loses at least ``(sketch_size / 2 + 1) * cut``, so the sum of cuts is at most
    tail(k) / (sketch_size / 2 + 1 - k), where tail(k) is the energy outside the best k
    directions: the argument for the uniform rule with half its rows.

    Examples
    --------
    >>> shrink_half(np.array([25.0, 9.0, 4.0]), sketch_size=2)
    (array([23.,  7.]), 4.0)
    """
    return _shrink(eigenvalues, sketch_size, first_reduced=0, share=0.5)


def shrink_parameterized(
    eigenvalues: Array, sketch_size: int, fraction: float
) -> tuple[Array, float]:
    """Cut only the smallest of the kept eigenvalues by the first dropped one.

    Of the first ``sketch_size + 1`` the lowest q = max(1, floor(fraction *
    (sketch_size + 1))) lose ``cut``; the leading ones are left alone. The a priori
    bound then holds with q in place of ``sketch_size + 1`` [1]_.

    Examples
    --------
    >>> shrink_parameterized(np.array([25.0, 9.0, 4.0]), 2, fraction=0.7)
    (array([25.,  5.]), 4.0)

    References
    ----------
    .. [1] Desai, Ghashami and Phillips (2016), IEEE TKDE 28(7), parameterized FD.
    """
    return _shrink(eigenvalues, sketch_size, sketch_size + 1 - n_reduced(sketch_size, fraction))


def shrink_truncate(
    eigenvalues: Array, sketch_size: int, fraction: float = 1.0
) -> tuple[Array, float]:
    """Keep the leading eigenvalues unchanged and drop the rest (incremental SVD).

    There is no a priori bound: a stream can hide any amount of energy from it. The sum
    of cuts still bounds the error after the fact.

    Examples
    --------
    >>> shrink_truncate(np.array([25.0, 9.0, 4.0]), sketch_size=2)
    (array([25.,  9.]), 4.0)
    """
    return _shrink(eigenvalues, sketch_size, first_reduced=sketch_size)


def n_reduced(sketch_size: int, fraction: float) -> int:
    """Return how many of ``sketch_size + 1`` eigenvalues the parameterized rule reduces."""
    return max(1, int(fraction * (sketch_size + 1)))


def _shrink(
    eigenvalues: Array, sketch_size: int, first_reduced: int, share: float = 1.0
) -> tuple[Array, float]:
    kept = np.maximum(eigenvalues[:sketch_size], 0.0)
    if len(eigenvalues) <= sketch_size:
        return kept, 0.0
    cut = max(float(eigenvalues[sketch_size]), 0.0)
    # Equal eigenvalues can differ by a rounding error, so clip.
    kept[first_reduced:] = np.maximum(kept[first_reduced:] - share * cut, 0.0)
    return kept, cut


Rule = Callable[[Array, int, float], tuple[Array, float]]

RULES: dict[str, Rule] = {
    "uniform": shrink_uniform,
    "half": shrink_half,
    "parameterized": shrink_parameterized,
    "truncate": shrink_truncate,
}
