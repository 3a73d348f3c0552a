"""Ways to the leading components of one set of random features: steps and passes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse.linalg

from benchmarks.lib.timing import cpu_seconds
from sksketch.kernel_methods.bandwidth import median_distance
from sksketch.kernel_methods.feature_maps import RandomFeatureMap
from sksketch.kernel_methods.kernels import Kernel
from sksketch.kernel_methods.pca.doubly_stochastic import DoublyStochasticPCA

BANDWIDTH_ROWS, CHUNK_ROWS = 2000, 4096
STEPS = {"Oja, scalar step": "scalar", "Oja, matrix step": "matrix"}
KRYLOV = "block Krylov"


@dataclass(frozen=True)
class Effort:
    """Where a method stood after so many steps or passes."""

    seed: int
    method: str
    n_components: int
    effort: int
    sine_squared: float
    captured: float
    seconds: float


class Problem:
    """Rows, their random features, and the exact components of these features."""

    def __init__(
        self, X: np.ndarray, n_random_features: int, rank: int, n_pilot: int, seed: int
    ) -> None:
        self.X, self.n_pilot, self.seed = X, n_pilot, seed
        self.bandwidth = median_distance(X[:BANDWIDTH_ROWS], "gaussian", 0)
        kernel = Kernel("gaussian", self.bandwidth)
        self.features = RandomFeatureMap(kernel, X.shape[1], n_random_features, seed, cached=True)
        self.covariance = np.zeros((n_random_features, n_random_features))
        for part in self.chunks():
            F = self.features.transform(part)
            self.covariance += F.T @ F
        self.covariance /= len(X)
        start = np.random.default_rng(0).standard_normal(n_random_features)
        values, vectors = scipy.sparse.linalg.eigsh(self.covariance, rank + 1, v0=start)
        self.values, self.vectors = values[::-1], vectors[:, ::-1]

    def chunks(self) -> Any:
        for first in range(0, len(self.X), CHUNK_ROWS):
            yield self.X[first : first + CHUNK_ROWS]

    def learner(self, k: int, step: str) -> DoublyStochasticPCA:
        """Return a learner that has all features from the start."""
        learner = DoublyStochasticPCA(
            self.features, k, feature_batch=self.features.n_columns, center=False, step=step
        )
        pilot = np.random.default_rng(self.seed).permutation(len(self.X))[: self.n_pilot]
        learner.begin(self.X[pilot])
        return learner

    def measured(
        self, method: str, k: int, effort: int, coefficients: np.ndarray, seconds: float
    ) -> Effort:
        Q, V = np.linalg.qr(coefficients)[0], self.vectors[:, :k]
        rest = Q - V @ (V.T @ Q)
        captured = np.trace(Q.T @ self.covariance @ Q) / self.values[:k].sum()
        return Effort(
            self.seed,
            method,
            k,
            effort,
            float(np.linalg.norm(rest, 2) ** 2),
            float(captured),
            seconds,
        )


def stepped(
    problem: Problem, k: int, method: str, batch: int, marks: tuple[int, ...]
) -> list[Effort]:
    """Make steps with batches of all rows in a random order, again and again."""
    learner = problem.learner(k, STEPS[method])
    rng = np.random.default_rng(1)
    found, seconds, order = [], 0.0, np.empty(0, np.int64)
    for number in range(1, marks[-1] + 1):
        if len(order) < batch:
            order = rng.permutation(len(problem.X))
        chosen, order = order[:batch], order[batch:]
        rows = problem.X[np.sort(chosen)]
        seconds += cpu_seconds(lambda rows=rows: learner.learn(rows))[0]
        if number in marks:
            found.append(problem.measured(method, k, number, learner.coefficients, seconds))
    return found


def passed(problem: Problem, k: int, n_passes: int) -> list[Effort]:
    """Make passes of block Krylov from the pilot."""
    found, seconds = [], 0.0
    passes = problem.learner(k, "matrix").passes()

    def one_pass() -> np.ndarray:
        for part in problem.chunks():
            passes.add(part)
        return passes.result()[1]

    for number in range(1, n_passes + 1):
        spent, vectors = cpu_seconds(one_pass)
        seconds += spent
        found.append(problem.measured(KRYLOV, k, number, vectors, seconds))
        passes.end_pass()
    return found


def medians(efforts: list[Effort]) -> list[Effort]:
    """Return the medians over all draws of the features, in the order of the first."""
    found = []
    for e in efforts:
        if e.seed != efforts[0].seed:
            continue
        same = [
            o
            for o in efforts
            if (o.method, o.n_components, o.effort) == (e.method, e.n_components, e.effort)
        ]
        middle = {
            name: float(np.median([getattr(o, name) for o in same]))
            for name in ("sine_squared", "captured", "seconds")
        }
        found.append(replace(e, **middle))
    return found
