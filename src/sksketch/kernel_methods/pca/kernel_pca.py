"""Kernel PCA for any number of rows: doubly stochastic, or a sketch of features."""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np

from sksketch._typing import Array
from sksketch.arrays.namespace import on_device
from sksketch.arrays.random import sampled, stream
from sksketch.exceptions import NotMergeableError
from sksketch.kernel_methods.batching import Waiting
from sksketch.kernel_methods.expansions import Functions
from sksketch.kernel_methods.kernel_estimator import KernelTransformer
from sksketch.kernel_methods.pca.component_solvers import (
    SOLVERS,
    SketchedComponents,
    SteppedComponents,
)
from sksketch.kernel_methods.pca.doubly_stochastic import DoublyStochasticPCA
from sksketch.kernel_methods.pca.kernel_plan import planned
from sksketch.kernel_methods.pca.pre_image import WayBack
from sksketch.kernel_methods.piloted import EMBEDDED_ROWS, PilotedEstimator
from sksketch.models.callbacks import Callbacks
from sksketch.models.checks import check_choice, check_whole
from sksketch.models.runner import fit_dask, is_dask, lazily
from sksketch.state.persistence import State

PILOT_ROWS = 2000
SAMPLE_ROWS = 4000
DEFAULT_POLISH = 2


class StreamingKernelPCA(KernelTransformer, PilotedEstimator):
    """Kernel PCA in flat memory: neither the kernel matrix nor the features are ever held.

    Parameters
    ----------
    n_components : int
        Components to find.
    kernel : str
        As for `RandomFeatures`.
    bandwidth : float or "median"
        Rows are divided by it; "median" is the median distance between pilot rows.
    kernel_params : dict, optional
        Parameters of the kernel, as for `RandomFeatures`.
    n_random_features : int
        Random features at the end.
    landmarks : int or array of shape (n_landmarks, n_features), optional
        Use the features of landmarks instead of random ones.
    solver : {"auto", "sgd", "sketch"}
        "sgd" makes doubly stochastic steps: rows and random features come a batch at a time.
        "sketch" is `StreamingPCA` of the features, with its certificate. "auto" tries random
        features and landmarks on pilot rows, takes the ones that keep more of the exact
        components, and says so in ``plan_``.
    center : bool
        Whether features are centred, as in scikit-learn's ``KernelPCA``.
    batch_size : int
        Rows of a step.
    feature_batch : int
        Random features that each step adds, until all are there.
    step : {"matrix", "scalar"}
        "matrix" scales each direction by itself and needs no tuning; "scalar" is the step of
        the paper, its size taken from the pilot.
    order : {"rotate", "gha"}
        "rotate" finds the subspace and rotates it to eigenfunctions at the end; "gha" finds
        one after the other, as the generalised Hebbian algorithm.
    polish : int, optional
        Passes of block Krylov after the steps; by default 2 in `fit`, none in a stream. A
        stream needs a source that can be read again.
    fit_inverse_transform : bool
        Whether to learn a linear map from components back to rows.
    cache_features : bool
        Whether to keep the frequencies while learning, ``n_random_features * n_features``
        numbers; faster with small batches of wide rows.
    random_state : int, RandomState or None
        Seed of features, pilot rows and the order of rows in `fit`.

    Attributes
    ----------
    eigenvalues_ : array of shape (n_components,)
        Eigenvalues of the covariance operator, largest first: those of the kernel matrix
        divided by the number of rows.
    bandwidth_ : float
    n_random_features_used_ : int
        Features that have coefficients.
    plan_ : str
        What was chosen, and why.
    solver_ : str
        "sgd" or "sketch".
    n_samples_seen_ : int
    certificate_ : Certificate
        With ``solver="sketch"``: what is certain about the covariance of the features.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> angle = rng.uniform(0, 2 * np.pi, 3000)
    >>> X = np.column_stack([np.cos(angle), np.sin(angle)]) * rng.choice([1.0, 3.0], 3000)[:, None]
    >>> kpca = StreamingKernelPCA(2, bandwidth=1.0).fit(X)
    >>> kpca.transform(X).shape
    (3000, 2)
    >>> kpca.eigenvalues_.round(2)
    array([0.13, 0.11])

    Notes
    -----
    Xie, Liang and Song (2015). Their algorithm starts without coefficients and stays at zero;
    ours starts from the PCA of pilot rows. Once all features are there a step moves all of
    them, not one block. Eigenvalues are Ritz values of the kernel itself: the norms of the
    coefficients are inflated by the noise of random features.
    """

    kind = "streaming-kernel-pca"
    _pilot_rows = PILOT_ROWS
    _solvers = SOLVERS
    _inverse: WayBack | None
    _n_passes_done: int

    def __init__(
        self,
        n_components: int = 2,
        *,
        kernel: str = "gaussian",
        bandwidth: float | str = "median",
        kernel_params: dict[str, Any] | None = None,
        n_random_features: int = 4096,
        landmarks: Any = None,
        solver: str = "auto",
        center: bool = True,
        batch_size: int = 1024,
        feature_batch: int = 1024,
        step: str = "matrix",
        order: str = "rotate",
        polish: int | None = None,
        fit_inverse_transform: bool = False,
        cache_features: bool = False,
        random_state: Any = 0,
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

    def _check_params(self) -> None:
        for name in ("n_components", "n_random_features", "batch_size", "feature_batch"):
            check_whole(name, getattr(self, name), 1)
        check_choice("solver", self.solver, ("auto", "sgd", "sketch"))
        check_choice("step", self.step, ("matrix", "scalar"))
        check_choice("order", self.order, ("rotate", "gha"))
        if self.polish is not None:
            check_whole("polish", self.polish, 0)

    # Learning

    def fit(self, X: Any, y: Any = None) -> Self:
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
        """
        if is_dask(X):
            return fit_dask(self, X)
        with self._or_as_before(), Callbacks(self).running("fit"):
            (rows,) = self._start(X)
            n_rows = rows.shape[0]
            self._enough(n_rows, self.n_components + self.center)
            pilot = sampled(rows, self._pilot_rows, self._seed, "pilot rows")
            sample = sampled(rows, SAMPLE_ROWS, self._seed, "sample")
            order = stream(self._seed, "order").permutation(n_rows)
            n_passes = DEFAULT_POLISH if self.polish is None else self.polish
            solver = self._planned((pilot,), n_rows)
            solver.fit(rows, pilot, order, n_passes, sample)
            self._solver, self.n_samples_seen_ = solver, n_rows
            self._keep(self._functions()(sample[:EMBEDDED_ROWS]))
            if self.fit_inverse_transform:
                self._inverse = WayBack.learned(self._functions()(sample), sample)
        return self

    def _start(self, *views: Any) -> tuple[Any, ...]:
        self._inverse, self._n_passes_done = None, 0
        return super()._start(*views)

    def _checked_views(self, views: tuple[Any, ...], *, reset: bool) -> tuple[Any, ...]:
        return (self._checked(views[0], reset=reset),)

    def _planned(self, pilot: tuple[Any, ...], n_rows: int | None) -> Any:
        """Choose features and solver by pilot rows."""
        rows = pilot[0]
        features = self._new_features(rows, self._seed, landmarks=self.landmarks)
        features, solver, self._plan = planned(
            features, self.solver, rows, self.n_components, self.center, n_rows
        )
        if solver == "sketch":
            return SketchedComponents(features, self.n_components, self.center)
        learner = DoublyStochasticPCA(
            features,
            self.n_components,
            feature_batch=self.feature_batch,
            center=self.center,
            step=self.step,
            order=self.order,
        )
        return SteppedComponents(learner, self.batch_size)

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Go on learning from one more block of rows, of any size.

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
        """
        if is_dask(X):
            if hasattr(self, "n_samples_seen_"):
                raise NotMergeableError(
                    "the features of this one are chosen, and those of dask's rows would be "
                    "others; call fit, or give blocks in memory"
                )
            return fit_dask(self, X)
        self._go_on(X)
        return self

    def _n_new(self, n_rows: int) -> int:
        return 0 if self._n_passes_done else n_rows

    # Parts of the rows, learned apart

    def _shard_template(self) -> Self:
        self._check_params()
        if self.solver != "sketch":
            raise NotMergeableError(
                f"solver={self.solver!r} makes or may choose steps that depend on all rows before "
                "them, so parts can not be merged; pass solver='sketch'"
            )
        return type(self)(**self.get_params(deep=False))

    def _take_pilot(self, rows: Any) -> None:
        (pilot,) = self._start(rows)
        self._solver = self._planned((pilot,), None)

    def _for_shard(self, index: int, n_shards: int) -> Self:
        twin = copy.copy(self)
        twin._waiting, twin._answers = Waiting(), {}
        twin._solver = SketchedComponents(self._solver.features, self.n_components, self.center)
        twin._solver.pca._shard = (index, n_shards)
        return twin

    def _compact(self) -> None:
        self._solver.pca._compact()

    # Several passes of a stream

    @property
    def n_passes(self) -> int:
        """Passes over all rows that `fit_stream` makes: one, and those of the polish."""
        return 1 + (0 if self.polish is None or self.solver == "sketch" else self.polish)

    def end_pass(self, number: int) -> None:
        """Hear from `fit_stream` that all rows have come so many times."""
        if number > self._n_passes_done and self._solver is not None:
            self._solver.end_pass()
            self._n_passes_done = number

    # Answers

    def _functions(self) -> Functions:
        functions: Functions = self._found()[1]
        return functions

    @property
    def eigenvalues_(self) -> Array:
        """Eigenvalues of the covariance operator, largest first."""
        values: Array = self._found()[0]
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
    def certificate_(self) -> Any:
        """What is certain about the covariance of the features; with ``solver="sketch"``."""
        if getattr(self.__dict__.get("_solver"), "name", "") != "sketch":
            raise AttributeError("only solver='sketch' has a certificate, once 2000 rows have come")
        return self._solver.pca.certificate_

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components)

    def transform(self, X: Any) -> Any:
        """Return the components of rows, in their precision and on their device.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_components)
            With mean squares ``eigenvalues_`` over the rows learned from.
        """
        functions = self._functions()
        if is_dask(X):
            return lazily(self, "transform", X)
        rows = self._checked(X, reset=False)
        return functions(rows)

    # The way back

    def inverse_transform(self, X: Any) -> Any:
        """Return rows that have about these components, by the linear map learned in `fit`.

        Parameters
        ----------
        X : array of shape (n_samples, n_components)

        Returns
        -------
        array of shape (n_samples, n_features)
        """
        self._require()
        if self._inverse is None:
            raise ValueError(
                "there is no way back from components; pass fit_inverse_transform=True and call fit"
            )
        if getattr(X, "ndim", 2) != 2 or np.shape(X)[1] != self.n_components:
            raise ValueError(
                f"got components of shape {np.shape(X)}, expected {self.n_components} columns"
            )
        H = X if on_device(X) else np.asarray(X, dtype=np.result_type(np.asarray(X), np.float32))
        return self._inverse(H)

    # Saving

    def _learned(self, state: State) -> State:
        inverse = {} if self._inverse is None else self._inverse._asdict()
        arrays = {f"inverse.{name}": part for name, part in inverse.items()}
        return super()._learned(state).with_more({"n_passes_done": self._n_passes_done}, arrays)

    def _recall(self, state: State) -> None:
        super()._recall(state)
        self._n_passes_done = int(str(state.meta["n_passes_done"]))
        inverse = state.behind("inverse.")
        self._inverse = WayBack(**inverse) if inverse else None
