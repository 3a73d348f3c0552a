"""Ridge regression in one pass that also chooses its penalty."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Self

import numpy as np

from sksketch._typing import Array
from sksketch.exceptions import NotMergeableError
from sksketch.models.constraints import one_of, such, whole
from sksketch.ridge.holdout import Reservoir
from sksketch.ridge.ridge_estimator import PENALTIES, RidgeEstimator
from sksketch.ridge.solution import residual_dimension_interval
from sksketch.sketches import Sketch
from sksketch.state.persistence import State

DEFAULT_ALPHAS = (0.1, 1.0, 10.0)


class StreamingRidgeCV(RidgeEstimator):
    """Ridge regression in one pass, with the penalty chosen among many.

    Parameters
    ----------
    alphas : array-like of shape (n_alphas,)
        Penalties to choose from.
    sketch, sketch_size, fit_intercept, correction :
        As for `StreamingRidge`.
    selection : {"gcv", "holdout"}
        How to choose: by generalized cross-validation, computed from the sketch alone, or by
        the squared error on rows that are kept apart.
    holdout_rows : int
        Rows kept apart, chosen at random over the whole stream, if ``selection="holdout"``. The
        model does not learn from them.
    random_state : int
        Chooses those rows.

    Attributes
    ----------
    alpha_ : float
        The penalty with the least score; the largest of several such, also where no score is
        finite, because a larger penalty is the safer one.
    scores_ : array of shape (n_alphas,)
        Generalized cross-validation score, or mean squared error on the rows kept apart. With
        "gcv" it is the largest that the coefficients found by the sketch can have.
    score_intervals_ : array of shape (n_alphas, 2)
        What is certain, with "gcv", of the score of the exact solution at each penalty, whatever
        the sketch lost and rounding did; from 0 to inf for sketches without a bound.
    coef_, intercept_, coef_error_bound_ :
        As for `StreamingRidge`, at ``alpha_``.

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
        "alphas": (PENALTIES,),
        "selection": (one_of("gcv", "holdout"),),
        "holdout_rows": (whole(1),),
        "random_state": (such("an integer", Integral),),
    }
    _reservoir: Reservoir | None = None

    def __init__(
        self,
        alphas: Any = DEFAULT_ALPHAS,
        *,
        sketch: str | Sketch = "auto",
        sketch_size: int = 64,
        fit_intercept: bool = True,
        correction: str | float | None = None,
        selection: str = "gcv",
        holdout_rows: int = 1000,
        random_state: int = 0,
    ) -> None:
        self.alphas = alphas
        self.sketch = sketch
        self.sketch_size = sketch_size
        self.fit_intercept = fit_intercept
        self.correction = correction
        self.selection = selection
        self.holdout_rows = holdout_rows
        self.random_state = random_state

    def _update(self, sketch: Any, rows: Any, targets: Any, sample_weight: Any) -> None:
        if self.selection == "gcv":
            super()._update(sketch, rows, targets, sample_weight)
            return
        first = sketch is not self.__dict__.get("sketch_")
        if first or self._reservoir is None:
            self._reservoir = Reservoir(self.holdout_rows, int(self.random_state))
        sketch.check(rows, sample_weight, targets)
        weights = np.ones(rows.shape[0]) if sample_weight is None else np.asarray(sample_weight)
        wide = targets.reshape(len(targets), -1).astype(np.float64)
        learned, y, w = self._reservoir.exchange(rows, wide, weights)
        if learned.shape[0]:
            super()._update(sketch, learned, y.reshape(-1, *targets.shape[1:]), w)
        else:
            self.sketch_, self._answers = sketch, {}

    def _penalty(self) -> float:
        return self.alpha_

    @property
    def alpha_(self) -> float:
        """The penalty with the least score, the largest of several such."""
        return float(self._once("alpha_", self._best))

    def _best(self) -> float:
        alphas, scores = np.asarray(self.alphas, dtype=np.float64), self.scores_
        return float(alphas[scores == scores.min()].max())

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
        found = [scores(float(alpha)) for alpha in np.asarray(self.alphas, dtype=np.float64)]
        return np.array([score for score, _ in found]), np.array([span for _, span in found])

    def _generalized(self, alpha: float) -> tuple[float, tuple[float, float]]:
        """Return the score and its interval: n |A x - b|^2 / (n - free columns)^2 by targets."""
        sketch: Any = self.sketch_
        solution = self._solve(alpha)[0]
        reader = self._reader()
        moments = reader.moments
        if sketch.linear:
            projected = self._once("projected", lambda: self._projected(sketch))
            return projected.score(alpha, moments.weight), (0.0, np.inf)
        ends = reader.squared_error_interval(solution.coefficients)
        # From the coefficients that are returned to the exact ones.
        low = np.maximum(np.sqrt(ends[0]) - solution.image_bounds, 0.0) ** 2
        high = (np.sqrt(ends[1]) + solution.image_bounds) ** 2
        extra = int(self.fit_intercept)
        least, most = residual_dimension_interval(reader.summary, moments, alpha, extra)
        per_target = moments.weight / len(low)
        worst = per_target / least**2 if least > 0.0 else np.inf
        best = per_target / most**2 if most > 0.0 else np.inf
        score, upper = _product(ends[1], worst), _product(high, worst)
        return score, (min(_product(low, best), score), max(upper, score))

    def _held_out(self, alpha: float) -> tuple[float, tuple[float, float]]:
        held = self._reservoir
        if held is None or not len(held.weights):
            raise ValueError("no row has been kept apart yet; learn from more of them")
        solution, intercepts = self._solve(alpha)
        errors = (np.asarray(held.X @ solution.coefficients) + intercepts - held.y) ** 2
        score = float(held.weights @ errors.mean(axis=1) / held.weights.sum())
        return score, (score, score)

    def _absorb(self, other: Self) -> None:
        self._require_no_holdout()
        other._require_no_holdout()
        super()._absorb(other)

    def _require_no_holdout(self) -> None:
        if self.selection == "holdout":
            raise NotMergeableError('rows kept apart cannot be merged; fit with selection="gcv"')

    def shard_template(self) -> Self:
        """Return an unfitted copy for parts of the rows, or say why they cannot be merged."""
        self._require_no_holdout()
        return super().shard_template()

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


def _product(errors: Array, factor: float) -> float:
    """Return the sum times the factor, infinite where that is."""
    return float(errors.sum()) * factor if np.isfinite(factor) else float(factor)
