"""What the two reductions share: parameters, coordinates of rows, models in all columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from sksketch._typing import Array
from sksketch.models.checks import check_choice, check_whole
from sksketch.models.runner import is_dask, lazily
from sksketch.reduction.subspace import LinearMap
from sksketch.state.guard import Guarded

OPERATORS = ("countsketch", "gaussian", "srht", "sample")

# A basis of more than this is refused, unless it stays sparse.
LARGEST_BASIS = 2 << 30


class Reduction(Guarded, ClassNamePrefixFeaturesOutMixin, TransformerMixin, ABC):
    """A linear map of rows to few coordinates."""

    n_components: Any
    operator: str

    @abstractmethod
    def _map(self) -> LinearMap:
        """Return the map of the fitted reduction."""

    @abstractmethod
    def _rows(self, X: Any) -> Any:
        """Return rows for a fitted reduction, checked in full."""

    @property
    def n_components_(self) -> int:
        """Number of coordinates."""
        return self._map().n_components

    @property
    def components_(self) -> Array:
        """The directions as rows, dense: ``n_components_`` times ``n_features`` numbers."""
        linear = self._map()
        return np.ascontiguousarray(linear.lift(np.eye(linear.n_components)).T)

    def transform(self, X: Any) -> Any:
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

    def inverse_model(self, coef: Any) -> Array:
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

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def check_reduction(n_components: Any, operator: Any, n_power_iter: Any = 0) -> None:
    """Refuse parameters that make no sense."""
    check_whole("n_components", n_components, 1)
    check_whole("n_power_iter", n_power_iter, 0)
    check_choice("operator", operator, OPERATORS)


def check_size(n_components: int, n_features: int, reason: str) -> None:
    """Refuse a dense basis that would fill the memory."""
    n_bytes = 8 * n_components * n_features
    if n_bytes > LARGEST_BASIS:
        raise ValueError(
            f"{reason} needs {n_components} dense vectors of {n_features} columns, "
            f"{n_bytes / 1e9:.3g} GB; take fewer components, or operator='countsketch' or 'sample' "
            "without power passes"
        )
