"""Linear canonical correlations of two tables, in one pass."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags

from sksketch._typing import Array, Rows, RowsLike
from sksketch.models.constraints import number
from sksketch.models.scikit_learn import preserving_precision, requiring_targets
from sksketch.models.sketched import SketchEstimator
from sksketch.moments.balance import Balance
from sksketch.moments.canonical import Canonical, canonical
from sksketch.moments.two_views import (
    FACTS,
    VIEWS_CONSTRAINTS,
    check_enough,
    lazily_one_view,
    side_by_side,
    sketch_of_views,
    transformed,
    views_of,
)
from sksketch.sketches import Sketch


class StreamingCCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, SketchEstimator):
    """Canonical correlation analysis of two views of the same rows, in one pass.

    Finds directions w and v with the largest correlation of ``X w`` and ``Y v``, and then others
    that are uncorrelated with those found, from one sketch of both views side by side.

    Parameters
    ----------
    n_components : int, default=2
        Pairs of directions.
    ridge : float, default=1e-6
        Penalty: the directions have ``|X w|^2 + ridge |w|^2`` of one length, as ``alpha`` of
        `StreamingRidge`. What a sketch can certify depends on it.
    sketch : str or Sketch, default="auto"
        "auto" keeps the exact covariance of all columns while it takes no more than 64 MiB (2,896
        columns of both views) and robust FD beyond that; or a key of `make_sketch` of the "fd"
        family, "exact", or an empty sketch.
    sketch_size : int, default=None
        Rows that a sketch keeps; by default 64, or four for each component if these are more.

    Attributes
    ----------
    correlations_ : array of shape (n_components,)
        Canonical correlations, largest first; penalized ones, so less with a larger ridge.
    correlation_intervals_ : array of shape (n_components, 2)
        Certified ends of each, whatever the sketch lost and rounding did; 0 and 1 if none are.
    x_weights_, y_weights_ : arrays of shape (n_features, n_components) and \
            (n_features_y, n_components)
        Directions for centered rows. Scores have variance one, the ridge included; the largest
        weight of each column of ``x_weights_`` is positive, and correlations are.
    x_mean_, y_mean_ : arrays
        Means of the columns.
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
    StreamingPLS : Directions of the largest covariance.
    StreamingKernelCCA : Nonlinear functions of both views.
    sklearn.cross_decomposition.CCA : For rows that fit in memory.

    Notes
    -----
    Let Z = [X, b Y] with any b. A sketch of Z [1]_ has 0 <= E <= D for its error E = Z'Z - B'B, so
    E - D/2 is no longer than D/2, and its off-diagonal block is that of E: X'Y is known to
    D / (2 b). Frequent Directions of l rows has ``D <= |Z|^2 / (l + 1)`` (Frobenius); where b
    makes both views of one length, that is ``|X'Y - estimate| <= |X| |Y| / (l + 1)``, half of what
    co-occurring directions promise in the same memory [2]_, and X'X and Y'Y come with it. b is
    a power of two, found from the first 1,000 rows, or from all in `fit`.

    The correlations are the singular values of ``(X'X + r)^-1/2 X'Y (Y'Y + r)^-1/2``. The intervals
    follow from the errors of the three blocks by the minimax principle; a sketch gives useful ones
    for a ridge above its error.

    References
    ----------
    .. [1] Luo, L., Chen, C., Zhang, Z., Li, W.-J. and Zhang, T. (2019). "Robust Frequent
       Directions with Application in Online Learning". JMLR 20(45).
    .. [2] Mroueh, Y., Marcheret, E. and Goel, V. (2017). "Co-Occurring Directions Sketching for
       Approximate Matrix Multiply". AISTATS, PMLR 54.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> shared = rng.standard_normal((500, 1))
    >>> X = shared + rng.standard_normal((500, 3))
    >>> Y = shared + rng.standard_normal((500, 2))
    >>> model = StreamingCCA(1).partial_fit(X[:200], Y[:200]).partial_fit(X[200:], Y[200:])
    >>> model.correlations_.round(3)
    array([0.738])
    >>> x, y = model.transform(X, Y)
    >>> np.corrcoef(x[:, 0], y[:, 0])[0, 1].round(3)
    np.float64(0.738)
    """

    kind = "streaming-cca"
    _constraints = VIEWS_CONSTRAINTS | {"ridge": (number(0.0),)}

    def __init__(
        self,
        n_components: int = 2,
        *,
        ridge: float = 1e-6,
        sketch: str | Sketch = "auto",
        sketch_size: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.ridge = ridge
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

    def _found(self) -> Canonical:
        ridge = float(self.ridge)
        found: Canonical = self._once(
            "canonical", lambda: canonical(views_of(self, ridge), int(self.n_components), ridge)
        )
        return found

    @property
    def correlations_(self) -> Array:
        """Canonical correlations, largest first."""
        return self._found().correlations

    @property
    def correlation_intervals_(self) -> Array:
        """Certified ends of each correlation."""
        return self._found().intervals

    @property
    def x_weights_(self) -> Array:
        """Directions of the first view, one column for each pair."""
        return self._found().x_weights

    @property
    def y_weights_(self) -> Array:
        """Directions of the second view."""
        return self._found().y_weights

    @property
    def x_mean_(self) -> Array:
        """Means of the columns of the first view."""
        return views_of(self).x.mean

    @property
    def y_mean_(self) -> Array:
        """Means of the columns of the second view."""
        return views_of(self).y.mean

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
        return transformed(self, X, y, (self.x_weights_, self.y_weights_))

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

    def score(self, X: RowsLike, y: RowsLike) -> float:
        """Return the sum of the correlations of the scores of rows, pair by pair.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows of the first view.
        y : array-like or sparse matrix of shape (n_samples, n_features_y)
            Rows of the second view.

        Returns
        -------
        float
            The total correlation.
        """
        a, b = self.transform(X, y)
        a, b = a - a.mean(axis=0), b - b.mean(axis=0)
        sizes = np.linalg.norm(a, axis=0) * np.linalg.norm(b, axis=0)
        return float(np.sum(np.vecdot(a.T, b.T) / np.where(sizes > 0.0, sizes, 1.0)))
