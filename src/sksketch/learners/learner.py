"""What every online learner can do, and its loss as plain fields."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from sksketch._typing import Array
from sksketch.learners.losses import Loss
from sksketch.learners.vocabulary import NumberedRows
from sksketch.persistence import State


class OnlineLearner(ABC):
    """Learns one weight for each numbered feature, row after row."""

    kind: ClassVar[str]

    @abstractmethod
    def learn(self, rows: NumberedRows, n_known: int, targets: Array, weights: Array) -> Array:
        """Learn from rows; return the raw score of each before it was learned from."""

    @abstractmethod
    def weights(self, features: Array) -> Array:
        """Return the weights of some features; changes nothing."""

    @abstractmethod
    def regret_bound(self, norm: float, radius: float | None = None) -> float:
        """Return a bound of the regret against any weights up to that norm."""

    @abstractmethod
    def state(self) -> State:
        """Return all it is, as plain data."""

    @property
    @abstractmethod
    def loss_sum(self) -> float:
        """Sum of the losses of the predictions made before each row was learned from."""


def loss_meta(loss: Loss) -> dict[str, Any]:
    """Return a loss as plain fields."""
    return {"loss": loss.name, "limit": loss.limit, "grows": loss.grows, "knee": loss.knee}


def loss_of(meta: Any) -> Loss:
    """Return the loss that `loss_meta` described."""
    return Loss(meta["loss"], meta["limit"], meta["grows"], meta["knee"])
