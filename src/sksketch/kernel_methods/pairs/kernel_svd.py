"""Kernel SVD: the singular functions of the cross-covariance of two views."""

from __future__ import annotations

from typing import Any

from sksketch._typing import Array, RowsLike, Seed
from sksketch.kernel_methods.feature_maps import FeatureMap
from sksketch.kernel_methods.pairs.pair_estimator import PairEstimator
from sksketch.kernel_methods.pairs.pair_solvers import ExactPairs, SteppedPairs
from sksketch.kernel_methods.pairs.paired_steps import PairedSteps
from sksketch.models.constraints import FLAG


class StreamingKernelSVD(PairEstimator):
    """Singular functions of the operator E[k(x, .) l(y, .)] of paired rows, in flat memory.

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
    center : bool, default=False
        Whether features are centered: False is the operator of the paper, True the
        cross-covariance.
    landmarks : int, array of shape (n_landmarks, n_features) or tuple of two such, default=None
        Use the features of landmarks of each view instead of random ones.
    solver : {"auto", "exact", "sgd"}, default="auto"
        "exact" accumulates the cross-covariance of the features; "sgd" makes doubly stochastic
        steps. "auto" is "exact" while it takes no more than 512 MiB.
    n_steps : int, default=300
        Steps that `fit` makes with ``solver="sgd"``, over all rows again if need be.
    batch_size : int, default=1024
        Pairs of rows in a step.
    cache_features : bool, default=False
        Whether to keep the frequencies, ``n_random_features * n_features`` numbers.
    random_state : int, RandomState or None, default=0
        Seed of features, pilot rows and the order of rows.

    Attributes
    ----------
    singular_values_ : array of shape (n_components,)
        Singular values of the operator, largest first.
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
    StreamingKernelCCA : Functions of the largest correlation.
    StreamingKernelPCA : Components of one view.
    sklearn.cross_decomposition.PLSSVD : Linear functions, for rows that fit in memory.

    Notes
    -----
    The problem is that of [1]_. Rows must come in pairs: drawn one by one from either view, the
    operator would have rank one.

    References
    ----------
    .. [1] Xie, B., Liang, Y. and Song, L. (2015). "Scale Up Nonlinear Component Analysis with
       Doubly Stochastic Gradients". NeurIPS.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((2000, 1))
    >>> svd = StreamingKernelSVD(2, bandwidth=1.0, n_random_features=512).fit(X, X)
    >>> bool(abs(svd.singular_values_ - [0.618, 0.236]).max() < 0.03)
    True
    """

    kind = "streaming-kernel-svd"
    _constraints = PairEstimator._shared_constraints | {"center": (FLAG,)}

    def __init__(
        self,
        n_components: int = 2,
        *,
        kernel: str = "gaussian",
        bandwidth: float | str | tuple[float | str, float | str] = "median",
        kernel_params: dict[str, Any] | None = None,
        n_random_features: int = 4096,
        center: bool = False,
        landmarks: RowsLike | None = None,
        solver: str = "auto",
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
        self.center = center
        self.landmarks = landmarks
        self.solver = solver
        self.n_steps = n_steps
        self.batch_size = batch_size
        self.cache_features = cache_features
        self.random_state = random_state

    def _new_solver(self, x: FeatureMap, y: FeatureMap, exact: bool, n_rows: int | None) -> Any:
        if exact:
            return ExactPairs(x, y, self.n_components, "svd", self.center, 0.0)
        learner = PairedSteps(x, y, self.n_components, task="svd", center=self.center)
        return SteppedPairs(learner, self.batch_size)

    @property
    def singular_values_(self) -> Array:
        """Singular values of the operator, largest first."""
        return self._functions().strengths
