"""Penalties as users give them: one for all targets, or one for each."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from sksketch._typing import Array
from sksketch.models.constraints import number, several
from sksketch.ridge.solution import RidgeSolution, each_at_its_own

PENALTIES = several("numbers from 0 on", number(0.0))


def one_or_each(alpha: npt.ArrayLike) -> Array | float:
    """Return a penalty as a number, and several as an array.

    >>> one_or_each(1), one_or_each([1, 2])
    (1.0, array([1., 2.]))
    """
    values = np.asarray(alpha, dtype=np.float64)
    return values if values.ndim else float(values)


def check_number(alpha: Array | float, targets: Array) -> None:
    """Refuse penalties that are not as many as targets."""
    n_targets = 1 if targets.ndim == 1 else targets.shape[1]
    if not isinstance(alpha, float) and len(alpha) != n_targets:
        raise ValueError(
            f"Number of targets and number of penalties do not correspond: {len(alpha)} != "
            f"{n_targets}; give one for each target, or a single number"
        )


def the_one(alpha: Array | float, positive: bool) -> float:
    """Return the penalty where there is a single one and no constraint, or say that it must be."""
    if positive:
        raise ValueError("inference is for coefficients of either sign; set positive=False")
    if isinstance(alpha, float):
        return alpha
    raise ValueError(
        f"inference is for one penalty, got {len(alpha)}; set alpha to a number, or fit a model "
        "for each target"
    )


def solved_each(
    alpha: Array | float, solve: Callable[[float], tuple[RidgeSolution, Array]]
) -> tuple[RidgeSolution, Array]:
    """Return a solution and its intercepts, of each target at its own penalty if there are many."""
    if isinstance(alpha, float):
        return solve(alpha)
    known = {each: solve(each) for each in set(alpha.tolist())}
    found = [known[each] for each in alpha.tolist()]
    intercepts = np.array([values[j] for j, (_, values) in enumerate(found)])
    return each_at_its_own([solution for solution, _ in found]), intercepts
