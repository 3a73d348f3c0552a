"""Ridge regression in one pass that also chooses its penalty."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np

from sksketch._typing import Array
from sksketch.estimators._ridge import RidgeEstimator
from sksketch.exceptions import NotMergeableError
from sksketch.learners.holdout import Reservoir
from sksketch.learners.ridge import effective_dimension, squared_error_interval
from sksketch.persistence import State
from sksketch.sketches import Sketch

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
        The penalty with the least score.
    scores_ : array of shape (n_alphas,)
        Generalized cross-validation score, or mean squared error on the rows kept apart.
    score_intervals_ : array of shape (n_alphas, 2)
        What is certain of each score: what the sketch lost makes it uncertain with "gcv".
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
        """The penalty with the least score."""
        best = self._once("alpha_", lambda: int(np.argmin(self.scores_)))
        return float(np.asarray(self.alphas, dtype=np.float64)[best])

    @property
    def scores_(self) -> Array:
        """Score of each penalty; the least is best."""
        return np.asarray(self._once("scores", self._score)[0])

    @property
    def score_intervals_(self) -> Array:
        """What is certain of each score."""
        return np.asarray(self._once("scores", self._score)[1])

    def _score(self) -> tuple[Array, Array]:
        scores = self._generalized if self.selection == "gcv" else self._held_out
        found = [scores(float(alpha)) for alpha in np.asarray(self.alphas, dtype=np.float64)]
        return np.array([score for score, _ in found]), np.array([span for _, span in found])

    def _generalized(self, alpha: float) -> tuple[float, tuple[float, float]]:
        sketch: Any = self.sketch_
        summary, moments = self._once("summary", sketch.summary), sketch.moments()
        coefficients = self._solve(alpha)[0].coefficients
        low, high = squared_error_interval(summary, moments, coefficients)
        free = effective_dimension(summary, alpha) + self.fit_intercept
        rows = moments.weight
        scale = rows / max(rows - free, 1.0) ** 2 / len(low)
        middle = squared_error_interval(replace(summary, error_bound=0.0), moments, coefficients)[0]
        return float(middle.sum() * scale), (float(low.sum() * scale), float(high.sum() * scale))

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
