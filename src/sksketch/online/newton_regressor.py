"""The online Newton regressor: one pass, row by row, second order and no learning rate."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils import Tags

from sksketch._keys import ONLINE_REGRESSION
from sksketch._typing import Array, OneRow, Rows, RowsLike
from sksketch.models.checks import as_precise
from sksketch.models.constraints import number, one_of
from sksketch.models.runner import lazy
from sksketch.online.catalog import BY_LOSS
from sksketch.online.checks import largest_of
from sksketch.online.curvature.learner import CurvatureLearner
from sksketch.online.online_estimator import OnlineEstimator
from sksketch.online.plain_rows import learn_plain
from sksketch.state.persistence import State


class OnlineNewtonRegressor(RegressorMixin, OnlineEstimator):
    """Linear regression that learns row by row with curvature and nothing to tune.

    Each row is predicted, then learned from by a Newton step whose curvature is a sketch of that
    of all rows so far. The cost of a row grows with its non-zeros and not with the columns.

    Parameters
    ----------
    method : {"rfd", "fd", "pfd", "rp", "oja", "full", "adagrad", "ogd"}, default="rfd"
        "rfd" keeps the curvature by Robust Frequent Directions. "fd", "pfd", "rp" and "oja" are
        other sketches, "full" the whole curvature (for few columns), "adagrad" its diagonal, "ogd"
        none.
    sketch_size : int, default=20
        The m of the paper, at least 2: the sketch keeps m - 1 directions.
    loss : {"squared", "absolute", "huber"}, default="squared"
        With the squared one, a pass is ridge regression where the sketch holds all columns.
    curvature : {"loss", "gradient"}, default="loss"
        What the curvature is made of: rows ``sqrt(l'') x`` of the loss itself, or gradients, as
        in the paper. "rp", "oja", "adagrad" and "ogd" are always as in the paper.
    normalize : bool, default=True
        Whether units and offsets of the columns do not matter: each is divided by a power of two
        near its standard deviation so far and, in dense rows, counted from its mean so far. Only
        with the curvature of the loss.
    C : float or "auto", default="auto"
        With gradients, predictions are projected to ``[-C, C]`` while learning, and targets must
        be within. "auto" takes the largest target so far, and makes learning independent of
        their unit.
    huber_width : float, default=1.0
        Where the Huber loss turns from squares to lengths.
    initial_ridge : float or "auto", default="auto"
        Curvature in all directions at the start, which is the penalty of the squared weights in
        the units of the columns, as ``alpha`` of `StreamingRidge`. "auto" is 1; with gradients it
        takes the squared length of the first row that is added, and 0 is the paper's RFD0, for
        "rfd" only.
    fit_intercept : bool, default=True
        Whether to add a column of ones.
    shuffle : bool, default=True
        Whether `fit` takes the rows in random order; with gradients it keeps theirs.
    max_passes : int, default=50
        Most times that `fit` reads the rows: after the first time, which is online, it descends to
        the weights with the least loss and penalty, and stops when that no longer falls.
    n_passes : int, default=1
        With gradients, the times that `fit` reads the rows.
    null_projection : {"range", "exact", "printed", "clip"}, default="range"
        How to project while there is no ridge, see `online.gradient.unridged_newton`.
    fraction : float, default=0.2
        Of the directions, how many "pfd" cuts.
    buffer_rows : int, default=None
        Rows between shrinks and kept ones together; by default three times ``sketch_size``. With
        gradients the first shrink comes at ``sketch_size`` rows, and RFD0 has twice as many.
    hash_size : int, default=None
        For rows with names, see `learn_one`: None gives each of the first 2^18 names a column, and
        the others 2^16 columns by their hash; a number hashes all names to that many columns.
    random_state : int, default=0
        Seed of the order of rows in `fit`, and of "rp" and "oja".

    Attributes
    ----------
    coef_ : array of shape (n_features,) or (n_targets, n_features)
        Weights.
    intercept_ : float or array of shape (n_targets,)
        Weight of the column of ones.
    online_error_ : float
        Mean squared error of the predictions made for each row before it was learned from; not
        clipped to C, and by curvature nearer to the mean, by as much as the row is unusual.
    baseline_error_ : float
        The same for the mean of the targets so far.
    online_error_curve_ : array of shape (n_marks, 3)
        Rows (1, 2, 4, ... and all), and both errors after as many.
    cumulative_loss_ : float
        Sum of the losses of those predictions; with gradients each is clipped to ``[-C, C]``
        first, and ``online_error_`` is of the predictions as they are.
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
    depends on all rows before. `sksketch.online.curvature.reference` has the algorithm and its
    derivation in plain numpy; `sksketch.online.reference` that of the paper [1]_.

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
        "loss": (one_of(*ONLINE_REGRESSION),),
        "huber_width": (number(0.0, bounds="()"),),
    }
    _y_options: ClassVar[dict[str, Any]] = {"y_numeric": True, "multi_output": True}
    # Whether targets are one column without a second axis.
    _flat: bool = True

    def __init__(
        self,
        method: str = "rfd",
        *,
        sketch_size: int = 20,
        loss: str = "squared",
        curvature: str = "loss",
        normalize: bool = True,
        C: float | str = "auto",
        huber_width: float = 1.0,
        initial_ridge: float | str = "auto",
        fit_intercept: bool = True,
        shuffle: bool = True,
        max_passes: int = 50,
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
        self.curvature = curvature
        self.normalize = normalize
        self.C = C
        self.huber_width = huber_width
        self.initial_ridge = initial_ridge
        self.fit_intercept = fit_intercept
        self.shuffle = shuffle
        self.max_passes = max_passes
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
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
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
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
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
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
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
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets.

        Returns
        -------
        float
            Coefficient of determination of the predictions made before each row was learned from.
        """
        found = self.partial_fit_predict(X, y)
        truth = np.asarray(y, dtype=np.float64).reshape(found.shape)
        spread = float(((truth - truth.mean(axis=0)) ** 2).sum())
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
        if (scores := learn_plain(self, x, target)) is not None:
            gap = scores.item(0) - target.item(0)
            self._error_sum += gap * gap
            self._baseline.count_number(target.item(0), gap * gap)
            return self
        with self._or_as_before():
            self._targets(target, reset=False)
            row = self._meet(x, lambda width, dense: self._start(width, 1, dense=dense))
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
        as_paper = self.curvature == "gradient" or self.method not in BY_LOSS
        if as_paper and self.C != "auto" and largest > self.C:  # type: ignore[operator]
            raise ValueError(
                f"a target has the size {largest:.6g}, beyond C={self.C}; raise C or pass 'auto'"
            )
        if reset:
            self._flat = targets.ndim == 1
        columns = targets[:, None] if targets.ndim == 1 else targets
        if not reset and columns.shape[1] != self._n_targets:
            raise ValueError(
                f"y has {columns.shape[1]} columns, expected {self._n_targets} as before"
            )
        return columns

    @property
    def _n_targets(self) -> int:
        if "learners_" not in vars(self):
            return 1
        first = self.learners_[0]
        if isinstance(first, CurvatureLearner):
            return first.problem.n_outputs
        return len(self.learners_)

    def _largest_target(self, columns: Array) -> float:
        return largest_of(columns)

    def _knee(self) -> float:
        return float(self.huber_width) if self.loss == "huber" else 0.0

    def _predictions(self, scores: Array) -> Array:
        return scores[:, 0] if self._flat else scores

    def _errors(self, scores: Array, y: Rows) -> Array:
        gaps = scores - np.asarray(y, dtype=np.float64).reshape(scores.shape)
        return np.asarray((gaps**2).mean(axis=1))

    @lazy
    def predict(self, X: RowsLike) -> Array:
        """Return the prediction of each row.

        Parameters
        ----------
        X : array-like, sparse matrix or dask collection of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_targets)
            Predictions, not clipped to C, in the precision of the rows.
        """
        return as_precise(self._predictions(self._scores(X)), X)

    @property
    def coef_(self) -> Array:
        """Weights of the columns."""
        found = self._dense()[0]
        return np.asarray(found[0] if self._flat else found)

    @property
    def intercept_(self) -> Any:
        """Weight of the column of ones, for each target."""
        found = self._dense()[1]
        return float(found[0]) if self._flat else found

    def __sklearn_tags__(self) -> Tags:
        """Return scikit-learn's facts about it: several targets are welcome."""
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _learned(self, state: State) -> State:
        return super()._learned(state).with_more({"flat": self._flat}, {})

    def _recall(self, state: State) -> None:
        super()._recall(state)
        self._flat = bool(state.meta.get("flat", True))
