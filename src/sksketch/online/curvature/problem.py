"""What a learner is asked to do: the loss of its scores, and how columns and targets are treated."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from sksketch.online.curvature.kernels import layout

KINDS = {
    "squared": layout.SQUARED,
    "logistic": layout.LOGISTIC,
    "hinge": layout.HINGE,
    "absolute": layout.ABSOLUTE,
    "huber": layout.HUBER,
    "softmax": layout.SOFTMAX,
}
# Scale of the constant: the ridge of the intercept is this squared times that of the weights. It
# is nearly free for targets, whose level can be anything; labels are not followed to infinity.
EXACT_CONSTANT, SKETCHED_CONSTANT, LABEL_CONSTANT = 2.0**-20, 2.0**-8, 2.0**-2


@dataclass(frozen=True)
class Problem:
    """A loss and its outputs.

    Parameters
    ----------
    loss : str
        A key of `KINDS`; "softmax" is the logistic loss of several classes.
    n_outputs : int
        Scores of a row.
    labels : bool
        Whether targets are labels, 1 and -1 or, for the softmax, 1 and 0.
    knee : float
        Where the Huber loss turns from squares to lengths.
    constant : bool
        Whether there is an intercept.
    normalize : bool
        Whether columns have units of their own.
    alpha : float
        Ridge, in these units.
    """

    loss: str
    n_outputs: int
    labels: bool
    knee: float
    constant: bool
    normalize: bool
    alpha: float

    @property
    def kind(self) -> int:
        """The number by which the compiled loops know the loss."""
        return KINDS[self.loss]

    @property
    def centers_targets(self) -> bool:
        """Whether targets are counted from the first one."""
        return self.normalize and self.constant and not self.labels

    def constant_scale(self, *, exact: bool) -> float:
        """Return the scale of the column of ones."""
        if self.labels:
            return LABEL_CONSTANT
        return EXACT_CONSTANT if exact else SKETCHED_CONSTANT

    def as_meta(self) -> dict[str, Any]:
        """Return it as plain fields."""
        return asdict(self)
