"""Write one small file of every kind, and what it must answer, for this release.

Run ``python tests/golden/write.py`` when a file of this version is to change, and once before its
release. Files of released versions are never written again: whatever changes later must still
read them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import sksketch
from sksketch import (
    Centered,
    ExactCovariance,
    FrequentDirections,
    MultiviewMixture,
    OnlineNewtonClassifier,
    OnlineNewtonRegressor,
    RandomFeatures,
    RandomReduction,
    ReducedClassifier,
    ReducedRegressor,
    Regression,
    SlidingWindow,
    StreamingCCA,
    StreamingGLM,
    StreamingKernelCCA,
    StreamingKernelPCA,
    StreamingKernelSVD,
    StreamingOutlierDetector,
    StreamingPCA,
    StreamingPLS,
    StreamingRidge,
    StreamingRidgeCV,
    StreamingSpectralClustering,
    StreamingSVD,
    SubspaceReduction,
    TableEncoder,
    make_sketch,
)
from sksketch.sketches import buffer
from sksketch.sketches.windows import templates

HERE = Path(__file__).parent
WIDTH = 12
EXACT = {"solver": "exact", "buffer_rows": 20}
# 64 rows at a time, so that few rows wait after a multiple of that.
BLOCK = {"solver": "block", "buffer_rows": 68}


def rows(n_rows: int, dtype: type = np.float64) -> Any:
    """Return rows by a formula, the same on every machine."""
    i, j = np.arange(n_rows)[:, None], np.arange(WIDTH)
    return (np.sin(1.0 + 0.7 * i * (j + 1) + 0.3 * i * i) / (j + 1) + 0.5).astype(dtype)


# As before the curvature of the loss was the default.
PAPER = {"loss": "squared", "curvature": "gradient", "normalize": False}
KERNEL = {"n_random_features": 16, "batch_size": 32}
KERNELS = (RandomFeatures, StreamingKernelPCA, StreamingKernelSVD, StreamingKernelCCA)


# Each with the number of rows it has seen.
MAKERS: dict[str, tuple[int, Callable[[], Any]]] = {
    "fd-exact": (90, lambda: FrequentDirections(4, **EXACT)),
    "fd-exact-float32": (90, lambda: FrequentDirections(4, **EXACT)),
    "fd-half": (90, lambda: FrequentDirections(4, rule="half", **EXACT)),
    "fd-block": (198, lambda: FrequentDirections(4, seed=3, **BLOCK)),
    "fd-covariance": (517, lambda: FrequentDirections(4, solver="covariance")),
    "fd-energy": (90, lambda: FrequentDirections(4, correction="energy", **EXACT)),
    "fd-growing": (90, lambda: FrequentDirections(2, tol=0.01, max_sketch_size=9, **EXACT)),
    "fd-forgetting": (
        90,
        lambda: FrequentDirections(
            4, half_life=30.0, rule="parameterized", fraction=0.6, initial_ridge=0.5, **EXACT
        ),
    ),
    "fd-empty": (0, lambda: FrequentDirections(4)),
    "exact": (517, ExactCovariance),
    "centered-fd-exact": (260, lambda: Centered(FrequentDirections(4, **EXACT))),
    "centered-fd-block": (262, lambda: Centered(FrequentDirections(4, **BLOCK))),
    "centered-exact": (517, lambda: Centered(ExactCovariance(decay=0.99))),
    "gaussian": (260, lambda: make_sketch("gaussian", 5, seed=1, shard=2)),
    "sign": (260, lambda: make_sketch("sign", 5, seed=1, shard=2)),
    "countsketch": (260, lambda: make_sketch("countsketch", 5, seed=1, shard=2)),
    "srht": (260, lambda: make_sketch("srht", 5, seed=1, shard=2)),
    "sample": (260, lambda: make_sketch("sample", 5, seed=1, shard=2)),
    "sfd": (90, lambda: make_sketch("sfd", 4, buffer_rows=20, seed=3)),
    "sfd-energy-float32": (
        90,
        lambda: make_sketch("sfd", 4, buffer_nnz=150, boosted=False, correction="energy"),
    ),
    "2lfd": (90, lambda: make_sketch("2lfd", 8, buffer_rows=9)),
    "2lfd-sampled": (90, lambda: make_sketch("2lfd", 8, rank=2, sample=True, seed=3)),
    "regression": (260, lambda: Regression(FrequentDirections(4, **EXACT))),
    "regression-sign": (260, lambda: Regression(make_sketch("sign", 5), centered=False)),
    "ridge": (260, lambda: StreamingRidge(2.0, sketch=FrequentDirections(4, **EXACT))),
    "ridge-cv": (60, lambda: StreamingRidgeCV([1.0, 5.0])),
    "pca": (517, lambda: StreamingPCA(3, whiten=True)),
    "pca-rfd": (517, lambda: StreamingPCA(3, sketch="rfd", sketch_size=5)),
    "svd": (517, lambda: StreamingSVD(0.9)),
    "online-classifier": (
        120,
        lambda: OnlineNewtonClassifier(sketch_size=3, buffer_rows=6, **PAPER),
    ),
    "online-growing": (120, lambda: OnlineNewtonClassifier(sketch_size=3, **PAPER)),
    "online-regressor": (120, lambda: OnlineNewtonRegressor("oja", sketch_size=3)),
    "online-exact": (120, lambda: OnlineNewtonClassifier()),
    "online-sketched": (120, lambda: OnlineNewtonClassifier(sketch_size=3)),
    "online-exact-regressor": (120, lambda: OnlineNewtonRegressor(loss="huber")),
    "online-sketched-targets": (120, lambda: OnlineNewtonRegressor(sketch_size=3)),
    "subspace-reduction": (90, lambda: SubspaceReduction(4, n_power_iter=1)),
    "random-reduction": (90, lambda: RandomReduction(4, operator="srht")),
    "reduced-classifier": (90, lambda: ReducedClassifier(4, class_weight={-1.0: 1, 1.0: 2})),
    "reduced-regressor": (90, lambda: ReducedRegressor(4, method="rp")),
    "random-features": (90, lambda: RandomFeatures("matern", 12, kernel_params={"nu": 2.5})),
    "random-features-landmarks": (90, lambda: RandomFeatures(landmarks=5)),
    "kernel-pca-waiting": (40, lambda: StreamingKernelPCA(2, n_random_features=16)),
    "kernel-pca-steps": (90, lambda: StreamingKernelPCA(2, solver="sgd", **KERNEL)),
    "kernel-pca-sketch": (90, lambda: StreamingKernelPCA(2, solver="sketch", **KERNEL)),
    "kernel-svd": (90, lambda: StreamingKernelSVD(2, n_random_features=16)),
    "kernel-cca": (90, lambda: StreamingKernelCCA(2, n_random_features=16, ridge=1e-3)),
    "spectral-clustering": (90, lambda: StreamingSpectralClustering(2, landmarks=6)),
    "multiview-mixture": (300, lambda: MultiviewMixture(2, landmarks=6, lift_rows=10)),
    "kernel-cca-finished": (90, lambda: StreamingKernelCCA(2, n_random_features=16)),
    "window-fd": (260, lambda: SlidingWindow(FrequentDirections(4, **EXACT), rows=90, tol=0.5)),
    "window-centered-exact": (
        100,
        lambda: SlidingWindow(Centered(ExactCovariance()), rows=40, tol=1.0),
    ),
    "window-regression": (
        33,
        lambda: SlidingWindow(Regression(FrequentDirections(4, **EXACT)), rows=33, tol=1.0),
    ),
    "regression-forgetting": (
        260,
        lambda: Regression(FrequentDirections(4, half_life=30.0, **EXACT)),
    ),
    "pca-window": (150, lambda: StreamingPCA(3, window=60)),
    "ridge-half-life": (40, lambda: StreamingRidge(2.0, half_life=60.0)),
    "outlier-detector": (30, lambda: StreamingOutlierDetector(contamination=0.05)),
    "table-encoder": (90, lambda: TableEncoder(max_categories=4)),
    "ridge-exact": (20, lambda: StreamingRidge(0.0)),
    "cca": (60, lambda: StreamingCCA(2, ridge=1.0)),
    "cca-rfd": (60, lambda: StreamingCCA(2, ridge=1.0, sketch=FrequentDirections(4, **EXACT))),
    "pls": (60, lambda: StreamingPLS(2, mode="regression")),
    "glm": (20, lambda: StreamingGLM("poisson", alpha=1.0)),
    "kernel-cca-steps": (90, lambda: StreamingKernelCCA(2, solver="sgd", n_steps=3, **KERNEL)),
}


def make(name: str) -> Any:
    """Build what the file of that name holds."""
    n_rows, factory = MAKERS[name]
    made = factory()
    return fed(made, rows(n_rows, np.float32 if "float32" in name else np.float64))


def fed(made: Any, X: Any) -> Any:
    """Give rows to a sketch or estimator, with targets where it takes them."""
    if not len(X):
        return made
    y = X[:, :2].astype(np.float64) @ [[1.0, 2.0], [-1.0, 0.5]]
    if isinstance(made, OnlineNewtonClassifier):
        return made.partial_fit(X, np.sign(y[:, 0] - 0.7), classes=[-1, 1])
    if isinstance(made, OnlineNewtonRegressor):
        return made.partial_fit(X, y if made.method == "rfd" else y[:, 0])
    if isinstance(made, (ReducedClassifier, ReducedRegressor)):
        return made.fit(X, np.sign(y[:, 0] - 0.7))
    if isinstance(made, (StreamingSpectralClustering, TableEncoder)):
        return made.partial_fit(X) if isinstance(made, TableEncoder) else made.fit(X)
    if isinstance(made, StreamingGLM):
        return made.partial_fit(X, np.abs(y[:, 0])).next_pass()
    if isinstance(made, MultiviewMixture):
        return made.fit(*mixed(len(X)))
    if isinstance(made, KERNELS) and not hasattr(made, "n_features_in_") and len(X) > 40:
        return made.fit(X, y)
    if isinstance(made, Regression) or getattr(made, "kind", "") == "sliding-window":
        targets = isinstance(getattr(made, "sketch", made), Regression) or made.kind == "regression"
        return made.update(X, **({"targets": y} if targets else {}))
    return made.update(X) if isinstance(made, sksketch.Sketch) else made.partial_fit(X, y)


def mixed(n_rows: int) -> list[Any]:
    """Return three views of two groups, by a formula."""
    i = np.arange(n_rows)
    return [((i % 3 == 0) * 4.0 + np.sin(i * (k + 1.7)))[:, None] for k in range(3)]


def answers(made: Any) -> dict[str, Any]:
    """Return the numbers that a file must still give when it is read."""
    if hasattr(made, "learners_"):
        return {
            "kind": made.kind,
            "n_rows_seen": made.n_samples_seen_,
            "coef": made.coef_.tolist(),
            "loss": made.cumulative_loss_,
        }
    if isinstance(made, (ReducedClassifier, ReducedRegressor)):
        return {
            "kind": made.kind,
            "n_rows_seen": made.dual_coef_.shape[1],
            "coef": made.coef_.tolist(),
            "objective_gap_bound": made.objective_gap_bound_,
            "reduced": made.reduction_.transform(rows(3)).tolist(),
        }
    if isinstance(made, (SubspaceReduction, RandomReduction, TableEncoder)):
        return {
            "kind": made.kind,
            "n_rows_seen": getattr(made, "n_samples_seen_", 0),
            "transformed": made.transform(rows(3)).tolist(),
        }
    if isinstance(made, StreamingOutlierDetector):
        return {
            "kind": made.kind,
            "n_rows_seen": made.n_samples_seen_,
            "offset": made.offset_,
            "scores": made.score_samples(rows(3)).tolist(),
        }
    if isinstance(made, MultiviewMixture):
        found = {"kind": made.kind, "n_rows_seen": 0, "weights": made.weights_.tolist()}
        return found | {"density": made.density([[0.0], [4.0]]).tolist()}
    if isinstance(made, StreamingGLM):
        found = {"kind": made.kind, "n_rows_seen": made.n_samples_seen_}
        return found | {"coef": made.coef_.tolist(), "deviance": made.deviance_}
    if isinstance(made, (*KERNELS, StreamingCCA, StreamingPLS, StreamingSpectralClustering)):
        return {
            "kind": made.kind,
            "n_rows_seen": getattr(made, "n_samples_seen_", 0),
            "transformed": made.transform(rows(3)).tolist(),
        }
    sketch = getattr(made, "sketch_", made)
    found: dict[str, Any] = {"kind": made.kind, "n_rows_seen": total_rows(made)}
    if sketch.n_features is None:
        return found
    summary, certificate = sketch.summary(), sketch.certificate()
    found |= {
        "dtype": str(summary.components.dtype),
        "operator": summary.to_dense().tolist(),
        "error_bound": summary.error_bound,
        "confidence": summary.confidence,
        "squared_norm": summary.squared_norm,
        "eigenvalue_intervals": certificate.eigenvalues.tolist(),
    }
    if isinstance(sketch, Centered):
        found["mean"] = sketch.mean.tolist()
    if isinstance(made, (StreamingRidge, StreamingRidgeCV)):
        found["coef"] = made.coef_.tolist()
    elif made is not sketch:
        found["transformed"] = made.transform(rows(3)).tolist()
        found["explained_variance"] = made.explained_variance_.tolist()
    return found


def total_rows(made: Any) -> int:
    """Return the rows that have come, also those that have left a window."""
    sketch = getattr(made, "_sketch", getattr(made, "sketch_", made))
    return int(getattr(sketch, "n_rows_total", sketch.n_rows_seen))


def save(made: Any, path: Path) -> None:
    """Write a file that can go on, unless its name says that it is finished."""
    if isinstance(made, (StreamingKernelCCA, StreamingKernelSVD)):
        made.save(path, finished="finished" in path.stem)
    else:
        made.save(path)


def main() -> None:
    """Write the files of this version."""
    buffer.TILE_ROWS, templates.FEWEST_BYTES = (256, 256), 0
    folder = HERE / sksketch.__version__
    folder.mkdir(exist_ok=True)
    expected = {}
    for name in MAKERS:
        made = make(name)
        save(made, folder / f"{name}.sks")
        expected[name] = answers(made)
    (folder / "expected.json").write_text(json.dumps(expected))


if __name__ == "__main__":
    main()
