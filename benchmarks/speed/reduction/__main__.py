"""Speed and accuracy of reduced linear models beside their peers, in one run.

One BLAS thread, CPU time, medians of interleaved repeats. Three parts: text with several classes
at equal numbers of coordinates, ten million sparse columns, and the solver alone beside liblinear.
See benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.lib.threads import one_thread

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import TruncatedSVD
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection
from sklearn.svm import LinearSVC

from benchmarks.lib.timing import cpu_seconds, machine
from benchmarks.papers.xu2017.data import FOLDER, Problem, missing, real
from benchmarks.speed.reduction.solver import race
from benchmarks.speed.reduction.wide import METHODS as WIDE_METHODS
from benchmarks.speed.reduction.wide import OURS as WIDE_OURS
from benchmarks.speed.reduction.wide import alone
from sksketch import ReducedClassifier

PARTS = ("text", "wide", "solver")
FULL, SVD, SPARSE = "LinearSVC, all columns", "TruncatedSVD + LinearSVC", "SparseRandomProjection"
OURS = "ReducedClassifier nordr"


def main() -> None:
    options = parse()
    begun = time.perf_counter()
    results: dict[str, Any] = {}
    warnings.simplefilter("ignore", ConvergenceWarning)
    with one_thread():
        facts = machine()
        print("\n".join(f"{name:15}{value}" for name, value in facts.items()))
        for part in options.parts:
            results[part] = {"text": text, "wide": wide, "solver": solver}[part](options)
    print("\nacceptance")
    for line in verdicts(results, options.quick):
        print(f"  {line}")
    print(f"{time.perf_counter() - begun:.0f} s in all")
    if options.json:
        Path(options.json).write_text(json.dumps({"machine": facts, "results": results}, indent=1))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, no stored data")
    parser.add_argument("--parts", help=f"some of {','.join(PARTS)}")
    parser.add_argument("--repeats", type=int)
    parser.add_argument("--json", metavar="FILE", help="write the figures there as well")
    options = parser.parse_args()
    options.parts = options.parts.split(",") if options.parts else list(PARTS)
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    options.repeats = options.repeats or (1 if options.quick else 3)
    return options


def topics(n_rows: int = 1200, n_words: int = 3000, n_classes: int = 5) -> Problem:
    """Return made-up texts: words by a power law, some of them more likely in each class."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, n_rows)
    common = 1.0 / np.arange(1, n_words + 1)
    X = np.zeros((n_rows, n_words))
    for k in range(n_classes):
        likely = common * np.where(rng.random(n_words) < 0.05, 6.0, 1.0)
        X[y == k] = rng.multinomial(60, likely / likely.sum(), size=int((y == k).sum()))
    X = np.log1p(X) / np.linalg.norm(np.log1p(X), axis=1, keepdims=True)
    rows, cut = sp.csr_array(X), n_rows * 2 // 3
    return Problem("made-up topics", rows[:cut], y[:cut], rows[cut:], y[cut:])


def text(options: argparse.Namespace) -> dict[str, Any]:
    """Time all ways to classify texts, with as many coordinates."""
    stored = not options.quick and not missing("news20")
    if not options.quick and not stored:
        print(f"\ntext: {missing('news20')}; {FOLDER}={os.environ.get(FOLDER)}")
    problem, size = (real("news20"), 500) if stored else (topics(), 60)
    methods = text_methods(size, len(problem.y))
    # The first use compiles the loops or loads them.
    ReducedClassifier(5).fit(problem.X[:200, :500], problem.y[:200])
    found: dict[str, Any] = {name: {"all_seconds": []} for name in methods}
    for _ in range(options.repeats):
        for name, make in methods.items():
            seconds, model = cpu_seconds(lambda make=make: make().fit(problem.X, problem.y))
            found[name]["all_seconds"].append(seconds)
            found[name]["accuracy"] = float(model.score(problem.X_test, problem.y_test))
    n_rows, n_features = problem.X.shape
    print(f"\n{problem.name}: {n_rows} rows of {n_features} columns, {size} coordinates")
    print(f"{'method':34}{'seconds':>9}{'x SVD':>8}{'accuracy':>10}")
    for name, line in found.items():
        line["seconds"] = statistics.median(line["all_seconds"])
        pairs = zip(found[SVD]["all_seconds"], line["all_seconds"], strict=True)
        line["speed_of_svd"] = statistics.median([a / b for a, b in pairs])
        print(f"{name:34}{line['seconds']:9.2f}{line['speed_of_svd']:8.1f}{line['accuracy']:10.4f}")
    return {"data": problem.name, "lines": found}


def text_methods(size: int, n_rows: int) -> dict[str, Callable[[], Any]]:
    """Return the ways to classify texts; C = 1 is good for all that have it."""
    alpha = 1.0 / n_rows
    ours: dict[str, Any] = {"loss": "squared_hinge", "alpha": 3 * alpha}
    return {
        "ReducedClassifier": lambda: ReducedClassifier(size, **ours),
        "ReducedClassifier, one power pass": lambda: ReducedClassifier(
            size, n_power_iter=1, **ours
        ),
        OURS: lambda: ReducedClassifier(size, method="nordr", **ours),
        f"{SPARSE} + LinearSVC": lambda: make_pipeline(
            SparseRandomProjection(size, random_state=0, dense_output=True), LinearSVC()
        ),
        "GaussianRandomProjection + SVC": lambda: make_pipeline(
            GaussianRandomProjection(size, random_state=0), LinearSVC()
        ),
        SVD: lambda: make_pipeline(TruncatedSVD(size, random_state=0), LinearSVC()),
        FULL: LinearSVC,
        "SGDClassifier, all columns": lambda: SGDClassifier(alpha=alpha, random_state=0),
    }


def wide(options: argparse.Namespace) -> dict[str, Any]:
    """Measure time and memory on very many columns, and how time grows with the rows."""
    n_features, n_entries, size = (200_000, 30, 20) if options.quick else (10_000_000, 100, 100)
    counts = (1_000, 2_000) if options.quick else (25_000, 50_000, 100_000)
    print(f"\n{n_features} columns, {n_entries} entries a row, {size} coordinates")
    print(f"{'method':36}{'rows':>9}{'seconds':>9}{'peak GB':>9}{'of it data':>12}")
    found = []
    for method in WIDE_METHODS:
        for n_rows in counts if method == WIDE_OURS else counts[-1:]:
            line = alone(method, n_rows, n_features, n_entries, size)
            found.append({"method": method, "n_rows": n_rows, **line})
            print(
                f"{method:36}{n_rows:9d}{line['seconds']:9.2f}{line['peak_gb']:9.2f}"
                f"{line['before_gb']:12.2f}",
                flush=True,
            )
    return {"lines": found}


def solver(options: argparse.Namespace) -> dict[str, Any]:
    """Time the solver against liblinear at the same objective."""
    shape = (2_000, 20) if options.quick else (20_000, 100)
    alphas = (1e-2, 1e-3) if options.quick else (1e-2, 1e-3, 1e-4, 1e-5)
    found = race(*shape, alphas, options.repeats)
    print(f"\nto a duality gap of 1e-3 on {shape[0]} rows of {shape[1]} coordinates")
    print(f"{'loss':15}{'lambda':>9}{'seconds':>9}{'liblinear':>11}{'ratio':>8}")
    for line in found:
        print(
            f"{line['loss']:15}{line['alpha']:9.0e}{line['seconds']:9.3f}"
            f"{line['liblinear']:11.3f}{line['ratio']:8.1f}"
        )
    return {"lines": found}


def verdicts(results: dict[str, Any], quick: bool) -> list[str]:
    """Hold the figures against what was promised; small sizes promise nothing."""
    found = []

    def say(claim: str, facts: str, holds: bool) -> None:
        verdict = "not testable at this size:" if quick else "ok  " if holds else "FAIL"
        found.append(f"{verdict}  {claim}: {facts}")

    if "text" in results:
        lines = results["text"]["lines"]
        mine = lines[OURS]["accuracy"]
        behind = lines[FULL]["accuracy"] - mine
        ahead = mine - lines[f"{SPARSE} + LinearSVC"]["accuracy"]
        say("text, at most 3 points below all columns", f"{100 * behind:.1f}", behind <= 0.03)
        plain = lines[FULL]["accuracy"] - lines["ReducedClassifier"]["accuracy"]
        say("text, the same of plain NOR", f"{100 * plain:.1f}", plain <= 0.03)
        say("text, 5 points above the random projection", f"{100 * ahead:.1f}", ahead >= 0.05)
        ratio = lines[OURS]["speed_of_svd"]
        say("text, 3 times as fast as TruncatedSVD", f"{ratio:.1f}", ratio >= 3)
    if "wide" in results:
        mine = [line for line in results["wide"]["lines"] if line["method"] == WIDE_OURS]
        last = mine[-1]
        say("wide, under 4 GB", f"{last['peak_gb']:.2f} GB", last["peak_gb"] < 4)
        growth = last["seconds"] / mine[0]["seconds"]
        entries = last["nnz"] / mine[0]["nnz"]
        facts = f"{growth:.1f} times the time for {entries:.1f} times the entries"
        say("wide, time linear in the entries", facts, growth <= 1.3 * entries)
        error = last["prediction_error"]
        say("wide, predictions equal to rounding", f"{error:.1e}", error < 1e-9)
    if "solver" in results:
        worst = min(line["ratio"] for line in results["solver"]["lines"])
        say("solver at least as fast as liblinear", f"least ratio {worst:.2f}", worst >= 1)
    return found


if __name__ == "__main__":
    main()
