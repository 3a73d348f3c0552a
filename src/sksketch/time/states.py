"""A state as a comparison needs it: sums per row, and how far they may be off."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from sksketch._typing import Array
from sksketch.arrays.rounding import gamma
from sksketch.exceptions import NotMergeableError
from sksketch.sketches import Centered, Regression, Sketch, SlidingWindow
from sksketch.sketches.windows.templates import innermost
from sksketch.sketches.wrappers.centered import INNER


class PerRow(NamedTuple):
    """The scatter of some rows, divided by their weight: low rank, a multiple of I, and its error.

    Parameters
    ----------
    components : array of shape (rank, n_features)
        Orthonormal rows.
    eigenvalues : array of shape (rank,)
        Their weights, per row.
    ridge, error, trace : float
        Weight of the identity, bound on the spectral error, and sum of all variances.
    weight, n_effective : float
        Weight of the rows, and how many independent rows of equal weight say as much.
    confidence : float
        With which the error is a bound.
    mean, mean_error : array of shape (n_features,) or None, float
        Mean of centered rows, and bound on the length of its error.
    diagonal : array of shape (n_features,)
        Variance of each column.
    names : list of str
        What columns are called.
    """

    components: Array
    eigenvalues: Array
    ridge: float
    error: float
    trace: float
    weight: float
    n_effective: float
    confidence: float
    mean: Array | None
    mean_error: float
    diagonal: Array
    names: list[str]

    @property
    def largest(self) -> float:
        """Bound on the largest variance in any direction."""
        leading = float(self.eigenvalues[0]) if len(self.eigenvalues) else 0.0
        return leading + self.ridge + self.error

    @property
    def n_features(self) -> int:
        """Columns."""
        return int(self.components.shape[1])

    def variances(self, k: int) -> Array:
        """Return the ``k`` largest eigenvalues, those of the identity included."""
        values = np.full(max(k, len(self.eigenvalues)), self.ridge)
        values[: len(self.eigenvalues)] += self.eigenvalues
        return values[:k]


def per_row(model: Any) -> PerRow:
    """Return what a sketch or estimator knows of its rows, per row.

    >>> from sksketch import ExactCovariance
    >>> per_row(ExactCovariance().update(2.0 * np.eye(2))).variances(2)
    array([2., 2.])
    """
    sketch = sketch_of(model)
    rows_of: Any = sketch.sketch if isinstance(sketch, Regression) else sketch
    summary = rows_of.summary()
    weight = float(rows_of.total_weight)
    if not weight > 0:
        raise ValueError("one of the two has rows without any weight; give it some with")
    centered = isinstance(rows_of, Centered)
    ridge = max(summary.ridge - innermost(rows_of).initial_ridge, 0.0)
    eigenvalues = summary.eigenvalues / weight
    components = summary.components.astype(np.float64)
    diagonal = np.einsum("i,ij,ij->j", eigenvalues, components, components) + ridge / weight
    squares = rows_of.column_squares / weight if centered else diagonal
    names = getattr(model, "feature_names_in_", None)
    n_features = summary.n_features
    return PerRow(
        components,
        eigenvalues,
        ridge / weight,
        # The division rounds, and components are orthonormal to rounding.
        summary.error_bound / weight + gamma(4 * n_features + 64) * summary.squared_norm / weight,
        summary.squared_norm / weight,
        weight,
        max(_effective(rows_of, weight) - centered, 0.0),
        summary.confidence,
        rows_of.mean if centered else None,
        rows_of.mean_error if centered else math.inf,
        np.where(np.isfinite(squares), squares, diagonal),
        [str(i) for i in range(n_features)] if names is None else [str(name) for name in names],
    )


def sketch_of(model: Any) -> Sketch:
    """Return the sketch of a model, of a window the rows in it, or refuse what has none."""
    if isinstance(model, SlidingWindow):
        return model.read()
    sketch = model if isinstance(model, Sketch) else getattr(model, "sketch_", None)
    if not isinstance(sketch, Sketch):
        raise TypeError(
            f"expected a sketch, or an estimator that keeps one, got a {type(model).__name__}; "
            "fit it first"
        )
    if not getattr(model, "is_of_plain_rows", True):
        raise NotMergeableError(
            "the rows of a model were divided by their own standard deviations before they were "
            "sketched; compare models with sketch='exact' or standardize=False"
        )
    if sketch.n_features is None:
        raise ValueError("one of the two has seen no rows; compare two that have")
    inner = innermost(sketch)
    if not isinstance(inner, tuple(INNER.values())):
        raise TypeError(
            f"a {type(inner).__name__} certifies no error; compare sketches that do, such as "
            "FrequentDirections"
        )
    return sketch


def _effective(sketch: Sketch, weight: float) -> float:
    """Return as how many rows of equal weight the rows of a sketch count."""
    n_rows = float(sketch.n_rows_seen)
    if sketch.decay < 1.0:
        return min(n_rows, (1.0 + sketch.decay) / (1.0 - sketch.decay))
    return min(n_rows, weight)
