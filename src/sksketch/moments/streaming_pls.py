"""Partial least squares of two tables, in one pass."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if

from sksketch._typing import Array, Rows, RowsLike
from sksketch.models.constraints import FLAG, one_of
from sksketch.models.scikit_learn import preserving_precision, requiring_targets
from sksketch.models.sketched import SketchEstimator
from sksketch.moments.balance import Balance
from sksketch.moments.latent_structures import Components, cross_error, cross_svd, deflated
from sksketch.moments.two_views import (
    FACTS,
    VIEWS_CONSTRAINTS,
    check_enough,
    lazily_one_view,
    scores_of,
    side_by_side,
    sketch_of_views,
    transformed,
    views_of,
)
from sksketch.moments.views import Views
from sksketch.sketches import Sketch


class StreamingPLS(ClassNamePrefixFeaturesOutMixin, TransformerMixin, SketchEstimator):
    """Partial least squares of two views of the same rows, in one pass.

    Parameters
    ----------
    n_components : int, default=2
        Components.
    mode : {"svd", "regression", "canonical"}, default="svd"
        As scikit-learn's ``PLSSVD``, ``PLSRegression`` and ``PLSCanonical``: singular vectors of
        X'Y; components that explain Y and predict it; or symmetric ones.
    scale : bool, default=True
        Whether columns are divided by their standard deviations, as scikit-learn does by default.
    sketch : str or Sketch, default="auto"
        "auto" keeps the exact covariance of all columns while it takes no more than 64 MiB (2,896
        columns of both views) and robust FD beyond that; or a key of `make_sketch` of the "fd"
        family, "exact", or an empty sketch.
    sketch_size : int, default=None
        Rows that a sketch keeps; by default 64, or four for each component if these are more.

    Attributes
    ----------
    singular_values_ : array of shape (n_components,)
        Of the covariance of the two views (after scaling): covariances of the first scores.
    singular_value_intervals_ : array of shape (n_components, 2)
        Certified ends of each; 0 and inf if none are.
    x_weights_, y_weights_ : arrays of shape (n_features, n_components) and \
            (n_features_y, n_components)
        Weights as scikit-learn defines them; the largest of each column of ``x_weights_`` is
        positive.
    x_loadings_, y_loadings_, x_rotations_, y_rotations_ : arrays of the same shapes
        As scikit-learn defines them; with ``mode="svd"`` they are the weights.
    coef_ : array of shape (n_features_y, n_features)
        Coefficients of the second view on the first, with ``mode="regression"`` or "canonical".
    intercept_ : array of shape (n_features_y,)
        Means of the second view: ``predict`` is ``(X - x_mean_) @ coef_.T + intercept_``.
    x_mean_, y_mean_, x_std_, y_std_ : arrays
        Means and standard deviations of the columns; ones without ``scale``.
    certificate_ : Certificate
        What is certain about the covariance of both views side by side.
    plan_ : str
        One sentence: how the rows are remembered, why, and in how much memory.
    sketch_ : Centered
        What remembers both views.
    n_samples_seen_ : int
        Pairs of rows learned from.
    n_features_in_, n_features_y_ : int
        Columns of the two views.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of the columns of the first view, where it has names.

    See Also
    --------
    StreamingCCA : Directions of the largest correlation.
    sklearn.cross_decomposition.PLSRegression : For rows that fit in memory.

    Notes
    -----
    The state is that of `StreamingCCA`, whose notes derive the bound on X'Y; by Weyl's inequality
    it bounds every singular value [1]_. Components by deflation are computed on few rows that have
    the products of all, with singular vectors where scikit-learn iterates to a tolerance [2]_.

    References
    ----------
    .. [1] Weyl, H. (1912). "Das asymptotische Verteilungsgesetz der Eigenwerte linearer partieller
       Differentialgleichungen". Mathematische Annalen 71.
    .. [2] Wegelin, J. A. (2000). "A Survey of Partial Least Squares (PLS) Methods, with Emphasis
       on the Two-Block Case". University of Washington, technical report 371.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((300, 4))
    >>> Y = X[:, :2] @ [[1.0, 2.0], [0.0, 1.0]] + 0.1 * rng.standard_normal((300, 2))
    >>> model = StreamingPLS(2, mode="regression").partial_fit(X, Y)
    >>> model.coef_.round(1)
    array([[ 1. , -0. ,  0. ,  0. ],
           [ 2. ,  0.9,  0.2,  0.2]])
    """

    kind = "streaming-pls"
    _constraints = VIEWS_CONSTRAINTS | {
        "mode": (one_of("svd", "regression", "canonical"),),
        "scale": (FLAG,),
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        mode: str = "svd",
        scale: bool = True,
        sketch: str | Sketch = "auto",
        sketch_size: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.mode = mode
        self.scale = scale
        self.sketch = sketch
        self.sketch_size = sketch_size

    n_components: int
    sketch: str | Sketch
    sketch_size: int | None
    # The second view
    n_features_y_: int
    _one_column = False
    _facts = FACTS

    def _sketch_for(self, n_features: int) -> Sketch:
        return sketch_of_views(self.sketch, self.sketch_size, self.n_components, n_features)

    def _units(self) -> Balance:
        return Balance(self.n_features_in_, self.n_features_y_)

    def _checked(self, X: RowsLike, y: RowsLike | None, reset: bool) -> tuple[Any, Any]:
        return side_by_side(self, X, y, reset=reset), None

    def _check_enough(self, rows: Rows) -> None:
        check_enough(rows)

    def __sklearn_tags__(self) -> Tags:
        return requiring_targets(preserving_precision(super().__sklearn_tags__()))

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components)

    # Answers

    def _deviations(self) -> tuple[Array, Array]:
        """Return the units of the columns of both views."""
        views = views_of(self)
        if not self.scale:
            return np.ones(len(views.x.mean)), np.ones(len(views.y.mean))
        return views.x.deviations(views.degrees), views.y.deviations(views.degrees)

    def _rows_in_units(self) -> tuple[Array, Array]:
        """Return few rows of both views that have the products of all, divided by their units."""
        views, (x, y) = views_of(self), self._deviations()
        return views.x.rows * (views.x.units / x), views.y.rows * (views.y.units / y)

    def _svd(self) -> tuple[Array, Array, Array]:
        found: tuple[Array, Array, Array] = self._once(
            "svd", lambda: _padded(cross_svd(*self._rows_in_units()), int(self.n_components))
        )
        return found

    def _components(self) -> Components:
        def compute() -> Components:
            if self.mode == "svd":
                U, _, V = self._svd()
                return Components(U, V, U, V, U, V)
            return deflated(*self._rows_in_units(), int(self.n_components), self.mode)

        found: Components = self._once("components", compute)
        return found

    @property
    def singular_values_(self) -> Array:
        """Singular values of the covariance of the two views."""
        return np.asarray(self._svd()[1] / views_of(self).degrees)

    @property
    def singular_value_intervals_(self) -> Array:
        """Certified ends of each singular value."""
        views, values = views_of(self), self._svd()[1]
        off = _cross_error(views, *self._deviations()) + cross_error(*self._rows_in_units())
        ends = np.stack([np.maximum(values - off, 0.0), values + off], axis=1)
        return np.asarray(ends / views.degrees)

    @property
    def x_weights_(self) -> Array:
        """Weights of the first view, one column for each component."""
        return self._components().x_weights

    @property
    def y_weights_(self) -> Array:
        """Weights of the second view."""
        return self._components().y_weights

    @property
    def x_loadings_(self) -> Array:
        """Loadings of the first view."""
        return self._components().x_loadings

    @property
    def y_loadings_(self) -> Array:
        """Loadings of the second view."""
        return self._components().y_loadings

    @property
    def x_rotations_(self) -> Array:
        """Weights of the columns of the first view as they are, not deflated."""
        return self._components().x_rotations

    @property
    def y_rotations_(self) -> Array:
        """Weights of the columns of the second view as they are, not deflated."""
        return self._components().y_rotations

    @property
    def x_mean_(self) -> Array:
        """Means of the columns of the first view."""
        return views_of(self).x.mean

    @property
    def y_mean_(self) -> Array:
        """Means of the columns of the second view."""
        return views_of(self).y.mean

    @property
    def x_std_(self) -> Array:
        """Units of the columns of the first view."""
        return self._deviations()[0]

    @property
    def y_std_(self) -> Array:
        """Units of the columns of the second view."""
        return self._deviations()[1]

    @property
    def coef_(self) -> Array:
        """Coefficients of the second view on the first."""
        self._require_prediction("coef_")
        found, (x, y) = self._components(), self._deviations()
        return np.asarray((found.x_rotations @ found.y_loadings.T * y).T / x)

    @property
    def intercept_(self) -> Array:
        """Means of the second view."""
        self._require_prediction("intercept_")
        return views_of(self).y.mean

    def _require_prediction(self, name: str) -> None:
        if self.mode == "svd":
            raise AttributeError(f"{name} needs mode='regression' or 'canonical', this is 'svd'")

    def transform(self, X: RowsLike, y: RowsLike | None = None) -> Any:
        """Return the scores of rows.

        Parameters
        ----------
        X : array-like, sparse matrix or dask collection of shape (n_samples, n_features)
            Rows of the first view.
        y : array-like or sparse matrix of shape (n_samples, n_features_y), default=None
            Rows of the second view.

        Returns
        -------
        x_scores : array of shape (n_samples, n_components)
            Scores of the first view.
        y_scores : array of shape (n_samples, n_components)
            Those of the second view, paired with the first column by column, if ``y`` is given.
        """
        self._require_fitted()
        if (lazy := lazily_one_view(self, "transform", X, y)) is not None:
            return lazy
        found, (a, b) = self._components(), self._deviations()
        weights = found.x_rotations / a[:, None], found.y_rotations / b[:, None]
        return transformed(self, X, y, weights)

    def fit_transform(self, X: RowsLike, y: RowsLike, sample_weight: RowsLike | None = None) -> Any:
        """Learn from all pairs and return the scores of both views.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows of the first view.
        y : array-like or sparse matrix of shape (n_samples, n_features_y)
            Rows of the second view.
        sample_weight : array-like of shape (n_samples,), default=None
            Row ``i`` counts as ``sample_weight[i]`` copies.

        Returns
        -------
        x_scores : array of shape (n_samples, n_components)
            Scores of the first view.
        y_scores : array of shape (n_samples, n_components)
            Those of the second view.
        """
        return self.fit(X, y, sample_weight).transform(X, y)

    @available_if(lambda self: self.mode != "svd")
    def predict(self, X: RowsLike) -> Any:
        """Return the second view as the components predict it.

        Parameters
        ----------
        X : array-like, sparse matrix or dask collection of shape (n_samples, n_features)
            Rows of the first view.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_features_y)
            Of one dimension where the second view came so.
        """
        self._require_fitted()
        if (lazy := lazily_one_view(self, "predict", X, None)) is not None:
            return lazy
        rows = self._rows(X)
        found = scores_of(rows, self.x_mean_, self.coef_.T)
        found = found + self.intercept_.astype(found.dtype, copy=False)
        return found[:, 0] if self._one_column else found


def _padded(found: tuple[Array, Array, Array], k: int) -> tuple[Array, Array, Array]:
    """Return the first components, and zeros where there are fewer."""
    U, s, V = found
    n = max(k - len(s), 0)
    sides = ((0, 0), (0, n))
    return np.pad(U[:, :k], sides), np.pad(s[:k], (0, n)), np.pad(V[:, :k], sides)


def _cross_error(views: Views, x: Array, y: Array) -> float:
    """Return the error of the products of the two views, with columns in these units."""
    ratios = float((views.x.units / x).max()), float((views.y.units / y).max())
    return views.cross_error * ratios[0] * ratios[1] * (1.0 + 1e-12)
