"""Findings of an online learner: how it predicted, and its coefficients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from sksketch._typing import Array
from sksketch.models.base import Estimator
from sksketch.online import OnlineNewtonClassifier, OnlineNewtonRegressor

ONLINE: tuple[Any, ...] = (OnlineNewtonClassifier, OnlineNewtonRegressor)


class OnlineFindings:
    """The results of an online learner with at least one row seen.

    Parameters
    ----------
    model : OnlineNewtonClassifier or OnlineNewtonRegressor
    names : sequence of str, optional
        Names of the columns; by default their numbers.
    """

    def __init__(self, model: Estimator, names: Sequence[str] | None = None) -> None:
        self.model = model
        self._names = getattr(model, "feature_names_in_", None) if names is None else names
        self.coefficients: Array = np.atleast_2d(model.coef_)
        self.intercepts: Array = np.atleast_1d(model.intercept_)

    @property
    def classifies(self) -> bool:
        """Whether it predicts labels and not numbers."""
        return isinstance(self.model, OnlineNewtonClassifier)

    @property
    def error(self) -> float:
        """Fraction of rows whose label was predicted wrongly; mean squared error of numbers."""
        return float(self.model.online_error_)

    @property
    def baseline(self) -> float | None:
        """The same of the commonest label or the mean so far; None if nobody counted."""
        found = float(self.model.baseline_error_)
        return found if math.isfinite(found) else None

    @property
    def warning(self) -> str | None:
        """The sentence for a constant that would have predicted better."""
        if self.baseline is None or self.error <= self.baseline:
            return None
        what = "the commonest label" if self.classifies else "the mean"
        form = ".2%" if self.classifies else ".6g"
        return (
            f"{what} so far would have predicted better: its error is {self.baseline:{form}}, that "
            f"of the learner {self.error:{form}}"
        )

    @property
    def mean_loss(self) -> float:
        """Mean loss of the predictions made before each row was learned from."""
        return float(self.model.cumulative_loss_) / max(int(self.model.n_samples_seen_), 1)

    @property
    def ridges(self) -> list[float]:
        """Curvature in all directions at the end, of each learner."""
        return [float(learner.ridge) for learner in self.model.learners_]

    @property
    def n_coefficients(self) -> int:
        """Coefficients that are not zero."""
        return int(np.count_nonzero(self.coefficients))

    @property
    def outcomes(self) -> list[str]:
        """The class, or the target, that each row of coefficients is for."""
        if not isinstance(self.model, OnlineNewtonClassifier):
            n_targets = len(self.coefficients)
            return ["target"] if n_targets == 1 else [f"target {i}" for i in range(n_targets)]
        labels = self.model.classes_.tolist()
        classes = [f"{label:g}" if isinstance(label, float) else str(label) for label in labels]
        return classes if len(classes) == len(self.coefficients) else classes[-1:]

    def largest(self, outcome: int, n: int) -> list[tuple[str, float]]:
        """Return names and values of the largest coefficients, whatever their sign."""
        values = self.coefficients[outcome]
        columns = [i for i in largest_columns(values, n) if values[i]]
        names = self._names
        return [
            (f"column {i}" if names is None else str(names[i]), float(values[i])) for i in columns
        ]


def largest_columns(values: Array, n: int) -> list[int]:
    """Return the numbers of the columns with the largest values, whatever their sign.

    >>> largest_columns(np.array([1.0, -3.0, 2.0]), 2)
    [1, 2]
    """
    return [int(i) for i in np.argsort(-np.abs(values), kind="stable")[:n]]
