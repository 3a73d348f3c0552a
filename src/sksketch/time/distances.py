"""How far rows are from what is usual: within the leading directions, and outside of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from sksketch._typing import Array
from sksketch.low_rank import LowRankPlusRidge
from sksketch.models.forgetting import exact_bytes
from sksketch.sketches import ExactCovariance, FrequentDirections, Sketch
from sksketch.sketches.base import Answer
from sksketch.sketches.planning import exact_or_sketch
from sksketch.sketches.windows.templates import innermost

# Directions vary by at least this part of the average one: what varies less is rounding.
LEAST_VARIANCE = 1e-6

# Rows that are scored together, so that a score does not depend on what came with it.
TILE_ROWS = 256


DEFAULT_SKETCH_SIZE = 64


def sketch_for_distances(
    n_features: int, n_components: int | None, window: object, half_life: float | None
) -> Sketch:
    """Return an empty sketch of rows to measure distances by."""
    ages: dict[str, Any] = {} if half_life is None else {"half_life": half_life}
    n_bytes = exact_bytes(window, n_features)
    # Small eigenvalues count here, as they do for coefficients.
    if exact_or_sketch("coefficients", n_features, n_bytes=n_bytes).exact:
        return ExactCovariance(**ages)
    size = min(max(DEFAULT_SKETCH_SIZE, 2 * (n_components or 0)), n_features)
    return FrequentDirections(size, rule="half", **ages)


class Distances(NamedTuple):
    """The precision matrix of rows around their mean, in units of the columns.

    For z = (x - mean) / scale the squared distance of x is z' P z with P = V' (w - r) V + r I: what
    is along a direction is measured by its own variance, what is outside of all by the average
    one there.

    Examples
    --------
    >>> usual = LowRankPlusRidge(np.eye(2)[:1], np.array([3.0]), ridge=1.0)
    >>> model = Distances.of(usual, np.zeros(2), np.ones(2), 1)
    >>> model.squared(np.array([[4.0, 0.0], [0.0, 1.0]]))
    array([4., 1.])
    """

    mean: Array
    scale: Array
    components: Array
    weights: Array
    outside: float

    @classmethod
    def of(cls, usual: LowRankPlusRidge, mean: Array, scale: Array, k: int) -> Distances:
        """Return the distances of rows with this covariance, whose first ``k`` directions count."""
        n_features = usual.n_features
        variances = np.full(n_features, usual.ridge)
        variances[: usual.rank] += usual.eigenvalues
        least = LEAST_VARIANCE * float(variances.mean())
        k = min(k, usual.rank)
        rest = float(variances[k:].mean()) if k < n_features else least
        rest = max(rest, least, np.finfo(np.float64).tiny)
        return cls(
            mean,
            scale,
            usual.components[:k].astype(np.float64),
            1.0 / np.maximum(variances[:k], max(least, np.finfo(np.float64).tiny)),
            1.0 / rest,
        )

    @classmethod
    def read(
        cls, sketch: Sketch, answer: Answer, mean: Array, scale: Array, k: int | None
    ) -> Distances:
        """Return the distances by what a sketch says of rows in units of ``scale``."""
        if not sketch.n_rows_seen:
            raise ValueError("no rows have been learned yet; give at least one tile of 256 rows")
        degrees = max(sketch.total_weight - 1.0, 1.0)
        summary, certificate = answer
        ridge = max(summary.ridge - innermost(sketch).initial_ridge, 0.0) / degrees
        usual = LowRankPlusRidge(summary.components, summary.eigenvalues / degrees, ridge)
        return cls.of(usual, mean, scale, certificate.n_certain if k is None else k)

    def squared(self, X: Any) -> Array:
        """Return the squared distance of each row."""
        return np.concatenate([self._squared(self._around(tile)) for tile in self._tiles(X)])

    def contributions(self, X: Any) -> Array:
        """Return what each column adds to it."""
        return np.concatenate([self._shares(self._around(tile)) for tile in self._tiles(X)])

    def _tiles(self, X: Any) -> list[Any]:
        return [X[start : start + TILE_ROWS] for start in range(0, X.shape[0], TILE_ROWS)]

    def _around(self, rows: Any) -> Array:
        """Return rows around the mean, in units."""
        rows = rows.toarray() if sp.issparse(rows) else rows
        z: Array = (np.asarray(rows, dtype=np.float64) - self.mean) / self.scale
        return z

    def _squared(self, z: Array) -> Array:
        scores = z @ self.components.T
        scores *= scores
        if len(self.components) == z.shape[1]:
            # Nothing is outside of all directions.
            return np.asarray(scores @ self.weights)
        outside = np.maximum(np.vecdot(z, z) - scores.sum(axis=1), 0.0)
        return np.asarray(scores @ self.weights + self.outside * outside)

    def _shares(self, z: Array) -> Array:
        outside = self.outside if len(self.components) < z.shape[1] else 0.0
        scores = z @ self.components.T
        applied = (scores * (self.weights - outside)) @ self.components + outside * z
        # Each term of a quadratic form belongs to the column of its first factor.
        product: Array = z * applied
        return product

    def arrays(self) -> dict[str, Array]:
        """Return plain arrays, for a saved state."""
        return {name: np.array(value) for name, value in self._asdict().items()}

    @classmethod
    def of_arrays(cls, arrays: dict[str, Array]) -> Distances:
        """Return what `arrays` came from."""
        parts = {name: arrays[name] for name in cls._fields}
        return cls(**(parts | {"outside": float(parts["outside"])}))  # type: ignore[arg-type]
