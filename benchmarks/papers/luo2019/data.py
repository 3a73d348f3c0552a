"""The data of Luo et al. (2019), section 6.2, that can be had, and stand-ins for the others."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

FOLDER = "SKSKETCH_DATA"
TRAIN = 0.7
STANDIN = "stand-in"
Rows = tuple[Any, np.ndarray]


@dataclass(frozen=True)
class Data:
    """Where rows come from, the sketch sizes to run and the orders to read them in.

    An order is "file" or the seed of a shuffle; the first 70% of the order are learned from.
    """

    make: Callable[[], Rows]
    sizes: tuple[int, ...]
    orders: tuple[str, ...] = ("file",)
    file: str = ""
    # Where a d x d matrix is affordable.
    small: bool = False

    def missing(self) -> str:
        """Return why the rows can not be had, or nothing."""
        if not self.file:
            return ""
        folder = os.environ.get(FOLDER)
        if not folder:
            return f"set {FOLDER} to the folder that holds {self.file}"
        return "" if (Path(folder) / self.file).exists() else f"no {self.file} in ${FOLDER}"


@dataclass(frozen=True, eq=False)
class Split:
    """Rows to learn from, in order, and rows to test on."""

    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray


def split(rows: Rows, order: str) -> Split:
    X, y = rows
    n = len(y)
    taken = np.arange(n) if order == "file" else np.random.default_rng(int(order)).permutation(n)
    train, test = taken[: int(TRAIN * n)], taken[int(TRAIN * n) :]
    return Split(X[train], y[train], X[test], y[test])


def _stored(file: str) -> Any:
    return np.load(Path(os.environ[FOLDER]) / file, allow_pickle=False)


def _sparse(file: str) -> tuple[Any, Any]:
    z = _stored(file)
    parts = (z["data"].astype(np.float64), z["indices"], z["indptr"])
    return sp.csr_matrix(parts, shape=tuple(z["shape"])), z


def _plain(file: str, n_rows: int | None = None) -> Rows:
    X, z = _sparse(file)
    return X[:n_rows], np.where(z["y"][:n_rows] > 0, 1.0, -1.0)


def _shuffled(file: str) -> Rows:
    """For files that are sorted by class."""
    X, y = _plain(file)
    order = np.random.default_rng(0).permutation(len(y))
    return X[order], y[order]


def weighted(X: Any) -> Any:
    """Return counts as log tf-idf of unit length; the frequencies are those of the first 70%."""
    known = int(TRAIN * X.shape[0])
    idf = np.log(known / np.maximum(X[:known].getnnz(axis=0), 1))
    X = X.copy()
    X.data = 1.0 + np.log(X.data)
    X = sp.csr_matrix(X @ sp.diags(idf))
    lengths = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    return sp.csr_matrix(sp.diags(1.0 / np.where(lengths > 0, lengths, 1.0)) @ X)


def _words(file: str, label: Callable[[np.ndarray], np.ndarray]) -> Rows:
    """Return the rows that have a label other than 0, in the order of the file."""
    X, z = _sparse(file)
    y = label(z["y"].astype(np.int64))
    return weighted(X[y != 0]), y[y != 0].astype(np.float64)


def _digits() -> Rows:
    z = _stored("mnist.npz")
    chosen = np.isin(z["y"], (4, 9))
    return z["X"][chosen].astype(np.float64) / 255.0, np.where(z["y"][chosen] == 4, 1.0, -1.0)


def standin(n_rows: int = 1500, n_features: int = 60, nnz: int = 12) -> Rows:
    """Return zero-one rows like those of a9a: some columns common, most of them rare."""
    rng = np.random.default_rng(0)
    share = np.minimum(nnz * 0.5 / np.arange(1, n_features + 1) ** 0.7, 0.95)
    X = sp.csr_matrix((rng.random((n_rows, n_features)) < share).astype(np.float64))
    margins = X @ rng.standard_normal(n_features)
    margins += 0.7 * rng.standard_normal(n_rows) - np.quantile(margins, 0.7)
    return X, np.where(margins >= 0, 1.0, -1.0)


SMALL, LARGE = (5, 10, 20), (20, 30, 50)
FILES = {
    "a9a": Data(
        lambda: _plain("a9a.npz", 32_561), SMALL, ("file", "0", "1", "2"), "a9a.npz", small=True
    ),
    "farm-ads": Data(lambda: _plain("farm_ads.npz"), LARGE, ("file", "0"), "farm_ads.npz"),
    "w8a": Data(lambda: _shuffled("w8a.npz"), SMALL, ("file",), "w8a.npz", small=True),
    "news20": Data(
        lambda: _words("news20_bydate_counts.npz", lambda y: np.where(y < 10, 1, -1)),
        LARGE,
        ("0",),
        "news20_bydate_counts.npz",
    ),
    "reuters": Data(
        lambda: _words("reuters21578_counts.npz", np.sign),
        LARGE,
        ("file",),
        "reuters21578_counts.npz",
    ),
    "imdb": Data(
        lambda: _words("imdb50k_counts.npz", lambda y: np.where(y > 0, 1, -1)),
        LARGE,
        ("file",),
        "imdb50k_counts.npz",
    ),
    "rcv1": Data(lambda: _plain("rcv1_vw1500.npz"), LARGE, ("file",), "rcv1_vw1500.npz"),
    "mnist49": Data(_digits, SMALL, ("file",), "mnist.npz", small=True),
}
QUICK = {STANDIN: Data(standin, (5, 10), small=True)}
# What the paper ran on and can not be had; the stand-ins are not the same data.
ABSENT = {"gisette": "mnist49", "sido0": "w8a", "rcv1.binary": "reuters", "real-sim": "imdb"}
