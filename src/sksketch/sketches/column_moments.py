"""Mean and variance of every column: what units are made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from sksketch._typing import Array, Matrix
from sksketch.arrays.device_sparse import on_host
from sksketch.arrays.namespace import cast, like, to_numpy, weighted_sum
from sksketch.arrays.rows import dense_tiles
from sksketch.arrays.sparse import is_sparse
from sksketch.sketches.forgetting import age_weights


class ColumnMoments(NamedTuple):
    """Weight, mean and squares around the mean of every column of the rows seen.

    One is never changed: `updated` and `merged` return others.

    Parameters
    ----------
    weight : float
        Sum of the weights of the rows.
    mean, squares : arrays of shape (n_features,)
        The mean, and the weighted sum of squared differences to it.

    Examples
    --------
    >>> columns = ColumnMoments.empty(2).updated(np.array([[1.0, 5.0], [3.0, 5.0]]))
    >>> columns.mean, columns.scale()
    (array([2., 5.]), array([1., 1.]))
    """

    weight: float
    mean: Array
    squares: Array

    @classmethod
    def empty(cls, n_features: int) -> ColumnMoments:
        """Return those of no rows."""
        return cls(0.0, *np.zeros((2, n_features)))

    def updated(
        self, rows: Matrix, weights: Array | None = None, decay: float = 1.0
    ) -> ColumnMoments:
        """Return those of more rows; each of them makes the earlier ones count ``decay`` less."""
        counted = np.ones(rows.shape[0]) if weights is None else weights
        before = self
        if decay < 1.0:
            factor = decay ** rows.shape[0]
            counted = counted * age_weights(rows.shape[0], decay)
            before = ColumnMoments(self.weight * factor, self.mean, self.squares * factor)
        for part in _parts(rows, counted):
            before = before.merged(part)
        return before

    def merged(self, other: ColumnMoments) -> ColumnMoments:
        """Return those of the rows of both.

        >>> first, second = (ColumnMoments.empty(1).updated(np.eye(1) * x) for x in (1.0, 3.0))
        >>> first.merged(second)
        ColumnMoments(weight=2.0, mean=array([2.]), squares=array([2.]))
        """
        if not (self.weight and other.weight):
            return other if other.weight else self
        weight = self.weight + other.weight
        gap = other.mean - self.mean
        share = other.weight / weight
        squares = self.squares + other.squares + gap**2 * (self.weight * share)
        return ColumnMoments(weight, self.mean + gap * share, squares)

    def scale(self) -> Array:
        """Return the unit of each column, its standard deviation."""
        return scale_of(self.squares, self.mean, self.weight)

    def arrays(self) -> dict[str, Array]:
        """Return plain arrays for a saved state."""
        return {
            "moments": np.stack([np.full_like(self.mean, self.weight), self.mean, self.squares])
        }

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, Array]) -> ColumnMoments:
        """Return what `arrays` came from."""
        weight, mean, squares = arrays["moments"]
        return cls(float(weight[0]), mean, squares)


def scale_of(squares: Array, mean: Array, weight: float) -> Array:
    """Return standard deviations, and one for columns that never change.

    A column counts as constant by the rule of scikit-learn's ``StandardScaler``.

    Parameters
    ----------
    squares, mean : arrays of shape (n_features,)
        Sum of squared differences to the mean, and that mean.
    weight : float
        Of all rows.

    Returns
    -------
    array of shape (n_features,)
        Positive and finite.

    Examples
    --------
    >>> scale_of(np.array([8.0, 1e-30]), np.array([0.0, 1e3]), 2.0)
    array([2., 1.])
    """
    variance = np.maximum(squares, 0.0) / max(weight, np.finfo(np.float64).tiny)
    eps = weight * np.finfo(np.float64).eps
    constant = ~(variance > eps * variance + (mean * eps) ** 2)
    return np.asarray(np.sqrt(np.where(constant, 1.0, variance)))


def _parts(rows: Matrix, weights: Array) -> Iterator[ColumnMoments]:
    """Yield the moments of rows, a tile at a time."""
    if is_sparse(rows):
        yield _sparse(on_host(rows), weights)
        return
    start = 0
    for tile in dense_tiles(rows, np.dtype(np.float64)):
        part = weights[start : start + len(tile)]
        start += len(tile)
        if (weight := float(part.sum())) > 0.0:
            origin = np.array(to_numpy(tile[0]))
            # Around a row first: far from zero a sum of rows has few digits of their differences.
            moved = cast(tile, np.float64) - like(origin, tile)
            mean = weighted_sum(moved, part) / weight
            moved = moved - like(mean, tile)
            yield ColumnMoments(weight, origin + mean, weighted_sum(moved * moved, part))


def _sparse(rows: Any, weights: Array) -> ColumnMoments:
    n_features, weight = rows.shape[1], float(weights.sum())
    if weight == 0.0:
        return ColumnMoments.empty(n_features)
    stored = np.repeat(weights, np.diff(rows.indptr))
    data = rows.data.astype(np.float64, copy=False)

    def sums(values: Array) -> Array:
        return np.bincount(rows.indices, weights=values, minlength=n_features)

    mean = sums(stored * data) / weight
    # Entries that are not stored are zero, as far from the mean as that is from zero.
    left = np.maximum(weight - sums(stored), 0.0)
    squares = sums(stored * (data - mean[rows.indices]) ** 2) + left * mean**2
    return ColumnMoments(weight, mean, squares)
