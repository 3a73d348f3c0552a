"""Spectral clustering for rows that do not fit: features in place of an affinity matrix."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils import Tags
from threadpoolctl import threadpool_limits

from sksketch._typing import Array, Rows, RowsLike, Seed
from sksketch.arrays.namespace import dtype_name, namespace, to_numpy
from sksketch.arrays.random import sampled
from sksketch.kernel_methods.feature_maps import load_features
from sksketch.kernel_methods.fitting import KERNEL_CONSTRAINTS, fitted_features, kernel_rows
from sksketch.kernel_methods.latent.spectral import (
    embedding,
    local_scale,
    nearest,
    spectral_coefficients,
)
from sksketch.models.base import Estimator, or_as_before
from sksketch.models.constraints import number, one_of, whole
from sksketch.models.parameters import seed_of
from sksketch.models.runner import lazy
from sksketch.models.scikit_learn import preserving_precision
from sksketch.state.persistence import State

# k-means sees at most this many embedded rows; the others join the nearest center.
KMEANS_ROWS = 20_000
# Rows that are labelled at a time.
BLOCK_ROWS = 1 << 15


class StreamingSpectralClustering(
    ClusterMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator
):
    """Spectral clustering in memory that does not grow with the rows, with labels for new ones.

    Kernel features divided by the root of their degree have the normalized affinity for their
    Gram matrix. Their leading ``n_clusters`` directions, found in two passes over the rows,
    embed any row; k-means clusters the embedded rows, scaled to length one.

    Parameters
    ----------
    n_clusters : int, default=8
        Clusters to find, and columns of the embedding.
    kernel : {"gaussian", "laplacian", "cauchy", "matern", "linear", "dot-product", "polynomial", \
            "exponential-semigroup", "reciprocal-semigroup", "arc-cosine"}, default="gaussian"
        The kernel, see `RandomFeatures`.
    bandwidth : float, "local" or "median", default="local"
        Rows are divided by it. "local" is the median distance to a near neighbor in a sample
        of 1500 rows: the one whose rank is 2.5 % of the rows of a cluster of mean size, and at
        least 7. The median distance between rows is too wide for clusters that are no balls.
    landmarks : int, array of shape (n_landmarks, n_features) or None, default=500
        Number of landmarks of Nystrom features, or the landmarks. None takes random features.
    n_random_features : int, default=2048
        Random features where ``landmarks`` is None. They need a clear gap in the spectrum of
        the affinity, above 10/sqrt(n_random_features), and a bandwidth that leaves one; prefer
        landmarks.
    kernel_params : dict, default=None
        Parameters of the kernel: "nu" of "matern" (1.5), "coefficients" of "dot-product" (1/n!),
        "degree" (3) and "coef0" (1) of "polynomial", "beta" and "rate" (1) of the semigroup
        kernels, "order" of "arc-cosine" (1).
    random_state : int, RandomState or None, default=0
        Seed of all samples, of the features and of k-means.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        The cluster of each row of ``fit``; a saved model does without.
    cluster_centers_ : array of shape (n_clusters, n_clusters)
        Centers of the embedded rows.
    coefficients_ : array of shape (n_features_out, n_clusters)
        Coefficients of the embedding in the features.
    bandwidth_ : float
        The bandwidth used.
    features_ : FeatureMap
        The features used.
    n_features_in_ : int
        Columns of the rows.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of the columns, where the rows have names.

    See Also
    --------
    RandomFeatures : The features by themselves.
    StreamingKernelPCA : Components in place of clusters.
    sklearn.cluster.SpectralClustering : For rows whose affinity matrix fits in memory.

    Notes
    -----
    The paper [1]_ clusters by plain kernel PCA, which fails on two circles: only features weighted
    by their degree lead to the normalized cut [2]_. Degrees are floored at 10 % of their median, so
    that single rows far from all others do not take a direction.

    ``fit`` reads the rows in blocks and leaves memory maps on disk; there is no
    ``partial_fit``, as the degree of a row needs all others. For a stream that cannot be read
    again, fit a sample of it and ``predict`` the rest.

    References
    ----------
    .. [1] Xie, B., Liang, Y. and Song, L. (2015). "Scale Up Nonlinear Component Analysis with
       Doubly Stochastic Gradients". NeurIPS.
    .. [2] Ng, A. Y., Jordan, M. I. and Weiss, Y. (2001). "On Spectral Clustering: Analysis and an
       Algorithm". NeurIPS.

    Examples
    --------
    >>> import numpy as np
    >>> angle = np.linspace(0, 2 * np.pi, 200, endpoint=False)
    >>> circle = np.column_stack([np.cos(angle), np.sin(angle)])
    >>> model = StreamingSpectralClustering(2).fit(np.vstack([circle, 0.4 * circle]))
    >>> inner, outer = model.predict([[0.0, 0.4], [0.0, 1.0]])
    >>> bool((model.labels_[:200] == outer).all() and (model.labels_[200:] == inner).all())
    True
    """

    kind = "spectral-clustering"
    _fitted = "cluster_centers_"
    _constraints = KERNEL_CONSTRAINTS | {
        "n_clusters": (whole(1),),
        "bandwidth": (number(0.0, bounds="()"), one_of("local", "median")),
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        kernel: str = "gaussian",
        bandwidth: float | str = "local",
        landmarks: RowsLike | None = 500,
        n_random_features: int = 2048,
        kernel_params: dict[str, Any] | None = None,
        random_state: Seed = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.landmarks = landmarks
        self.n_random_features = n_random_features
        self.kernel_params = kernel_params
        self.random_state = random_state

    def fit(self, X: RowsLike, y: RowsLike | None = None) -> Self:
        """Cluster rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; arrays of torch and cupy stay on their device.
        y : ignored
            Present for scikit-learn's pipelines.

        Returns
        -------
        self
            This estimator.
        """
        self._check_params()
        with or_as_before(self):
            rows = kernel_rows(self, X, reset=True)
            if rows.shape[0] < self.n_clusters:
                raise ValueError(
                    f"n_samples={rows.shape[0]} is fewer than n_clusters={self.n_clusters}; "
                    "give more rows or ask for fewer clusters"
                )
            seed = seed_of(self.random_state)
            bandwidth = self.bandwidth
            if isinstance(bandwidth, str) and bandwidth == "local":
                bandwidth = local_scale(rows, self.n_clusters, self.kernel, seed)
            params = self.get_params(deep=False) | {"bandwidth": bandwidth}
            self.features_ = fitted_features(params, rows, seed, landmarks=self.landmarks)
            self.coefficients_ = to_numpy(
                spectral_coefficients(self.features_, rows, self.n_clusters, seed)
            )
            points = to_numpy(self._embedding(sampled(rows, KMEANS_ROWS, seed, "k-means")))
            self.cluster_centers_ = _centers(points, self.n_clusters, seed)
            self.labels_ = self._labels(rows)
        return self

    @lazy
    def predict(self, X: RowsLike) -> Any:
        """Return the cluster of each row.

        Parameters
        ----------
        X : array-like, sparse matrix or dask collection of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        array of shape (n_samples,)
            Numbers of clusters.
        """
        return self._labels(self._known(X))

    @lazy
    def transform(self, X: RowsLike) -> Any:
        """Return the embedding of rows, in their precision and on their device.

        Parameters
        ----------
        X : array-like, sparse matrix or dask collection of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        array of shape (n_samples, n_clusters)
            Rows of length one; zeros for a row without any neighbors among the landmarks.
        """
        rows = self._known(X)
        points = self._embedding(rows)
        xp = namespace(points)
        return xp.astype(points, getattr(xp, dtype_name(rows)), copy=False)

    @property
    def bandwidth_(self) -> float:
        """The bandwidth used."""
        return self.features_.kernel.bandwidth

    @property
    def _n_features_out(self) -> int:
        return int(self.coefficients_.shape[1])

    def _known(self, X: RowsLike) -> Any:
        self._require_fitted()
        return kernel_rows(self, X, reset=False)

    def _embedding(self, rows: Rows) -> Any:
        return embedding(self.features_, self.coefficients_, rows)

    def _labels(self, rows: Rows) -> Any:
        xp = namespace(rows)
        found = [
            nearest(self._embedding(rows[start : start + BLOCK_ROWS]), self.cluster_centers_)
            for start in range(0, rows.shape[0], BLOCK_ROWS)
        ]
        return xp.concat(found)

    def __sklearn_tags__(self) -> Tags:
        return preserving_precision(super().__sklearn_tags__())

    def _learned(self, state: State) -> State:
        arrays = {"coefficients": self.coefficients_, "centers": self.cluster_centers_}
        return state.with_more({}, arrays).with_inner("features", self.features_.state())

    def _recall(self, state: State) -> None:
        self.features_ = load_features(state.inner("features"))
        self.coefficients_ = np.asarray(state.arrays["coefficients"])
        self.cluster_centers_ = np.asarray(state.arrays["centers"])


def _centers(points: Array, n_clusters: int, seed: int) -> Array:
    # Imported when needed: this module of scikit-learn loads a progress bar's library.
    from sklearn.cluster import KMeans

    # Threads of its own add up the rows of a cluster in the order in which they are ready.
    with threadpool_limits(1, user_api="openmp"):
        means = KMeans(n_clusters, n_init=10, random_state=seed % 2**32).fit(points)
    centers: Array = means.cluster_centers_
    return centers
