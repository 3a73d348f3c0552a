"""Shrink rules: which eigenvalues survive when a sketch must drop to ``sketch_size`` rows.

Each takes the eigenvalues of the full buffer, largest first, and returns those of the
rows to keep and the ``cut``, the most that any direction lost. All satisfy
``0 <= eigenvalues - kept <= cut``, which is all that a certificate needs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from sksketch._typing import Array

# How much weaker than that of the uniform rule the bound in advance of the half rule may become.
HALF_DRIFT = 1.1


class Losses(NamedTuple):
    """Losses so far, beside the eigenvalues that a rule looks at.

    ``cuts`` is the sum of all earlier cuts, ``mass`` all energy that is gone: that of earlier
    shrinks, and what this one loses without a choice.
    """

    cuts: float = 0.0
    mass: float = 0.0


NOTHING = Losses()


def shrink_uniform(
    eigenvalues: Array, sketch_size: int, fraction: float = 1.0, losses: Losses = NOTHING
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


def shrink_half(
    eigenvalues: Array, sketch_size: int, fraction: float = 1.0, losses: Losses = NOTHING
) -> tuple[Array, float]:
    """Cut every kept eigenvalue by half of the first dropped one, where the bound can afford it.

    Read with half of the cut as a ridge, as robust FD is, the kept directions are what they
    were before and the dropped ones are wrong by at most half of the cut. A stream's leading
    directions are followed more closely for it. But less is lost for the same cut, and the bound
    in advance rests on what is lost: over a stream whose rows are all alike the sum of cuts could
    become nearly twice that of the uniform rule. So the cut is in full wherever else ::

        sum of cuts  >  1.1 * lost energy / (sketch_size + 1)

    With that, q = (sketch_size + 1) / 1.1 takes the place of sketch_size + 1 in the bound. Most
    streams lose far more than a cut in each of those directions, and never come near.

    Examples
    --------
    >>> shrink_half(np.array([25.0, 9.0, 4.0, 4.0, 4.0]), sketch_size=2)
    (array([23.,  7.]), 4.0)
    >>> shrink_half(np.array([25.0, 9.0, 4.0]), sketch_size=2)
    (array([21.,  5.]), 4.0)
    """
    kept, cut = _shrink(eigenvalues, sketch_size, first_reduced=0, share=0.5)
    mass = losses.mass + float(eigenvalues.sum() - kept.sum())
    if losses.cuts + cut <= HALF_DRIFT * mass / (sketch_size + 1):
        return kept, cut
    return shrink_uniform(eigenvalues, sketch_size)


def shrink_parameterized(
    eigenvalues: Array, sketch_size: int, fraction: float, losses: Losses = NOTHING
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
    eigenvalues: Array, sketch_size: int, fraction: float = 1.0, losses: Losses = NOTHING
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


Rule = Callable[[Array, int, float, Losses], tuple[Array, float]]

RULES: dict[str, Rule] = {
    "uniform": shrink_uniform,
    "half": shrink_half,
    "parameterized": shrink_parameterized,
    "truncate": shrink_truncate,
}
