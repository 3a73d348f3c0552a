"""Rows and targets for the benchmark of ridge regression, and their exact solutions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.sparse.linalg import lsqr

from benchmarks.lib.timing import aligned
from benchmarks.speed.sparse_rows.data import topic_rows
from sksketch.datasets import LinearModelRows

SIGNAL_NOISE = 0.5
EXACT_TOLERANCE, MOST_STEPS = 1e-13, 3000


@dataclass(frozen=True, eq=False)
class Rows:
    """Training and test rows, and the penalty."""

    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray
    alpha: float


@dataclass(frozen=True)
class Case:
    title: str
    make: Callable[[], Rows]


def dense(n: int, d: int) -> Case:
    """Return the low-rank data of the ridge paper, at its penalty per row."""

    def make() -> Rows:
        n_test = max(n // 10, 100)
        source = LinearModelRows(n + n_test, d, effective_rank=max(d // 10, 1), noise_sd=0.5)
        X, y = source.rows(0, n + n_test)
        return Rows(aligned(X[:n]), y[:n], aligned(X[n:]), y[n:], n / 2)

    return Case(f"dense, LR of the ridge paper with noise 0.5: {n} x {d}", make)


def sparse(n: int, d: int) -> Case:
    """Return the topic stream, with targets that depend on all of its columns."""

    def make() -> Rows:
        n_test = n // 10
        X = topic_rows(0, n + n_test, d)
        rng = np.random.default_rng(1)
        signal = X @ rng.standard_normal(d)
        y = signal + SIGNAL_NOISE * signal.std() * rng.standard_normal(n + n_test)
        return Rows(X[:n], y[:n], X[n:], y[n:], n / 100)

    return Case(f"sparse, topic stream, 50 non-zeros a row: {n} x {d}", make)


def exact(rows: Rows) -> np.ndarray:
    """Return the exact coefficients, by Cholesky or by lsqr to rounding."""
    X, y, alpha = rows.X, rows.y, rows.alpha
    if sp.issparse(X):
        limits = {"atol": EXACT_TOLERANCE, "btol": EXACT_TOLERANCE, "iter_lim": MOST_STEPS}
        return lsqr(X, y, damp=np.sqrt(alpha), **limits)[0]
    gram = X.T @ X
    gram.flat[:: len(gram) + 1] += alpha
    return scipy.linalg.cho_solve(scipy.linalg.cho_factor(gram, overwrite_a=True), X.T @ y)


def r2(rows: Rows, coefficients: np.ndarray) -> float:
    """Return the share of the test targets' variance that is explained."""
    residual = rows.y_test - rows.X_test @ coefficients
    return 1.0 - float(np.mean(residual**2) / np.var(rows.y_test))


CASES = {
    "256": dense(60_000, 256),
    "1000": dense(20_000, 1000),
    "4096": dense(8192, 4096),
    "sparse": sparse(20_000, 100_000),
}
QUICK_CASES = {"64": dense(3000, 64), "800": dense(1000, 800), "sparse": sparse(1000, 3000)}
