"""Kernel CCA for any number of rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from sksketch._typing import Array, Rows, RowsLike
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
    ridge : float or "auto"
        Penalty on the norms of the functions, beside their variance. It matters: without
        enough of it the correlations of few rows are all near one. "auto" is 0.06 times the
        total variance of the features, divided by the rows. Choose it by `score` on rows that
        were not learned from.
    landmarks : int, array or a tuple of two, optional
        Use the features of landmarks of each view instead of random ones.
    solver : {"auto", "exact", "sgd"}
        "exact" accumulates all covariances of the features and solves one dense problem; "sgd"
        makes doubly stochastic steps and needs memory for few numbers per feature. "auto" is
        "exact" while the covariances take no more than 512 MiB.
    step : {"preconditioned", "plain"}
        "preconditioned" divides the gradient by the leading part of each covariance, taken
        from the pilot rows, and needs far fewer steps than "plain", the step of the paper.
    n_steps : int
        Steps that `fit` makes with ``solver="sgd"``, over all rows again if need be.
    batch_size : int
        Pairs of rows in a step; ten times the components or more.
    cache_features : bool
        Whether to keep the frequencies, ``n_random_features * n_features`` numbers.
    random_state : int, RandomState or None
        Seed of features, pilot rows and the order of rows.

    Attributes
    ----------
    correlations_ : array of shape (n_components,)
        Canonical correlations on the rows learned from, largest first.
    bandwidths_ : tuple of two floats
    plan_ : str
        What was chosen, and why.
    n_samples_seen_ : int

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> t = rng.uniform(-1, 1, 2000)
    >>> X = np.column_stack([t, rng.standard_normal(2000)])
    >>> Y = np.column_stack([t**2, rng.standard_normal(2000)])
    >>> cca = StreamingKernelCCA(1, n_random_features=256, ridge=1e-3).fit(X[:1000], Y[:1000])
    >>> bool(cca.score(X[1000:], Y[1000:]) > 0.9)
    True

    Notes
    -----
    Xie, Liang and Song (2015). In print the eigenvalue of the problem with diagonal blocks is
    1 + sigma^2; it is 1 + rho. Their only regularizer is to stop early; ours is the ridge.
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
        bandwidth: Any = "median",
        kernel_params: dict[str, Any] | None = None,
        n_random_features: int = 4096,
        ridge: float | str = "auto",
        landmarks: Rows | None = None,
        solver: str = "auto",
        step: str = "preconditioned",
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
        y : array-like or sparse matrix of shape (n_samples, n_features_y)

        Returns
        -------
        float
        """
        return self.total_correlation(X, y)

    def total_correlation(self, X: RowsLike, y: RowsLike, *, rotate: bool = False) -> float:
        """Return the sum of correlations between the components of both views.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like or sparse matrix of shape (n_samples, n_features_y)
        rotate : bool
            False takes the correlation of each pair of columns; True takes the canonical
            correlations of the two sets of columns on these rows, whatever their rotation.

        Returns
        -------
        float
        """
        U, V = (to_numpy(Z).astype(np.float64) for Z in self.transform(X, y))
        U, V = U - U.mean(axis=0), V - V.mean(axis=0)
        if rotate:
            bases = [np.linalg.qr(Z)[0] for Z in (U, V)]
            return float(np.linalg.svd(bases[0].T @ bases[1], compute_uv=False).sum())
        lengths = np.sqrt((U**2).sum(axis=0) * (V**2).sum(axis=0))
        return float(((U * V).sum(axis=0) / np.where(lengths > 0, lengths, 1.0)).sum())
