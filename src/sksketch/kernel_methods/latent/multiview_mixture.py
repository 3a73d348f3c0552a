"""A mixture learned from three views of each row, without assuming any form of density."""

from __future__ import annotations

import math
import warnings
from typing import Any, Self

import numpy as np

from sksketch._typing import Array, Rows, RowsLike, Seed
from sksketch.arrays.namespace import like, namespace, to_numpy
from sksketch.kernel_methods.fitting import (
    KERNEL_CONSTRAINTS,
    as_column,
    fitted_features,
    kernel_among,
    kernel_rows,
)
from sksketch.kernel_methods.kernels import SHIFT_INVARIANT
from sksketch.kernel_methods.latent.density import volume
from sksketch.kernel_methods.latent.multiview import (
    Mixture,
    Triple,
    find_bases,
    find_moments,
    solve,
)
from sksketch.kernel_methods.latent.three_views import (
    Learned,
    checked_triple,
    checked_view,
    densities,
    kept_rows,
)
from sksketch.models.base import Estimator, or_as_before
from sksketch.models.constraints import FLAG, check_value, number, one_of, whole
from sksketch.models.parameters import seed_of
from sksketch.state.persistence import State

# Classes are predicted with the densities of this many kept rows.
PREDICT_ROWS = 6000


class MultiviewMixture(Estimator):
    """Hidden classes from three views that are independent given the class.

    Learns the weight of each class and the density of each view given the class, of any form,
    from the second and third moments of kernel features.

    Parameters
    ----------
    n_components : int, default=2
        Hidden classes, no more than the views can tell apart.
    kernel : {"gaussian", "laplacian", "cauchy", "matern"}, default="gaussian"
        The kernel, see `RandomFeatures`.
    bandwidth : float or "median", default="median"
        Rows are divided by it. "median" is the median distance between rows, of each view.
    n_random_features : int, default=1024
        Random features of each view, made again when they are needed. With the lift their
        number hardly matters.
    landmarks : int, default=None
        Number of landmarks of Nystrom features, better where rows have few columns.
    same_conditionals : bool, default=True
        Whether the three views have the same density given the class, as repeated
        measurements have. Otherwise views may differ, and also in their columns.
    lift_rows : int, default=20_000
        Triples kept for ``density``, which is then a kernel density estimate with weights: it
        has no error of the features. 0 keeps none and evaluates the features.
    density_bandwidth : float or "auto", default="auto"
        Bandwidth of these densities. "auto" is ``bandwidth`` where that is a number, and
        otherwise Silverman's rule: the bandwidth that tells classes apart best is wider than
        the one that shows their densities.
    n_passes : int, default=1
        Passes over all triples that improve directions found on a pilot of 20,000 of them; one
        more finds the moments.
    kernel_params : dict, default=None
        Parameters of the kernel: "nu" of "matern" (1.5).
    random_state : int, RandomState or None, default=0
        Seed of features, samples and starts.

    Attributes
    ----------
    weights_ : array of shape (n_components,)
        Share of each class, the largest first; they sum to 1.
    weight_sum_ : float
        What the estimated weights summed to before. Far from 1, the views are not those of
        such a mixture, or the triples are too few.
    singular_values_ : array of shape (n_components,)
        Of the second moment of two views; the last must stand out of noise of about
        1/sqrt(n_samples).
    bandwidth_ : float or tuple of three floats
        The bandwidth of the features, one for each view unless ``same_conditionals``.
    density_bandwidth_ : float or tuple of three floats
        The bandwidth of the densities, likewise.
    features_ : tuple of three FeatureMap
        The features of each view.
    coefficients_ : tuple of three arrays of shape (n_features_out, n_components)
        Coefficients of the kernel means of each view given the class.
    n_features_in_ : int
        Columns of the rows.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of the columns, where the rows have names.

    See Also
    --------
    RandomFeatures : The features by themselves.
    StreamingSpectralClustering : Clusters of rows with one view.
    sklearn.mixture.GaussianMixture : One view, with densities of one form.

    Notes
    -----
    The model is that of [1]_, section 5, and [2]_. The span of the conditional means is found by
    subspace iteration in passes instead of stochastic steps. Densities are smoothed by the kernel:
    ``density`` estimates the true one convolved with k / volume(k). It is clipped at zero; the
    signed estimate underneath is what is unbiased. Rows in float32 are many times as fast as in
    float64 with random features.

    References
    ----------
    .. [1] Xie, B., Liang, Y. and Song, L. (2015). "Scale Up Nonlinear Component Analysis with
       Doubly Stochastic Gradients". NeurIPS.
    .. [2] Song, L., Anandkumar, A., Dai, B. and Xie, B. (2014). "Nonparametric Estimation of
       Multi-View Latent Variable Models". ICML, PMLR 32.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> hidden = rng.random(5000) < 0.3
    >>> views = [np.where(hidden, -2.0, 2.0)[:, None] + rng.normal(size=(5000, 1)) for _ in "123"]
    >>> model = MultiviewMixture(2, landmarks=50).fit(*views)
    >>> bool(abs(model.weights_ - [0.7, 0.3]).max() < 0.02)
    True
    >>> bool(abs(model.density([[2.0], [-2.0]], 0) - [0.4, 0.0]).max() < 0.05)
    True
    """

    kind = "multiview-mixture"
    _fitted = "weights_"
    _constraints = KERNEL_CONSTRAINTS | {
        "kernel": (kernel_among(SHIFT_INVARIANT),),
        "n_components": (whole(1),),
        "same_conditionals": (FLAG,),
        "lift_rows": (whole(0),),
        "density_bandwidth": (one_of("auto"), number(0.0, bounds="()")),
        "n_passes": (whole(0),),
    }
    features_: Triple
    coefficients_: Triple
    weights_: Array
    weight_sum_: float
    singular_values_: Array
    _lifted: Triple | None
    _n_features: tuple[int, ...]

    def __init__(
        self,
        n_components: int = 2,
        *,
        kernel: str = "gaussian",
        bandwidth: float | str = "median",
        n_random_features: int = 1024,
        landmarks: int | None = None,
        same_conditionals: bool = True,
        lift_rows: int = 20_000,
        density_bandwidth: float | str = "auto",
        n_passes: int = 1,
        kernel_params: dict[str, Any] | None = None,
        random_state: Seed = 0,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.n_random_features = n_random_features
        self.landmarks = landmarks
        self.same_conditionals = same_conditionals
        self.lift_rows = lift_rows
        self.density_bandwidth = density_bandwidth
        self.n_passes = n_passes
        self.kernel_params = kernel_params
        self.random_state = random_state

    def fit(self, X1: RowsLike, X2: RowsLike, X3: RowsLike) -> Self:
        """Learn from triples: row i of each view belongs to the same hidden class.

        Parameters
        ----------
        X1 : array-like or sparse matrix of shape (n_samples, n_features)
            Rows of the first view.
        X2 : array-like or sparse matrix of shape (n_samples, n_features)
            Rows of the second view.
        X3 : array-like or sparse matrix of shape (n_samples, n_features)
            Rows of the third view.

        Returns
        -------
        self
            This estimator.
        """
        self._check_params()
        with or_as_before(self):
            views = self._triple((X1, X2, X3), reset=True)
            n, k = views[0].shape[0], self.n_components
            if n < k:
                raise ValueError(f"got {n} triples for n_components={k}; give more of them")
            seed, shared = seed_of(self.random_state), bool(self.same_conditionals)
            params = self.get_params(deep=False)
            maps = [
                fitted_features(params, X, seed, landmarks=self.landmarks)
                for X in (views[:1] if shared else views)
            ]
            if (most := min(f.n_columns for f in maps)) < k:
                raise ValueError(
                    f"n_components={k} needs as many features, got {most}; give more landmarks or "
                    "random features"
                )
            self.features_ = Triple(*(maps * 3 if shared else maps))
            try:
                bases = find_bases(
                    self.features_, views, k, seed, shared=shared, n_passes=self.n_passes
                )
                moments = find_moments(self.features_, views, bases)
                mixture = solve(moments, seed, shared=shared)
            except np.linalg.LinAlgError as error:
                raise ValueError(
                    f"the views do not tell {k} components apart ({error}); ask for fewer, give "
                    "more triples, or another bandwidth"
                ) from None
            self._keep(mixture, bases, n)
            self._lifted = None
            if self.lift_rows:
                scales = self.density_bandwidth, self.bandwidth
                rows, weights = kept_rows(
                    self.features_, views, mixture, bases, self.lift_rows, seed
                )
                self._lifted = densities(self.features_, rows, weights, scales, seed, shared=shared)
        return self

    def density(self, X: Rows, component: int | None = None, *, view: int = 1) -> Any:
        """Return the density of rows of one view, given the class, smoothed by the kernel.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.
        component : int, default=None
            The class, from 0 on, in the order of ``weights_``; all of them if not given.
        view : {1, 2, 3}, default=1
            Which view the rows are of, where these have densities of their own.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_components)
            Densities given the class, or given each class.
        """
        self._require_fitted()
        check_value("view", view, one_of(1, 2, 3))
        check_value("component", component, one_of(None, *range(len(self.weights_))))
        rows = checked_view(X, f"X{view}", self._n_features[view - 1], self.same_conditionals)
        values, kernel = self._kernel_means(rows, view - 1)
        found = namespace(values).clip(values, 0.0, math.inf) / volume(kernel, rows.shape[1])
        return found if component is None else found[:, component]

    def predict_proba(self, X1: RowsLike, X2: RowsLike, X3: RowsLike) -> Any:
        """Return the probability of each class for triples, from the estimated densities.

        Parameters
        ----------
        X1 : array-like or sparse matrix of shape (n_samples, n_features)
            Rows of the first view.
        X2 : array-like or sparse matrix of shape (n_samples, n_features)
            Rows of the second view.
        X3 : array-like or sparse matrix of shape (n_samples, n_features)
            Rows of the third view.

        Returns
        -------
        array of shape (n_samples, n_components)
            Probabilities, in the order of ``weights_``.
        """
        self._require_fitted()
        views = self._triple((X1, X2, X3), reset=False)
        xp = namespace(views[0])
        logs = like(np.log(self.weights_), views[0])[None, :]
        for view, rows in enumerate(views):
            if self._lifted is not None:
                lifted = self._lifted[view].thinned(PREDICT_ROWS)
                values, least = lifted(rows), 1.0 / lifted.rows.shape[0]
            else:
                values = self._kernel_means(rows, view)[0]
                # What the values of features are uncertain by.
                least = 1.0 / math.sqrt(self.features_[view].n_columns)
            logs = logs + xp.log(xp.clip(values, least, math.inf))
        shares = xp.exp(logs - xp.max(logs, axis=1, keepdims=True))
        return shares / xp.sum(shares, axis=1, keepdims=True)

    def predict(self, X1: RowsLike, X2: RowsLike, X3: RowsLike) -> Any:
        """Return the most probable class of each triple.

        Parameters
        ----------
        X1 : array-like or sparse matrix of shape (n_samples, n_features)
            Rows of the first view.
        X2 : array-like or sparse matrix of shape (n_samples, n_features)
            Rows of the second view.
        X3 : array-like or sparse matrix of shape (n_samples, n_features)
            Rows of the third view.

        Returns
        -------
        array of shape (n_samples,)
            Numbers of classes, in the order of ``weights_``.
        """
        shares = self.predict_proba(X1, X2, X3)
        return namespace(shares).argmax(shares, axis=1)

    @property
    def bandwidth_(self) -> Any:
        """The bandwidth of the features."""
        return self._each([f.kernel.bandwidth for f in self.features_])

    @property
    def density_bandwidth_(self) -> Any:
        """The bandwidth of the densities."""
        if self._lifted is None:
            return self.bandwidth_
        return self._each([lifted.kernel.bandwidth for lifted in self._lifted])

    def _each(self, values: list[float]) -> Any:
        return values[0] if self.same_conditionals else tuple(values)

    # Learning

    def _keep(self, mixture: Mixture, bases: Triple, n_rows: int) -> None:
        """Take over what was found, and say if it is not to be relied on."""
        noise = n_rows**-0.5
        if mixture.singular_values[-1] < noise:
            n_clear = int((mixture.singular_values >= noise).sum())
            warnings.warn(
                f"the views tell {n_clear} components apart, not n_components="
                f"{self.n_components}: the singular value {mixture.singular_values[-1]:.3g} is "
                f"below the noise 1/sqrt(n_samples) = {noise:.3g}; ask for fewer components, "
                "give more triples, or another bandwidth",
                stacklevel=3,
            )
        self.weight_sum_ = float(mixture.weights.sum())
        self.weights_ = mixture.weights / self.weight_sum_
        self.singular_values_ = mixture.singular_values
        # Coefficients of E[k(x, X) | h].
        self.coefficients_ = Triple(
            *(
                to_numpy(B) @ M * f.n_columns**-0.5
                for B, M, f in zip(bases, mixture.means, self.features_, strict=True)
            )
        )

    def _kernel_means(self, rows: Rows, view: int) -> tuple[Any, Any]:
        """Return E[k(x, X) | h] for rows x and all classes h, and the kernel."""
        if self._lifted is not None:
            return self._lifted[view](rows), self._lifted[view].kernel
        features = self.features_[view]
        return features.evaluate(rows, self.coefficients_[view]), features.kernel

    def _check_together(self) -> None:
        if not isinstance(self.density_bandwidth, str) and not self.lift_rows:
            raise ValueError(
                "density_bandwidth is given, and lift_rows=0 keeps no rows to use it on; give "
                "the bandwidth alone, or lift_rows"
            )

    def _triple(self, given: tuple[Any, Any, Any], *, reset: bool) -> Triple:
        """Return three checked views with one row for each triple."""
        first = kernel_rows(self, as_column(given[0]), reset=reset)
        n_features = None if reset else self._n_features
        views = checked_triple(first, given[1:], n_features, bool(self.same_conditionals))
        if reset:
            self._n_features = tuple(X.shape[1] for X in views)
        return views

    # Saving

    def _learned(self, state: State) -> State:
        found = Learned(
            self.features_, self.coefficients_, self._lifted, bool(self.same_conditionals)
        )
        arrays: dict[str, Array] = {
            "weights": self.weights_,
            "singular_values": self.singular_values_,
            "n_features": np.array(self._n_features),
        }
        return found.stored(state.with_more({"weight_sum": self.weight_sum_}, arrays))

    def _recall(self, state: State) -> None:
        self.weights_ = np.asarray(state.arrays["weights"])
        self.singular_values_ = np.asarray(state.arrays["singular_values"])
        self.weight_sum_ = float(str(state.meta["weight_sum"]))
        self._n_features = tuple(map(int, state.arrays["n_features"]))
        found = Learned.of(state, shared=bool(self.same_conditionals))
        self.features_, self.coefficients_, self._lifted, _ = found
