"""Random and Nystrom features: a kernel as a transformer."""

from __future__ import annotations

from typing import Any, Self

from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags

from sksketch._typing import Rows, RowsLike, Seed
from sksketch.kernel_methods.feature_maps import load_features
from sksketch.kernel_methods.fitting import KERNEL_CONSTRAINTS, fitted_features, kernel_rows
from sksketch.models.base import Estimator, or_as_before
from sksketch.models.constraints import FLAG, whole
from sksketch.models.parameters import seed_of
from sksketch.models.runner import lazy
from sksketch.models.scikit_learn import preserving_precision
from sksketch.state.persistence import State


class RandomFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    """Columns whose inner products are the values of a kernel, up to 1/sqrt(n_random_features).

    A feature is a function of the seed and its number alone: it is made again whenever it is
    needed, on the device of the rows, and never stored.

    Parameters
    ----------
    kernel : {"gaussian", "laplacian", "cauchy", "matern", "linear", "dot-product", "polynomial", \
            "exponential-semigroup", "reciprocal-semigroup", "arc-cosine"}, default="gaussian"
        The kernel.
    n_random_features : int, default=1024
        Columns to make.
    bandwidth : float or "median", default="median"
        Rows are divided by it. "median" is the median distance between rows for the first
        four kernels, in their norm, and 1 for the others.
    kernel_params : dict, default=None
        Parameters of the kernel: "nu" of "matern" (1.5), "coefficients" of "dot-product" (1/n!),
        "degree" (3) and "coef0" (1) of "polynomial", "beta" and "rate" (1) of the semigroup
        kernels, "order" of "arc-cosine" (1).
    landmarks : int or array of shape (n_landmarks, n_features), default=None
        Nystrom features of these rows, or of that many random ones, instead of random features.
        They are better where the kernel's spectrum falls fast; ``n_random_features`` is not
        used then.
    pairs : bool, default=True
        Whether each frequency makes a cosine and a sine, which has less error; otherwise each
        makes one cosine with a random phase. For the first four kernels.
    feature_batch : int, default=1024
        Features of the linear and polynomial kernels that are drawn at a time.
    cache_features : bool, default=False
        Whether to keep the frequencies, ``n_random_features * n_features`` numbers, for faster
        calls of ``transform`` on few rows.
    random_state : int, RandomState or None, default=0
        Seed of the features and of the rows sampled for bandwidth and landmarks.

    Attributes
    ----------
    bandwidth_ : float
        The bandwidth used.
    features_ : FeatureMap
        The features.
    n_features_out_ : int
        Columns made; fewer than landmarks if these are linearly dependent.
    n_features_in_ : int
        Columns of the rows.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of the columns, where the rows have names.

    See Also
    --------
    StreamingKernelPCA : Components of the features, found in one pass.
    StreamingSpectralClustering : Clusters of rows by their features.
    sklearn.kernel_approximation.RBFSampler : Random features of the Gaussian kernel.
    sklearn.kernel_approximation.Nystroem : Features of landmarks.

    Notes
    -----
    The features are those of [1]_, table 1, with corrections. In print, the normalization of the
    Gaussian density lacks parentheses; the density of the Cauchy kernel's frequencies has mass
    2^d; the exponent of the Matern density must be -(nu + d/2) and its frequencies are angular;
    the degrees of the dot-product kernel have a law only for p = 2, and here follow
    a_n R^(2n), with R the largest length of a row seen by ``fit``; the exponent of the Levy
    density lacks a square on beta; the arc-cosine feature is one degree too high and lacks a
    factor sqrt(2). Features of the dot-product, polynomial and arc-cosine kernels are not
    bounded: scale the rows.

    References
    ----------
    .. [1] Xie, B., Liang, Y. and Song, L. (2015). "Scale Up Nonlinear Component Analysis with
       Doubly Stochastic Gradients". NeurIPS.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((5, 3))
    >>> Z = RandomFeatures("gaussian", 8192, bandwidth=2.0).fit_transform(X)
    >>> distances = ((X[:, None] - X) ** 2).sum(axis=2)
    >>> bool(abs(Z @ Z.T - np.exp(-distances / 8)).max() < 0.05)
    True
    """

    kind = "random-features-transformer"
    settling_rows = 2000
    _fitted = "features_"
    _constraints = KERNEL_CONSTRAINTS | {
        "pairs": (FLAG,),
        "feature_batch": (whole(1),),
        "cache_features": (FLAG,),
    }

    def __init__(
        self,
        kernel: str = "gaussian",
        n_random_features: int = 1024,
        *,
        bandwidth: float | str = "median",
        kernel_params: dict[str, Any] | None = None,
        landmarks: RowsLike | None = None,
        pairs: bool = True,
        feature_batch: int = 1024,
        cache_features: bool = False,
        random_state: Seed = 0,
    ) -> None:
        self.kernel = kernel
        self.n_random_features = n_random_features
        self.bandwidth = bandwidth
        self.kernel_params = kernel_params
        self.landmarks = landmarks
        self.pairs = pairs
        self.feature_batch = feature_batch
        self.cache_features = cache_features
        self.random_state = random_state

    def fit(self, X: RowsLike, y: RowsLike | None = None) -> Self:
        """Take the number of columns from rows, and bandwidth and landmarks where asked for.

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
            params, seed = self.get_params(deep=False), seed_of(self.random_state)
            self.features_ = fitted_features(params, rows, seed, landmarks=self.landmarks)
        return self

    def partial_fit(self, X: RowsLike, y: RowsLike | None = None) -> Self:
        """Fit to the first block of rows, and only check the later ones.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.
        y : ignored
            Present for scikit-learn's pipelines.

        Returns
        -------
        self
            This estimator.
        """
        if not hasattr(self, "features_"):
            return self.fit(X)
        kernel_rows(self, X, reset=False)
        return self

    def settle(self, rows: Rows) -> None:
        """Choose bandwidth and landmarks by the first rows of a stream, forgetting others.

        Parameters
        ----------
        rows : array or sparse matrix of shape (n_samples, n_features)
            At least ``settling_rows``, where there are enough.
        """
        self.fit(rows)

    @lazy
    def transform(self, X: RowsLike) -> Any:
        """Return the features of rows, in their precision and on their device.

        Parameters
        ----------
        X : array-like, sparse matrix or dask collection of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        array of shape (n_samples, n_features_out_)
            Features.
        """
        self._require_fitted()
        rows = kernel_rows(self, X, reset=False)
        return self.features_.transform(rows)

    @property
    def bandwidth_(self) -> float:
        """The bandwidth used."""
        return self.features_.kernel.bandwidth

    @property
    def n_features_out_(self) -> int:
        """Columns made."""
        return self.features_.n_columns

    @property
    def _n_features_out(self) -> int:
        return self.features_.n_columns

    def __sklearn_tags__(self) -> Tags:
        return preserving_precision(super().__sklearn_tags__())

    def _learned(self, state: State) -> State:
        return state.with_inner("features", self.features_.state())

    def _recall(self, state: State) -> None:
        self.features_ = load_features(state.inner("features"))
