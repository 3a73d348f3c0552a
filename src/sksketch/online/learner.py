"""Base of every online learner, and its loss as plain fields."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from sksketch._typing import Array
from sksketch.online.kernels import layout
from sksketch.online.losses import Loss
from sksketch.online.vocabulary import NumberedRows
from sksketch.state.persistence import State

# Fourth powers of larger numbers overflow, with some room for sums of them.
LARGEST = 1e70
# Beside a larger curvature the ridge is rounded away, and nothing holds the other directions.
WORN_RATIO = 1e14
NOT_FINITE = (
    "a row, target or weight is so large, beside those before it, that the model would no longer "
    "be finite; drop such rows or scale the columns"
)


class OnlineLearner(ABC):
    """Learns one weight for each numbered feature, row after row."""

    kind: ClassVar[str]
    # Of the states with sums: the second knows how far the rows reached.
    version: ClassVar[int] = 2
    _comfortable: ClassVar[float] = 1e35
    # Whether rows are best given with their zeros.
    has_few_columns: ClassVar[bool] = False
    # Whether numbers are so large that any row may be too much.
    strained: bool = False

    @abstractmethod
    def weights(self, features: Array) -> Array:
        """Return the weights of some features; changes nothing."""

    @abstractmethod
    def regret_bound(
        self, norm: float, radius: float | None = None, *, within: bool = False
    ) -> float:
        """Return a bound of the regret against any weights up to that norm.

        ``inf`` where some of them can predict beyond the limit in a round that needs them inside,
        unless the caller vouches that those meant are ``within`` it.
        """

    def _look(self, sums: Array, curvature: float = 0.0, more: float = 0.0) -> None:
        """Refuse rows that have left numbers that are not finite, or soon would not be.

        ``curvature`` and ``more`` are made of numbers that later steps square twice. Among the
        sums only bounds of the regret may be infinite, from STEPS on, and STEPS is not NaN before
        something else has gone wrong.
        """
        ridge, _, _, limit, loss, steps, _, norm2, *_ = sums.tolist()
        largest = abs(curvature) + abs(more) + ridge + limit
        # A NaN fails these comparisons, too.
        if not (largest <= LARGEST and loss + abs(norm2) <= LARGEST**2) or math.isnan(steps):
            raise ValueError(NOT_FINITE)
        self.strained = largest > self._comfortable or abs(curvature) > WORN_RATIO * ridge

    @abstractmethod
    def state(self) -> State:
        """Return all it is, as plain data."""

    @property
    @abstractmethod
    def loss_sum(self) -> float:
        """Sum of the losses of the predictions made before each row was learned from."""


class RowLearner(OnlineLearner):
    """Learns from rows of numbered features."""

    @abstractmethod
    def learn(self, rows: NumberedRows, n_known: int, targets: Array, weights: Array) -> Array:
        """Learn from rows; return the raw score of each before it was learned from."""


def loss_meta(loss: Loss) -> dict[str, Any]:
    """Return a loss as plain fields."""
    return {"loss": loss.name, "limit": loss.limit, "grows": loss.grows, "knee": loss.knee}


def loss_of(meta: Mapping[str, Any]) -> Loss:
    """Return the loss that `loss_meta` described."""
    return Loss(meta["loss"], meta["limit"], meta["grows"], meta["knee"])


def can_leave(reaches: Array, norm: float) -> bool:
    """Return whether weights of that norm can predict beyond the limit where ``|x|`` is that far.

    >>> can_leave(np.array([0.5, 2.0]), 0.5), can_leave(np.array([0.5, 2.0]), 0.6)
    (False, True)
    """
    return norm > 0.0 and norm * float(reaches.max()) > 1.0


def rounded_up(bound: float) -> float:
    """Return a bound with the rounding of its sums, ``inf`` if a learner has diverged."""
    return math.inf if math.isnan(bound) else float(bound + 1e-9 * abs(bound))


def saved_sums(state: State, version: int) -> Array:
    """Return the sums of a state; those of version 1 do not know how far the rows reached."""
    state.require(version)
    if state.version < 2:
        return np.append(state.array("sums", layout.REACH), [math.inf, math.inf, 0.0])
    return state.array("sums", layout.N_SUMS)
