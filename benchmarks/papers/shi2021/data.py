"""The three data sets of Shi and Phillips (2021), section 4, and their exact solutions."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from sksketch.datasets import LinearModelRows

FOLDER, FILE = "SKSKETCH_DATA", "temp_beijing_airport.npz"
# N(0, 4 I) has a standard deviation of 2. Only with 4 the published penalties are the best.
NOISE = (2.0, 4.0)
# Share of the columns that carry the targets, and the published best penalty.
SYNTHETIC = {"LR": (0.1, 4096.0), "HR": (0.5, 32768.0)}
TEMP_ALPHA = 32768.0
GRID = 2.0 ** np.arange(6, 20)


@dataclass(frozen=True)
class Sizes:
    """Shape of a data set; penalties of the synthetic ones are for ``PAPER.n_rows`` rows."""

    n_rows: int
    n_features: int
    n_test: int


PAPER = Sizes(8192, 2048, 2048)
QUICK = Sizes(1024, 256, 256)


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows with one column of targets for each label, and the penalty to solve at."""

    labels: tuple[str, ...]
    alpha: float
    X: np.ndarray
    Y: np.ndarray
    X_test: np.ndarray
    Y_test: np.ndarray

    @cached_property
    def spectrum(self) -> tuple[np.ndarray, np.ndarray]:
        """Eigenvalues of A'A, largest first, and its eigenvectors as columns."""
        values, vectors = np.linalg.eigh(self.X.T @ self.X)
        return np.maximum(values[::-1], 0.0), vectors[:, ::-1]

    def exact(self, alpha: float) -> np.ndarray:
        """Return the exact coefficients, shape (n_features, n_targets)."""
        values, vectors = self.spectrum
        moments = vectors.T @ (self.X.T @ self.Y)
        return vectors @ (moments / (values + alpha)[:, None])

    def test_errors(self, coefficients: np.ndarray) -> np.ndarray:
        """Return the mean squared error on the test rows, one for each target."""
        return np.mean((self.X_test @ coefficients - self.Y_test) ** 2, axis=0)

    def bound_in_advance(self, sketch_size: int, alpha: float) -> float:
        """Return the least epsilon of Theorem 4 that any rank gives."""
        tails = self.spectrum[0].sum() - np.cumsum(self.spectrum[0])
        tails = np.concatenate([[self.spectrum[0].sum()], tails])[:sketch_size]
        return float(np.min(tails / (alpha * (sketch_size - np.arange(sketch_size)))))


def missing(name: str) -> str:
    """Return why a data set can not be made, or nothing."""
    if name != "TEMP":
        return ""
    folder = os.environ.get(FOLDER)
    if not folder:
        return f"set {FOLDER} to the folder that holds {FILE}"
    return "" if (Path(folder) / FILE).exists() else f"no {FILE} in ${FOLDER}"


def make(name: str, sizes: Sizes, seed: int) -> Problem:
    return temperature(sizes, seed) if name == "TEMP" else synthetic(name, sizes, seed)


def synthetic(name: str, sizes: Sizes, seed: int) -> Problem:
    """Return LR or HR; the same rows have targets for both readings of the noise."""
    share, alpha = SYNTHETIC[name]
    n, total = sizes.n_rows, sizes.n_rows + sizes.n_test
    rank = int(share * sizes.n_features)
    sources = [
        LinearModelRows(total, sizes.n_features, effective_rank=rank, noise_sd=sd, seed=seed)
        for sd in NOISE
    ]
    X = sources[0].rows(0, total).X
    Y = np.column_stack([source.rows(0, total).y for source in sources])
    labels = tuple(name if sd == NOISE[0] else f"{name} sd {sd:g}" for sd in NOISE)
    return Problem(labels, alpha * n / PAPER.n_rows, X[:n], Y[:n], X[n:], Y[n:])


def temperature(sizes: Sizes, seed: int) -> Problem:
    """Return windows of the hourly differences, each with the next difference as its target."""
    stored = np.load(Path(os.environ[FOLDER]) / FILE, allow_pickle=False)
    steps = np.diff(stored["x"].astype(np.float64))
    windows = np.lib.stride_tricks.sliding_window_view(steps, sizes.n_features + 1)
    n, total = sizes.n_rows, sizes.n_rows + sizes.n_test
    chosen = np.random.default_rng(seed).choice(len(windows), total, replace=False)
    rows = windows[chosen]
    X, Y = np.ascontiguousarray(rows[:, :-1]), rows[:, -1:].copy()
    return Problem(("TEMP",), TEMP_ALPHA * n / PAPER.n_rows, X[:n], Y[:n], X[n:], Y[n:])
