"""Starts of the steps for two views: small dense problems on pilot rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from sksketch._typing import Rows
from sksketch.arrays.namespace import dtype_name, like, namespace, to_numpy, zeros
from sksketch.arrays.random import stream
from sksketch.arrays.subspace import block_krylov
from sksketch.kernel_methods.feature_maps import FeatureMap
from sksketch.kernel_methods.pairs.pair_moments import leading_pairs

# Ridge of the pilot's own CCA, relative to the largest eigenvalue: pilot rows are few.
PILOT_RIDGE = 0.03


def whole_features(features: FeatureMap, X: Rows, center: bool) -> tuple[Any, Any]:
    """Return all features of some rows, scaled, centered if asked for, and the raw means."""
    F = features.transform(X)
    xp = namespace(F)
    means = xp.mean(xp.astype(F, xp.float64, copy=False), axis=0) * float(center)
    F -= xp.astype(means, F.dtype, copy=False)
    return F, means * features.n_columns**0.5


class Preconditioner(NamedTuple):
    """The leading eigenvalues and directions of a covariance, and what follows them."""

    values: Any
    vectors: Any
    tail: float

    @classmethod
    def of(cls, F: Rows, n_directions: int) -> Preconditioner:
        """Return that of centered features F, through the products of their rows."""
        n = F.shape[0]
        q = max(1, min(n_directions, n // 2, F.shape[1] - 1))
        start = stream(0, "directions").standard_normal((n, min(q + 16, n)))
        G = F @ F.T
        values, V = block_krylov(lambda W: G @ W / n, like(start, F, dtype_name(F)), 3, q + 1)
        tail = float(values[q]) if len(values) > q else 0.0
        values, V = values[:q], V[:, :q]
        keep = int((values > 1e-9 * values[0]).sum())
        E = F.T @ V[:, :keep] / like(np.sqrt(values[:keep] * n), F, dtype_name(F))
        return cls(values[:keep], E, max(tail, 1e-9 * float(values[0])))

    def apply(self, G: Rows, ridge: float) -> Any:
        """Return the gradient with the leading directions slowed down to the others' pace."""
        xp = namespace(G)
        E = like(self.vectors, G)
        scale = 1.0 - (self.tail + ridge) / (self.values + ridge)
        product = like(scale, G, dtype_name(E))[:, None] * (E.T @ xp.astype(G, E.dtype, copy=False))
        return G - xp.astype(E @ product, xp.float64, copy=False)


def pilot_cca(features: list[Any], sides: list[Preconditioner], rank: int) -> list[Any]:
    """Return coefficients of a ridge CCA in the leading directions, each view's share a half."""
    n = features[0].shape[0]
    coordinates = [F @ side.vectors for F, side in zip(features, sides, strict=True)]
    cross = to_numpy(coordinates[0].T @ coordinates[1]).astype(np.float64) / n
    scales = [(side.values + PILOT_RIDGE * side.values[0]) ** -0.5 for side in sides]
    _, U, V = leading_pairs(scales[0][:, None] * cross * scales[1], rank)
    starts = []
    for W, side, scale, F in zip((U, V), sides, scales, features, strict=True):
        C = like(scale[:, None] * W, F, dtype_name(F))
        starts.append(_shaped(side.vectors @ C, rank) * (0.5 / F.shape[1]) ** 0.5)
    return starts


def pilot_svd(features: list[Any], rank: int) -> tuple[list[Any], Any]:
    """Return coefficients of the cross-covariance's singular functions, of squared length 1/2."""
    F, G = features
    n, xp = F.shape[0], namespace(F)
    start = like(stream(0, "pilot").standard_normal((G.shape[1], min(rank + 8, n))), G)
    start = xp.astype(start, G.dtype, copy=False)

    def squared(W: Rows) -> Any:
        return G.T @ (F @ (F.T @ (G @ W))) / n**2

    values, V = block_krylov(squared, start, 4, rank + 1)
    U = F.T @ (G @ V) / n
    lengths = xp.sqrt(xp.sum(U * U, axis=0))
    U = U / xp.where(lengths > 0, lengths, 1.0)
    s = np.pad(np.sqrt(np.maximum(values, 0.0)), (0, rank + 1))[: rank + 1]
    return [_shaped(W, rank) * (0.5 / W.shape[0]) ** 0.5 for W in (U, V)], s


def _shaped(W: Rows, rank: int) -> Any:
    """Return exactly ``n_columns`` columns in float64."""
    xp = namespace(W)
    W = xp.astype(W[:, :rank], xp.float64, copy=False)
    missing = rank - W.shape[1]
    return W if not missing else xp.concat([W, zeros((W.shape[0], missing), W)], axis=1)
