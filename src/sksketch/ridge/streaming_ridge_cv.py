"""Ridge regression in one pass that also chooses its penalty."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from sksketch._typing import Array, Rows, RowsLike
from sksketch.arrays.rows import as_weights
from sksketch.exceptions import NotMergeableError
from sksketch.models.constraints import FLAG, number, one_of, such, whole
from sksketch.ridge.holdout import Reservoir
from sksketch.ridge.penalties import PENALTIES
from sksketch.ridge.ridge_estimator import RidgeEstimator
from sksketch.ridge.solution import residual_dimension_interval
from sksketch.sketches import Regression, Sketch
from sksketch.state.persistence import State

DEFAULT_ALPHAS = (0.1, 1.0, 10.0)


class StreamingRidgeCV(RidgeEstimator):
    """Ridge regression in one pass, with the penalty chosen among many.

    Parameters
    ----------
    alphas : float or array-like of shape (n_alphas,), default=(0.1, 1.0, 10.0)
        Penalties to choose from.
    sketch : str or Sketch, default="auto"
        "auto" keeps the exact covariance while it takes no more than 64 MiB and robust FD
        beyond that. The methods of the paper are "fd", "rfd", "isvd", "2lfd", "sign",
        "gaussian", "countsketch" and "exact"; or pass an empty sketch.
    sketch_size : int, default=64
        Rows that the sketch keeps.
    fit_intercept : bool, default=True
        Whether to learn an intercept, by centering rows and targets in the same pass.
    correction : str or float, default=None
        Read-out of the "fd" family: "half", "none", "energy" and the others of
        `FrequentDirections`. "energy" has the least coefficient error where the spectrum is
        flat, and can be worse than "half" where it falls fast and the sketch is small.
    selection : {"gcv", "holdout"}, default="gcv"
        How to choose: by generalized cross-validation, computed from the sketch alone, or by
        the squared error on rows that are kept apart.
    holdout_rows : int, default=1000
        Rows kept apart, chosen at random over the whole stream, if ``selection="holdout"``. The
        model does not learn from them.
    random_state : int, default=0
        Chooses those rows.
    standardize : bool, default=False
        Whether penalties are on the coefficients of columns divided by their standard deviations,
        as for `StreamingRidge`.
    alpha_per_target : bool, default=False
        Whether a penalty is chosen for each target by itself.

    Attributes
    ----------
    alpha_ : float or array of shape (n_targets,)
        The penalty with the least score; the largest of several such, also where no score is
        finite, because a larger penalty is the safer one.
    scores_ : array of shape (n_alphas,) or (n_alphas, n_targets)
        Generalized cross-validation score, or mean squared error on the rows kept apart; the mean
        over targets, or with ``alpha_per_target`` that of each. With "gcv" it is the largest that
        the coefficients found by the sketch can have.
    best_score_ : float or array of shape (n_targets,)
        Minus the least of them, as scikit-learn counts scores.
    score_intervals_ : array of shape (n_alphas, 2) or (n_alphas, n_targets, 2)
        Certified interval, with "gcv", of the score of the exact solution at each penalty, whatever
        the sketch lost and rounding did; from 0 to inf for sketches without a bound.
    coef_ : array of shape (n_features,) or (n_targets, n_features)
        Coefficients at ``alpha_``.
    intercept_ : float or array of shape (n_targets,)
        Intercept at ``alpha_``; 0.0 without one.
    coef_error_bound_ : float
        Certified bound on ``|coef_ - w| / |w|``, rounding included, with w the exact
        coefficients at ``alpha_``; ``inf`` if none is certified. With ``standardize`` both are
        meant times ``scale_``: for columns in standard units.
    coef_error_bound_absolute_ : float or array of shape (n_targets,)
        The same for ``|coef_ - w|``.
    scale_ : array of shape (n_features,)
        Standard deviation of each column, one where it never changes; ones without
        ``standardize``.
    r2_, rmse_ : float or array of shape (n_targets,)
        R2 and root mean squared error on the rows learned from, read from the sketch.
    r2_interval_ : array of shape (2,) or (n_targets, 2)
        Certified interval of ``r2_``, rounding of the intercept aside.
    training_quality_ : dict
        Both for all targets together, beside the error of the mean target, ``baseline_``.
    certificate_ : Certificate
        What is certain about the covariance of the rows, with its error bounds.
    plan_ : str
        One sentence: how the rows are remembered, why, and in how much memory.
    sketch_ : Regression
        What remembers rows and targets.
    n_samples_seen_ : int
        Rows learned from.
    n_features_in_ : int
        Columns of the rows.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of the columns, where the rows have names.

    See Also
    --------
    StreamingRidge : One penalty, or a path of them.
    sklearn.linear_model.RidgeCV : For rows that fit in memory.

    Notes
    -----
    The coefficients are those of [1]_ and the score is that of [2]_.

    References
    ----------
    .. [1] Shi, B. and Phillips, J. M. (2021). "A Deterministic Streaming Sketch for Ridge
       Regression". AISTATS, PMLR 130.
    .. [2] Golub, G. H., Heath, M. and Wahba, G. (1979). "Generalized Cross-Validation as a Method
       for Choosing a Good Ridge Parameter". Technometrics 21(2).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((400, 30))
    >>> y = X[:, 0] + 3.0 * rng.standard_normal(400)
    >>> model = StreamingRidgeCV([1e-3, 300.0, 1e6]).partial_fit(X, y)
    >>> model.alpha_
    300.0
    """

    kind = "streaming-ridge-cv"
    _constraints = RidgeEstimator._shared_constraints | {
        "alphas": (PENALTIES, number(0.0)),
        "selection": (one_of("gcv", "holdout"),),
        "holdout_rows": (whole(1),),
        "random_state": (such("an integer", Integral),),
        "alpha_per_target": (FLAG,),
    }
    _reservoir: Reservoir | None = None

    def __init__(
        self,
        alphas: npt.ArrayLike = DEFAULT_ALPHAS,
        *,
        sketch: str | Sketch = "auto",
        sketch_size: int = 64,
        fit_intercept: bool = True,
        correction: str | float | None = None,
        selection: str = "gcv",
        holdout_rows: int = 1000,
        random_state: int = 0,
        standardize: bool = False,
        alpha_per_target: bool = False,
    ) -> None:
        self.alphas = alphas
        self.sketch = sketch
        self.sketch_size = sketch_size
        self.fit_intercept = fit_intercept
        self.correction = correction
        self.selection = selection
        self.holdout_rows = holdout_rows
        self.random_state = random_state
        self.standardize = standardize
        self.alpha_per_target = alpha_per_target

    def _update(
        self, sketch: Sketch, rows: Rows, targets: Array | None, sample_weight: RowsLike | None
    ) -> None:
        if self.selection == "gcv":
            super()._update(sketch, rows, targets, sample_weight)
            return
        assert isinstance(sketch, Regression)
        assert targets is not None
        first = sketch is not self.__dict__.get("_sketch")
        if first or self._reservoir is None:
            self._reservoir = Reservoir(self.holdout_rows, int(self.random_state))
        sketch.check(rows, sample_weight, targets)
        weights = as_weights(sample_weight, rows.shape[0])
        weights = np.ones(rows.shape[0]) if weights is None else weights
        wide = targets.reshape(len(targets), -1).astype(np.float64)
        learned, y, w = self._reservoir.exchange(rows, wide, weights)
        if learned.shape[0]:
            super()._update(sketch, learned, y.reshape(-1, *targets.shape[1:]), w)
        else:
            self.sketch_, self._answers = sketch, {}

    def _penalty(self) -> Array | float:
        penalty: Array | float = self.alpha_
        return penalty

    @property
    def alpha_(self) -> Any:
        """The penalty with the least score, the largest of several such."""
        return self._once("alpha_", self._best)

    def _best(self) -> Any:
        alphas, scores = self._alphas(), self.scores_
        found = [alphas[each == each.min()].max() for each in scores.T.reshape(-1, len(alphas))]
        return float(found[0]) if scores.ndim == 1 else np.array(found)

    def _alphas(self) -> Array:
        return np.atleast_1d(np.asarray(self.alphas, dtype=np.float64))

    @property
    def best_score_(self) -> Any:
        """Minus the score of ``alpha_``: the greater, the better, as scikit-learn has it."""
        least = -self.scores_.min(axis=0)
        return least if least.ndim else float(least)

    @property
    def scores_(self) -> Array:
        """Score of each penalty; the least is best."""
        return np.asarray(self._once("scores", self._score)[0])

    @property
    def score_intervals_(self) -> Array:
        """Certified intervals of the score of the exact solution at each penalty."""
        return np.asarray(self._once("scores", self._score)[1])

    def _score(self) -> tuple[Array, Array]:
        scores = self._generalized if self.selection == "gcv" else self._held_out
        found = np.array([scores(float(alpha)) for alpha in self._alphas()])
        if not (self.alpha_per_target and self.sketch_.target_shape):
            found = found.mean(axis=2)
        return found[:, 0], np.moveaxis(found[:, 1:], 1, -1)

    def _generalized(self, alpha: float) -> tuple[Array, Array, Array]:
        """Return for each target n |A x - b|^2 / (n - free columns)^2, and its interval."""
        solution = self._solve(alpha)[0]
        reader = self._reader()
        moments = reader.moments
        if self.sketch_.linear:
            projected = self._once("projected", lambda: self._projected(self.sketch_))
            score = projected.score(alpha, moments.weight)
            return score, np.zeros_like(score), np.full_like(score, np.inf)
        ends = reader.squared_error_interval(solution.coefficients)
        # From the coefficients that are returned to the exact ones.
        low = np.maximum(np.sqrt(ends[0]) - solution.image_bounds, 0.0) ** 2
        high = (np.sqrt(ends[1]) + solution.image_bounds) ** 2
        extra = int(self.fit_intercept)
        least, most = residual_dimension_interval(reader.summary, moments, alpha, extra)
        worst = moments.weight / least**2 if least > 0.0 else np.inf
        best = moments.weight / most**2 if most > 0.0 else np.inf
        score, upper = _product(ends[1], worst), _product(high, worst)
        return score, np.minimum(_product(low, best), score), np.maximum(upper, score)

    def _held_out(self, alpha: float) -> tuple[Array, Array, Array]:
        held = self._reservoir
        if held is None or not len(held.weights):
            raise ValueError("no row has been kept apart yet; learn from more of them")
        solution, intercepts = self._solve(alpha)
        coefficients = self._in_columns(solution.coefficients)
        errors = (np.asarray(held.X @ coefficients) + intercepts - held.y) ** 2
        score = np.asarray(held.weights @ errors / held.weights.sum())
        return score, score, score

    def _absorb(self, other: Self) -> None:
        self._require_no_holdout()
        other._require_no_holdout()
        super()._absorb(other)

    def _require_no_holdout(self) -> None:
        if self.selection == "holdout":
            raise NotMergeableError('rows kept apart cannot be merged; fit with selection="gcv"')

    def _template(self) -> Self:
        self._require_no_holdout()
        return super()._template()

    def _learned(self, state: State) -> State:
        state = super()._learned(state)
        if (held := self._reservoir) is None:
            return state
        return state.with_more({"holdout_seen": held.n_seen}, held.arrays())

    def _recall(self, state: State) -> None:
        super()._recall(state)
        if "holdout_seen" in state.meta:
            self._reservoir = Reservoir(self.holdout_rows, int(self.random_state))
            n_seen: Any = state.meta["holdout_seen"]
            self._reservoir.restore(state.arrays, n_seen, self.n_features_in_)


def _product(errors: Array, factor: float) -> Array:
    """Return errors times the factor, infinite where that is."""
    return errors * factor if np.isfinite(factor) else np.full(len(errors), np.inf)
