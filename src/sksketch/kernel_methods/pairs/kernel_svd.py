"""Kernel SVD: the singular functions of the cross-covariance of two views."""

from __future__ import annotations

from typing import Any

from sksketch._typing import Array, Rows
from sksketch.kernel_methods.feature_maps import FeatureMap
from sksketch.kernel_methods.pairs.pair_estimator import PairEstimator
from sksketch.kernel_methods.pairs.pair_solvers import ExactPairs, SteppedPairs
from sksketch.kernel_methods.pairs.paired_steps import PairedSteps
from sksketch.models.constraints import FLAG


class StreamingKernelSVD(PairEstimator):
    """Singular functions of the operator E[k(x, .) l(y, .)] of paired rows, in flat memory.

    Parameters
    ----------
    n_components : int
        Pairs of functions to find.
    kernel : str
        As for `RandomFeatures`, for both views.
    bandwidth : float, "median" or a tuple of two
        Rows are divided by it; "median" is that of each view.
    kernel_params : dict, optional
        Parameters of the kernel, as for `RandomFeatures`.
    n_random_features : int
        Random features of each view.
    center : bool
        Whether features are centered: False is the operator of the paper, True the
        cross-covariance.
    landmarks : int, array or a tuple of two, optional
        Use the features of landmarks of each view instead of random ones.
    solver : {"auto", "exact", "sgd"}
        "exact" accumulates the cross-covariance of the features; "sgd" makes doubly stochastic
        steps. "auto" is "exact" while it takes no more than 512 MiB.
    n_steps : int
        Steps that `fit` makes with ``solver="sgd"``, over all rows again if need be.
    batch_size : int
        Pairs of rows in a step.
    cache_features : bool
        Whether to keep the frequencies, ``n_random_features * n_features`` numbers.
    random_state : int, RandomState or None
        Seed of features, pilot rows and the order of rows.

    Attributes
    ----------
    singular_values_ : array of shape (n_components,)
        Largest first.
    bandwidths_ : tuple of two floats
    plan_ : str
        What was chosen, and why.
    n_samples_seen_ : int

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((2000, 1))
    >>> svd = StreamingKernelSVD(2, bandwidth=1.0, n_random_features=512).fit(X, X)
    >>> bool(abs(svd.singular_values_ - [0.618, 0.236]).max() < 0.03)
    True

    Notes
    -----
    Xie, Liang and Song (2015). Rows must come in pairs: drawn one by one from either view, the
    operator would have rank one.
    """

    kind = "streaming-kernel-svd"
    _constraints = PairEstimator._shared_constraints | {"center": (FLAG,)}

    def __init__(
        self,
        n_components: int = 2,
        *,
        kernel: str = "gaussian",
        bandwidth: Any = "median",
        kernel_params: dict[str, Any] | None = None,
        n_random_features: int = 4096,
        center: bool = False,
        landmarks: Rows | None = None,
        solver: str = "auto",
        n_steps: int = 300,
        batch_size: int = 1024,
        cache_features: bool = False,
        random_state: Any = 0,
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
