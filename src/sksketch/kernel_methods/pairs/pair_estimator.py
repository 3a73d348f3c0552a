"""Base of kernel CCA and kernel SVD: two views in, two sets of components out."""

from __future__ import annotations

import copy
from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_consistent_length

from sksketch._typing import Array, PathLike, RowsLike
from sksketch.arrays.namespace import like, on_device
from sksketch.arrays.random import stream
from sksketch.kernel_methods import piloted
from sksketch.kernel_methods.feature_maps import FeatureMap
from sksketch.kernel_methods.fitting import (
    BANDWIDTH,
    KERNEL_CONSTRAINTS,
    fitted_features,
    further_rows,
    kernel_rows,
)
from sksketch.kernel_methods.kernels import check_domain
from sksketch.kernel_methods.pairs.pair_moments import PairedFunctions
from sksketch.kernel_methods.pairs.pair_solvers import PILOT_ROWS, SOLVERS, FinishedPairs
from sksketch.kernel_methods.piloted import (
    EMBEDDED_ROWS,
    PilotedLearner,
    Planned,
    Views,
)
from sksketch.models.base import Estimator, or_as_before
from sksketch.models.constraints import (
    FLAG,
    NOTHING,
    ROWS,
    Constraint,
    Constraints,
    one_of,
    whole,
)
from sksketch.models.parameters import seed_of
from sksketch.models.runner import is_dask, lazily
from sksketch.models.scikit_learn import Callbacks, preserving_precision, requiring_targets
from sksketch.sketches.planning import exact_or_sketch
from sksketch.state.persistence import State, write_state

SAMPLE_ROWS = 10_000


def _both(*allowed: Constraint) -> tuple[Constraint, ...]:
    """Allow what each view may have, for both or as a pair."""

    def accepts(value: object) -> bool:
        if not isinstance(value, tuple | list) or len(value) != 2:
            return False
        return all(any(one.accepts(part) for one in allowed) for part in value)

    return *allowed, Constraint("a tuple of two such", accepts)


class PairEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    """An estimator of two views of the same samples."""

    _fitted = "_learner"
    _shared_constraints: ClassVar[Constraints] = KERNEL_CONSTRAINTS | {
        "n_components": (whole(1),),
        "bandwidth": _both(*BANDWIDTH),
        "landmarks": _both(whole(1), ROWS, NOTHING),
        "solver": (one_of("auto", "exact", "sgd"),),
        "n_steps": (whole(1),),
        "batch_size": (whole(1),),
        "cache_features": (FLAG,),
    }
    pilot_rows = PILOT_ROWS
    n_features_y_: int
    _learner: PilotedLearner

    @abstractmethod
    def _new_solver(self, x: FeatureMap, y: FeatureMap, exact: bool, n_rows: int | None) -> Any:
        """Return the solver for these features."""

    # Rows

    def _checked(self, X: RowsLike, y: RowsLike, *, reset: bool) -> Views:
        """Return checked rows of both views."""
        rows = kernel_rows(self, X, reset=reset)
        others = self._checked_other(y, reset=reset)
        check_consistent_length(rows, others)
        if on_device(rows) != on_device(others):
            raise ValueError("the two views must be arrays of the same library")
        return rows, others

    def _checked_other(self, y: RowsLike | None, *, reset: bool) -> Any:
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None: give "
                "the rows of the second view"
            )
        rows = further_rows(y, "y")
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

    def fit(self, X: RowsLike, y: RowsLike) -> Self:
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
            This estimator.
        """
        with or_as_before(self), Callbacks(self).running("fit"):
            rows, others = self._start(X, y)
            self._learner = self._learner.with_solver(self._solved((rows, others)), rows.shape[0])
            some = like(self._sample(rows.shape[0])[:EMBEDDED_ROWS], rows)
            _, f, g = self._functions()
            self.embedding_sample_ = piloted.embedding_of(f(rows[some]), g(others[some]))
        return self

    def _start(self, X: RowsLike, y: RowsLike) -> Views:
        """Begin with nothing learned; return checked rows."""
        self._check_params()
        rows = self._checked(X, y, reset=True)
        self._learner = PilotedLearner(self.pilot_rows, seed_of(self.random_state))
        self.__dict__.pop("embedding_sample_", None)
        self._answers = {}
        return rows

    def _sample(self, n_rows: int) -> Array:
        return np.sort(stream(self._learner.seed, "sample").permutation(n_rows)[:SAMPLE_ROWS])

    def _solved(self, views: Views) -> Planned:
        """Solve for rows that are all there are."""
        rows, others = views
        n_rows = rows.shape[0]
        piloted.check_enough(self.n_components, n_rows, self.n_components + 1)
        order = stream(self._learner.seed, "order").permutation(n_rows)
        pilot = like(np.sort(order[: self.pilot_rows]), rows)
        chosen = self._chosen((rows[pilot], others[pilot]), n_rows)
        chosen.solver.fit(rows, others, order, self.n_steps, self._sample(n_rows))
        return chosen

    def _chosen(self, pilot: Views, n_rows: int | None = None) -> Planned:
        """Choose features and solver by pilot rows; of ``n_rows`` in all, where that is known."""
        params = self.get_params(deep=False)
        bandwidths, landmarks = (
            value if isinstance(value, tuple | list) else (value, value)
            for value in (self.bandwidth, self.landmarks)
        )
        x, y = (
            fitted_features(
                params, Z, self._learner.seed + i, bandwidth=bandwidths[i], landmarks=landmarks[i]
            )
            for i, Z in enumerate(pilot)
        )
        most = min(x.n_columns, y.n_columns)
        if self.n_components > most:
            raise ValueError(
                f"n_components={self.n_components} is more than the {most} features of a view; "
                "ask for fewer components or more features"
            )
        n_bytes = 8 * (x.n_columns**2 + y.n_columns**2 + x.n_columns * y.n_columns)
        auto = exact_or_sketch("kernel pairs", most, n_bytes=n_bytes).exact
        exact = auto if self.solver == "auto" else self.solver == "exact"
        how = "all covariances of the features" if exact else "doubly stochastic steps"
        why = "as asked for" if self.solver != "auto" else f"they take {n_bytes / 2**20:.0f} MiB"
        return Planned(self._new_solver(x, y, exact, n_rows), f"{how}; {why}")

    def partial_fit(self, X: RowsLike, y: RowsLike) -> Self:
        """Learn from one more block of pairs, of any size.

        The first 4000 pairs are the pilot. With ``solver="sgd"`` later ones make a step
        whenever there are ``batch_size`` of them.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows of the first view.
        y : array-like or sparse matrix of shape (n_samples, n_features_y)
            Rows of the second view.

        Returns
        -------
        self
            This estimator.
        """
        with or_as_before(self):
            first = not hasattr(self, "_learner")
            views = self._start(X, y) if first else self._checked(X, y, reset=False)
            self._learner.learn(views, self._chosen)
            self._answers = {}
            self.__dict__.pop("embedding_sample_", None)
        return self

    _absorb = piloted.absorb

    # Answers

    _found = piloted.found_by

    def _functions(self) -> PairedFunctions:
        functions: PairedFunctions = self._found().functions
        return functions

    n_samples_seen_ = property(piloted.n_samples_seen_)
    solver_ = property(piloted.solver_)
    plan_ = property(piloted.plan_)

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components)

    @property
    def bandwidths_(self) -> tuple[float, float]:
        """The bandwidth of either view."""
        _, f, g = self._functions()
        return f.features.kernel.bandwidth, g.features.kernel.bandwidth

    def transform(self, X: RowsLike, y: RowsLike | None = None) -> Any:
        """Return the components of rows, in their precision and on their device.

        Parameters
        ----------
        X : array-like, sparse matrix or dask collection of shape (n_samples, n_features)
            Rows of the first view.
        y : array-like or sparse matrix of shape (n_samples, n_features_y), default=None
            Rows of the second view.

        Returns
        -------
        x_scores : array of shape (n_samples, n_components)
            Components of the first view.
        y_scores : array of shape (n_samples, n_components)
            Those of the second view, paired with the first column by column, if ``y`` is given.
        """
        if is_dask(X):
            if y is not None:
                raise ValueError("rows of dask are transformed one view at a time; leave y out")
            self._require_fitted()
            return lazily(self, "transform", X)
        return self._scores(X, y)

    def _scores(self, X: RowsLike, y: RowsLike | None) -> Any:
        _, f, g = self._functions()
        rows = kernel_rows(self, X, reset=False)
        scores = f(rows)
        if y is None:
            return scores
        others = self._checked_other(y, reset=False)
        return scores, g(others)

    def __sklearn_tags__(self) -> Tags:
        return requiring_targets(preserving_precision(super().__sklearn_tags__()))

    def fit_transform(self, X: RowsLike, y: RowsLike) -> Any:
        """Learn from all pairs and return the components of both views.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows of the first view.
        y : array-like or sparse matrix of shape (n_samples, n_features_y)
            Rows of the second view.

        Returns
        -------
        x_scores : array of shape (n_samples, n_components)
            Components of the first view.
        y_scores : array of shape (n_samples, n_components)
            Those of the second view, paired with the first column by column.
        """
        return self.fit(X, y).transform(X, y)

    def _embedded(self, views: Views) -> Views:
        X, y = views
        # Whatever container `set_output` has asked for.
        scores: Views = self._scores(X, y)
        return scores

    keep_embedding = piloted.keep_embedding

    def save(self, path: PathLike, *, finished: bool = True) -> None:
        """Write the fitted estimator to one file, atomically; `sksketch.load` reads it.

        Parameters
        ----------
        path : str or path-like
            Where to; a file that is there is replaced.
        finished : bool, default=True
            Whether to write the functions alone, which is all that later answers need. False
            keeps what is needed to learn more and to merge: the covariances of all features,
            or the directions that steps are divided by.
        """
        write_state(self.finished_state() if finished else self.state(), path)

    def finished_state(self) -> State:
        """Return the state of a model that will not learn more.

        Returns
        -------
        State
            The parameters and the functions, as plain data.
        """
        other = copy.copy(self)
        found = self._found()
        chosen = Planned(FinishedPairs(found.functions, found.solver), found.plan)
        other._learner = self._learner.with_solver(chosen, self.n_samples_seen_)
        return other.state()

    def _learned(self, state: State) -> State:
        state = self._learner.stored(state.with_more({"n_features_y": self.n_features_y_}, {}))
        return piloted.with_embedding(state, self.__dict__.get("embedding_sample_", ()))

    def _recall(self, state: State) -> None:
        self._learner = PilotedLearner.of(state, self.pilot_rows, SOLVERS)
        self.n_features_y_ = int(str(state.meta["n_features_y"]))
        if sample := piloted.stored_embedding(state):
            self.embedding_sample_ = sample
