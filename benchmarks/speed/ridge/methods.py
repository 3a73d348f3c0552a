"""Ways to fit a ridge regression, ours and the peers', on the same rows in memory."""

from __future__ import annotations

import importlib.util
import math
import statistics
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import Ridge, SGDRegressor

from sksketch import StreamingRidge

BLOCK_ROWS = 1000
SKETCH_SIZE = 64
REFINE = 3
CHOLESKY, LSQR, SAG, SGD = "Ridge cholesky", "Ridge lsqr", "Ridge sag", "SGDRegressor, one pass"
RIVER = "river LinearRegression"
AUTO, ROBUST, EXACT = "StreamingRidge", f"  rfd {SKETCH_SIZE}", "  exact"
REFINED = f"  rfd {SKETCH_SIZE}, refine={REFINE}"
OURS = (AUTO, ROBUST, EXACT, REFINED)
# A square matrix of more columns than this is not made.
LARGEST_SQUARE = 10_000
# Flops of a matrix product in the time of eigh, for each cube of the columns.
EIGH_COST = 15.0
# First steps of stochastic gradients to choose from; river averages over a block of rows.
STEPS, BLOCK_STEPS = (1e-4, 1e-3, 1e-2, 1e-1), (1e-1, 1.0, 10.0)


@dataclass(frozen=True)
class Method:
    """A fit that returns coefficients, an estimate of its flops, or why it can not run."""

    fit: Callable[[], tuple[np.ndarray, float]]
    flops: float = 0.0
    missing: str = ""


@dataclass
class Line:
    """One method on one data set: times, errors and the bound, or why it was skipped."""

    seconds: list[float] = field(default_factory=list)
    coefficient_error: float = math.nan
    certificate: float = math.nan
    r2: float = math.nan
    skipped: str = ""

    @property
    def time(self) -> float:
        return statistics.median(self.seconds) if self.seconds else math.nan


def no_river(X: Any) -> str:
    """Return why river can not run, or nothing."""
    if importlib.util.find_spec("river") is None:
        return "not installed"
    return "takes dense frames only" if sp.issparse(X) else ""


def gradients(X: Any) -> dict[str, tuple[Callable[..., Any], tuple[float, ...]]]:
    """Return the methods whose first step must be chosen, and the steps to choose from."""
    known: dict[str, Any] = {SGD: (one_pass, STEPS), RIVER: (river_pass, BLOCK_STEPS)}
    return {name: search for name, search in known.items() if name == SGD or not no_river(X)}


def methods(X: Any, y: np.ndarray, alpha: float, steps: dict[str, float]) -> dict[str, Method]:
    """Return every method for these rows; no intercept, so that the answers can be compared."""
    n, d = X.shape
    square = f"needs a square matrix of {d} columns" if d > LARGEST_SQUARE else ""
    return {
        CHOLESKY: Method(
            lambda: peer(Ridge(alpha, fit_intercept=False, solver="cholesky"), X, y),
            n * d**2 + d**3 / 3,
            square,
        ),
        LSQR: Method(lambda: peer(Ridge(alpha, fit_intercept=False, solver="lsqr"), X, y)),
        SAG: Method(lambda: peer(Ridge(alpha, fit_intercept=False, solver="sag"), X, y)),
        SGD: Method(lambda: one_pass(X, y, alpha, steps[SGD])),
        RIVER: Method(lambda: river_pass(X, y, alpha, steps[RIVER]), missing=no_river(X)),
        AUTO: Method(lambda: ours(X, y, alpha)),
        ROBUST: Method(lambda: ours(X, y, alpha, sketch="rfd")),
        EXACT: Method(
            lambda: ours(X, y, alpha, sketch="exact"), n * d**2 + EIGH_COST * d**3, square
        ),
        REFINED: Method(lambda: refined(X, y, alpha)),
    }


def ours(X: Any, y: np.ndarray, alpha: float, **options: Any) -> tuple[np.ndarray, float]:
    model = streamed(X, y, alpha, **options)
    with warnings.catch_warnings():
        # The bound is in the table.
        warnings.filterwarnings("ignore", message="the coefficients are certain only")
        return model.coef_, model.coef_error_bound_


def streamed(X: Any, y: np.ndarray, alpha: float, **options: Any) -> StreamingRidge:
    """Return a model that has seen the rows block by block."""
    model = StreamingRidge(alpha, sketch_size=SKETCH_SIZE, fit_intercept=False, **options)
    for start in range(0, X.shape[0], BLOCK_ROWS):
        model.partial_fit(X[start : start + BLOCK_ROWS], y[start : start + BLOCK_ROWS])
    return model


def refined(X: Any, y: np.ndarray, alpha: float) -> tuple[np.ndarray, float]:
    model = StreamingRidge(
        alpha, sketch="rfd", sketch_size=SKETCH_SIZE, fit_intercept=False, refine=REFINE
    )
    # The bound is that of the sketch, before the further passes.
    return model.fit(X, y).coef_, math.nan


def peer(model: Any, X: Any, y: np.ndarray) -> tuple[np.ndarray, float]:
    return model.fit(X, y).coef_, math.nan


def one_pass(X: Any, y: np.ndarray, alpha: float, step: float) -> tuple[np.ndarray, float]:
    """One pass of stochastic gradients; its penalty is per row."""
    model = SGDRegressor(alpha=alpha / len(y), fit_intercept=False, eta0=step, random_state=0)
    for start in range(0, X.shape[0], BLOCK_ROWS):
        model.partial_fit(X[start : start + BLOCK_ROWS], y[start : start + BLOCK_ROWS])
    return model.coef_, math.nan


def river_pass(X: np.ndarray, y: np.ndarray, alpha: float, step: float) -> tuple[np.ndarray, float]:
    """One pass of mini-batches, river's fastest way to learn."""
    import pandas as pd
    from river import linear_model, optim

    names = [str(j) for j in range(X.shape[1])]
    model = linear_model.LinearRegression(
        optimizer=optim.SGD(step), l2=alpha / len(y), intercept_lr=0.0
    )
    for start in range(0, len(X), BLOCK_ROWS):
        stop = start + BLOCK_ROWS
        model.learn_many(pd.DataFrame(X[start:stop], columns=names), pd.Series(y[start:stop]))
    return np.array([model.weights[name] for name in names]), math.nan
