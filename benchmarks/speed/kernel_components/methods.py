"""Kernel PCA and kernel CCA by our estimators and by their peers, each as one fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.decomposition import PCA, IncrementalPCA, KernelPCA
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.pipeline import make_pipeline

from sksketch import StreamingKernelCCA, StreamingKernelPCA, fit_stream

N_COMPONENTS, N_COLUMNS = 10, 50
# Random features and landmarks of all approximate methods: our defaults.
N_RANDOM, N_LANDMARKS = 4096, 1000
IPCA_BATCH = 200
CCA_COMPONENTS, CCA_COLUMNS, CCA_RANDOM, CCA_RIDGE = 5, 20, 1024, 1e-4
GB = 1e9

Score = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Method:
    """A fit that returns the map to components, and what it needs for so many rows."""

    fit: Callable[[Any, float], Score]
    # Bytes beyond the rows, for n rows.
    n_bytes: Callable[[int], float]
    # Seconds of one core for n rows, roughly; only to know what not to begin.
    n_seconds: Callable[[int], float]


def gamma(bandwidth: float) -> float:
    return 0.5 / bandwidth**2


def streaming(solver: str) -> Callable[[np.ndarray, float], Score]:
    def fit(X: np.ndarray, bandwidth: float) -> Score:
        model = StreamingKernelPCA(N_COMPONENTS, bandwidth=bandwidth, solver=solver)
        return model.fit(X).transform

    return fit


def from_file(path: str, bandwidth: float) -> Score:
    """Fit to the rows of a file that is never read as a whole."""
    model = StreamingKernelPCA(N_COMPONENTS, bandwidth=bandwidth)
    return fit_stream(model, path, progress=False).transform


def dense(eigen_solver: str) -> Callable[[np.ndarray, float], Score]:
    def fit(X: np.ndarray, bandwidth: float) -> Score:
        model = KernelPCA(
            N_COMPONENTS,
            kernel="rbf",
            gamma=gamma(bandwidth),
            eigen_solver=eigen_solver,
            random_state=0,
        )
        return model.fit(X).transform

    return fit


def nystroem(X: np.ndarray, bandwidth: float) -> Score:
    n_landmarks = min(N_LANDMARKS, len(X))
    features = Nystroem(gamma=gamma(bandwidth), n_components=n_landmarks, random_state=0)
    return make_pipeline(features, PCA(N_COMPONENTS, random_state=0)).fit(X).transform


def sampler(X: np.ndarray, bandwidth: float) -> Score:
    """Fit IncrementalPCA to random features of a few rows at a time."""
    features = RBFSampler(gamma=gamma(bandwidth), n_components=N_RANDOM, random_state=0).fit(X[:2])
    pca = IncrementalPCA(N_COMPONENTS)
    for first in range(0, len(X), IPCA_BATCH):
        part = X[first : first + IPCA_BATCH]
        if len(part) >= N_COMPONENTS:
            pca.partial_fit(features.transform(part))
    return lambda rows: pca.transform(features.transform(rows))


def _flat(n: int) -> float:
    return 0.5 * GB


def _square(n: int) -> float:
    # The matrix in float32, and a little beside it.
    return 5.0 * n * n


PCA_METHODS: dict[str, Method] = {
    "StreamingKernelPCA": Method(streaming("auto"), _flat, lambda n: 3e-4 * n),
    "  solver=sgd": Method(streaming("sgd"), _flat, lambda n: 3e-4 * n),
    "  solver=sketch": Method(streaming("sketch"), _flat, lambda n: 3e-4 * n),
    "  fit_stream, .npy file": Method(from_file, _flat, lambda n: 3e-4 * n),
    "KernelPCA arpack": Method(dense("arpack"), _square, lambda n: 3e-8 * n * n),
    "KernelPCA randomized": Method(dense("randomized"), _square, lambda n: 3e-8 * n * n),
    "Nystroem + PCA": Method(nystroem, lambda n: 8.0 * N_LANDMARKS * n, lambda n: 1e-4 * n),
    "RBFSampler + IncrementalPCA": Method(sampler, _flat, lambda n: 1e-3 * n),
}
STREAMED = "  fit_stream, .npy file"
DENSE = "KernelPCA arpack"


# Kernel CCA: rows of both views, side by side


def streaming_cca(rows: np.ndarray, bandwidth: float) -> Score:
    model = StreamingKernelCCA(
        CCA_COMPONENTS, bandwidth=bandwidth, n_random_features=CCA_RANDOM, ridge=CCA_RIDGE
    ).fit(*views(rows))
    return lambda rows: np.concatenate(model.transform(*views(rows)), axis=1)


def cca_zoo(rows: np.ndarray, bandwidth: float) -> Score:
    from cca_zoo.nonparametric import KCCA

    # Its shrinkage c weighs the covariance with 1 - c and the norm with c.
    shrinkage = CCA_RIDGE / (1.0 + CCA_RIDGE)
    both = [np.asarray(Z, np.float64) for Z in views(rows)]
    model = KCCA(CCA_COMPONENTS, kernel="rbf", gamma=gamma(bandwidth), shrinkage=shrinkage)
    model.fit(both)
    return lambda rows: np.concatenate(
        model.transform([np.asarray(Z, np.float64) for Z in views(rows)]), axis=1
    )


def dense_cca(rows: np.ndarray, bandwidth: float) -> Score:
    """Fit plain dense kernel CCA in numpy, through the eigenvectors of both kernel matrices."""
    both, maps, bases = views(rows), [], []
    for Z in both:
        K = _gauss(Z, Z, bandwidth)
        means = K.mean(axis=0)
        values, U = np.linalg.eigh(K - means - means[:, None] + means.mean())
        keep = values > 1e-10 * values[-1]
        values, U = values[keep], U[:, keep]
        weights = np.sqrt(values / (values + CCA_RIDGE * len(Z)))
        bases.append(U * weights)
        maps.append((Z, means, U * (weights / values)))
    left, _, right = np.linalg.svd(bases[0].T @ bases[1], full_matrices=False)
    turns = left[:, :CCA_COMPONENTS], right[:CCA_COMPONENTS].T

    def score(rows: np.ndarray) -> np.ndarray:
        scores = []
        for Z, (X, means, W), turn in zip(views(rows), maps, turns, strict=True):
            K = _gauss(Z, X, bandwidth)
            scores.append((K - means - K.mean(axis=1)[:, None] + means.mean()) @ (W @ turn))
        return np.concatenate(scores, axis=1)

    return score


def _gauss(X: np.ndarray, Z: np.ndarray, bandwidth: float) -> np.ndarray:
    X, Z = np.asarray(X, np.float64), np.asarray(Z, np.float64)
    squares = (X * X).sum(axis=1)[:, None] + (Z * Z).sum(axis=1) - 2.0 * X @ Z.T
    return np.exp(-gamma(bandwidth) * np.maximum(squares, 0.0))


def views(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return rows[:, :CCA_COLUMNS], rows[:, CCA_COLUMNS:]


CCA_METHODS: dict[str, Method] = {
    "StreamingKernelCCA": Method(streaming_cca, _flat, lambda n: 2e-4 * n),
    "cca-zoo KCCA": Method(cca_zoo, lambda n: 400.0 * n * n, lambda n: 5e-9 * n**3),
    "dense KCCA in numpy": Method(dense_cca, lambda n: 90.0 * n * n, lambda n: 1e-9 * n**3),
}
if find_spec("cca_zoo") is None:
    del CCA_METHODS["cca-zoo KCCA"]
METHODS = PCA_METHODS | CCA_METHODS
