"""Ridge regression in one pass that also chooses its penalty."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np

from sksketch._typing import Array
from sksketch.exceptions import NotMergeableError
from sksketch.ridge.holdout import Reservoir
from sksketch.ridge.ridge_estimator import RidgeEstimator
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
    _array_params = ("alphas",)
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

    def _check_params(self) -> None:
        alphas = np.asarray(self.alphas, dtype=np.float64)
        if alphas.ndim != 1 or not len(alphas) or not (alphas >= 0).all():
            raise ValueError(f"alphas must be some numbers from 0 on, got {self.alphas!r:.80}")
        if self.selection not in ("gcv", "holdout"):
            raise ValueError(f"selection must be 'gcv' or 'holdout', got {self.selection!r}")
        if self.holdout_rows < 1:
            raise ValueError(f"holdout_rows must be at least 1, got {self.holdout_rows!r}")

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
        """What is certain of the score of the exact solution at each penalty."""
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
            return self._once("projected", None).score(alpha, moments.weight), (0.0, np.inf)
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

    def merge(self, other: Self) -> Self:
        """Add what another estimator has learned; only with ``selection="gcv"``."""
        self._require_no_holdout()
        other._require_no_holdout()
        return super().merge(other)

    def _require_no_holdout(self) -> None:
        if self.selection == "holdout":
            raise NotMergeableError('rows kept apart can not be merged; fit with selection="gcv"')

    def _shard_template(self) -> Self:
        self._require_no_holdout()
        return super()._shard_template()

    def state(self) -> State:
        """Return the parameters and all that was learned, as plain data."""
        state = super().state()
        if self._reservoir is None:
            return state
        meta = {**state.meta, "holdout_seen": self._reservoir.n_seen}
        return replace(state, meta=meta, arrays={**state.arrays, **self._reservoir.arrays()})

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Build the estimator that ``state`` was taken from."""
        estimator = super().from_state(state)
        if "holdout_seen" in state.meta:
            estimator._reservoir = Reservoir(estimator.holdout_rows, int(estimator.random_state))
            n_seen: Any = state.meta["holdout_seen"]
            estimator._reservoir.restore(state.arrays, n_seen, estimator.n_features_in_)
        return estimator


def _product(errors: Array, factor: float) -> float:
    """Return the sum times the factor, infinite where that is."""
    return float(errors.sum()) * factor if np.isfinite(factor) else float(factor)
