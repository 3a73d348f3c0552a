"""The choice of features that suit the rows: random ones, or those of landmarks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from sksketch._typing import Rows
from sksketch.arrays.namespace import like, namespace, on_device, to_numpy
from sksketch.arrays.products import combined_rows, times_rows
from sksketch.arrays.random import stream
from sksketch.arrays.subspace import block_krylov
from sksketch.kernel_methods.feature_maps import FeatureMap, NystromMap, RandomFeatureMap

# Landmarks that are tried; with no more rows than this, all of them are landmarks.
MAX_LANDMARKS = 1000


class Plan(NamedTuple):
    """The features and the solver to use, and why, in one sentence."""

    features: FeatureMap
    solver: str
    reason: str


def planned(
    features: FeatureMap, solver: str, pilot: Rows, rank: int, center: bool, n_rows: int | None
) -> Plan:
    """Return what to use for kernel PCA where ``features`` and ``solver`` were asked for.

    "auto" tries random features against landmarks, and sketches the features of landmarks,
    which are few. Sketches are not for devices.
    """
    reason = "as asked for"
    if solver == "auto":
        if isinstance(features, RandomFeatureMap):
            features, reason = better_features(features, pilot, rank, center, n_rows)
        random = isinstance(features, RandomFeatureMap)
        solver = "sgd" if random or on_device(pilot) else "sketch"
    if rank > features.n_columns:
        raise ValueError(
            f"n_components={rank} is more than the {features.n_columns} features that the kernel "
            "has on these rows; ask for fewer components or more features"
        )
    how = {"sgd": "doubly stochastic steps", "sketch": "a sketch of the features"}[solver]
    return Plan(features, solver, f"{how}; {reason}")


def better_features(
    random: FeatureMap, X: Rows, rank: int, center: bool, n_rows: int | None
) -> tuple[FeatureMap, str]:
    """Choose between random features and landmarks by a trial on pilot rows.

    Half of the rows are landmarks. On the other half, the leading components of the exact
    kernel are compared with those that either kind of features has. If all ``n_rows`` are
    few, they are the landmarks, and nothing is approximated.
    """
    kernel = random.kernel
    if n_rows is not None and n_rows <= MAX_LANDMARKS:
        return NystromMap(kernel, X), (f"all {n_rows} rows are landmarks: exact kernel PCA")
    half = min(X.shape[0] // 2, MAX_LANDMARKS, max(random.n_columns, rank))
    nystrom = NystromMap(kernel, X[:half])
    rest = X[half:]
    K = _centered(to_numpy(kernel(rest, rest)).astype(np.float64), center)
    best, _ = _leading(lambda W: times_rows(K, W), K.shape[0], rank)
    kept = [_captured(features, rest, K, rank, center) for features in (nystrom, random)]
    share = [value / max(float(best.sum()), 1e-300) for value in kept]
    names = (f"{half} landmarks", f"{random.n_columns} random features")
    chosen = 0 if share[0] >= share[1] else 1
    reason = (
        f"{names[chosen]}: on {K.shape[0]} pilot rows they keep {share[chosen]:.4%} of what the "
        f"exact components explain, {names[1 - chosen]} {share[1 - chosen]:.4%}"
    )
    return (nystrom, random)[chosen], reason


def _captured(features: FeatureMap, X: Rows, K: Rows, rank: int, center: bool) -> float:
    F = features.transform(X)
    F = F - namespace(F).mean(F, axis=0) if center else F
    F = to_numpy(F).astype(np.float64)
    _, V = _leading(lambda W: times_rows(F, combined_rows(F.T, W)), F.shape[0], rank)
    return float(np.trace(V.T @ K @ V))


def _leading(apply: Callable[[Any], Any], size: int, rank: int) -> tuple[Any, Any]:
    start = stream(0, "plan", 0).standard_normal((size, min(rank + 8, size)))
    return block_krylov(apply, like(start, np.empty(0)), 6, rank)


def _centered(K: Any, center: bool) -> Any:
    if not center:
        return K
    means = K.mean(axis=0)
    return K - means - means[:, None] + means.mean()
