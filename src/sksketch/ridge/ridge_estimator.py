"""Base of the ridge estimators: learning, solving and predicting."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.base import MultiOutputMixin, RegressorMixin

from sksketch._typing import Array, Rows, RowsLike
from sksketch.arrays.device_sparse import is_sparse_on_device
from sksketch.arrays.namespace import cast, like, on_device, precision, to_numpy
from sksketch.arrays.rounding import gamma, unit_roundoff
from sksketch.arrays.rows import times
from sksketch.models import standardized
from sksketch.models.checks import are_plain, checked_rows, host_rows, validated
from sksketch.models.constraints import (
    FLAG,
    NOTHING,
    SKETCH,
    SKETCH_KEY,
    Constraints,
    check_value,
    number,
    one_of,
    whole,
)
from sksketch.models.forgetting import exact_bytes, windowed
from sksketch.models.runner import lazy
from sksketch.models.sketched import SketchEstimator
from sksketch.models.standardized import keeps_gram
from sksketch.ridge.exact import RidgeReader
from sksketch.ridge.penalties import PENALTIES, solved_each
from sksketch.ridge.solution import ProjectedRidge, RidgeSolution, row_lengths
from sksketch.ridge.training_quality import TrainingQuality, training_quality
from sksketch.sketches import ExactCovariance, Regression, Sketch, SlidingWindow, make_sketch
from sksketch.sketches.directions.shrink.readout import SHIFTS
from sksketch.sketches.planning import exact_or_sketch

# Beyond this relative bound coefficients may be anything.
VACUOUS = 1.0
# What is lost of a number that is small beside all others in single precision.
SMALLEST_SINGLE = 2.0**-149


class RidgePath(NamedTuple):
    """Coefficients for many penalties, all from the same pass.

    ``coef`` has shape (n_alphas, n_features), or (n_alphas, n_targets, n_features) where the
    targets have columns; ``error_bounds`` bounds the relative error of each.
    """

    alphas: Array
    coef: Array
    intercept: Array
    error_bounds: Array


class RidgeEstimator(MultiOutputMixin, RegressorMixin, SketchEstimator):
    """A linear model read from a sketch of rows and targets; subclasses choose the penalty."""

    _shared_constraints: ClassVar[Constraints] = {
        "sketch": (SKETCH_KEY, SKETCH),
        "sketch_size": (whole(1),),
        "fit_intercept": (FLAG,),
        "correction": (one_of(*SHIFTS), number(0.0), NOTHING),
        "standardize": (FLAG,),
    }
    sketch: str | Sketch
    sketch_size: int
    fit_intercept: bool
    correction: str | float | None
    sketch_: Regression
    # What is forgotten; nothing, unless an estimator has parameters for it.
    window: object = None
    half_life: float | None = None

    # Columns in units of their own
    standardize: bool
    _units = standardized.units_of
    scale_ = property(standardized.scale_)
    is_of_plain_rows = property(standardized.is_of_plain_rows)
    n_passes = property(standardized.n_passes)
    pilot_rows = property(standardized.pilot_rows)
    measure_first = standardized.measure_first
    take_pilot = standardized.take_pilot
    end_pass = standardized.end_pass

    @abstractmethod
    def _penalty(self) -> Array | float:
        """Return the penalty of `coef_`, or one for each target."""

    def _sketch_for(self, n_features: int) -> Sketch:
        ages: dict[str, Any] = {} if self.half_life is None else {"half_life": self.half_life}
        n_bytes = exact_bytes(self.window, n_features)
        if isinstance(self.sketch, Sketch):
            inner = self.sketch.fresh()
        elif (
            self.sketch == "auto"
            and exact_or_sketch("coefficients", n_features, n_bytes=n_bytes).exact
        ):
            inner = ExactCovariance(**ages)
        else:
            key = "rfd" if self.sketch == "auto" else self.sketch
            options = ages
            if self.correction is not None:
                options = ages | {"correction": self.correction}
            inner = make_sketch(key, self.sketch_size, **options)
        plain = self.half_life is None and self.window is None
        exact = plain and isinstance(inner, ExactCovariance) and self._keeps_products(n_features)
        regression = Regression(inner, centered=self.fit_intercept, exact_products=exact)
        return windowed(regression, self.window, n_features)

    def _keeps_products(self, n_features: int) -> bool:
        """Return whether sums of products are to be kept without any rounding as well."""
        return False

    def _give(
        self, sketch: Sketch, rows: Rows, targets: Array | None, sample_weight: RowsLike | None
    ) -> None:
        assert isinstance(sketch, Regression | SlidingWindow)
        sketch.update(rows, weights=sample_weight, targets=targets, **self._timed())

    def _checked(self, X: RowsLike, y: RowsLike | None, reset: bool) -> tuple[Any, Any]:
        if on_device(X) or is_sparse_on_device(X):
            rows = checked_rows(self, X, reset=reset, all_finite=False)
            return rows, _targets_of(y, rows.shape[0])
        if not reset and are_plain(self, X, y) and np.asarray(y).dtype == np.float64:
            return host_rows(X), y
        rows, targets = validated(
            self,
            host_rows(X),
            host_rows(y),
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            multi_output=True,
            y_numeric=True,
            reset=reset,
            ensure_all_finite=False,
        )
        # A single column of targets is a list of numbers, as for scikit-learn's Ridge.
        return rows, targets.ravel() if targets.shape[1:] == (1,) else targets

    # Answers

    def _solution(self) -> RidgeSolution:
        solution: RidgeSolution = self._once(
            "solution", lambda: self._solve_each(self._penalty())[0]
        )
        return solution

    def _solve_each(self, alpha: Array | float) -> tuple[RidgeSolution, Array]:
        """Return what `_solve` does, for each target at its own penalty if there are several."""
        return solved_each(alpha, self._solve)

    def _solve(self, alpha: float) -> tuple[RidgeSolution, Array]:
        """Return the solution at a penalty, in units of the columns, and its intercepts."""
        if self.sketch_.linear:
            model = self._once("projected", lambda: self._projected(self.sketch_))
            coefficients, intercepts = model.solve(alpha)
            nothing = np.full(coefficients.shape[1], np.inf)
            return RidgeSolution(coefficients, np.inf, nothing, nothing), intercepts
        solution = self._reader().solve(alpha)
        if self._unit() is not None:
            solution = solution.for_division()
        return solution, self._intercepts(solution.coefficients)

    def _reader(self) -> RidgeReader:
        unit = self._unit()
        # Rows that were divided before they were sketched are in their units already.
        units = unit if unit is not None and keeps_gram(self._sketch) else None
        positive = bool(self.get_params(deep=False).get("positive"))
        made = partial(RidgeReader, self.sketch_, units, positive=positive)
        reader: RidgeReader = self._once("reader", made)
        return reader

    def _in_columns(self, coefficients: Array) -> Array:
        """Return coefficients of columns in units as those of the user's columns."""
        unit = self._unit()
        return coefficients if unit is None else coefficients / unit[:, None]

    def _projected(self, sketch: Regression) -> ProjectedRidge:
        matrix, targets, ones = sketch.projected()
        return ProjectedRidge(matrix, targets, ones if self.fit_intercept else None)

    def _intercepts(self, coefficients: Array) -> Array:
        if not self.fit_intercept:
            return np.zeros(coefficients.shape[1])
        moments = self._reader().moments
        return np.asarray(moments.target_mean - moments.mean @ coefficients)

    def _found(self) -> tuple[Array, Array]:
        """Return coefficients for the user's columns, and intercepts, at the penalty."""
        alpha = self._penalty()
        solution, intercepts = self._once("found", lambda: self._solve_each(alpha))
        if VACUOUS < solution.relative_bound < np.inf:
            warnings.warn(
                f"the coefficients are certain only to {solution.relative_bound:.3g} times their "
                f"own length at alpha={np.round(alpha, 12)}, too little to be useful; "
                f"{self._advice()}",
                stacklevel=4,
            )
        return self._in_columns(solution.coefficients), intercepts

    def _advice(self) -> str:
        """Return what makes the error bound smaller."""
        steps = ["enlarge alpha"]
        if not self.standardize:
            steps.insert(0, "standardize the columns")
        if not keeps_gram(self._sketch):
            steps += ["enlarge sketch_size", "refine"]
        if self._sketch.dtype == np.float32:
            steps.append("give rows in float64")
        return ", ".join(steps[:-1]) + f" or {steps[-1]}" if len(steps) > 1 else steps[0]

    def _shaped(self, columns: Array) -> Any:
        """Return one column per target in the shape of the targets that came."""
        shape = self.sketch_.target_shape
        return columns.T if shape else columns.T[0]

    @property
    def coef_(self) -> Array:
        """Coefficients, in the layout of scikit-learn's linear models."""
        return np.asarray(self._once("coef_", lambda: self._shaped(self._found()[0])))

    @property
    def intercept_(self) -> Any:
        """Intercept; 0.0 without one."""
        return self._once("intercept_", self._read_intercept)

    def _read_intercept(self) -> Any:
        intercepts = self._found()[1]
        shape = self.sketch_.target_shape
        return intercepts if shape else np.float64(intercepts[0])

    @property
    def coef_error_bound_(self) -> float:
        """Certified bound on the relative error of the sketch's coefficients."""
        return float(self._once("coef_error_bound_", lambda: self._solution().relative_bound))

    @property
    def coef_error_bound_absolute_(self) -> Any:
        """Certified bound on the length of the error of the sketch's coefficients."""
        bounds = self._solution().absolute_bounds
        shape = self.sketch_.target_shape
        return bounds if shape else float(bounds[0])

    # Quality of the predictions of the rows learned from

    def _quality(self) -> TrainingQuality:
        def rate() -> TrainingQuality:
            coefficients, intercepts = self._found()
            unit = self._unit()
            inside = coefficients if unit is None else coefficients * unit[:, None]
            return training_quality(self._reader(), inside, intercepts)

        quality: TrainingQuality = self._once("quality", rate)
        return quality

    @property
    def r2_(self) -> Any:
        """R2 of the rows learned from, estimated from the sketch."""
        found = self._quality().r2
        return found if self.sketch_.target_shape else float(found[0])

    @property
    def r2_interval_(self) -> Array:
        """Certified interval of `r2_`, one for each target."""
        found = self._quality().r2_intervals
        return found if self.sketch_.target_shape else found[0]

    @property
    def rmse_(self) -> Any:
        """Root mean squared error on the rows learned from, estimated from the sketch."""
        found = self._quality().rmse
        return found if self.sketch_.target_shape else float(found[0])

    @property
    def training_quality_(self) -> dict[str, float]:
        """Rows, R2 and RMSE of the model, and the RMSE of the mean target, of all targets."""
        found = self._quality()
        return {
            "rows": self.n_samples_seen_,
            "r2": float(found.r2.mean()),
            "rmse": float(np.sqrt((found.rmse**2).mean())),
            "baseline_rmse": float(np.sqrt((found.baseline_rmse**2).mean())),
        }

    @property
    def baseline_(self) -> Array:
        """Mean of each target: the best that a model without columns predicts."""
        return np.asarray(self._reader().moments.target_mean)

    def path(self, alphas: npt.ArrayLike) -> RidgePath:
        """Return coefficients for many penalties without another look at the rows.

        Parameters
        ----------
        alphas : array-like of shape (n_alphas,)
            Penalties, not negative.

        Returns
        -------
        RidgePath
            Coefficients, intercepts and error bounds, in the order of ``alphas``.
        """
        self._require_fitted()
        values = np.atleast_1d(np.asarray(alphas, dtype=np.float64))
        check_value("alphas", values, PENALTIES)
        found = [self._solve(float(alpha)) for alpha in values]
        shape = self.sketch_.target_shape
        intercepts = np.stack([intercepts for _, intercepts in found])
        return RidgePath(
            values,
            np.stack([self._shaped(self._in_columns(at.coefficients)) for at, _ in found]),
            intercepts if shape else intercepts[:, 0],
            np.array([solution.relative_bound for solution, _ in found]),
        )

    @lazy
    def predict(self, X: RowsLike) -> Any:
        """Return the model's targets of rows, in their precision.

        Parameters
        ----------
        X : array-like, sparse matrix or dask collection of shape (n_samples, n_features)
            Rows; sparse ones are never made dense.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_targets)
            For dask's rows one of dask, which is computed when it is needed.
        """
        rows = self._rows(X)
        predicted = times(rows, self.coef_.T)
        predicted = predicted + like(self.intercept_, predicted, precision(predicted))
        return cast(predicted, precision(rows))

    def prediction_error_bound(self, X: RowsLike) -> Array:
        """Bound how far each prediction can be from that of the exact solution.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_targets)
            What the sketch and rounding, also that of `predict`, can have changed; noise in the
            targets is another matter.
        """
        rows = self._rows(host_rows(X))
        # Rows on a device are predicted there, in their own precision.
        there = on_device(X) or is_sparse_on_device(X)
        g = gamma(rows.shape[1] + 4, precision(X) if there else np.float64)
        coefficients, intercepts = self._found()
        solution, unit = self._solution(), self._unit()
        # A row times coefficients, both in the units of its columns.
        scales = solution.scales if unit is None else solution.scales * unit
        lengths = np.linalg.norm((coefficients.T * scales).T, axis=0)
        rounding = g * np.abs(intercepts)
        mean, mean_error = np.zeros(rows.shape[1]), 0.0
        if self.fit_intercept and not self.sketch_.linear:
            # The intercept is the mean of the targets less the prediction at the mean.
            moments = self._reader().moments
            mean = moments.mean if unit is None else moments.mean * unit
            mean_error = moments.mean_error / float(np.min(solution.scales))
            size = float(np.linalg.norm(mean / scales))
            rounding += gamma(len(mean) + 8) * (size * lengths + np.abs(moments.target_mean))
            rounding += moments.target_mean_error + mean_error * lengths
        sizes, away = row_lengths(rows, mean, scales)
        certified = solution.scaled_bounds
        certified = solution.absolute_bounds if certified is None else certified
        with np.errstate(invalid="ignore"):
            bounds = np.outer(away + mean_error, certified)
        bounds = np.where(np.isinf(certified), np.inf, bounds)
        if precision(rows) == np.float32:
            # On the host all is added up in double precision, and then rounded once.
            last = np.abs(np.asarray(rows @ coefficients) + intercepts)
            rounding = rounding + (unit_roundoff(np.float32) * last + SMALLEST_SINGLE)
        return np.asarray(self._shaped(bounds + rounding + g * np.outer(sizes, lengths)).T)


def _targets_of(y: RowsLike | None, n_rows: int) -> Array:
    """Return the targets of rows on a device, in numpy, or refuse them."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    targets = to_numpy(y)
    if targets.ndim not in (1, 2) or len(targets) != n_rows:
        raise ValueError(f"got targets of shape {targets.shape} for {n_rows} rows; give one each")
    return targets.ravel() if targets.shape[1:] == (1,) else targets
