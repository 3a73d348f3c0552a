"""The synthetic data of Xu et al. (2017), section 5, and real ones to hold the methods against."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfTransformer

FOLDER = "SKSKETCH_DATA"
N_NOISE = 10
# Name to the singular values, up to a factor, of number i = 1, 2, ...
SYNTHETIC = {
    "exp-1": lambda i: np.exp(-i),
    "poly-1": lambda i: 1.0 / i,
    "poly-0.5": lambda i: 1.0 / np.sqrt(i),
}
FILES = {
    "rcv1": "rcv1_vw1500.npz",
    "reuters": "reuters21578_counts.npz",
    "news20": "news20_bydate_counts.npz",
    "imdb": "imdb50k_counts.npz",
}


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows and labels to learn from, and others to test with."""

    name: str
    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray


def synthetic(
    n_rows: int, n_features: int, seed: int, names: tuple[str, ...] = tuple(SYNTHETIC)
) -> list[Problem]:
    """Return the three sets, or some, on the same random directions; the last tenth is for testing.

    Singular vectors are those of a normal matrix, labels the sign of a normal model, and ten
    columns of noise of standard deviation one come last. Errors depend on the model drawn: with
    so few directions that count it may lie well or badly.
    """
    rng = np.random.default_rng(seed)
    # One example in a column, as in the paper.
    M = rng.standard_normal((n_features, n_rows))
    w = rng.standard_normal(n_features)
    noise = rng.standard_normal((N_NOISE, n_rows)).T
    values, U = np.linalg.eigh(M @ M.T)
    values, U = values[::-1], U[:, ::-1]
    V = (U.T @ M).T / np.sqrt(values)
    del M
    cut = n_rows * 9 // 10
    problems = []
    for name in names:
        singular_values = SYNTHETIC[name](np.arange(1, n_features + 1))
        X = np.sqrt(n_rows) * (V * singular_values) @ U.T
        y = np.where(X @ w > 0, 1.0, -1.0)
        X = np.hstack([X, noise])
        problems.append(Problem(name, X[:cut], y[:cut], X[cut:], y[cut:]))
    return problems


def missing(name: str) -> str:
    """Say why a real data set can not be had, or nothing."""
    folder = os.environ.get(FOLDER)
    if folder is None:
        return f"set {FOLDER} to the folder of {FILES[name]}"
    return "" if (Path(folder) / FILES[name]).exists() else f"no {FILES[name]} in {FOLDER}"


def real(name: str) -> Problem:
    """Return a real data set: word counts as TF-IDF, with its own split."""
    stored = np.load(Path(os.environ[FOLDER]) / FILES[name], allow_pickle=False)
    parts = stored["data"].astype(np.float64), stored["indices"], stored["indptr"]
    X = sp.csr_array(parts, shape=tuple(stored["shape"]))
    y = stored["y"]
    if name == "reuters":
        # Those without a topic have no label; the split is by date.
        X, y = X[y != 0], y[y != 0]
        cut = X.shape[0] * 7 // 10
    else:
        cut = int(stored["n_train"])
    if name != "rcv1":
        weighting = TfidfTransformer(sublinear_tf=True).fit(X[:cut])
        X = sp.csr_array(weighting.transform(X))
    return Problem(name, X[:cut], y[:cut], X[cut:], y[cut:])
