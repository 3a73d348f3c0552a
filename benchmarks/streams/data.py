"""Streams of rows in a fixed order, from files, from River and from scikit-learn."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn import datasets as bundled

FOLDER = "SKSKETCH_DATA"
# Rows of a generated stream, and the most rows and columns for what is slow.
N_SYNTHETIC, SLOW_ROWS, SLOW_COLUMNS = 10_000, 10_000, 64
N_LAGS, N_HOURS = 24, 10_000
QUICK_ROWS = 300
N_QUICK_COLUMNS = 500


@dataclass(frozen=True, eq=False)
class Stream:
    """Rows, dense or CSR, with labels 0, 1, ... or with numbers."""

    X: Any
    y: np.ndarray

    @property
    def n_rows(self) -> int:
        return len(self.y)

    @property
    def n_classes(self) -> int:
        return int(self.y.max()) + 1

    @property
    def small(self) -> bool:
        """Whether trees get through it in a minute."""
        n_rows, n_columns = self.X.shape
        return n_rows <= SLOW_ROWS and n_columns <= SLOW_COLUMNS and not sp.issparse(self.X)

    def first(self, n_rows: int) -> Stream:
        """Return the first rows, with labels from 0 on without a gap."""
        y = self.y[:n_rows]
        return Stream(self.X[:n_rows], np.unique(y, return_inverse=True)[1] if is_labels(y) else y)


def is_labels(y: np.ndarray) -> bool:
    return y.dtype.kind in "iu"


@dataclass(frozen=True)
class Source:
    """How a stream is made, and what it needs: a file of the data folder, or River."""

    make: Callable[[], Stream]
    file: str = ""
    river: bool = False

    def missing(self) -> str:
        """Return why the stream cannot be had, or nothing."""
        if self.river and importlib.util.find_spec("river") is None:
            return "River is not installed"
        if not self.file:
            return ""
        folder = os.environ.get(FOLDER)
        if not folder:
            return f"set {FOLDER} to the folder that holds {self.file}"
        return "" if (Path(folder) / self.file).exists() else f"no {self.file} in ${FOLDER}"


def _stored(file: str) -> Any:
    return np.load(Path(os.environ[FOLDER]) / file, allow_pickle=False)


def _sparse(file: str) -> tuple[Any, Any]:
    z = _stored(file)
    parts = (z["data"].astype(np.float64), z["indices"], z["indptr"])
    return sp.csr_array(parts, shape=tuple(z["shape"])), z


def _signs(file: str, *, train_only: bool = False) -> Stream:
    X, z = _sparse(file)
    stop = int(z["n_train"]) if train_only else X.shape[0]
    return Stream(X[:stop], (z["y"][:stop] > 0).astype(np.int64))


def _shuffled(stream: Stream) -> Stream:
    order = np.random.default_rng(0).permutation(stream.n_rows)
    return Stream(stream.X[order], stream.y[order])


def _reuters(file: str) -> Stream:
    """Return the documents that are earnings or acquisitions, in the order of the file."""
    X, z = _sparse(file)
    kept = np.flatnonzero(z["y"])
    return Stream(X[kept], (z["y"][kept] > 0).astype(np.int64))


def _news(file: str) -> Stream:
    X, z = _sparse(file)
    stop = int(z["n_train"])
    return Stream(X[:stop], z["y"][:stop].astype(np.int64))


def _bundled(load: Callable[[], Any]) -> Stream:
    found = load()
    kind = np.int64 if found.target.dtype.kind in "iu" else np.float64
    return _shuffled(Stream(found.data.astype(np.float64), found.target.astype(kind)))


def _river(make: Callable[[Any, Any], Iterable[Any]], *, labels: bool = True) -> Stream:
    from river import datasets
    from river.datasets import synth

    rows = list(make(datasets, synth))
    names = list(rows[0][0])
    X = np.array([[float(x[name]) for name in names] for x, _ in rows])
    y = np.array([y for _, y in rows])
    return Stream(X, np.unique(y, return_inverse=True)[1] if labels else y.astype(np.float64))


def _temperature(file: str, *, standardized: bool) -> Stream:
    """Return each hour's temperature with those of the day before it and the air's state."""
    z = _stored(file)
    x = z["x"][: N_HOURS + N_LAGS].astype(np.float64)
    lags = np.lib.stride_tricks.sliding_window_view(x[:-1], N_LAGS)
    air = [z[name][N_LAGS - 1 : N_LAGS - 1 + N_HOURS] for name in ("dewpoint", "pressure")]
    X = np.column_stack([lags, *air]).astype(np.float64)
    if standardized:
        X = (X - X.mean(axis=0)) / X.std(axis=0)
    return Stream(X, x[N_LAGS:])


def _words(n_rows: int, n_columns: int) -> Stream:
    """Return made-up counts of words of two topics, so that a quick run has sparse rows."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n_rows)
    share = 20.0 / (10.0 + np.arange(n_columns))
    topic = np.where(np.arange(n_columns) % 2, 2.0, 0.5)
    rates = share * np.where(y[:, None], topic, 1.0 / topic) * 0.3
    return Stream(sp.csr_array(rng.poisson(rates).astype(np.float64)), y.astype(np.int64))


def _file(make: Callable[..., Stream], file: str, **options: Any) -> Source:
    return Source(partial(make, file, **options), file)


def _from_river(make: Callable[[Any, Any], Iterable[Any]], *, labels: bool = True) -> Source:
    return Source(partial(_river, make, labels=labels), river=True)


CLASSIFICATION = {
    "a9a": _file(_signs, "a9a.npz", train_only=True),
    "w8a": Source(lambda: _shuffled(_signs("w8a.npz")), "w8a.npz"),
    "farm_ads": _file(_signs, "farm_ads.npz"),
    "news20": _file(_news, "news20_bydate_counts.npz"),
    "reuters": _file(_reuters, "reuters21578_counts.npz"),
    "rcv1": _file(_signs, "rcv1_vw1500.npz", train_only=True),
    "Phishing": _from_river(lambda data, _: data.Phishing()),
    "Bananas": _from_river(lambda data, _: data.Bananas()),
    "ImageSegments": _from_river(lambda data, _: data.ImageSegments()),
    "Hyperplane": _from_river(
        lambda _, synth: synth.Hyperplane(seed=1, n_drift_features=2, mag_change=0.001).take(
            N_SYNTHETIC
        )
    ),
    "SEA": _from_river(lambda _, synth: synth.SEA(seed=1, noise=0.1).take(N_SYNTHETIC)),
    "Agrawal": _from_river(lambda _, synth: synth.Agrawal(seed=1).take(N_SYNTHETIC)),
    "digits": Source(lambda: _bundled(bundled.load_digits)),
    "breast_cancer": Source(lambda: _bundled(bundled.load_breast_cancer)),
}
REGRESSION = {
    "TrumpApproval": _from_river(lambda data, _: data.TrumpApproval(), labels=False),
    "Friedman": _from_river(
        lambda _, synth: synth.Friedman(seed=1).take(N_SYNTHETIC), labels=False
    ),
    "temperature": _file(_temperature, "temp_beijing_airport.npz", standardized=False),
    "temperature std": _file(_temperature, "temp_beijing_airport.npz", standardized=True),
    "diabetes": Source(lambda: _bundled(partial(bundled.load_diabetes, scaled=False))),
}
QUICK_CLASSIFICATION = {
    "words": Source(lambda: _words(QUICK_ROWS, N_QUICK_COLUMNS)),
    "breast_cancer": CLASSIFICATION["breast_cancer"],
    "digits": CLASSIFICATION["digits"],
    "Phishing": CLASSIFICATION["Phishing"],
}
QUICK_REGRESSION = {name: REGRESSION[name] for name in ("diabetes", "TrumpApproval")}
