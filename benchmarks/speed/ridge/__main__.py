"""Speed and accuracy of streaming ridge regression beside its peers, in one run.

One BLAS thread, CPU time, medians of interleaved repeats; the clock stops when the coefficients
have been read. See benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.lib.threads import one_thread

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import Ridge, RidgeCV

from benchmarks.lib.timing import copy_rate, cpu_seconds, gemm_rate, gemm_seconds, machine
from benchmarks.speed.ridge.data import CASES, QUICK_CASES, Case, Rows, exact, r2
from benchmarks.speed.ridge.methods import (
    AUTO,
    CHOLESKY,
    LSQR,
    OURS,
    SKETCH_SIZE,
    Line,
    gradients,
    methods,
    streamed,
)

N_ALPHAS = 20
# Flops of a matrix product in the time of RidgeCV, for each row and square of the columns.
SVD_COST = 70.0
PATH_PEERS = ("Ridge, 20 fits", "RidgeCV")


def main() -> None:
    options = parse()
    begun = time.perf_counter()
    with one_thread():
        facts = machine()
        print("\n".join(f"{name:15}{value}" for name, value in facts.items()))
        print(
            "x peer: speed over that of the reference, median and range of the repeats; error:\n"
            "|x_hat - x| / |x| against the exact coefficients; certificate: the bound on it that\n"
            "the method gives; R2: on rows that no method has seen. No intercepts. The first step\n"
            "of the stochastic gradients is the one of best R2, and the search is not timed."
        )
        results = {name: run(name, options.known[name], options) for name in options.cases}
    print("\nwhere StreamingRidge, as a user gets it, loses")
    for name, found in results.items():
        for text in losses(found):
            print(f"  {name:8}{text}")
    print(f"{time.perf_counter() - begun:.0f} s in all")
    if options.json:
        Path(options.json).write_text(json.dumps({"machine": facts, "results": results}, indent=1))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, under 15 s")
    parser.add_argument("--cases", help=f"some of {','.join(CASES)}")
    parser.add_argument("--repeats", type=int)
    parser.add_argument("--patience", type=float, default=6.0, help="seconds; do not repeat above")
    parser.add_argument("--limit", type=float, help="seconds; skip what needs more (40)")
    parser.add_argument("--json", metavar="FILE", help="write the figures there as well")
    options = parser.parse_args()
    options.known = QUICK_CASES if options.quick else CASES
    options.cases = options.cases.split(",") if options.cases else list(options.known)
    if unknown := set(options.cases) - set(options.known):
        parser.error(f"no case {', '.join(unknown)}; there are {', '.join(options.known)}")
    options.limit = options.limit or (3.0 if options.quick else 40.0)
    options.repeats = options.repeats or (1 if options.quick else 5)
    return options


def run(name: str, case: Case, options: argparse.Namespace) -> dict[str, Any]:
    """Time and measure every method on one data set, and print the table."""
    rows = case.make()
    n, d = rows.X.shape
    peak = gemm_rate([gemm_seconds(np.dtype(np.float64))])
    print(f"\n{name}: {case.title}, alpha {rows.alpha:g}\n{limits(rows, peak)}")
    truth = exact(rows)
    steps = {name: best_step(rows, *search) for name, search in gradients(rows.X).items()}
    todo = methods(rows.X, rows.y, rows.alpha, steps)
    lines = {method: Line(skipped=todo[method].missing) for method in todo}
    repeated = []
    for method, line in lines.items():
        estimate = todo[method].flops / peak
        if estimate > options.limit and not line.skipped:
            line.skipped = f"about {estimate:.0f} s, limit {options.limit:.0f} s"
        if line.skipped:
            continue
        seconds, (coefficients, line.certificate) = cpu_seconds(todo[method].fit)
        error = np.linalg.norm(coefficients - truth) / np.linalg.norm(truth)
        line.coefficient_error, line.r2 = float(error), r2(rows, coefficients)
        line.seconds.append(seconds)
        if seconds <= options.patience:
            # The first fit also loads or compiles kernels.
            line.seconds.clear()
            repeated.append(method)
    for _ in range(options.repeats):
        for method in repeated:
            lines[method].seconds.append(cpu_seconds(todo[method].fit)[0])
    reference = LSQR if lines[CHOLESKY].skipped else CHOLESKY
    print(table(lines, n, reference))
    print(f"exact: R2 {r2(rows, truth):.4f}")
    paths = path_times(rows, lines, options, peak)
    shown = ", ".join(f"{who} {seconds:.3f} s" for who, seconds in paths.items())
    left_out = [who for who in PATH_PEERS if who not in paths]
    over = f"; over the limit: {', '.join(left_out)}" if left_out else ""
    print(f"{N_ALPHAS} penalties, rows included: {shown}{over}", flush=True)
    figures = {method: asdict(line) | {"time": line.time} for method, line in lines.items()}
    return {"n_rows": n, "n_features": d, "lines": figures, "paths": paths}


def limits(rows: Rows, peak: float) -> str:
    """Return the rates that the machine allows, in rows per second."""
    n, d = rows.X.shape
    bandwidth = copy_rate()
    if sp.issparse(rows.X):
        reads = bandwidth / (12.0 * rows.X.nnz / n)
        return f"limits, rows/s: reading the entries {reads:.0f}"
    sketch = peak / (4.0 * SKETCH_SIZE * d)
    return (
        f"limits, rows/s: A'A by matrix products {peak / d**2:.0f}, two products with "
        f"{SKETCH_SIZE} directions {sketch:.0f}, reading {bandwidth / (8.0 * d):.0f}"
    )


def best_step(rows: Rows, fit: Callable[..., Any], steps: tuple[float, ...]) -> float:
    """Return the first step with which a pass of stochastic gradients predicts best."""

    def score(step: float) -> float:
        try:
            return r2(rows, fit(rows.X, rows.y, rows.alpha, step)[0])
        except ValueError:
            # scikit-learn's word for steps that grow without end.
            return -math.inf

    return max(steps, key=score)


def path_times(
    rows: Rows, lines: dict[str, Line], options: argparse.Namespace, peak: float
) -> dict[str, float]:
    """Return the median time of coefficients for many penalties, interleaved."""
    X, y = rows.X, rows.y
    n, d = X.shape
    alphas = rows.alpha * np.geomspace(1e-2, 1e2, N_ALPHAS)
    solver = "lsqr" if lines[CHOLESKY].skipped else "cholesky"
    works: dict[str, Callable[[], Any]] = {
        f"{AUTO}.path": lambda: streamed(X, y, rows.alpha).path(alphas)
    }
    if N_ALPHAS * lines[LSQR if solver == "lsqr" else CHOLESKY].time <= options.limit:
        works[PATH_PEERS[0]] = lambda: [
            Ridge(alpha, fit_intercept=False, solver=solver).fit(X, y) for alpha in alphas
        ]
    # RidgeCV takes a decomposition of all rows.
    if not sp.issparse(X) and SVD_COST * n * d**2 / peak <= options.limit:
        works[PATH_PEERS[1]] = lambda: RidgeCV(alphas, fit_intercept=False).fit(X, y)
    times: dict[str, list[float]] = {who: [] for who in works}
    for _ in range(options.repeats):
        for who, work in works.items():
            if not times[who] or times[who][0] <= options.patience:
                times[who].append(cpu_seconds(work)[0])
    return {who: statistics.median(found) for who, found in times.items()}


def table(lines: dict[str, Line], n: int, reference: str) -> str:
    head = (
        f"{'method':24}{'rows/s':>10}{'x ' + reference:>28}{'error':>10}{'certificate':>13}"
        f"{'R2':>9}{'runs':>6}"
    )
    return "\n".join(
        [head, "-" * len(head), *(_row(m, line, lines[reference], n) for m, line in lines.items())]
    )


def _row(method: str, line: Line, reference: Line, n: int) -> str:
    if line.skipped:
        return f"{method:24}  skipped: {line.skipped}"
    ratios = [theirs / mine for theirs, mine in zip(reference.seconds, line.seconds, strict=False)]
    span = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
    bound = "-" if math.isnan(line.certificate) else f"{line.certificate:.2g}"
    error = "0" if line.coefficient_error < 1e-9 else f"{line.coefficient_error:.2g}"
    return (
        f"{method:24}{n / line.time:10.0f}{span:>28}{error:>10}{bound:>13}"
        f"{line.r2:9.4f}{len(line.seconds):6d}"
    )


def losses(found: dict[str, Any]) -> list[str]:
    """Return the peers that are faster, and whether they are as accurate."""
    lines, mine = found["lines"], found["lines"][AUTO]
    said = []
    for method, line in lines.items():
        if method in OURS or line["skipped"] or line["time"] >= mine["time"]:
            continue
        accurate = line["coefficient_error"] <= max(mine["coefficient_error"], 1e-6)
        how = "and at least as accurate" if accurate else "but less accurate"
        errors = f"{line['coefficient_error']:.2g} against {mine['coefficient_error']:.2g}"
        said.append(f"{method} is {mine['time'] / line['time']:.2f}x faster, {how} ({errors})")
    path = found["paths"][f"{AUTO}.path"]
    faster = {who: s for who in PATH_PEERS if (s := found["paths"].get(who, math.inf)) < path}
    said += [f"{who} is {path / s:.2f}x faster, {N_ALPHAS} penalties" for who, s in faster.items()]
    return said or ["nowhere"]


if __name__ == "__main__":
    main()
