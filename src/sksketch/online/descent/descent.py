"""Descent to the optimum of a regularized loss, one reading of the rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from sksketch._typing import Array, Matrix
from sksketch.online.descent.line_search import STEPS, Known, is_good, next_length
from sksketch.online.descent.pass_sums import PassSums, Totals
from sksketch.online.descent.quasi_newton import SecantPairs
from sksketch.online.descent.row_sample import Precondition, RowSample, newton_step
from sksketch.online.descent.smooth_losses import SmoothLoss
from sksketch.state.persistence import Plain, State

Block = tuple[Matrix, Array, Array | None]

SAMPLE_ROWS = 8192
EPS = float(np.finfo(np.float64).eps)
# Share of an objective that the rounding of its sum may take.
ROUNDED = 512.0 * EPS


@dataclass(frozen=True, eq=False)
class DescentResult:
    """Weights at the end of a descent.

    Parameters
    ----------
    weights : array of shape (n_outputs, n_columns)
        The weights with the lowest objective of all that were tried.
    objective : float
        Their loss with the ridge.
    n_passes : int
        Readings of the rows.
    converged : bool
        Whether the descent ended because nothing more was to be gained.
    """

    weights: Array
    objective: float
    n_passes: int
    converged: bool


class Descent:
    """Minimize a loss of all rows plus a ridge, by passes that may stop, resume and be shared.

    The objective is ``sum_i s_i loss(W x_i, y_i) + 1/2 sum_j ridge_j |W_j|^2``, and it never
    rises from pass to pass.

    Parameters
    ----------
    start : array of shape (n_outputs, n_columns)
        Weights to begin with. With one column more than the rows have, the last is an
        intercept.
    loss : SmoothLoss
        Loss of each row.
    ridge : array of shape (n_columns,)
        Ridge of each column; may be 0.
    precondition : callable
        Takes an array of shape (n_outputs, n_columns) and returns an estimate of the inverse
        Hessian times each of its rows. Must be symmetric and positive; its scale is of little
        importance.
    tol : float, default=1e-6
        The descent ends when a pass gains, and the next one promises, less than this share of
        the objective.
    sample_rows : int, default=8192
        Rows that are held in memory for their curvature, up to twice as many during a pass; 0
        for none.

    See Also
    --------
    descend : Does all passes.

    Notes
    -----
    A pass reads the losses at several steps along a direction, and the gradient at the whole
    step. If that one is good, the weights move there and the gradient gives the next direction:
    no reading is lost. If not, the same direction is tried again at the best length.

    Directions come from the latest changes of the gradient (L-BFGS) around ``precondition``.
    That takes many passes where the curvature at the optimum is far from the one in between, as
    with classes that can be separated. A sample of rows knows the curvature anywhere: its Hessian
    at the latest weights, inverted by conjugate gradients under ``precondition``, takes the place
    of ``precondition`` (sub-sampled Newton with rows drawn by size; Xu, Yang, Roosta-Khorasani,
    Re and Mahoney, 2016). Each pass draws another one, by the curvature at its own end, until one
    has all rows.

    Examples
    --------
    >>> X, y = np.array([[1.0], [2.0]]), np.array([1.0, 2.0])
    >>> descent = Descent(
    ...     np.zeros((1, 1)), SmoothLoss("squared"), np.array([5.0]), lambda g: g / 10
    ... )
    >>> while not descent.converged:
    ...     descent.take(descent.new_pass().add(X, y))
    >>> descent.result().weights
    array([[0.5]])
    """

    kind = "descent"

    def __init__(
        self,
        start: Array,
        loss: SmoothLoss,
        ridge: Array,
        precondition: Precondition,
        *,
        tol: float = 1e-6,
        sample_rows: int = SAMPLE_ROWS,
    ) -> None:
        self._point = np.array(start, dtype=np.float64, order="C")
        self.loss, self.tol, self.sample_rows = loss, tol, sample_rows
        self.ridge = np.asarray(ridge, dtype=np.float64)
        if self._point.ndim != 2 or self.ridge.shape != self._point.shape[1:]:
            raise ValueError(
                f"got weights of shape {self._point.shape} with ridges of shape "
                f"{self.ridge.shape}; expected (n_outputs, n_columns) and (n_columns,)"
            )
        self._precondition = precondition
        self._gradient = np.zeros_like(self._point)
        self._direction: Array | None = None
        self._objective = self._first_objective = np.inf
        self._known = Known()
        self._pairs = SecantPairs()
        self._sample: RowSample | None = None
        self.n_passes, self.converged = 0, False

    def new_pass(self) -> PassSums:
        """Return empty sums of the next pass; each part of the rows may have its own."""
        sample = None
        if self.sample_rows and not self._has_all_rows:
            sample = RowSample(self.sample_rows, seed=self.n_passes)
        return PassSums(self.loss, self._point, self._direction, sample)

    @property
    def _has_all_rows(self) -> bool:
        return self._sample is not None and self._sample.is_whole

    def take(self, sums: PassSums) -> None:
        """Move on, with the sums of all rows of a pass.

        Parameters
        ----------
        sums : PassSums
            What `new_pass` returned, after all rows.

        Raises
        ------
        ValueError
            If the loss of the first weights is not finite.
        """
        totals = sums.totals()
        self.n_passes += 1
        if self._direction is None:
            self._begin(totals, sums.sample())
        else:
            self._judge(totals, self._direction, sums)

    def _begin(self, totals: Totals, sample: RowSample | None) -> None:
        objective = float(totals.losses[0]) + self._penalty(self._point)
        if not np.isfinite(objective):
            raise ValueError("the loss of the first weights is not finite; scale the columns")
        if sample is not None and sample.n_rows_seen:
            self._sample = sample
        self._objective = self._first_objective = objective
        self._gradient = totals.gradient + self.ridge * self._point
        self._turn(gained=np.inf)

    def _judge(self, totals: Totals, D: Array, sums: PassSums) -> None:
        """Make the whole step, or try the direction again at another length."""
        penalties = [self._penalty(self._point + step * D) for step in STEPS]
        tried = np.nan_to_num(totals.losses + penalties, nan=np.inf)
        slope = float(np.vdot(self._gradient, D))
        bent = totals.curvature + float((self.ridge * D * D).sum())
        newton = -slope / bent if bent > 0.0 else np.inf
        if is_good(self._objective, tried, slope, self._known):
            gained = self._objective - float(tried[0])
            end = self._point + D
            gradient = totals.gradient + self.ridge * end
            self._pairs.add(D, gradient - self._gradient)
            self._point, self._gradient = end, gradient
            self._objective = float(tried[0])
            self._sample = sums.sample() or self._sample
            self._turn(gained=gained)
        elif tried.min() >= self._objective and -slope * newton <= ROUNDED * abs(self._objective):
            # Less is to be gained than rounding takes.
            self.converged = True
        else:
            step, self._known = next_length(self._objective, tried, newton, self._known)
            self._direction = step * D

    def _turn(self, gained: float) -> None:
        """Choose the next direction, or end where it promises too little."""
        self._known = Known()
        whole = self._has_all_rows
        if whole:
            # Older pairs would only blur a Hessian that is exact.
            self._pairs.forget()
        inverse = self._precondition
        if self._sample is not None:
            inverse = newton_step(
                self._sample, self.loss, self.ridge, self._point, self._precondition
            )
        scaled = self._sample is None
        D = self._pairs.direction(self._gradient, inverse, scaled=scaled)
        if not np.vdot(self._gradient, D) < 0.0:
            self._pairs.forget()
            D = -self._precondition(self._gradient)
        promised = -0.5 * float(np.vdot(self._gradient, D))
        if not np.isfinite(promised):
            raise ValueError("the next direction is not finite; scale the columns")
        goal = self.tol * abs(self._objective) + EPS * abs(self._first_objective)
        trusted = whole and not self.loss.has_corners
        self.converged = promised <= goal and (trusted or gained <= goal or promised == 0.0)
        self._direction = D

    def _penalty(self, weights: Array) -> float:
        with np.errstate(over="ignore"):
            return 0.5 * float((self.ridge * weights * weights).sum())

    def result(self) -> DescentResult:
        """Return the best weights so far."""
        weights, objective = self._point, self._objective
        if self._direction is not None and self._known.objective < objective:
            weights = weights + self._known.step * self._direction
            objective = self._known.objective
        return DescentResult(weights.copy(), objective, self.n_passes, self.converged)

    def state(self) -> State:
        """Return all but the preconditioner as plain data."""
        meta: dict[str, Plain] = {
            "loss": self.loss.name,
            "knee": self.loss.knee,
            "tol": self.tol,
            "sample_rows": self.sample_rows,
            "objective": self._objective,
            "first_objective": self._first_objective,
            "known_step": self._known.step,
            "known_objective": self._known.objective,
            "n_passes": self.n_passes,
            "converged": self.converged,
        }
        arrays = {"point": self._point, "gradient": self._gradient, "ridge": self.ridge}
        if self._direction is not None:
            arrays["direction"] = self._direction
        for k, (step, change) in enumerate(self._pairs):
            arrays |= {f"step{k}": step, f"change{k}": change}
        state = State(self.kind, 1, meta, {name: a.copy() for name, a in arrays.items()})
        return state if self._sample is None else state.with_inner("sample", self._sample.state())

    @classmethod
    def from_state(cls, state: State, precondition: Precondition) -> Self:
        """Return a descent that continues where that of a state was."""
        state.require(1)
        meta: Any = state.meta
        arrays = state.arrays
        loss = SmoothLoss(meta["loss"], meta["knee"])
        options = {"tol": meta["tol"], "sample_rows": meta["sample_rows"]}
        descent = cls(arrays["point"], loss, arrays["ridge"], precondition, **options)
        descent._gradient, descent._direction = arrays["gradient"], arrays.get("direction")
        descent._objective = meta["objective"]
        descent._first_objective = meta["first_objective"]
        descent._known = Known(meta["known_step"], meta["known_objective"])
        descent.n_passes, descent.converged = meta["n_passes"], meta["converged"]
        k = 0
        while f"step{k}" in arrays:
            descent._pairs.add(arrays[f"step{k}"], arrays[f"change{k}"])
            k += 1
        if "sample.kind" in meta:
            descent._sample = RowSample.from_state(state.inner("sample"))
        return descent


def descend(
    blocks: Callable[[], Iterable[Block]],
    start: Array,
    *,
    loss: str,
    ridge: Array,
    precondition: Precondition,
    max_passes: int = 50,
    tol: float = 1e-6,
    knee: float = 1.0,
    sample_rows: int = SAMPLE_ROWS,
) -> DescentResult:
    """Minimize a regularized loss by passes over a source of rows.

    Parameters
    ----------
    blocks : callable
        Returns the rows from the beginning, as blocks of rows, targets and weights or None.
    start : array of shape (n_outputs, n_columns)
        Weights to begin with. With one column more than the rows have, the last is an
        intercept.
    loss : {"squared", "logistic", "softmax", "hinge", "huber", "absolute"}
        Loss of each row; see `SmoothLoss`.
    ridge : array of shape (n_columns,)
        Ridge of each column; may be 0.
    precondition : callable
        Takes an array of shape (n_outputs, n_columns) and returns an estimate of the inverse
        Hessian times each of its rows.
    max_passes : int, default=50
        Most readings of the rows.
    tol : float, default=1e-6
        Share of the objective below which a gain ends the descent.
    knee : float, default=1.0
        Knee of the loss, where it has one.
    sample_rows : int, default=8192
        Rows that are held in memory for their curvature; 0 for none.

    Returns
    -------
    DescentResult
        Weights, objective, passes, and whether they converged.

    See Also
    --------
    Descent : The same pass by pass, to save, resume and share.

    Examples
    --------
    >>> X, y = np.array([[1.0], [2.0], [3.0]]), np.array([-1.0, 1.0, 1.0])
    >>> found = descend(
    ...     lambda: [(X, y, None)],
    ...     np.zeros((1, 2)),
    ...     loss="logistic",
    ...     ridge=np.array([1.0, 0.0]),
    ...     precondition=lambda g: g / 4,
    ... )
    >>> found.weights.round(3), found.converged
    (array([[ 0.701, -0.655]]), True)
    """
    descent = Descent(
        start, SmoothLoss(loss, knee), ridge, precondition, tol=tol, sample_rows=sample_rows
    )
    while not descent.converged and descent.n_passes < max_passes:
        sums = descent.new_pass()
        for X, targets, weights in blocks():
            sums.add(X, targets, weights)
        descent.take(sums)
    return descent.result()
