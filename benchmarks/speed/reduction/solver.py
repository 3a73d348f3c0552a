"""Dual coordinate ascent to a duality gap, held against liblinear reaching the same objective."""

from __future__ import annotations

import statistics
import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from benchmarks.lib.timing import cpu_seconds
from sksketch.reduction.dual import solve
from sksketch.reduction.dual_losses import DualLoss

GAP = 1e-3
# What liblinear calls tolerance, from loose to tight.
TOLERANCES = (1.0, 0.3, 0.1, 0.03, 0.01, 1e-3, 1e-4)


def race(n_rows: int, n_columns: int, alphas: tuple[float, ...], repeats: int) -> list[Any]:
    """Return our time and liblinear's for each loss and penalty, interleaved."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, n_columns)) / np.arange(1, n_columns + 1) ** 0.7
    noise = 0.8 * rng.standard_normal(n_rows)
    y = np.where(X @ rng.standard_normal(n_columns) + noise > 0, 1.0, -1.0)
    shares = np.full(n_rows, 1.0 / n_rows)
    found = []
    for name in ("hinge", "squared_hinge", "logistic"):
        loss = DualLoss(name)
        solve(loss, X[:50], y[:50], np.full(50, 0.02), 1.0, tol=GAP, max_passes=5)
        for alpha in alphas:

            def ours(loss: DualLoss = loss, alpha: float = alpha) -> Any:
                return solve(loss, X, y, shares, alpha, tol=GAP, max_passes=1000)

            def value(w: np.ndarray, loss: DualLoss = loss, alpha: float = alpha) -> float:
                return float(shares @ loss.value(X @ w, y) + 0.5 * alpha * w @ w)

            target = value(ours().model)
            tolerance = _needed(name, alpha, X, y, target, value)

            def peer(name: str = name, alpha: float = alpha, tolerance: float = tolerance) -> Any:
                return _fit(name, alpha, tolerance, X, y)

            mine, theirs = [], []
            for _ in range(repeats):
                mine.append(cpu_seconds(ours)[0])
                theirs.append(cpu_seconds(peer)[0])
            ratios = [b / a for a, b in zip(mine, theirs, strict=True)]
            found.append(
                {
                    "loss": name,
                    "alpha": alpha,
                    "gap": ours().gap,
                    "seconds": statistics.median(mine),
                    "liblinear": statistics.median(theirs),
                    "liblinear_tol": tolerance,
                    "ratio": statistics.median(ratios),
                }
            )
    return found


def _needed(name: str, alpha: float, X: Any, y: Any, target: float, value: Any) -> float:
    """Return the loosest tolerance with which liblinear gets below an objective."""
    for tolerance in TOLERANCES:
        if value(_fit(name, alpha, tolerance, X, y).coef_[0]) <= target:
            return tolerance
    return TOLERANCES[-1]


def _fit(name: str, alpha: float, tolerance: float, X: Any, y: Any) -> Any:
    C = 1.0 / (alpha * len(y))
    options: dict[str, Any] = {"C": C, "tol": tolerance, "fit_intercept": False, "max_iter": 3000}
    if name == "logistic":
        model = LogisticRegression(solver="liblinear", dual=True, **options)
    else:
        model = LinearSVC(loss=name, dual=True, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y)
