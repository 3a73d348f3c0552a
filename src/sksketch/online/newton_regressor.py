"""The online Newton regressor: one pass, row by row, second order and no learning rate."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import RegressorMixin

from sksketch._typing import Array, OneRow, Rows, RowsLike
from sksketch.models.constraints import number, one_of
from sksketch.online.checks import largest_of
from sksketch.online.losses import REGRESSION
from sksketch.online.online_estimator import OnlineEstimator


class OnlineNewtonRegressor(RegressorMixin, OnlineEstimator):
    """Linear regression that learns row by row with curvature and nothing to tune.

    Each row is predicted, then learned from by a Newton step whose curvature is a sketch of all
    gradients so far. The cost of a row grows with its non-zeros and not with the columns.

    Parameters
    ----------
    method : {"rfd", "fd", "pfd", "rp", "oja", "full", "adagrad", "ogd"}, default="rfd"
        "rfd" keeps the curvature by Robust Frequent Directions. "fd", "pfd", "rp" and "oja" are
        other sketches, "full" the whole curvature (for few columns), "adagrad" its diagonal, "ogd"
        none.
    sketch_size : int, default=20
        The m of the paper, at least 2: the sketch keeps m - 1 directions.
    loss : {"squared", "absolute", "huber"}, default="squared"
        Only the squared one has curvature, so the others learn with steps that fall as 1/sqrt(t).
    C : float or "auto", default="auto"
        Predictions are projected to ``[-C, C]`` while learning; targets must be within. "auto"
        takes the largest target so far, and makes learning independent of their unit.
    huber_width : float, default=1.0
        Where the Huber loss turns from squares to lengths.
    initial_ridge : float or "auto", default="auto"
        Curvature in all directions at the start. "auto" takes the squared length of the first
        row that is added. 0 is the paper's RFD0, for "rfd" only.
    fit_intercept : bool, default=True
        Whether to add a column of ones.
    n_passes : int, default=1
        Times that `fit` reads the rows.
    null_projection : {"range", "exact", "printed", "clip"}, default="range"
        How to project while there is no ridge, see `online.unridged_newton`.
    fraction : float, default=0.2
        Of the directions, how many "pfd" cuts.
    buffer_rows : int, default=None
        Rows between shrinks and kept ones together. By default the first shrink comes when
        there are ``sketch_size`` rows, and the room doubles until there are three times as many;
        with ``initial_ridge=0`` there are always twice as many.
    hash_size : int, default=None
        For rows with names, see `learn_one`: None gives each name a column as it comes, and lets
        those after the first 2^18 share 2^16 columns by their hash, so that memory has an end; a
        number hashes all names to that many columns.
    random_state : int, default=0
        Seed of "rp" and "oja".

    Attributes
    ----------
    coef_ : array of shape (n_features,)
        Weights.
    intercept_ : float
        Weight of the column of ones.
    online_error_ : float
        Mean squared error of the predictions made for each row before it was learned from.
    cumulative_loss_ : float
        Sum of the losses of those predictions, each clipped to ``[-C, C]`` first;
        ``online_error_`` is of the predictions as they are.
    learners_ : list of OnlineLearner
        The one learner.
    n_samples_seen_ : int
        Rows learned from.
    n_features_in_ : int
        Columns of the rows.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of the columns, where the rows have names.

    See Also
    --------
    OnlineNewtonClassifier : The same for labels.
    StreamingRidge : Least squares of all rows, in one pass.
    sklearn.linear_model.SGDRegressor : First-order steps, with a learning rate.

    Notes
    -----
    A block of rows gives exactly what its rows give one by one. `merge` is refused: every step
    depends on all rows before. `sksketch.online.reference.learn` is the same algorithm in plain
    numpy, to read beside the paper [1]_.

    References
    ----------
    .. [1] Luo, L., Chen, C., Zhang, Z., Li, W.-J. and Zhang, T. (2019). "Robust Frequent
       Directions with Application in Online Learning". Journal of Machine Learning Research
       20(45).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((5_000, 4))
    >>> y = X @ [1.0, 2.0, 3.0, 4.0] + 10.0
    >>> OnlineNewtonRegressor(sketch_size=5).fit(X, y).score(X, y) > 0.99
    True
    """

    kind = "online-newton-regressor"
    _constraints = OnlineEstimator._shared_constraints | {
        "loss": (one_of(*REGRESSION),),
        "huber_width": (number(0.0, bounds="()"),),
    }
    _y_options: ClassVar[dict[str, Any]] = {"y_numeric": True}

    def __init__(
        self,
        method: str = "rfd",
        *,
        sketch_size: int = 20,
        loss: str = "squared",
        C: float | str = "auto",
        huber_width: float = 1.0,
        initial_ridge: float | str = "auto",
        fit_intercept: bool = True,
        n_passes: int = 1,
        null_projection: str = "range",
        fraction: float = 0.2,
        buffer_rows: int | None = None,
        hash_size: int | None = None,
        random_state: int = 0,
    ) -> None:
        self.method = method
        self.sketch_size = sketch_size
        self.loss = loss
        self.C = C
        self.huber_width = huber_width
        self.initial_ridge = initial_ridge
        self.fit_intercept = fit_intercept
        self.n_passes = n_passes
        self.null_projection = null_projection
        self.fraction = fraction
        self.buffer_rows = buffer_rows
        self.hash_size = hash_size
        self.random_state = random_state

    def fit(self, X: RowsLike, y: RowsLike, sample_weight: RowsLike | None = None) -> Self:
        """Learn from all rows, forgetting what was learned before.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row's loss; rows of weight zero are left out.

        Returns
        -------
        self
            This estimator.
        """
        return self._fit(X, y, sample_weight)

    def partial_fit(self, X: RowsLike, y: RowsLike, sample_weight: RowsLike | None = None) -> Self:
        """Learn from more rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row's loss.

        Returns
        -------
        self
            This estimator.
        """
        self.partial_fit_predict(X, y, sample_weight)
        return self

    def partial_fit_predict(
        self, X: RowsLike, y: RowsLike, sample_weight: RowsLike | None = None
    ) -> Array:
        """Learn from more rows; return what was predicted for each before it was learned from.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row's loss.

        Returns
        -------
        array of shape (n_samples,)
            Predictions.
        """
        first = not hasattr(self, "learners_")
        with self._or_as_before():
            return self._predictions(self._take(X, y, sample_weight, reset=first))

    def progressive_score(self, X: RowsLike, y: RowsLike) -> float:
        """Predict each row, then learn from it; return R^2 of the predictions.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Targets.

        Returns
        -------
        float
            Coefficient of determination of the predictions made before each row was learned from.
        """
        found = self.partial_fit_predict(X, y)
        truth = np.asarray(y, dtype=np.float64)
        spread = float(((truth - truth.mean()) ** 2).sum())
        return 1.0 - float(((truth - found) ** 2).sum()) / spread if spread else 0.0

    def learn_one(self, x: OneRow, y: float) -> Self:
        """Learn from one row.

        Parameters
        ----------
        x : dict of names and numbers, or sequence of numbers
            A name that is new gets a column, so the columns need not be known.
        y : float
            Its target.

        Returns
        -------
        self
            This estimator.

        Examples
        --------
        >>> model = OnlineNewtonRegressor(sketch_size=2)
        >>> for rooms in (1, 2, 3, 4) * 50:
        ...     model = model.learn_one({"rooms": rooms}, 100.0 * rooms)
        >>> round(model.predict_one({"rooms": 5}) / 100)
        5
        """
        target = np.array([float(y)])
        with self._or_as_before():
            self._targets(target, reset=False)
            row = self._meet(x, lambda width: self._start(width, 1))
            self._learn(row, target, target[:, None], np.ones(1))
        return self

    def predict_one(self, x: OneRow) -> float:
        """Return the prediction of one row.

        Parameters
        ----------
        x : dict of names and numbers, or sequence of numbers
            The row.

        Returns
        -------
        float
            Its target as predicted; 0.0 before anything was learned.
        """
        if not hasattr(self, "learners_"):
            return 0.0
        return float(self._scores_of_one(x)[0, 0])

    def _targets(self, y: Array, reset: bool) -> Array:
        targets = np.asarray(y, dtype=np.float64)
        largest = float(np.abs(targets).max(initial=0.0))
        if not np.isfinite(largest):
            raise ValueError("a target is NaN or infinite; give finite numbers")
        if self.C != "auto" and largest > self.C:  # type: ignore[operator]
            raise ValueError(
                f"a target has the size {largest:.6g}, beyond C={self.C}; raise C or pass 'auto'"
            )
        return targets[:, None]

    def _largest_target(self, columns: Array) -> float:
        return largest_of(columns)

    def _knee(self) -> float:
        return float(self.huber_width) if self.loss == "huber" else 0.0

    def _predictions(self, scores: Array) -> Array:
        return scores[:, 0]

    def _errors(self, scores: Array, y: Rows) -> Array:
        return np.asarray((scores[:, 0] - np.asarray(y, dtype=np.float64)) ** 2)

    def predict(self, X: RowsLike) -> Array:
        """Return the prediction of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        array of shape (n_samples,)
            Predictions, not clipped to C.
        """
        return self._scores(X)[:, 0]

    @property
    def coef_(self) -> Array:
        """Weights of the columns."""
        return np.asarray(self._dense()[0][0])

    @property
    def intercept_(self) -> float:
        """Weight of the column of ones."""
        return float(self._dense()[1][0])
