"""Densities as weighted means of kernels, and the bandwidth that suits them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import gammaln

from sksketch._typing import Array, Rows
from sksketch.arrays.namespace import like, namespace, to_numpy
from sksketch.kernel_methods.bandwidth import median_distance
from sksketch.kernel_methods.batching import BatchQueue
from sksketch.kernel_methods.kernels import Kernel
from sksketch.state.persistence import State

# Values of the kernel computed at a time.
ENTRIES_AT_ONCE = 1 << 21


@dataclass(frozen=True)
class WeightedDensity:
    """Means of k(x, x_i) weighted by columns of numbers, which may be negative.

    Parameters
    ----------
    kernel : Kernel
    rows : array of shape (n_rows, n_features)
    weights : array of shape (n_rows, n_components)

    Examples
    --------
    >>> density = WeightedDensity(Kernel("gaussian"), np.array([[0.0], [1.0]]), np.ones((2, 1)))
    >>> density(np.array([[0.0]])).round(4)
    array([[0.8033]])
    """

    kernel: Kernel
    rows: Any
    weights: Any

    def __call__(self, X: Rows) -> Any:
        """Return the weighted means at rows, in float64."""
        n = self.rows.shape[0]
        rows = self.rows if hasattr(self.rows, "tocsr") else like(self.rows, X)
        weights = like(self.weights, X)
        xp = namespace(X)
        total = like(np.zeros((X.shape[0], self.weights.shape[1])), X)
        queries = min(X.shape[0], 1024)
        step = max(1, ENTRIES_AT_ONCE // max(queries, 1))
        for first in range(0, X.shape[0], queries):
            part = slice(first, min(first + queries, X.shape[0]))
            for start in range(0, n, step):
                K = self.kernel(X[part], rows[start : start + step])
                total[part] += xp.astype(K, xp.float64, copy=False) @ weights[start : start + step]
        return total / n

    def thinned(self, n_rows: int) -> WeightedDensity:
        """Return the density of evenly spaced rows, about ``n_rows`` at most."""
        step = -(-self.rows.shape[0] // n_rows)
        return WeightedDensity(self.kernel, self.rows[::step], self.weights[::step])

    def state(self) -> State:
        """Return rows and weights as plain data."""
        found = BatchQueue()
        found.add(self.rows, self.weights)
        return State("weighted-density", 1, {"bandwidth": self.kernel.bandwidth}, found.arrays())

    @classmethod
    def from_state(cls, state: State, kernel: Kernel) -> WeightedDensity:
        """Build it again; the kernel is given but for its bandwidth."""
        state.require(1)
        found = BatchQueue.of(dict(state.arrays))
        rows, weights = found.take(len(found))
        bandwidth: Any = state.meta["bandwidth"]
        return cls(with_bandwidth(kernel, bandwidth), rows, weights)


def with_bandwidth(kernel: Kernel, bandwidth: float) -> Kernel:
    """Return the same kernel with another bandwidth."""
    return Kernel(kernel.name, bandwidth, kernel.params)


def volume(kernel: Kernel, n_features: int) -> float:
    """Return the integral of k(x, .) over all x, for a shift-invariant kernel.

    >>> round(volume(Kernel("gaussian", 0.3), 1) - 0.3 * math.sqrt(2 * math.pi), 12)
    0.0
    """
    d = n_features
    logs = {
        "gaussian": lambda: 0.5 * d * math.log(2.0 * math.pi),
        "laplacian": lambda: d * math.log(2.0),
        "cauchy": lambda: d * math.log(math.pi),
        "matern": lambda: _matern_log_volume(kernel.params["nu"], d),
    }
    return math.exp(logs[kernel.name]() + d * math.log(kernel.bandwidth))


def _matern_log_volume(nu: float, d: int) -> float:
    shape = float(gammaln(nu + 0.5 * d) - gammaln(nu))
    return shape + 0.5 * d * math.log(4.0 * math.pi / (2.0 * nu))


def density_bandwidth(X: Rows, n_rows: int, kernel: str, seed: int) -> float:
    """Return Silverman's bandwidth for a density of ``n_rows`` rows that are like those of ``X``.

    The median distance over sqrt(2 n_features) takes the place of the standard deviation. For
    normal rows it is about as large, but for a third less with one column, which suits
    mixtures.

    >>> X = np.random.default_rng(0).standard_normal((1000, 1))
    >>> bool(0.15 < density_bandwidth(X, 1000, "gaussian", 0) < 0.2)
    True
    """
    d = X.shape[1]
    scale = median_distance(X, kernel, seed) / math.sqrt(2.0 * d)
    return scale * math.pow(4.0 / ((d + 2) * n_rows), 1.0 / (d + 4))


def to_sum_one(weights: Rows) -> Array:
    """Return weights whose columns have the mean 1, so that densities integrate to 1."""
    found = to_numpy(weights)
    means = found.mean(axis=0)
    scaled: Array = found / np.where(means > 0, means, 1.0)
    return scaled
