"""Kernel CCA for any number of rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from sksketch._typing import Array, RowsLike, Seed
from sksketch.arrays.namespace import to_numpy
from sksketch.kernel_methods.feature_maps import FeatureMap
from sksketch.kernel_methods.pairs.pair_estimator import PairEstimator
from sksketch.kernel_methods.pairs.pair_solvers import AUTO_RIDGE, ExactPairs, SteppedPairs
from sksketch.kernel_methods.pairs.paired_steps import PairedSteps
from sksketch.models.constraints import number, one_of


class StreamingKernelCCA(PairEstimator):
    """Canonical correlations between nonlinear functions of two views, in flat memory.

    Parameters
    ----------
    n_components : int, default=2
        Pairs of functions to find.
    kernel : {"gaussian", "laplacian", "cauchy", "matern", "linear", "dot-product", "polynomial", \
            "exponential-semigroup", "reciprocal-semigroup", "arc-cosine"}, default="gaussian"
        The kernel of both views, see `RandomFeatures`.
    bandwidth : float, "median" or tuple of two such, default="median"
        Rows are divided by it; "median" is the median distance between pilot rows of each view.
    kernel_params : dict, default=None
        Parameters of the kernel: "nu" of "matern" (1.5), "coefficients" of "dot-product" (1/n!),
        "degree" (3) and "coef0" (1) of "polynomial", "beta" and "rate" (1) of the semigroup
        kernels, "order" of "arc-cosine" (1).
    n_random_features : int, default=4096
        Random features of each view.
    ridge : float or "auto", default="auto"
        Penalty on the norms of the functions, beside their variance. It matters: without
        enough of it the correlations of few rows are all near one. "auto" is 0.06 times the
        total variance of the features, divided by the rows. Choose it by `score` on rows that
        were not learned from.
    landmarks : int, array of shape (n_landmarks, n_features) or tuple of two such, default=None
        Use the features of landmarks of each view instead of random ones.
    solver : {"auto", "exact", "sgd"}, default="auto"
        "exact" accumulates all covariances of the features and solves one dense problem; "sgd"
        makes doubly stochastic steps and needs memory for few numbers per feature. "auto" is
        "exact" while the covariances take no more than 512 MiB.
    step : {"preconditioned", "plain"}, default="preconditioned"
        "preconditioned" divides the gradient by the leading part of each covariance, taken
        from the pilot rows, and needs far fewer steps than "plain", the step of the paper.
    n_steps : int, default=300
        Steps that `fit` makes with ``solver="sgd"``, over all rows again if need be.
    batch_size : int, default=1024
        Pairs of rows in a step; ten times the components or more.
    cache_features : bool, default=False
        Whether to keep the frequencies, ``n_random_features * n_features`` numbers.
    random_state : int, RandomState or None, default=0
        Seed of features, pilot rows and the order of rows.

    Attributes
    ----------
    correlations_ : array of shape (n_components,)
        Canonical correlations on the rows learned from, largest first.
    bandwidths_ : tuple of two floats
        The bandwidth of either view.
    plan_ : str
        One sentence: the solver that was chosen, and why.
    solver_ : {"exact", "sgd"}
        The solver used.
    embedding_sample_ : tuple of two arrays
        Components of at most 400 rows of either view, for the pictures of a report.
    n_samples_seen_ : int
        Pairs of rows learned from.
    n_features_in_ : int
        Columns of the first view.
    n_features_y_ : int
        Columns of the second view.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of the columns of the first view, where they have names.

    See Also
    --------
    StreamingKernelSVD : Functions of the largest covariance.
    StreamingKernelPCA : Components of one view.
    sklearn.cross_decomposition.CCA : Linear functions, for rows that fit in memory.

    Notes
    -----
    The problem is that of [1]_. In print the eigenvalue of the problem with diagonal blocks is
    1 + sigma^2; it is 1 + rho. Their only regularizer is to stop early; ours is the ridge.

    References
    ----------
    .. [1] Xie, B., Liang, Y. and Song, L. (2015). "Scale Up Nonlinear Component Analysis with
       Doubly Stochastic Gradients". NeurIPS.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> t = rng.uniform(-1, 1, 2000)
    >>> X = np.column_stack([t, rng.standard_normal(2000)])
    >>> Y = np.column_stack([t**2, rng.standard_normal(2000)])
    >>> cca = StreamingKernelCCA(1, n_random_features=256, ridge=1e-3).fit(X[:1000], Y[:1000])
    >>> bool(cca.score(X[1000:], Y[1000:]) > 0.9)
    True
    """

    kind = "streaming-kernel-cca"
    _constraints = PairEstimator._shared_constraints | {
        "ridge": (one_of("auto"), number(0.0)),
        "step": (one_of("preconditioned", "plain"),),
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        kernel: str = "gaussian",
        bandwidth: float | str | tuple[float | str, float | str] = "median",
        kernel_params: dict[str, Any] | None = None,
        n_random_features: int = 4096,
        ridge: float | str = "auto",
        landmarks: RowsLike | None = None,
        solver: str = "auto",
        step: str = "preconditioned",
        n_steps: int = 300,
        batch_size: int = 1024,
        cache_features: bool = False,
        random_state: Seed = 0,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.kernel_params = kernel_params
        self.n_random_features = n_random_features
        self.ridge = ridge
        self.landmarks = landmarks
        self.solver = solver
        self.step = step
        self.n_steps = n_steps
        self.batch_size = batch_size
        self.cache_features = cache_features
        self.random_state = random_state

    def _new_solver(self, x: FeatureMap, y: FeatureMap, exact: bool, n_rows: int | None) -> Any:
        if exact:
            return ExactPairs(x, y, self.n_components, "cca", True, self.ridge)
        # In a stream the rows to come are unknown, and many.
        ridge = AUTO_RIDGE / (n_rows or 60_000) if self.ridge == "auto" else float(self.ridge)
        learner = PairedSteps(
            x,
            y,
            self.n_components,
            task="cca",
            ridge=ridge,
            step=self.step,
            batch_size=self.batch_size,
        )
        return SteppedPairs(learner, self.batch_size)

    @property
    def correlations_(self) -> Array:
        """Canonical correlations on the rows learned from, largest first."""
        return self._functions().strengths

    def score(self, X: RowsLike, y: RowsLike) -> float:
        """Return the total correlation of paired columns on rows, such as held-out ones.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows of the first view.
        y : array-like or sparse matrix of shape (n_samples, n_features_y)
            Rows of the second view.

        Returns
        -------
        float
            Sum of the correlations, at most ``n_components``.
        """
        return self.total_correlation(X, y)

    def total_correlation(self, X: RowsLike, y: RowsLike, *, rotate: bool = False) -> float:
        """Return the sum of correlations between the components of both views.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows of the first view.
        y : array-like or sparse matrix of shape (n_samples, n_features_y)
            Rows of the second view.
        rotate : bool, default=False
            False takes the correlation of each pair of columns; True takes the canonical
            correlations of the two sets of columns on these rows, whatever their rotation.

        Returns
        -------
        float
            Sum of the correlations, at most ``n_components``.
        """
        U, V = (to_numpy(Z).astype(np.float64) for Z in self.transform(X, y))
        U, V = U - U.mean(axis=0), V - V.mean(axis=0)
        if rotate:
            bases = [np.linalg.qr(Z)[0] for Z in (U, V)]
            return float(np.linalg.svd(bases[0].T @ bases[1], compute_uv=False).sum())
        lengths = np.sqrt((U**2).sum(axis=0) * (V**2).sum(axis=0))
        return float(((U * V).sum(axis=0) / np.where(lengths > 0, lengths, 1.0)).sum())
