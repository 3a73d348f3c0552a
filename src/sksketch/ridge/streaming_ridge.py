"""Ridge regression in one pass: coefficients for any penalty, with a bound on their error."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Self

import numpy as np

from sksketch._typing import Array, Rows, RowsLike
from sksketch.arrays.rows import as_rows
from sksketch.arrays.sparse import in_units
from sksketch.models.constraints import FLAG, check_value, number, one_of, whole
from sksketch.models.forgetting import CONSTRAINTS, check_forgetting
from sksketch.models.inference import Inference
from sksketch.ridge.inference.asking import empty_pass, exact_solution, infer
from sksketch.ridge.inference.estimates import Asked
from sksketch.ridge.inference.robust import ROBUST, RobustPass
from sksketch.ridge.inference.second_pass import SeenRows, run_over
from sksketch.ridge.penalties import PENALTIES, check_number, one_or_each, the_one
from sksketch.ridge.refinement import conjugate_gradients, with_refined
from sksketch.ridge.ridge_estimator import RidgeEstimator
from sksketch.ridge.solution import RidgeSolution
from sksketch.sketches import Sketch
from sksketch.state.persistence import State

# Columns up to which least squares keeps sums of products without rounding.
MOST_COLUMNS = 128


class StreamingRidge(RidgeEstimator):
    """Linear least squares with a penalty, learned in one pass and O(sketch_size * n_features).

    Minimizes ``|y - X w|^2 + alpha |w|^2``, as scikit-learn's ``Ridge``. The targets meet the
    rows themselves; only the covariance of the rows is sketched.

    Parameters
    ----------
    alpha : float or array of shape (n_targets,), default=1.0
        Penalty, or one for each target. It is no part of what is learned: see `path`.
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
    refine : int, default=0
        Further passes of conjugate gradients over the rows given to `fit`, which start at
        the sketch's answer and are preconditioned by it.
    standardize : bool, default=False
        Whether the penalty is on the coefficients of columns divided by their standard deviations,
        so that units do not matter.
    window : int, str or timedelta, default=None
        Learn from the last rows alone: that number of them, or those of a length of time such as
        "7d", for which `partial_fit` takes their ``times``. See `SlidingWindow`.
    half_life : float, default=None
        Forget by and by: a row counts half after that number of others.
    positive : bool, default=False
        Whether coefficients must not be negative, for up to 4,096 columns and sketches that
        certify an error.

    Attributes
    ----------
    coef_ : array of shape (n_features,) or (n_targets, n_features)
        Coefficients.
    intercept_ : float or array of shape (n_targets,)
        Intercept; 0.0 without one.
    coef_error_bound_ : float
        Certified bound on ``|coef_ - w| / |w|``, rounding included, with w the exact
        coefficients; ``inf`` if none is certified. After ``refine`` it is that of the sketch's
        answer and the way from there, so it does not show how much closer they are. With
        ``standardize`` both are meant times ``scale_``: for columns in standard units.
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
    StreamingRidgeCV : Chooses the penalty in the same pass.
    OnlineNewtonRegressor : Predicts each row before it learns from it.
    FrequentDirections : The sketch by itself.
    sklearn.linear_model.Ridge : For rows that fit in memory.

    Notes
    -----
    The methods are those of [1]_. Their FDRR is ``sketch="fd"``, RFDRR "rfd", iSVDRR "isvd",
    2LFDRR "2lfd", RPRR "sign", CSRR "countsketch" and RR "exact". FDRR at a penalty is RFDRR at a
    smaller one: whoever chooses ``alpha`` by validation gets the same path from both.

    With ``standardize`` the model is that of scikit-learn's ``StandardScaler`` before ``Ridge``
    (without an intercept, columns are divided and not centered), and ``coef_`` is for rows in the
    user's units all the same. Where the covariance is kept, units are read from it; a sketch needs
    them first, and they are those of all rows in `fit`, and in `fit_stream` over rows that can be
    read twice, otherwise those of the first 1,000 rows. ``certificate_`` is about the rows
    divided by exactly ``scale_``.

    References
    ----------
    .. [1] Shi, B. and Phillips, J. M. (2021). "A Deterministic Streaming Sketch for Ridge
       Regression". AISTATS, PMLR 130.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((500, 3))
    >>> y = X @ [1.0, 2.0, 3.0] + 5.0
    >>> model = StreamingRidge(alpha=1e-6).partial_fit(X[:200], y[:200])
    >>> model = model.partial_fit(X[200:], y[200:])
    >>> model.coef_.round(3), round(float(model.intercept_), 3)
    (array([1., 2., 3.]), 5.0)
    >>> model.path([1.0, 1000.0]).coef.round(1)
    array([[1. , 2. , 3. ],
           [0.3, 0.6, 1. ]])
    """

    kind = "streaming-ridge"
    _constraints = RidgeEstimator._shared_constraints | {
        "alpha": (number(0.0), PENALTIES),
        "refine": (whole(0),),
        "positive": (FLAG,),
        **CONSTRAINTS,
    }
    _refined: Array | None = None
    _seen: SeenRows | None = None

    def __init__(
        self,
        alpha: float | Array = 1.0,
        *,
        sketch: str | Sketch = "auto",
        sketch_size: int = 64,
        fit_intercept: bool = True,
        correction: str | float | None = None,
        refine: int = 0,
        standardize: bool = False,
        window: object = None,
        half_life: float | None = None,
        positive: bool = False,
    ) -> None:
        self.alpha = alpha
        self.sketch = sketch
        self.sketch_size = sketch_size
        self.fit_intercept = fit_intercept
        self.correction = correction
        self.refine = refine
        self.standardize = standardize
        self.window = window
        self.half_life = half_life
        self.positive = positive

    def _check_together(self) -> None:
        check_forgetting(self.window, self.half_life, self.sketch)
        if self.refine and (self.window is not None or self.half_life is not None):
            raise ValueError("refine looks at all rows alike; set refine=0 to forget some of them")
        if self.refine and self.positive:
            raise ValueError("refine knows no constraint; set refine=0, or positive=False")

    def _penalty(self) -> Array | float:
        return one_or_each(self.alpha)

    def _checked(self, X: RowsLike, y: RowsLike | None, reset: bool) -> tuple[Any, Any]:
        rows, targets = super()._checked(X, y, reset)
        check_number(self._penalty(), targets)
        return rows, targets

    def _keeps_products(self, n_features: int) -> bool:
        # They cost several times as much as A'A itself, which is enough with a penalty.
        plain = not (self.positive or np.any(self._penalty()))
        return plain and n_features <= MOST_COLUMNS

    # Inference

    def inference(
        self,
        covariance: str = "classical",
        confidence: float = 0.95,
        *,
        weights: str = "frequency",
        X: RowsLike | None = None,
        y: RowsLike | None = None,
        sample_weight: RowsLike | None = None,
        groups: object = None,
        source: object = None,
        second_pass: RobustPass | None = None,
        feature_names: Sequence[object] | None = None,
    ) -> Inference:
        """Return coefficients with standard errors, tests and intervals, as a table to print.

        Parameters
        ----------
        covariance : {"classical", "HC0", "HC1", "HC2", "HC3", "cluster"}, default="classical"
            "classical" has noise of one variance, and needs no further look at the rows. The
            others hold whatever the noise is, and need all rows a second time: after `fit` they
            are taken from there while they exist; otherwise give them.
        confidence : float, default=0.95
            Level of the intervals.
        weights : {"frequency", "analytic"}, default="frequency"
            What the weights of the rows mean: a row counts as that many equal ones, or the
            variance of its noise is inverse to its weight.
        X : array-like, sparse matrix or dask collection of shape (n_samples, n_features)
            The rows once more, for the second look.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Their targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Their weights.
        groups : array-like of shape (n_samples,), default=None
            The group of each row, for "cluster".
        source : RowSource or anything that `open_rows` takes, default=None
            The rows once more, as a source; with "cluster" its last target is the group.
        second_pass : RobustPass, default=None
            What `robust_pass` returned, after it has learned from all rows.
        feature_names : sequence of str, default=None
            Names of the columns, where a step of a pipeline has made them, such as what its
            ``get_feature_names_out()`` gives; by default those of the rows.

        Returns
        -------
        Inference
            A record that prints as a table.

        Notes
        -----
        With ``alpha=0`` and the exact covariance all is computed from sums of products that were
        never rounded (up to 128 columns), so any blocks, parts and merges give the same bits.
        With a penalty the standard errors are those of the penalized coefficients, whose mean is
        not that of the noiseless ones, and degrees of freedom are the trace of the hat matrix.
        "HC0" to "HC3" follow MacKinnon and White [1]_, and "cluster" Liang and Zeger [2]_ with
        the correction for few groups; their statistics are compared with the normal distribution.

        References
        ----------
        .. [1] MacKinnon, J. G. and White, H. (1985). "Some Heteroskedasticity-Consistent
           Covariance Matrix Estimators with Improved Finite Sample Properties". Journal of
           Econometrics 29(3).
        .. [2] Liang, K.-Y. and Zeger, S. L. (1986). "Longitudinal Data Analysis Using Generalized
           Linear Models". Biometrika 73(1).

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> X = rng.standard_normal((100, 2))
        >>> model = StreamingRidge(alpha=0.0).fit(X, X[:, 0] + rng.standard_normal(100))
        >>> model.inference().interval.round(2)
        array([[-0.39,  0.06],
               [ 0.66,  1.12],
               [-0.06,  0.41]])
        """
        self._require_fitted()
        check_value("covariance", covariance, one_of("classical", *ROBUST))
        check_value("confidence", confidence, number(0.0, 1.0, bounds="()"))
        check_value("weights", weights, one_of("frequency", "analytic"))
        names = feature_names
        if names is None:
            names = getattr(self, "feature_names_in_", None)
        elif len(names) != self.n_features_in_:
            raise ValueError(
                f"got {len(names)} names for {self.n_features_in_} columns; name each of them"
            )
        single = not self.sketch_.target_shape
        asked = Asked(covariance, float(confidence), weights, names, single)

        def second() -> RobustPass:
            if second_pass is not None:
                return second_pass
            empty = self.robust_pass(covariance, weights=weights)
            given, checked = (X, y, sample_weight), partial(self._checked, reset=False)
            return run_over(empty, self._seen, given, groups, source, checked)

        return infer(self, the_one(self._penalty(), self.positive), asked, second)

    def robust_pass(self, covariance: str = "HC3", *, weights: str = "frequency") -> RobustPass:
        """Return what learns from all rows a second time, for robust standard errors.

        Parameters
        ----------
        covariance : {"HC0", "HC1", "HC2", "HC3", "cluster"}, default="HC3"
            As for `inference`. With "cluster" it takes the group of each row as the last target.
        weights : {"frequency", "analytic"}, default="frequency"
            As for `inference`.

        Returns
        -------
        RobustPass
            To be given to `fit_stream`, `fit_dask` or `fit_spark` like an estimator, and then to
            `inference`.
        """
        check_value("covariance", covariance, one_of(*ROBUST))
        check_value("weights", weights, one_of("frequency", "analytic"))
        return empty_pass(self, the_one(self._penalty(), self.positive), covariance, weights)

    def _solve(self, alpha: float) -> tuple[RidgeSolution, Array]:
        if not self.positive:
            return exact_solution(self, alpha) or super()._solve(alpha)
        if self.sketch_.linear:
            raise ValueError(
                f"positive=True needs a sketch that certifies an error, got {self.sketch!r}; "
                "fit with sketch='exact', or 'rfd' and a penalty"
            )
        return super()._solve(alpha)

    def _template(self) -> Self:
        if self.refine:
            raise ValueError(
                f"refine={self.refine} looks at all rows again, in memory; set refine=0 for parts "
                "that are learned apart"
            )
        return super()._template()

    def fit(
        self,
        X: RowsLike,
        y: RowsLike | None = None,
        sample_weight: RowsLike | None = None,
        times: object = None,
    ) -> Self:
        """Learn from all rows of ``X``, forgetting what was learned before.

        Parameters
        ----------
        X : array-like, sparse matrix or dask collection of shape (n_samples, n_features)
            Rows; those of dask are learned where they lie, see `fit_dask`.
        y : array-like or dask collection of shape (n_samples,) or (n_samples, n_targets)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Row ``i`` counts as ``sample_weight[i]`` copies.
        times : array-like of shape (n_samples,), default=None
            Times of the rows, in order: for a window that is a length of time.

        Returns
        -------
        self
            This estimator.
        """
        super().fit(X, y, sample_weight, times)
        self._seen = SeenRows(X, y, sample_weight, keeps_small=not np.any(self._penalty()))
        if self.refine:
            rows, _ = self._checked(X, y, reset=False)
            if (unit := self._unit()) is not None:
                rows = in_units(as_rows(rows), unit)
            start = self._solution().coefficients
            self._refined = conjugate_gradients(
                self._reader(), rows, sample_weight, start, self._penalty(), self.refine
            )
        return self

    def _update(
        self, sketch: Sketch, rows: Rows, targets: Array | None, sample_weight: RowsLike | None
    ) -> None:
        super()._update(sketch, rows, targets, sample_weight)
        self._refined = self._seen = None

    def _solution(self) -> RidgeSolution:
        solution = super()._solution()
        return solution if self._refined is None else with_refined(solution, self._refined)

    def _found(self) -> tuple[Array, Array]:
        if self._refined is not None:
            return self._in_columns(self._refined), self._intercepts(self._refined)
        return super()._found()

    def _absorb(self, other: Self) -> None:
        super()._absorb(other)
        self._refined = self._seen = None

    def _learned(self, state: State) -> State:
        state = super()._learned(state)
        refined = {} if self._refined is None else {"refined": self._refined.copy()}
        return state.with_more({}, refined)

    def _recall(self, state: State) -> None:
        super()._recall(state)
        self._refined = state.arrays.get("refined")
