"""What the two reductions share: limits of their parameters, coordinates, models in all columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from sksketch._typing import Array
from sksketch.models.constraints import SEED, Constraints, one_of, whole
from sksketch.reduction.subspace import LinearMap

OPERATORS = ("countsketch", "gaussian", "srht", "sample")
#: What both reductions and the models learned on them take.
REDUCTION_CONSTRAINTS: Constraints = {
    "n_components": (whole(1),),
    "operator": (one_of(*OPERATORS),),
    "random_state": (SEED,),
}

# A basis of more than this is refused, unless it stays sparse.
LARGEST_BASIS = 2 << 30


def directions(linear: LinearMap) -> Array:
    """Return the directions of a map as rows, dense."""
    return np.ascontiguousarray(linear.lift(np.eye(linear.n_components)).T)


def coordinates(linear: LinearMap, rows: Any) -> Array:
    """Return the coordinates of rows, in their precision."""
    found: Array = linear.project(rows).astype(rows.dtype, copy=False)
    return found


def lifted_models(linear: LinearMap, coef: Any) -> Array:
    """Return linear models of the coordinates as models of the original columns."""
    models = np.asarray(coef, dtype=np.float64)
    if models.ndim not in (1, 2) or models.shape[-1] != linear.n_components:
        raise ValueError(
            f"got coefficients of shape {models.shape}, expected (n, {linear.n_components}); "
            "pass those of a model that was fitted to what transform returned"
        )
    lifted = linear.lift(np.atleast_2d(models).T).T
    return lifted if models.ndim == 2 else lifted[0]


def check_size(n_components: int, n_features: int, reason: str) -> None:
    """Refuse a dense basis that would fill the memory."""
    n_bytes = 8 * n_components * n_features
    if n_bytes > LARGEST_BASIS:
        raise ValueError(
            f"{reason} needs {n_components} dense vectors of {n_features} columns, "
            f"{n_bytes / 1e9:.3g} GB; take fewer components, or operator='countsketch' or 'sample' "
            "without power passes"
        )
