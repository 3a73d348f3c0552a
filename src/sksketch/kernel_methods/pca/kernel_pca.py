"""Kernel PCA for any number of rows: doubly stochastic, or a sketch of features."""

from __future__ import annotations

import copy
from typing import Any, Self

from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import Tags

from sksketch._typing import Array, Rows, RowsLike, Seed
from sksketch.exceptions import NotMergeableError
from sksketch.kernel_methods import piloted
from sksketch.kernel_methods.expansions import Functions
from sksketch.kernel_methods.fitting import KERNEL_CONSTRAINTS, kernel_rows
from sksketch.kernel_methods.pca import solving
from sksketch.kernel_methods.pca.component_solvers import SOLVERS, certificate_of
from sksketch.kernel_methods.pca.pre_image import PreImage
from sksketch.kernel_methods.piloted import PilotedLearner, Planned, Views
from sksketch.models.base import Estimator, or_as_before
from sksketch.models.constraints import FLAG, NOTHING, one_of, whole
from sksketch.models.parameters import seed_of
from sksketch.models.runner import fit_dask, is_dask, lazily
from sksketch.models.scikit_learn import Callbacks, preserving_precision
from sksketch.sketches import Certificate
from sksketch.state.persistence import State


class StreamingKernelPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    """Kernel PCA in flat memory: neither the kernel matrix nor the features are ever held.

    Parameters
    ----------
    n_components : int, default=2
        Components to find.
    kernel : {"gaussian", "laplacian", "cauchy", "matern", "linear", "dot-product", "polynomial", \
            "exponential-semigroup", "reciprocal-semigroup", "arc-cosine"}, default="gaussian"
        The kernel, see `RandomFeatures`.
    bandwidth : float or "median", default="median"
        Rows are divided by it; "median" is the median distance between pilot rows.
    kernel_params : dict, default=None
        Parameters of the kernel: "nu" of "matern" (1.5), "coefficients" of "dot-product" (1/n!),
        "degree" (3) and "coef0" (1) of "polynomial", "beta" and "rate" (1) of the semigroup
        kernels, "order" of "arc-cosine" (1).
    n_random_features : int, default=4096
        Random features at the end.
    landmarks : int or array of shape (n_landmarks, n_features), default=None
        Use the features of landmarks instead of random ones.
    solver : {"auto", "sgd", "sketch"}, default="auto"
        "sgd" makes doubly stochastic steps: rows and random features come a batch at a time.
        "sketch" is `StreamingPCA` of the features, with its certificate. "auto" takes, of random
        features and landmarks, those that keep more of the exact components of pilot rows.
    center : bool, default=True
        Whether features are centered, as in scikit-learn's ``KernelPCA``.
    batch_size : int, default=1024
        Rows of a step.
    feature_batch : int, default=1024
        Random features that each step adds, until all are there.
    step : {"matrix", "scalar"}, default="matrix"
        "matrix" scales each direction by itself and needs no tuning; "scalar" is the step of
        the paper, its size taken from the pilot.
    order : {"rotate", "gha"}, default="rotate"
        "rotate" finds the subspace and rotates it to eigenfunctions at the end; "gha" finds
        one after the other, as the generalized Hebbian algorithm.
    polish : int, default=None
        Passes of block Krylov after the steps; by default 2 in `fit`, none in a stream. A
        stream needs a source that can be read again.
    fit_inverse_transform : bool, default=False
        Whether to learn a linear map from components back to rows.
    cache_features : bool, default=False
        Whether to keep the frequencies while learning, ``n_random_features * n_features``
        numbers; faster with small batches of wide rows.
    random_state : int, RandomState or None, default=0
        Seed of features, pilot rows and the order of rows in `fit`.

    Attributes
    ----------
    eigenvalues_ : array of shape (n_components,)
        Eigenvalues of the covariance operator, largest first: those of the kernel matrix
        divided by the number of rows.
    bandwidth_ : float
        The bandwidth used.
    n_random_features_used_ : int
        Features that have coefficients.
    plan_ : str
        One sentence: the solver that was chosen, and why.
    solver_ : {"sgd", "sketch"}
        The solver used.
    certificate_ : Certificate
        With ``solver="sketch"``: what is certain about the covariance of the features.
    embedding_sample_ : tuple of one array
        Components of at most 400 rows, for the pictures of a report.
    n_samples_seen_ : int
        Rows learned from.
    n_features_in_ : int
        Columns of the rows.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of the columns, where the rows have names.

    See Also
    --------
    StreamingPCA : Components of the rows themselves.
    RandomFeatures : The features by themselves.
    StreamingKernelCCA : Correlated components of two views.
    sklearn.decomposition.KernelPCA : For rows whose kernel matrix fits in memory.

    Notes
    -----
    The algorithm of [1]_ starts without coefficients and stays at zero; ours starts from the PCA
    of pilot rows. Once all features are there a step moves all of them, not one block. Eigenvalues
    are Ritz values of the kernel itself: noise of the features inflates norms of coefficients.

    Two can be merged if their solver is "sketch" and their features are the same: give both the
    same seed, a number as ``bandwidth`` and, if landmarks are used, the same rows as ``landmarks``.

    References
    ----------
    .. [1] Xie, B., Liang, Y. and Song, L. (2015). "Scale Up Nonlinear Component Analysis with
       Doubly Stochastic Gradients". NeurIPS.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> angle = rng.uniform(0, 2 * np.pi, 3000)
    >>> X = np.column_stack([np.cos(angle), np.sin(angle)]) * rng.choice([1.0, 3.0], 3000)[:, None]
    >>> kpca = StreamingKernelPCA(2, bandwidth=1.0).fit(X)
    >>> kpca.transform(X).shape
    (3000, 2)
    >>> kpca.eigenvalues_.round(2)
    array([0.13, 0.11])
    """

    kind = "streaming-kernel-pca"
    _fitted = "_learner"
    _constraints = KERNEL_CONSTRAINTS | {
        **dict.fromkeys(("n_components", "batch_size", "feature_batch"), (whole(1),)),
        **dict.fromkeys(("center", "fit_inverse_transform", "cache_features"), (FLAG,)),
        "solver": (one_of("auto", "sgd", "sketch"),),
        "step": (one_of("matrix", "scalar"),),
        "order": (one_of("rotate", "gha"),),
        "polish": (whole(0), NOTHING),
    }
    pilot_rows = solving.PILOT_ROWS
    _learner: PilotedLearner
    _inverse: PreImage | None
    _n_passes_done: int

    def __init__(
        self,
        n_components: int = 2,
        *,
        kernel: str = "gaussian",
        bandwidth: float | str = "median",
        kernel_params: dict[str, Any] | None = None,
        n_random_features: int = 4096,
        landmarks: RowsLike | None = None,
        solver: str = "auto",
        center: bool = True,
        batch_size: int = 1024,
        feature_batch: int = 1024,
        step: str = "matrix",
        order: str = "rotate",
        polish: int | None = None,
        fit_inverse_transform: bool = False,
        cache_features: bool = False,
        random_state: Seed = 0,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.kernel_params = kernel_params
        self.n_random_features = n_random_features
        self.landmarks = landmarks
        self.solver = solver
        self.center = center
        self.batch_size = batch_size
        self.feature_batch = feature_batch
        self.step = step
        self.order = order
        self.polish = polish
        self.fit_inverse_transform = fit_inverse_transform
        self.cache_features = cache_features
        self.random_state = random_state

    def fit(self, X: RowsLike, y: RowsLike | None = None) -> Self:
        """Learn from all rows of ``X``, forgetting what was learned before.

        Parameters
        ----------
        X : array-like, sparse matrix or dask collection of shape (n_samples, n_features)
            Rows; arrays of torch and cupy stay on their device, and with ``solver="sketch"``
            those of dask are learned where they lie.
        y : ignored
            Present for scikit-learn's pipelines.

        Returns
        -------
        self
            This estimator.
        """
        if is_dask(X):
            return fit_dask(self, X)
        with or_as_before(self), Callbacks(self).running("fit"):
            rows = self._start(X)
            self._learner = self._learner.with_solver(self._solved((rows,)), rows.shape[0])
            sample, functions = solving.sample_of(rows, self._learner.seed), self._functions()
            scores = functions(sample[: piloted.EMBEDDED_ROWS])
            self.embedding_sample_ = piloted.embedding_of(scores)
            if self.fit_inverse_transform:
                self._inverse = PreImage.learned(functions(sample), sample)
        return self

    def _start(self, X: RowsLike) -> Any:
        """Begin with nothing learned; return checked rows."""
        self._check_params()
        rows = kernel_rows(self, X, reset=True)
        self._learner = PilotedLearner(self.pilot_rows, seed_of(self.random_state))
        self._inverse, self._n_passes_done, self._answers = None, 0, {}
        self.__dict__.pop("embedding_sample_", None)
        return rows

    def _solved(self, views: Views) -> Planned:
        return solving.solved(self.get_params(deep=False), views[0], self._learner)

    def _chosen(self, pilot: Views) -> Planned:
        return solving.chosen_solver(self.get_params(deep=False), pilot[0], self._learner.seed)

    def partial_fit(self, X: RowsLike, y: RowsLike | None = None) -> Self:
        """Learn from one more block of rows, of any size.

        The first 2000 rows are the pilot. Later ones make a step whenever there are
        ``batch_size`` of them, so that it does not matter how the rows are cut into blocks.

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
        if is_dask(X):
            if hasattr(self, "_learner"):
                raise NotMergeableError(piloted.CHOSEN)
            return fit_dask(self, X)
        with or_as_before(self):
            first = not hasattr(self, "_learner")
            rows = self._start(X) if first else kernel_rows(self, X, reset=False)
            self._learner.learn((rows,), self._chosen, again=self._n_passes_done > 0)
            self._answers = {}
            self.__dict__.pop("embedding_sample_", None)
        return self

    _absorb = piloted.absorb

    def _template(self) -> Self:
        self._check_params()
        solving.require_parts(self.solver)
        return type(self)(**self.get_params(deep=False))

    def take_pilot(self, rows: Rows) -> None:
        """Choose the features by some rows, as all parts must have the same.

        Parameters
        ----------
        rows : array-like or sparse matrix of shape (n_samples, n_features)
            The pilot.
        """
        pilot = self._start(rows)
        self._learner = self._learner.with_solver(self._chosen((pilot,)))

    def _part(self, index: int, n_shards: int) -> Self:
        twin = copy.copy(self)
        twin._learner, twin._answers = self._learner.for_shard(index, n_shards), {}
        return twin

    def compact(self) -> None:
        """Shrink the rows that wait in the sketch, before its state travels."""
        if (chosen := self._learner.chosen) is not None:
            chosen.solver.sketch.compact()

    @property
    def n_passes(self) -> int:
        """Passes over all rows that `fit_stream` makes: one, and those of the polish."""
        return 1 + (0 if self.polish is None or self.solver == "sketch" else self.polish)

    def end_pass(self, number: int) -> None:
        """Begin another pass.

        Parameters
        ----------
        number : int
            Times that all rows have come.
        """
        if number > self._n_passes_done and (chosen := self._learner.chosen) is not None:
            chosen.solver.end_pass()
            self._n_passes_done = number

    _found = piloted.found_by

    def _functions(self) -> Functions:
        functions: Functions = self._found().functions[1]
        return functions

    n_samples_seen_ = property(piloted.n_samples_seen_)
    solver_ = property(piloted.solver_)
    plan_ = property(piloted.plan_)

    @property
    def eigenvalues_(self) -> Array:
        """Eigenvalues of the covariance operator, largest first."""
        values: Array = self._found().functions[0]
        return values

    @property
    def bandwidth_(self) -> float:
        """The bandwidth used."""
        return float(self._functions().features.kernel.bandwidth)

    @property
    def n_random_features_used_(self) -> int:
        """Features that have coefficients."""
        return int(self._functions().coefficients.shape[0])

    @property
    def certificate_(self) -> Certificate:
        """Certificate of the covariance of the features; with ``solver="sketch"``."""
        certificate: Certificate = self._once(
            "certificate_", lambda: certificate_of(self._learner.chosen)
        )
        return certificate

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components)

    def transform(self, X: RowsLike) -> Any:
        """Return the components of rows, in their precision and on their device.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        array of shape (n_samples, n_components)
            With mean squares ``eigenvalues_`` over the rows learned from.
        """
        functions = self._functions()
        if is_dask(X):
            return lazily(self, "transform", X)
        return functions(kernel_rows(self, X, reset=False))

    def _embedded(self, views: Views) -> Views:
        return (self._functions()(kernel_rows(self, views[0], reset=False)),)

    keep_embedding = piloted.keep_embedding

    def __sklearn_tags__(self) -> Tags:
        return preserving_precision(super().__sklearn_tags__())

    def inverse_transform(self, X: RowsLike) -> Any:
        """Return rows that have about these components, by the linear map learned in `fit`.

        Parameters
        ----------
        X : array of shape (n_samples, n_components)
            Components, as `transform` returns them.

        Returns
        -------
        array of shape (n_samples, n_features)
            Rows.
        """
        self._require_fitted()
        if self._inverse is None:
            raise NotFittedError(
                "there is no way back from components; pass fit_inverse_transform=True and call fit"
            )
        return self._inverse.rows(X)

    def _learned(self, state: State) -> State:
        arrays = {} if self._inverse is None else self._inverse.arrays()
        state = state.with_more({"n_passes_done": self._n_passes_done}, arrays)
        state = self._learner.stored(state)
        return piloted.with_embedding(state, self.__dict__.get("embedding_sample_", ()))

    def _recall(self, state: State) -> None:
        self._n_passes_done = int(str(state.meta["n_passes_done"]))
        self._learner = PilotedLearner.of(state, self.pilot_rows, SOLVERS)
        if sample := piloted.stored_embedding(state):
            self.embedding_sample_ = sample
        self._inverse = PreImage.of(state)
