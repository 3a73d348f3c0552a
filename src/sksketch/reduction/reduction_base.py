"""Functions of both reductions: limits of parameters, coordinates, models in all columns."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from sksketch._typing import Array, Rows, RowsLike
from sksketch.models.constraints import SEED, Constraints, one_of, whole
from sksketch.models.runner import is_dask, lazily
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


class Mapped(Protocol):
    """A reduction: it has a linear map, and checks rows for it."""

    def _map(self) -> LinearMap: ...

    def _rows(self, X: RowsLike) -> Any: ...


# Methods of both reductions: they take them into their classes by name.


def n_components_(self: Mapped) -> int:
    """Return the number of coordinates."""
    return self._map().n_components


def components_(self: Mapped) -> Array:
    """Return the directions as rows, dense: ``n_components_`` times ``n_features`` numbers."""
    linear = self._map()
    return np.ascontiguousarray(linear.lift(np.eye(linear.n_components)).T)


def transform(self: Mapped, X: Rows) -> Any:
    """Return the coordinates of rows.

    Parameters
    ----------
    X : array-like, sparse matrix or dask collection of shape (n_samples, n_features)
        Rows; sparse ones are never made dense.

    Returns
    -------
    array of shape (n_samples, n_components_)
        For dask's rows one of dask, which is computed when it is needed.
    """
    if is_dask(X):
        return lazily(self, "transform", X)
    rows = self._rows(X)
    return self._map().project(rows).astype(rows.dtype, copy=False)


def inverse_model(self: Mapped, coef: npt.ArrayLike) -> Array:
    """Return linear models of the coordinates as models of the original columns.

    Parameters
    ----------
    coef : array-like of shape (n_components_,) or (n_models, n_components_)
        Coefficients, as linear models of scikit-learn have them.

    Returns
    -------
    array of shape (n_features,) or (n_models, n_features)
        ``X @ result.T`` is ``transform(X) @ coef.T``.
    """
    linear, models = self._map(), np.asarray(coef, dtype=np.float64)
    if models.ndim not in (1, 2) or models.shape[-1] != linear.n_components:
        raise ValueError(
            f"got coefficients of shape {models.shape}, expected (n, {linear.n_components}); "
            "pass those of a model that was fitted to what transform returned"
        )
    lifted = linear.lift(np.atleast_2d(models).T).T
    return lifted if models.ndim == 2 else lifted[0]


# Checks


def check_size(n_components: int, n_features: int, reason: str) -> None:
    """Refuse a dense basis that would fill the memory."""
    n_bytes = 8 * n_components * n_features
    if n_bytes > LARGEST_BASIS:
        raise ValueError(
            f"{reason} needs {n_components} dense vectors of {n_features} columns, "
            f"{n_bytes / 1e9:.3g} GB; take fewer components, or operator='countsketch' or 'sample' "
            "without power passes"
        )
