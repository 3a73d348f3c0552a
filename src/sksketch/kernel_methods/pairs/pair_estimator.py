"""What kernel CCA and kernel SVD share: two views in, two sets of components out."""

from __future__ import annotations

import copy
from abc import abstractmethod
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.utils import check_array
from sklearn.utils.validation import check_consistent_length

from sksketch._typing import PathLike
from sksketch.arrays.namespace import like, on_device
from sksketch.arrays.random import stream
from sksketch.arrays.rows import laid_out
from sksketch.kernel_methods.batching import Waiting
from sksketch.kernel_methods.feature_maps import FeatureMap
from sksketch.kernel_methods.kernels import check_domain
from sksketch.kernel_methods.pairs.pair_solvers import PILOT_ROWS, SOLVERS, FinishedPairs
from sksketch.kernel_methods.piloted import EMBEDDED_ROWS, PilotedEstimator
from sksketch.models.callbacks import Callbacks
from sksketch.models.checks import check_choice, check_whole, checked_on_device, host_rows
from sksketch.state.persistence import State, write_state

SAMPLE_ROWS = 10_000
# Up to so many bytes of covariances are kept as they are.
EXACT_BYTES = 1 << 29


class PairEstimator(ClassNamePrefixFeaturesOutMixin, PilotedEstimator):
    """An estimator of two views of the same samples."""

    _pilot_rows = PILOT_ROWS
    _solvers = SOLVERS
    n_features_y_: int

    @abstractmethod
    def _new_solver(self, x: FeatureMap, y: FeatureMap, exact: bool, n_rows: int | None) -> Any:
        """Return the solver for these features."""

    def _check_params(self) -> None:
        for name in ("n_components", "n_random_features", "batch_size", "n_steps"):
            check_whole(name, getattr(self, name), 1)
        check_choice("solver", self.solver, ("auto", "exact", "sgd"))

    # Rows

    def _checked_views(self, views: tuple[Any, ...], *, reset: bool) -> tuple[Any, ...]:
        X, y = views
        rows = self._checked(X, reset=reset)
        others = self._checked_other(y, reset=reset)
        check_consistent_length(rows, others)
        if on_device(rows) != on_device(others):
            raise ValueError("the two views must be arrays of the same library")
        return rows, others

    def _checked_other(self, y: Any, *, reset: bool) -> Any:
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None: give "
                "the rows of the second view"
            )
        if on_device(y):
            rows = checked_on_device(y if y.ndim == 2 else y[:, None])
        else:
            flat = not sp.issparse(y) and np.ndim(y) == 1
            rows = check_array(
                np.asarray(host_rows(y))[:, None] if flat else host_rows(y),
                accept_sparse="csr",
                dtype=[np.float64, np.float32],
                input_name="y",
            )
            rows = laid_out(sp.csr_array(rows) if sp.issparse(rows) else rows)
        check_domain(self.kernel, rows)
        if reset:
            self.n_features_y_ = rows.shape[1]
        elif rows.shape[1] != self.n_features_y_:
            raise ValueError(
                f"y has {rows.shape[1]} features, but {type(self).__name__} is expecting "
                f"{self.n_features_y_} features as input"
            )
        return rows

    # Learning

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from all pairs of rows, forgetting what was learned before.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows of the first view; arrays of torch and cupy stay on their device.
        y : array-like or sparse matrix of shape (n_samples, n_features_y)
            Rows of the second view.

        Returns
        -------
        self
        """
        with self._or_as_before(), Callbacks(self).running("fit"):
            rows, others = self._start(X, y)
            n_rows = rows.shape[0]
            self._enough(n_rows, self.n_components + 1)
            order = stream(self._seed, "order").permutation(n_rows)
            pilot = like(np.sort(order[: self._pilot_rows]), rows)
            solver = self._planned((rows[pilot], others[pilot]), n_rows)
            sample = np.sort(stream(self._seed, "sample").permutation(n_rows)[:SAMPLE_ROWS])
            solver.fit(rows, others, order, self.n_steps, sample)
            self._solver, self.n_samples_seen_ = solver, n_rows
            some = like(sample[:EMBEDDED_ROWS], rows)
            _, f, g = self._found()
            self._keep(f(rows[some]), g(others[some]))
        return self

    def _planned(self, pilot: tuple[Any, ...], n_rows: int | None) -> Any:
        """Choose features and solver by pilot rows."""
        bandwidths, landmarks = (
            value if isinstance(value, tuple | list) else (value, value)
            for value in (self.bandwidth, self.landmarks)
        )
        views = []
        for i, Z in enumerate(pilot):
            views.append(
                self._new_features(
                    Z, self._seed + i, bandwidth=bandwidths[i], landmarks=landmarks[i]
                )
            )
        x, y = views
        most = min(x.n_columns, y.n_columns)
        if self.n_components > most:
            raise ValueError(
                f"n_components={self.n_components} is more than the {most} features of a view; "
                "ask for fewer components or more features"
            )
        n_bytes = 8 * (x.n_columns**2 + y.n_columns**2 + x.n_columns * y.n_columns)
        exact = self.solver == "exact" or (self.solver == "auto" and n_bytes <= EXACT_BYTES)
        how = "all covariances of the features" if exact else "doubly stochastic steps"
        why = "as asked for" if self.solver != "auto" else f"they take {n_bytes / 2**20:.0f} MiB"
        self._plan = f"{how}; {why}"
        return self._new_solver(x, y, exact, n_rows)

    def partial_fit(self, X: Any, y: Any) -> Self:
        """Go on learning from one more block of pairs, of any size.

        The first 4000 pairs are the pilot. With ``solver="sgd"`` later ones make a step
        whenever there are ``batch_size`` of them.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like or sparse matrix of shape (n_samples, n_features_y)

        Returns
        -------
        self
        """
        self._go_on(X, y)
        return self

    # Answers

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components)

    @property
    def bandwidths_(self) -> tuple[float, float]:
        """The bandwidth of either view."""
        _, f, g = self._found()
        return f.features.kernel.bandwidth, g.features.kernel.bandwidth

    def transform(self, X: Any, y: Any = None) -> Any:
        """Return the components of rows, in their precision and on their device.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like or sparse matrix of shape (n_samples, n_features_y), optional

        Returns
        -------
        x_scores, or (x_scores, y_scores) if ``y`` is given
            Arrays of shape (n_samples, n_components), paired column by column.
        """
        _, f, g = self._found()
        rows = self._checked(X, reset=False)
        scores = f(rows)
        if y is None:
            return scores
        others = self._checked_other(y, reset=False)
        return scores, g(others)

    def fit_transform(self, X: Any, y: Any) -> Any:
        """Learn from all pairs and return the components of both views."""
        return self.fit(X, y).transform(X, y)

    def save(self, path: PathLike, *, finished: bool = True) -> None:
        """Write the fitted estimator to one file, atomically; `sksketch.load` reads it.

        Parameters
        ----------
        path : path
        finished : bool
            Whether to write the functions alone, which is all that later answers need. False
            keeps what is needed to learn more and to merge: the covariances of all features,
            or the directions that steps are divided by.
        """
        write_state(self.finished_state() if finished else self.state(), path)

    def finished_state(self) -> State:
        """Return the state of a model that will not learn more, as plain data."""
        other = copy.copy(self)
        other._solver = FinishedPairs(self._found(), self.solver_)
        other._waiting, other._plan = Waiting(), self.plan_
        return other.state()

    def _learned(self, state: State) -> State:
        return super()._learned(state).with_more({"n_features_y": self.n_features_y_}, {})

    def _recall(self, state: State) -> None:
        super()._recall(state)
        self.n_features_y_ = int(str(state.meta["n_features_y"]))
