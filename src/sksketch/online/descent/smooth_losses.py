"""Losses of whole tiles of rows, each convex with a continuous slope."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from sksketch._typing import Array

# Share of a touching parabola's curvature that counts where the loss itself has none.
BEYOND = 0.03

Function = Callable[[Array, Array, float], Array]


@dataclass(frozen=True)
class SmoothLoss:
    """A loss of scores, smooth enough for a descent on its exact gradient.

    Parameters
    ----------
    name : {"squared", "logistic", "softmax", "hinge", "huber", "absolute"}
        The loss. All but ``"softmax"`` are sums over outputs.
    knee : float, default=1.0
        Width of the curved part of ``"huber"``, ``"hinge"`` and ``"absolute"``.

    Notes
    -----
    With r = z - y and m = y z::

        squared     r^2 / 2
        logistic    log(1 + exp(-m)),  y = 1 or -1
        softmax     log(sum_k exp(z_k)) - sum_k y_k z_k
        huber       r^2 / 2 up to the knee, then knee (|r| - knee / 2)
        absolute    huber / knee:  |r| less at most knee / 2
        hinge       0 for m >= 1,  (1 - m)^2 / (2 knee) for 1 - knee <= m <= 1,
                    then 1 - m - knee / 2

    The last is the Moreau envelope of max(0, 1 - m), the least of max(0, 1 - v) +
    (v - m)^2 / (2 knee) over v: at most knee / 2 below the hinge, never above it.

    Examples
    --------
    >>> hinge = SmoothLoss("hinge", knee=0.5)
    >>> hinge.values(np.array([[2.0], [0.75], [0.0]]), np.ones((3, 1)))
    array([0.    , 0.0625, 0.75  ])
    """

    name: str
    knee: float = 1.0

    def __post_init__(self) -> None:
        if self.name not in _ELEMENTWISE and self.name != "softmax":
            known = sorted([*_ELEMENTWISE, "softmax"])
            raise ValueError(f"the loss {self.name!r} is not known; give one of {known}")
        if not self.knee > 0.0:
            raise ValueError(f"knee is {self.knee!r}; give a positive number")

    @property
    def has_corners(self) -> bool:
        """Whether the second derivative jumps, so that a point knows little of its neighbors."""
        return self.name in ("hinge", "huber", "absolute")

    def targets(self, given: Array, n_outputs: int) -> Array:
        """Return targets as numbers, one column for each output; classes become indicators.

        >>> SmoothLoss("softmax").targets(np.array([2, 0]), 3)
        array([[0., 0., 1.],
               [1., 0., 0.]])
        """
        if given.ndim == 1 and self.name == "softmax":
            indicators = np.zeros((len(given), n_outputs))
            indicators[np.arange(len(given)), given.astype(np.intp)] = 1.0
            return indicators
        columns = np.asarray(given[:, None] if given.ndim == 1 else given, dtype=np.float64)
        if columns.shape[1] != n_outputs:
            raise ValueError(f"got {columns.shape[1]} targets a row, expected {n_outputs}")
        return columns

    def values(self, scores: Array, targets: Array) -> Array:
        """Return the loss of each row."""
        if self.name == "softmax":
            most = scores.max(axis=1)
            mass = np.exp(scores - most[:, None]).sum(axis=1)
            found: Array = most + np.log(mass) - (scores * targets).sum(axis=1)
            return found
        total: Array = _ELEMENTWISE[self.name][0](scores, targets, self.knee).sum(axis=1)
        return total

    def slopes(self, scores: Array, targets: Array) -> Array:
        """Return the derivative in each score."""
        if self.name == "softmax":
            return _probabilities(scores) - targets
        return _ELEMENTWISE[self.name][1](scores, targets, self.knee)

    def traces(self, scores: Array, targets: Array) -> Array:
        """Return the sum of each row's curvatures, and a hundredth of the most they can be.

        >>> SmoothLoss("logistic").traces(np.array([[0.0], [50.0]]), np.ones((2, 1)))
        array([0.2525, 0.0025])
        """
        if self.name == "softmax":
            found: Array = 1.01 - np.square(_probabilities(scores)).sum(axis=1)
            return found
        most = {"logistic": 0.25, "hinge": 1.0 / self.knee, "absolute": 1.0 / self.knee}
        bent = _ELEMENTWISE[self.name][2](scores, targets, self.knee)
        total: Array = (bent + 0.01 * most.get(self.name, 1.0)).sum(axis=1)
        return total

    def bends(self, scores: Array, targets: Array) -> Callable[[Array], Array]:
        """Return the curvature as a map of changes of scores, row by row.

        It is the second derivative. Where that is 0, it is a small share of the curvature of the
        parabola that touches the loss here and is nowhere below it: knee / |r| for ``"huber"``,
        1 / |2 (1 - m) - knee| for ``"hinge"``. So a Newton step is never without bounds.

        >>> squared = SmoothLoss("squared")
        >>> squared.bends(np.zeros((1, 2)), np.ones((1, 2)))(np.array([[3.0, 4.0]]))
        array([[3., 4.]])
        """
        if self.name == "softmax":
            P = _probabilities(scores)

            def bend(U: Array) -> Array:
                shares = P * U
                found: Array = shares - P * shares.sum(axis=1, keepdims=True)
                return found

            return bend
        curvature = _ELEMENTWISE[self.name][2](scores, targets, self.knee)
        return lambda U: curvature * U


def _probabilities(scores: Array) -> Array:
    raised = np.exp(scores - scores.max(axis=1, keepdims=True))
    found: Array = raised / raised.sum(axis=1, keepdims=True)
    return found


def _huber(z: Array, y: Array, knee: float) -> Array:
    size = np.abs(z - y)
    inside = np.minimum(size, knee)
    found: Array = inside * (size - 0.5 * inside)
    return found


def _huber_slope(z: Array, y: Array, knee: float) -> Array:
    found: Array = np.clip(z - y, -knee, knee)
    return found


def _huber_bend(z: Array, y: Array, knee: float) -> Array:
    size = np.abs(z - y)
    found: Array = np.where(size <= knee, 1.0, BEYOND * knee / np.maximum(size, knee))
    return found


def _hinge(z: Array, y: Array, knee: float) -> Array:
    short = np.maximum(1.0 - y * z, 0.0)
    inside = np.minimum(short, knee)
    found: Array = inside * (short - 0.5 * inside) / knee
    return found


def _hinge_slope(z: Array, y: Array, knee: float) -> Array:
    found: Array = -y * np.clip((1.0 - y * z) / knee, 0.0, 1.0)
    return found


def _hinge_bend(z: Array, y: Array, knee: float) -> Array:
    short = 1.0 - y * z
    inside = (short >= 0.0) & (short <= knee)
    far = np.maximum(np.abs(2.0 * short - knee), knee)
    found: Array = y * y * np.where(inside, 1.0 / knee, BEYOND / far)
    return found


def _logistic_bend(z: Array, y: Array, knee: float) -> Array:
    found: Array = y * y * expit(y * z) * expit(-y * z)
    return found


# Value, slope and second derivative of the losses that are sums over outputs.
_ELEMENTWISE: dict[str, tuple[Function, Function, Function]] = {
    "squared": (
        lambda z, y, knee: 0.5 * np.square(z - y),
        lambda z, y, knee: z - y,
        lambda z, y, knee: np.ones_like(z),
    ),
    "logistic": (
        lambda z, y, knee: np.logaddexp(0.0, -y * z),
        lambda z, y, knee: -y * expit(-y * z),
        _logistic_bend,
    ),
    "huber": (_huber, _huber_slope, _huber_bend),
    "absolute": (
        lambda z, y, knee: _huber(z, y, knee) / knee,
        lambda z, y, knee: _huber_slope(z, y, knee) / knee,
        lambda z, y, knee: _huber_bend(z, y, knee) / knee,
    ),
    "hinge": (_hinge, _hinge_slope, _hinge_bend),
}
