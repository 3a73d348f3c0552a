"""Reduction and training on very many sparse columns: time, and the most memory ever held.

Run as a program it fits one model in a fresh process and prints one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.lib.threads import one_thread

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.random_projection import SparseRandomProjection
from sklearn.svm import LinearSVC

from sksketch import ReducedClassifier

ALPHA = 1e-3
OURS = "ReducedClassifier"
METHODS = (OURS, "SparseRandomProjection + LinearSVC", "SGDClassifier", "LinearSVC")


def rows(n_rows: int, n_features: int, n_entries: int) -> tuple[Any, np.ndarray]:
    """Return sparse rows whose columns are used unequally, and labels of a linear model."""
    rng = np.random.default_rng(0)
    columns = (n_features * rng.random(n_rows * n_entries) ** 3).astype(np.int32)
    # In the type of the columns, or scikit-learn would refuse it.
    indptr = np.arange(n_rows + 1, dtype=np.int32) * np.int32(n_entries)
    data = rng.standard_normal(n_rows * n_entries)
    X = sp.csr_array((data, columns, indptr), shape=(n_rows, n_features))
    X.sum_duplicates()
    return X, np.where(X @ rng.standard_normal(n_features) > 0, 1, -1)


def model(method: str, size: int, n_rows: int) -> Any:
    """Return the estimator of a name."""
    C = 1.0 / (ALPHA * n_rows)
    return {
        OURS: lambda: ReducedClassifier(size, alpha=ALPHA),
        METHODS[1]: lambda: make_pipeline(
            SparseRandomProjection(size, random_state=0, dense_output=True),
            LinearSVC(loss="hinge", C=C, max_iter=5000),
        ),
        METHODS[2]: lambda: SGDClassifier(alpha=ALPHA, random_state=0),
        METHODS[3]: lambda: LinearSVC(loss="hinge", C=C, max_iter=5000),
    }[method]()


def peak() -> float:
    """Return the most memory this process has held, in GB."""
    status = Path("/proc/self/status")
    if status.exists():
        # Unlike what getrusage says, this does not begin with the peak of the parent.
        line = next(x for x in status.read_text().splitlines() if x.startswith("VmHWM:"))
        return int(line.split()[1]) / 1e6
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def alone(method: str, n_rows: int, n_features: int, n_entries: int, size: int) -> dict[str, Any]:
    """Measure one fit in a process of its own."""
    sizes = [str(number) for number in (n_rows, n_features, n_entries, size)]
    done = subprocess.run(
        [sys.executable, "-m", __name__, method, *sizes],
        capture_output=True,
        text=True,
        check=True,
    )
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("method", choices=METHODS)
    for name in ("rows", "features", "entries", "size"):
        parser.add_argument(name, type=int)
    options = parser.parse_args()
    with one_thread():
        X, y = rows(options.rows, options.features, options.entries)
        # The first use compiles the loops or loads them.
        model(OURS, 5, 100).fit(X[:100, :300], y[:100])
        before, begun = peak(), time.process_time()
        fitted = model(options.method, options.size, options.rows).fit(X, y)
        seconds = time.process_time() - begun
    facts = {"seconds": seconds, "peak_gb": peak(), "before_gb": before, "nnz": int(X.nnz)}
    if options.method == OURS:
        Z = fitted.reduction_.transform(X)
        reduced = Z @ fitted.reduced_coef_[0, :-1] + fitted.reduced_coef_[0, -1]
        facts["prediction_error"] = float(np.abs(reduced - fitted.decision_function(X)).max())
        facts["duality_gap"] = fitted.duality_gap_
        facts["objective_gap_bound"] = fitted.objective_gap_bound_
    print(json.dumps(facts))


if __name__ == "__main__":
    main()
