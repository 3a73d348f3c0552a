"""The problem of a learner: the loss of its scores, and how columns and targets are treated."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from sksketch._typing import Array
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
EXACT_CONSTANT, SKETCHED_CONSTANT, LABEL_CONSTANT = 2.0**-20, 2.0**-6, 2.0**-2


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

    def constant_scale(self, *, exact: bool) -> float:
        """Return the scale of the column of ones."""
        if self.labels:
            return LABEL_CONSTANT
        return EXACT_CONSTANT if exact else SKETCHED_CONSTANT

    def grown(self, n_outputs: int) -> Problem:
        """Return the same for more labels; two share one score, and more have one each."""
        loss = "softmax" if self.loss == "logistic" else self.loss
        return replace(self, loss=loss, n_outputs=n_outputs)

    def weights_of_more(self, W: Array, n_outputs: int) -> Array:
        """Return weights for that many labels from those of fewer, whose order is the same."""
        if W.shape[1] == 1:
            # The one score is that of the second label against the first.
            W = np.hstack([-W, W]) * (0.5 if self.loss == "logistic" else 1.0)
        return np.hstack([W, np.zeros((len(W), n_outputs - W.shape[1]))])

    def as_meta(self) -> dict[str, Any]:
        """Return it as plain fields."""
        return asdict(self)


@dataclass(frozen=True)
class SketchOptions:
    """How a curvature is sketched.

    Parameters
    ----------
    sketch_size : int
        m of the paper: m - 1 rows survive a shrink.
    buffer_rows : int
        Rows of the buffer, more than m - 1.
    robust : bool
        Whether what a shrink takes is made up for: by column where columns have units of their
        own, otherwise by half of the cut in all directions.
    fraction : float
        1 cuts all kept directions; less leaves the leading ones alone (PFD).
    """

    sketch_size: int
    buffer_rows: int
    robust: bool
    fraction: float = 1.0

    def as_meta(self) -> dict[str, Any]:
        """Return it as plain fields."""
        return asdict(self)
