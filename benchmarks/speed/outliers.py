"""Outliers: ROC AUC and rows per second of the detector, beside those of its peers.

``python -m benchmarks.speed.outliers [--quick]``

Digits with each class as the rare one, breast cancer, sparse rows as those of w8a, and two planted
streams. Peers: scikit-learn's IsolationForest, the PCA detector of PyOD (its formula, written here:
distances to all components over their share of the variance, of standardized columns), and River's
HalfSpaceTrees where River is installed, which learns and scores row by row. Ours is fitted at once
like the first two, and once more as a stream that scores each row before it learns it.
"""

from __future__ import annotations

from benchmarks.lib.threads import one_thread  # isort: skip

import argparse
import time

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
    spread = X.std(axis=0)
    Z = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    _, s, V = np.linalg.svd(Z, full_matrices=False)
    share = s**2 / (s**2).sum()
    keep = share > 1e-12
    return (cdist(Z, V[keep]) / share[keep]).sum(axis=1)


def half_space_trees(X):
    low, high = X.min(axis=0), X.max(axis=0)
    rows = ((X - low) / np.where(high > low, high - low, 1.0)).tolist()
    model, scores = anomaly.HalfSpaceTrees(seed=0), []
    for row in rows:
        named = dict(enumerate(row))
        scores.append(model.score_one(named))
        model.learn_one(named)
    return np.array(scores)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args(arguments)
    methods = {"fitted": fitted, "streamed": streamed, "IsolationForest": forest}
    methods["PCA of PyOD"] = pyod_pca
    if anomaly is not None:
        methods["HalfSpaceTrees"] = half_space_trees
    print(f"{'data':<16}" + "".join(f"{name:>17}" for name in methods))
    totals = {name: [[], 0.0, 0] for name in methods}
    for data, X, y in data_sets(given.quick):
        line = f"{data:<16}"
        for name, method in methods.items():
            start = time.perf_counter()
            scores = method(X)
            totals[name][1] += time.perf_counter() - start
            totals[name][2] += len(X)
            totals[name][0].append(roc_auc_score(y, scores))
            line += f"{totals[name][0][-1]:>17.4f}"
        print(line, flush=True)
    print(f"{'mean':<16}" + "".join(f"{np.mean(t[0]):>17.4f}" for t in totals.values()))
    print(f"{'rows/s':<16}" + "".join(f"{t[2] / t[1]:>17,.0f}" for t in totals.values()))


if __name__ == "__main__":
    with one_thread():
        main()
