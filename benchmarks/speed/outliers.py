"""Outliers: ROC AUC and rows per second of the detector, beside those of its peers.

``python -m benchmarks.speed.outliers [--quick]``

Digits with each class as the rare one, breast cancer, sparse rows as those of w8a, and two planted
streams. Peers: scikit-learn's IsolationForest, PyOD's PCA where PyOD is installed, else its formula
(distances to all components over their share of the variance, of standardized columns), and River's
HalfSpaceTrees where River is installed, which learns and scores row by row. Ours is fitted at once
like the first two, and once more as a stream that scores each row before it learns it.

Rows per second of processor time are those of long streams of several widths: the trees look at few
columns of a row, however many it has, and ours at all pairs of them.
"""

from __future__ import annotations

from benchmarks.lib.threads import one_thread  # isort: skip

import argparse
import json
import statistics
import time
from pathlib import Path

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score

from sksketch import StreamingOutlierDetector

try:
    from river import anomaly
except ImportError:
    anomaly = None
try:
    from pyod.models.pca import PCA
except ImportError:
    PCA = None

OURS = ("fitted", "streamed")
# What is asked of the figures.
MARGIN, LEAST_SPEED = 0.01, 20.0
# Columns and rows of the streams that are timed.
STREAMS = ((5, 100_000), (20, 100_000), (64, 100_000), (300, 20_000))
BLOCK_ROWS, REPEATS = 5_000, 3


def data_sets(quick):
    """Yield names, rows and which of them are outliers."""
    rng = np.random.default_rng(0)
    X, y = load_digits(return_X_y=True)
    for digit in range(2 if quick else 10):
        usual = np.flatnonzero(y != digit)
        few = rng.choice(np.flatnonzero(y == digit), len(usual) // 50, replace=False)
        rows = rng.permutation(np.concatenate([usual, few]))
        yield f"digits, {digit}", X[rows], y[rows] == digit
    X, y = load_breast_cancer(return_X_y=True)
    few = rng.choice(np.flatnonzero(y == 0), 36, replace=False)
    rows = rng.permutation(np.concatenate([np.flatnonzero(y == 1), few]))
    yield "breast cancer", X[rows], y[rows] == 0
    W = rng.standard_normal((5, 50))
    for name in ("outside", "along"):
        X = rng.standard_normal((5000, 5)) @ W + 0.3 * rng.standard_normal((5000, 50))
        y = rng.random(5000) < 0.02
        odd = rng.standard_normal((y.sum(), 50))
        X[y] += odd if name == "outside" else 2.0 * odd[:, :5] @ W
        yield f"planted {name}", X, y
    p = np.minimum(0.3, np.arange(1.0, 301.0) ** -0.8)
    q = rng.permutation(p)
    y = rng.random(6000) < 0.03
    shares = np.where(y[:, None], 0.5 * q + 0.5 * p, p)
    yield "like w8a", (rng.random((6000, 300)) < shares).astype(float), y


def fitted(X):
    return -StreamingOutlierDetector().fit(X).score_samples(X)


def streamed(X):
    model, scores = StreamingOutlierDetector(), np.zeros(len(X))
    for start in range(0, len(X), 256):
        part = slice(start, start + 256)
        scores[part] = -model.score_samples(X[part]) if start else 0.0
        model.partial_fit(X[part])
    # The first rows had nothing to be scored by.
    scores[:256] = -model.score_samples(X[:256])
    return scores


def forest(X):
    return -IsolationForest(random_state=0).fit(X).score_samples(X)


def pyod_pca(X):
    # It divides by the variance of components that have none.
    varies = X[:, X.std(axis=0) > 0]
    rank = np.linalg.matrix_rank(varies - varies.mean(axis=0))
    return PCA(n_components=int(rank), random_state=0).fit(varies).decision_scores_


def formula_of_pyod(X):
    spread = X.std(axis=0)
    Z = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    _, s, V = np.linalg.svd(Z, full_matrices=False)
    share = s**2 / (s**2).sum()
    keep = share > 1e-12
    return (cdist(Z, V[keep]) / share[keep]).sum(axis=1)


def as_dicts(X):
    low, high = X.min(axis=0), X.max(axis=0)
    rows = ((X - low) / np.where(high > low, high - low, 1.0)).tolist()
    return [dict(enumerate(row)) for row in rows]


def trees_of(named):
    model, scores = anomaly.HalfSpaceTrees(seed=0), []
    for row in named:
        scores.append(model.score_one(row))
        model.learn_one(row)
    return np.array(scores)


def half_space_trees(X):
    return trees_of(as_dicts(X))


def learned_progressively(X):
    """Learn from blocks; each row is scored before it is learned."""
    model = StreamingOutlierDetector()
    for start in range(0, len(X), BLOCK_ROWS):
        model.partial_fit(X[start : start + BLOCK_ROWS])
    return model.offset_


def rates(quick):
    """Yield columns and the rows per second of every method."""
    for columns, n_rows in STREAMS:
        X = np.random.default_rng(0).standard_normal((n_rows // 20 if quick else n_rows, columns))
        # Making dictionaries is not counted.
        few = as_dicts(X[: len(X) // 5])
        timed = {"fitted": (fitted, X), "streamed": (learned_progressively, X)}
        timed["IsolationForest"] = (forest, X[: len(X) // 5])
        if anomaly is not None:
            timed["HalfSpaceTrees"] = (trees_of, few)
        found = {}
        for name, (method, rows) in timed.items():
            seconds = []
            for _ in range(1 if quick else REPEATS):
                start = time.process_time()
                method(rows)
                seconds.append(time.process_time() - start)
            found[name] = len(rows) / statistics.median(seconds)
        yield columns, found


def verdicts(figures):
    """Yield whether what is asked is met, and the figures."""
    mean = figures["mean"]
    peers = [name for name in mean if name not in OURS]
    for name in OURS:
        worst = min(mean[name] - mean[peer] for peer in peers)
        ahead = sum(mean[name] > mean[peer] for peer in peers)
        yield worst >= -MARGIN, f"{name}: mean AUC {worst:+.4f} beside the best peer"
        yield ahead >= 2, f"{name}: ahead of {ahead} of {len(peers)} peers, at least 2"
    for columns, found in figures["rows/s"].items():
        for name in OURS if "HalfSpaceTrees" in found else ():
            times = found[name] / found["HalfSpaceTrees"]
            text = f"{name}, {columns} columns: {times:.1f} x the rows/s of HalfSpaceTrees"
            yield times >= LEAST_SPEED, text


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    given = parser.parse_args(arguments)
    methods = {"fitted": fitted, "streamed": streamed, "IsolationForest": forest}
    methods |= {"formula of PyOD": formula_of_pyod} if PCA is None else {"PCA of PyOD": pyod_pca}
    if anomaly is not None:
        methods["HalfSpaceTrees"] = half_space_trees
    print(f"{'data':<16}" + "".join(f"{name:>17}" for name in methods))
    each = {}
    for data, X, y in data_sets(given.quick):
        each[data] = {name: float(roc_auc_score(y, score(X))) for name, score in methods.items()}
        print(f"{data:<16}" + "".join(f"{a:>17.4f}" for a in each[data].values()), flush=True)
    mean = {name: float(np.mean([line[name] for line in each.values()])) for name in methods}
    print(f"{'mean':<16}" + "".join(f"{value:>17.4f}" for value in mean.values()) + "\n")
    figures = {"auc": each, "mean": mean, "rows/s": dict(rates(given.quick))}
    for columns, found in figures["rows/s"].items():
        speeds = ", ".join(f"{name} {speed:,.0f}" for name, speed in found.items())
        print(f"rows/s, {columns} columns: {speeds}")
    print()
    for passed, text in verdicts(figures):
        print(f"{'ok  ' if passed else 'FAIL'}  {text}")
    if given.json:
        given.json.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    with one_thread():
        main()
