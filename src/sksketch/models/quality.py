"""How good predictions are, beside those of a constant that was learned from the same rows."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from sksketch._typing import Array

# Probabilities are no smaller than this where their logarithm counts, as in scikit-learn.
LEAST = float(np.finfo(np.float64).eps)


class RegressionRating:
    """Sums over rows: squared errors of predictions and of a constant.

    Parameters
    ----------
    constant : array of shape (n_targets,)
        The mean target of the rows that were learned from.

    Examples
    --------
    >>> rating = RegressionRating(np.array([1.0]))
    >>> rating.add(np.array([[0.0], [2.0]]), np.array([[0.5], [1.5]]), np.ones(2))
    >>> rating.result()
    {'rows': 2, 'r2': 0.75, 'rmse': 0.5, 'baseline_rmse': 1.0}
    """

    def __init__(self, constant: Array) -> None:
        self._constant = np.atleast_1d(constant)
        self._n_rows, self._weight = 0, 0.0
        self._errors, self._sums, self._squares = np.zeros((3, len(self._constant)))

    def add(self, y: Array, predicted: Array, weights: Array) -> None:
        """Count rows of shape (n_rows, n_targets) in."""
        away = y - self._constant
        self._n_rows += int(np.count_nonzero(weights))
        self._weight += float(weights.sum())
        self._errors = self._errors + weights @ (y - predicted) ** 2
        self._sums = self._sums + weights @ away
        self._squares = self._squares + weights @ away**2

    def result(self) -> dict[str, float]:
        """Return the rows, R2, the root mean squared error and that of the constant."""
        weight = self._weight or 1.0
        around = np.maximum(self._squares - self._sums**2 / weight, 0.0)
        return {
            "rows": self._n_rows,
            "r2": float(r2(self._errors, around).mean()),
            "rmse": math.sqrt(float(self._errors.mean()) / weight),
            "baseline_rmse": math.sqrt(float(self._squares.mean()) / weight),
        }


class LabelRating:
    """Sums over rows: labels that are right, and the log loss, where there are probabilities.

    Parameters
    ----------
    frequencies : array of shape (n_classes,)
        Parts of the rows that were learned from.

    Examples
    --------
    >>> rating = LabelRating(np.array([0.25, 0.75]))
    >>> rating.add(np.array([0, 1]), np.array([1, 1]), None, np.ones(2))
    >>> rating.result()
    {'rows': 2, 'accuracy': 0.5, 'baseline_accuracy': 0.5}
    """

    def __init__(self, frequencies: Array) -> None:
        self._frequencies = frequencies / max(float(frequencies.sum()), LEAST)
        self._n_rows, self._weight = 0, 0.0
        self._right, self._constant_right = 0.0, 0.0
        self._log_loss, self._constant_log_loss, self._has_log_loss = 0.0, 0.0, True

    def add(
        self, codes: Array, predicted: Array, probabilities: Array | None, weights: Array
    ) -> None:
        """Count rows in; codes are numbers of classes, and -1 is a label never met before."""
        known = codes >= 0
        self._n_rows += int(np.count_nonzero(weights))
        self._weight += float(weights.sum())
        self._right += float(weights @ (known & (codes == predicted)))
        self._constant_right += float(weights @ (codes == int(np.argmax(self._frequencies))))
        if probabilities is None:
            self._has_log_loss = False
            return
        of_label = np.where(known, probabilities[np.arange(len(codes)), codes], 0.0)
        constant = np.where(known, self._frequencies[codes], 0.0)
        self._log_loss -= float(weights @ np.log(np.maximum(of_label, LEAST)))
        self._constant_log_loss -= float(weights @ np.log(np.maximum(constant, LEAST)))

    def result(self) -> dict[str, float]:
        """Return the rows, the accuracy, the log loss if there is one, and those of a constant."""
        weight = self._weight or 1.0
        found = {"rows": self._n_rows, "accuracy": self._right / weight}
        found["baseline_accuracy"] = self._constant_right / weight
        if self._has_log_loss:
            found["log_loss"] = self._log_loss / weight
            found["baseline_log_loss"] = self._constant_log_loss / weight
        return found


def r2(errors: Array, around: Array) -> Array:
    """Return the part of the sum of squares that is explained, as scikit-learn has it.

    >>> r2(np.array([1.0, 0.0, 1.0]), np.array([4.0, 0.0, 0.0])).tolist()
    [0.75, 1.0, 0.0]
    """
    flat = around <= 0.0
    share = 1.0 - errors / np.where(flat, 1.0, around)
    return np.where(flat, np.where(errors > 0.0, 0.0, 1.0), share)


def warning(quality: Mapping[str, float]) -> str | None:
    """Return a sentence if a constant would have predicted better.

    >>> warning({"rows": 2, "rmse": 2.0, "baseline_rmse": 1.0})
    'the mean would predict better: its RMSE is 1, that of the model 2'
    """
    if "rmse" in quality and quality["rmse"] > quality["baseline_rmse"]:
        mine, constant = quality["rmse"], quality["baseline_rmse"]
        return (
            f"the mean would predict better: its RMSE is {constant:.4g}, that of the model "
            f"{mine:.4g}"
        )
    if "accuracy" in quality and quality["accuracy"] < quality["baseline_accuracy"]:
        mine, constant = quality["accuracy"], quality["baseline_accuracy"]
        return (
            f"the commonest label would predict better: its accuracy is {constant:.2%}, that of "
            f"the model {mine:.2%}"
        )
    return None
