"""Base of the reduced classifier and regressor: reducing, solving, certifying, saving."""

from __future__ import annotations

import json
import warnings
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning

from sksketch._keys import REDUCED_METHODS
from sksketch._typing import Array, Rows, RowsLike
from sksketch.arrays.rows import as_rows, as_weights
from sksketch.exceptions import StateFormatError
from sksketch.models.base import Estimator, or_as_before
from sksketch.models.checks import checked_rows, host_rows, validated
from sksketch.models.constraints import (
    FLAG,
    Constraints,
    check_value,
    number,
    one_of,
    several,
    whole,
)
from sksketch.models.parameters import seed_of
from sksketch.models.scikit_learn import Callbacks
from sksketch.reduction.random_reduction import RandomReduction
from sksketch.reduction.reading import labels_and_coordinates, measured
from sksketch.reduction.reduced_problem import SUBSPACE, ReducedModel, ReducedProblem
from sksketch.reduction.reduction_base import REDUCTION_CONSTRAINTS
from sksketch.reduction.residual import (
    Blocks,
    blocks_in_units,
    from_source,
    in_memory,
    projected,
)
from sksketch.reduction.subspace_reduction import SubspaceReduction
from sksketch.sketches.column_moments import ColumnMoments
from sksketch.state.persistence import State
from sksketch.streams import RowSource, open_rows
from sksketch.streams.source_in_units import SourceInUnits

# Energies are differences of sums, so they are certain only to this part of the whole.
ROUNDING = 1e-13

_NUMBERS = ("duality_gap_", "objective_gap_bound_", "lemma2_bound_", "n_iter_")
_ARRAYS = ("coef_", "intercept_", "reduced_coef_", "dual_coef_", "scale_", "baseline_")


PENALTIES = several("positive numbers", number(0.0, bounds="()"))


class ReducedPath(NamedTuple):
    """Models for many penalties, learned on the same coordinates.

    ``coef`` has shape (n_alphas, n_models, n_features) and ``intercept`` (n_alphas, n_models);
    ``duality_gaps`` and ``objective_gap_bounds`` have the largest of all models at each penalty.
    """

    alphas: Array
    coef: Array
    intercept: Array
    duality_gaps: Array
    objective_gap_bounds: Array


class ReducedEstimator(Estimator):
    """A linear model that is learned on few coordinates and given back in all columns."""

    _fitted = "coef_"
    _shared_constraints: ClassVar[Constraints] = REDUCTION_CONSTRAINTS | {
        "method": (one_of(*REDUCED_METHODS),),
        "alpha": (number(0.0, bounds="()"),),
        "tol": (number(0.0, bounds="()"),),
        "n_power_iter": (whole(0),),
        "fit_intercept": (FLAG,),
        "tau": (number(0.0, 1.0),),
        "max_iter": (number(0.0, bounds="()"),),
        "standardize": (FLAG,),
    }
    # Whether targets are numbers.
    _numeric_targets: ClassVar[bool]
    n_components: Any
    method: str
    loss: str
    alpha: float
    tol: float
    operator: str
    n_power_iter: int
    fit_intercept: bool
    tau: float
    max_iter: int
    random_state: Any
    standardize: bool
    coef_: Array
    intercept_: Array
    scale_: Array
    baseline_: Array
    training_quality_: dict[str, float]

    @abstractmethod
    def _targets(self, y: Array) -> tuple[Array, str]:
        """Return the targets of the problem, and its loss."""

    @abstractmethod
    def _class_weights(self, y: Rows) -> Array | float:
        """Return factors of the row weights."""

    def fit(self, X: RowsLike, y: RowsLike, sample_weight: RowsLike | None = None) -> Self:
        """Reduce the rows, learn on their coordinates and take the model back.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; sparse ones are never made dense.
        y : array-like of shape (n_samples,)
            Labels or targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Row ``i`` counts as ``sample_weight[i]`` copies.

        Returns
        -------
        self
            This estimator.
        """
        self._check_params()
        with or_as_before(self), Callbacks(self).running("fit"):
            reduction, problem, scale = self._reduced(X, y, sample_weight)
            model = self._solve(problem, float(self.alpha))
        self.reduction_ = reduction
        self._take_over(model, scale, problem)
        return self

    def path(
        self, X: RowsLike, y: RowsLike, alphas: npt.ArrayLike, sample_weight: RowsLike | None = None
    ) -> ReducedPath:
        """Learn for many penalties on the same coordinates, each from the one before.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; sparse ones are never made dense.
        y : array-like of shape (n_samples,)
            Labels or targets.
        alphas : array-like of shape (n_alphas,)
            Penalties, in any order; they are solved from the largest on.
        sample_weight : array-like of shape (n_samples,), default=None
            Row ``i`` counts as ``sample_weight[i]`` copies.

        Returns
        -------
        ReducedPath
            Models, with their gaps, in the order of ``alphas``.
        """
        self._check_params()
        values = np.atleast_1d(np.asarray(alphas, dtype=np.float64))
        check_value("alphas", values, PENALTIES)
        _, problem, scale = self._reduced(X, y, sample_weight)
        found: dict[float, ReducedModel] = {}
        model = None
        for alpha in sorted(values.tolist(), reverse=True):
            model = found[alpha] = self._solve(problem, alpha, model)
        models = [found[alpha] for alpha in values.tolist()]
        return ReducedPath(
            values,
            np.stack([one.coef / scale for one in models]),
            np.stack([one.intercept for one in models]),
            np.array([one.gaps.max() for one in models]),
            np.array([one.gap_bounds.max() for one in models]),
        )

    def _check_together(self) -> None:
        if self.method == "dsrr" and self.loss == "softmax":
            raise ValueError("dsrr has no softmax; take loss='logistic', or method='rpdr'")

    def fit_rows(
        self,
        source: object,
        *,
        reduction: SubspaceReduction | RandomReduction | None = None,
        watch: Callable[[int], None] | None = None,
    ) -> Self:
        """Learn from rows that do not fit in memory, of which only coordinates are kept.

        With a reduction that is fitted already the rows are read once for labels and coordinates
        and once for the bound on the gap; methods by dual variables need one look more.

        Parameters
        ----------
        source : RowSource or anything that `open_rows` takes
            Rows and targets, to be read again and again.
        reduction : SubspaceReduction or RandomReduction, default=None
            What `new_reduction` gave, fitted to these rows already: by `fit_stream`, which can
            resume after an interruption. Not with ``class_weight``, which it has not seen. With
            ``standardize`` it is of the rows that `in_units` gives, and so is ``source``.
        watch : callable, default=None
            Gets the number of rows of every block that is read.

        Returns
        -------
        self
            This estimator.
        """
        self._check_params()
        opened = self.in_units(source)
        linear = None if reduction is None else reduction._map()
        labels, coordinates = labels_and_coordinates(opened, linear, watch)
        targets, loss = self._targets(labels)
        weights = np.ones(len(labels)) * self._class_weights(labels)
        blocks = from_source(opened, weights, watch)
        if reduction is None:
            reduction = self.new_reduction()._fit_blocks(blocks)
        elif (weights != 1.0).any():
            raise ValueError("the reduction was learned without class_weight; drop one of them")
        problem = self._problem(
            reduction, (blocks, coordinates), targets, loss, weights, len(labels)
        )
        model = self._solve(problem, float(self.alpha))
        self._take_columns(opened.n_features, opened.feature_names)
        self.reduction_ = reduction
        ones = np.ones(opened.n_features)
        scale = opened.units if isinstance(opened, SourceInUnits) else ones
        self._take_over(model, scale, problem)
        return self

    def in_units(self, source: object, watch: Callable[[int], None] | None = None) -> RowSource:
        """Return rows with columns in standard units, after one look at them, if that is asked for.

        Parameters
        ----------
        source : RowSource or anything that `open_rows` takes
            Rows and targets.
        watch : callable, default=None
            Gets the number of rows of every block that is read.

        Returns
        -------
        RowSource
            The rows divided by their standard deviations; without ``standardize`` as they are.
        """
        opened = source if isinstance(source, RowSource) else open_rows(source)
        if not self.standardize or isinstance(opened, SourceInUnits):
            return opened
        return measured(opened, watch)

    def _reduced(
        self, X: RowsLike, y: RowsLike, sample_weight: RowsLike | None
    ) -> tuple[Any, ReducedProblem, Array]:
        """Return the fitted reduction, the problem on its coordinates, and units of columns."""
        rows, labels = validated(
            self,
            host_rows(X),
            host_rows(y),
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            y_numeric=self._numeric_targets,
        )
        if labels.dtype.kind == "f" and not np.isfinite(labels).all():
            # scikit-learn makes NaN of None after its own check.
            raise ValueError("input y contains NaN or infinity; drop such rows")
        targets, loss = self._targets(labels)
        counts = as_weights(sample_weight, rows.shape[0])
        counts = np.ones(rows.shape[0]) if counts is None else counts
        if not counts.any():
            raise ValueError("all sample weights are zero, expected some rows to count")
        weights = counts * self._class_weights(labels)
        reduction, scale = self.new_reduction(), np.ones(rows.shape[1])
        blocks = in_memory(rows, weights)
        if self.standardize:
            scale = ColumnMoments.empty(rows.shape[1]).updated(as_rows(rows), counts).scale()
            blocks = blocks_in_units(blocks, scale)
        reduction._fit_blocks(blocks)
        n_counted = float(counts.sum())
        problem = self._problem(reduction, (blocks, None), targets, loss, weights, n_counted)
        return reduction, problem, scale

    def _problem(
        self,
        reduction: SubspaceReduction | RandomReduction,
        rows: tuple[Blocks, Array | None],
        targets: Array,
        loss: str,
        weights: Array,
        n_counted: float,
    ) -> ReducedProblem:
        """Return the problem on the coordinates of rows, where those are known already."""
        linear, (blocks, known) = reduction._map(), rows
        coordinates = projected(blocks, linear, int(self.fit_intercept), known)
        left_out = np.inf
        if self.method == "nor":
            total = reduction.sketch_.squared_norm
            inside = coordinates[:, : linear.n_components]
            rest = total - float(weights @ np.vecdot(inside, inside))
            rest = max(rest, 0.0) + ROUNDING * total
            left_out = min(rest, reduction.spectral_error_[1]) / n_counted
        return ReducedProblem(
            self.method,
            loss,
            float(self.tau),
            blocks,
            linear,
            coordinates,
            targets,
            weights / n_counted,
            left_out,
            bool(self.fit_intercept),
        )

    def new_reduction(self) -> Any:
        """Return the reduction that ``method`` asks for, not fitted yet.

        Returns
        -------
        SubspaceReduction or RandomReduction
            The reduction, with a fixed seed.
        """
        self._check_params()
        options: dict[str, Any] = {
            "operator": self.operator,
            "random_state": seed_of(self.random_state),
        }
        if self.method in SUBSPACE:
            options["n_power_iter"] = self.n_power_iter
            return SubspaceReduction(self.n_components, **options)
        return RandomReduction(self.n_components, **options)

    def _solve(
        self, problem: ReducedProblem, alpha: float, start: ReducedModel | None = None
    ) -> ReducedModel:
        model = problem.solve(
            alpha,
            tol=float(self.tol),
            max_passes=int(self.max_iter),
            seed=seed_of(self.random_state),
            start=start,
        )
        if model.gaps.max() > self.tol:
            warnings.warn(
                f"the duality gap is {model.gaps.max():.3g} after {self.max_iter} passes at "
                f"alpha={alpha:g}, above tol={self.tol:g}; enlarge max_iter, alpha or tol",
                ConvergenceWarning,
                stacklevel=3,
            )
        return model

    def _take_over(self, model: ReducedModel, scale: Array, problem: ReducedProblem) -> None:
        self.__dict__.pop("holdout_quality_", None)
        self.training_quality_ = self._rate(problem.targets, model.scores, problem.shares)
        self.coef_, self.intercept_, self.scale_ = model.coef / scale, model.intercept, scale
        self.reduced_coef_, self.dual_coef_ = model.reduced, model.dual
        self.duality_gap_ = float(model.gaps.max())
        self.objective_gap_bound_ = float(model.gap_bounds.max())
        self.lemma2_bound_ = float(model.a_priori_bounds.max())
        self.n_iter_ = model.n_passes

    @abstractmethod
    def _rate(self, targets: Array, scores: Array, weights: Array) -> dict[str, float]:
        """Return how good the scores of rows are for the targets of the problem."""

    def _scores(self, X: RowsLike) -> Array:
        self._require_fitted()
        rows = checked_rows(self, host_rows(X), reset=False)
        coef = np.atleast_2d(self.coef_)
        return np.asarray(rows @ coef.T) + self.intercept_

    # Saving

    def _saved_params(self) -> dict[str, Any]:
        return super()._saved_params() | {"random_state": seed_of(self.random_state)}

    def _learned(self, state: State) -> State:
        facts: dict[str, Any] = {name: getattr(self, name) for name in _NUMBERS}
        facts["training_quality"] = json.dumps(self.training_quality_)
        arrays = {name: np.array(getattr(self, name)) for name in _ARRAYS}
        return state.with_more(facts, arrays).with_inner("reduction", self.reduction_.state())

    def _recall(self, state: State) -> None:
        for name in _NUMBERS:
            setattr(self, name, state.meta[name])
        # Files of earlier releases do not say how good the model is.
        self.training_quality_ = json.loads(str(state.meta.get("training_quality", "{}")))
        ones = {"scale_": np.ones(self.n_features_in_), "baseline_": np.zeros(0)}
        for name in _ARRAYS:
            setattr(self, name, (ones | dict(state.arrays))[name])
        kind = SubspaceReduction if self.method in SUBSPACE else RandomReduction
        self.reduction_ = kind.from_state(state.inner("reduction"))
        width = self.coef_.shape[-1]
        if not width == self.n_features_in_ == self.reduction_.n_features_in_:
            raise StateFormatError(
                f"the reduction is of {self.reduction_.n_features_in_:,} columns and the "
                f"model of {width:,}; save it again"
            )
