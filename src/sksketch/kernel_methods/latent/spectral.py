"""Spectral clustering without an affinity matrix: kernel PCA of rows weighted by their degree.

With features psi, the affinity of rows is psi(x)'psi(y) and the degree of one is
psi(x)'(sum of all psi). Features divided by the root of the degree have the normalized
affinity for their Gram matrix, so their leading directions give its eigenvectors: those of
the normalized cut (Ng, Jordan and Weiss 2001).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from sksketch._typing import Rows
from sksketch.arrays.namespace import like, namespace, to_numpy, zeros
from sksketch.arrays.random import sampled
from sksketch.kernel_methods.bandwidth import finite_distances, median_distance
from sksketch.kernel_methods.feature_maps import FeatureMap
from sksketch.kernel_methods.kernels import SHIFT_INVARIANT, canonical_name

SAMPLE_ROWS = 1500
# The neighbor whose distance is the local scale: this share of a cluster away, and at least
# the seventh (Zelnik-Manor and Perona 2004).
NEIGHBOUR_SHARE = 0.025
LEAST_NEIGHBOUR = 7
# Degrees are at least this share of their median: those of random features can be negative,
# and a row far from all others would be a cluster of its own.
DEGREE_FLOOR = 0.1
BLOCK_BYTES = 1 << 25


def local_scale(X: Rows, n_clusters: int, kernel: str, seed: int) -> float:
    """Return a bandwidth that connects a row to its neighbors, and not to other clusters.

    It is the median, over a sample of rows, of the distance to the neighbor whose rank is
    2.5 % of the rows of a cluster of mean size, and at least 7; 1 for kernels that are no
    functions of a distance.

    >>> round(local_scale(np.arange(100.0)[:, None], 2, "gaussian", 0), 3)
    4.0
    """
    kernel = canonical_name(kernel)
    if kernel not in SHIFT_INVARIANT:
        return 1.0
    sample = sampled(X, SAMPLE_ROWS, seed, "local-scale")
    D = np.sort(finite_distances(sample, kernel), axis=1)
    n = len(D)
    rank = max(LEAST_NEIGHBOUR, math.ceil(NEIGHBOUR_SHARE * n / n_clusters))
    away = D[:, min(rank, n - 1)]
    # Equal rows are no neighbors; rounding makes them a little different.
    away = away[away > 1e-7 * D.max(initial=0.0)]
    return float(np.median(away)) if len(away) else median_distance(X, kernel, seed)


def spectral_coefficients(features: FeatureMap, X: Rows, n_clusters: int, seed: int) -> Any:
    """Return a with Phi(x) a in the directions of the normalized affinity's eigenvectors.

    Two passes over the rows, in blocks: one for the sum of features, one for their weighted
    covariance, which has ``n_columns ** 2`` numbers.
    """
    xp, M = namespace(X), features.n_columns
    total = zeros(M, X)
    for rows in _blocks(X, M):
        total += xp.sum(_features(features, X[rows]), axis=0)
    degrees = to_numpy(
        _features(features, sampled(X, 2 * SAMPLE_ROWS, seed, "local-scale")) @ total
    )
    floor = max(DEGREE_FLOOR * float(np.median(degrees)), math.ulp(0.0))
    G = zeros((M, M), X)
    for rows in _blocks(X, M):
        F = _features(features, X[rows])
        F = F / xp.sqrt(xp.clip(F @ total, floor, math.inf))[:, None]
        G += F.T @ F
    eigenvalues, vectors = np.linalg.eigh(to_numpy(G))
    keep = np.argsort(eigenvalues)[::-1][: min(n_clusters, M)]
    scale = np.sqrt(np.maximum(eigenvalues[keep], 1e-12 * max(eigenvalues[-1], 1e-300)))
    return vectors[:, keep] / scale * M**-0.5


def embedding(features: FeatureMap, coefficients: Rows, X: Rows) -> Any:
    """Return rows as directions: of length one, or zero for those without neighbors."""
    H = features.evaluate(X, coefficients)
    xp = namespace(H)
    lengths = xp.sqrt(xp.sum(H * H, axis=1))
    return H / xp.where(lengths > 0, lengths, 1.0)[:, None]


def nearest(points: Rows, centers: Rows) -> Any:
    """Return the index of the center next to each point."""
    xp, C = namespace(points), like(centers, points)
    return xp.argmin(xp.sum(C * C, axis=1)[None, :] - 2.0 * (points @ C.T), axis=1)


def _features(features: FeatureMap, X: Rows) -> Any:
    F = features.transform(X)
    xp = namespace(F)
    return xp.astype(F, xp.float64, copy=False)


def _blocks(X: Rows, n_columns: int) -> Iterator[slice]:
    step = max(256, BLOCK_BYTES // (8 * n_columns))
    for start in range(0, X.shape[0], step):
        yield slice(start, min(start + step, X.shape[0]))
