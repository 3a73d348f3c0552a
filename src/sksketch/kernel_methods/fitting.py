"""Rows and features for an estimator that sees rows through a kernel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from numbers import Integral
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from sksketch._keys import KERNELS
from sksketch._typing import Rows, RowsLike
from sksketch.arrays.device_sparse import is_sparse_on_device
from sksketch.arrays.namespace import on_device
from sksketch.arrays.random import sampled
from sksketch.arrays.rows import laid_out
from sksketch.kernel_methods.bandwidth import resolve_bandwidth
from sksketch.kernel_methods.feature_maps import FeatureMap, NystromMap, RandomFeatureMap
from sksketch.kernel_methods.kernels import Kernel, canonical_name, check_domain
from sksketch.models.base import Estimator
from sksketch.models.checks import checked_array, checked_on_device, checked_rows, host_rows
from sksketch.models.constraints import (
    DICTIONARY,
    NOTHING,
    ROWS,
    SEED,
    Constraint,
    Constraints,
    number,
    one_of,
    whole,
)


def kernel_among(known: Iterable[str]) -> Constraint:
    """Allow the names of some kernels, however they are spelled."""
    names = tuple(known)

    def accepts(name: object) -> bool:
        try:
            return canonical_name(str(name)) in names
        except ValueError:
            return False

    return Constraint(f"one of {', '.join(map(repr, names))}", accepts)


#: Parameters of an estimator, by name.
Params: TypeAlias = Mapping[str, Any]
BANDWIDTH = (number(0.0, bounds="()"), one_of("median"))
#: What all estimators with a kernel take.
KERNEL_CONSTRAINTS: Constraints = {
    "kernel": (kernel_among(KERNELS),),
    "bandwidth": BANDWIDTH,
    "kernel_params": (DICTIONARY, NOTHING),
    "n_random_features": (whole(1),),
    "landmarks": (whole(1), ROWS, NOTHING),
    "random_state": (SEED,),
}


def kernel_rows(estimator: Estimator, X: RowsLike, *, reset: bool) -> Any:
    """Return checked rows: numpy, CSR, or as they are on their device."""
    # Features of sparse rows are computed on the host.
    rows = checked_rows(estimator, host_rows(X) if is_sparse_on_device(X) else X, reset=reset)
    rows = sp.csr_array(rows) if sp.issparse(rows) else rows
    check_domain(estimator.kernel, rows)
    return rows


def further_rows(X: RowsLike, name: str) -> Any:
    """Return checked rows of a view beside the first, of which scikit-learn knows nothing."""
    if on_device(X):
        return checked_on_device(as_column(X))
    rows = checked_array(as_column(host_rows(X)), name)
    return laid_out(sp.csr_array(rows) if sp.issparse(rows) else rows)


def as_column(X: Any) -> Any:
    """Return a vector as one column of rows."""
    if on_device(X):
        return X[:, None] if X.ndim == 1 else X
    return np.asarray(X)[:, None] if np.ndim(X) == 1 and not hasattr(X, "tocsr") else X


def fitted_features(
    params: Params,
    X: Rows,
    seed: int,
    *,
    bandwidth: float | str | None = None,
    landmarks: RowsLike | None = None,
) -> FeatureMap:
    """Return the features that the parameters ask for, fitted to rows ``X``.

    Parameters
    ----------
    params : mapping
        Parameters of an estimator.
    X : rows
        Checked ones.
    seed : int
        Of the features, and of the sample that measures the bandwidth.
    bandwidth : float or str, default=None
        In place of that of the parameters.
    landmarks : int or rows, default=None
        Number of random rows, or rows, to compare with; None takes random features.

    Returns
    -------
    FeatureMap
    """
    asked = params["bandwidth"] if bandwidth is None else bandwidth
    kernel_params = dict(params.get("kernel_params") or {})
    scale = resolve_bandwidth(asked, params["kernel"], X, seed)
    kernel = Kernel(params["kernel"], scale, kernel_params)
    if kernel.name == "dot-product" and kernel.params["radius"] is None:
        kernel = Kernel(params["kernel"], scale, kernel_params | {"radius": _radius(X)})
    if landmarks is not None:
        return NystromMap(kernel, chosen_landmarks(landmarks, X, seed))
    return RandomFeatureMap(
        kernel,
        X.shape[1],
        params["n_random_features"],
        seed,
        block_columns=params.get("feature_batch", 1024),
        pairs=params.get("pairs", True),
        cached=params.get("cache_features", False),
    )


def chosen_landmarks(landmarks: object, X: Rows, seed: int) -> Any:
    """Return landmarks as given, or that number of random rows."""
    if not isinstance(landmarks, Integral):
        given: Any = landmarks
        rows = given if sp.issparse(given) else np.asarray(given, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != X.shape[1]:
            raise ValueError(
                f"landmarks have the shape {rows.shape}, expected rows of {X.shape[1]} features"
            )
        return rows
    return sampled(X, int(landmarks), seed, "landmarks")


def _radius(X: Any) -> float:
    """Return the largest length of a row."""
    if sp.issparse(X):
        squares = np.asarray(X.multiply(X).sum(axis=1)).ravel()
        return float(np.sqrt(squares.max(initial=0.0)))
    return float((X * X).sum(axis=1).max() ** 0.5)
