"""Speed, error and memory of the sparse sketches beside their peers, in one run.

One BLAS thread, CPU time, medians of interleaved repeats. A first run of every method in a fork
of the process that holds the rows gives its peak of memory. See benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import time
from dataclasses import asdict
from pathlib import Path

from benchmarks.lib.threads import one_thread

import numpy as np

from benchmarks.lib.timing import cpu_seconds, gemm_rate, gemm_seconds, machine
from benchmarks.speed.sparse_rows.data import CASES, QUICK_CASES, Case, synthetic
from benchmarks.speed.sparse_rows.growth import growth
from benchmarks.speed.sparse_rows.methods import (
    EXPERIMENT,
    FD_GRAM,
    FD_SVD,
    OURS,
    OURS_PLAIN,
    OURS_SPARSE,
    PRINTED,
    RANDOMIZED,
    TUNED,
    Line,
    answer_of,
    forked,
    methods,
)
from benchmarks.speed.sparse_rows.million import million
from benchmarks.speed.sparse_rows.truth import SparseTruth

RANK = 10
# What the paper says of its SFD against FD, by case.
CLAIMS = {"default": "1.5 to 2x", "sparse": "10x or more", "dense": "slower", "news": "faster"}
# Least ratios of speed that are asked of FrequentDirections: (method, least, better).
TARGETS = {
    "news": [(TUNED, 5.0, 8.0), (RANDOMIZED, 15.0, 25.0)],
    "default": [(TUNED, 1.5, 1.5)],
}


def main() -> None:
    options = parse()
    begun = time.perf_counter()
    with one_thread():
        facts = machine()
        print("\n".join(f"{name:15}{value}" for name, value in facts.items()))
        first_calls()
        print(
            "l: rows that every sketch keeps (l + 1 in the paper's count). x SFD, x TSVD: speed\n"
            f"over that of '{TUNED}' and '{RANDOMIZED}'. cov error:\n"
            "||A'A - answer||_2 / ||A||_F^2; no ridge: the same for B'B alone; certificate:\n"
            f"the bound that the method gives; proj {RANK}: energy missed by {RANK} components\n"
            "over the least possible; peak: memory beyond the rows."
        )
        results = {}
        for name in options.cases:
            if name in options.matrices:
                results[name] = run(name, options.matrices[name], options)
        if "growth" in options.cases:
            growth(options.quick)
        if "million" in options.cases:
            million(options.quick)
    lines = [line for name, result in results.items() for line in (result and held(name, result))]
    if lines:
        print("\nclaims and targets", *lines, sep="\n")
    print(f"{time.perf_counter() - begun:.0f} s in all")
    if options.json:
        figures = {
            name: {method: asdict(line) | {"time": line.time} for method, line in result.items()}
            for name, result in results.items()
        }
        Path(options.json).write_text(json.dumps({"machine": facts, "results": figures}, indent=1))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, under 20 s, no data")
    known = [*CASES, "growth", "million"]
    parser.add_argument("--cases", help=f"some of {','.join(known)}")
    parser.add_argument("--repeats", type=int)
    parser.add_argument("--patience", type=float, default=6.0, help="seconds; do not repeat above")
    parser.add_argument("--limit", type=float, default=50.0, help="seconds; skip what needs more")
    parser.add_argument("--json", metavar="FILE", help="write the figures there as well")
    options = parser.parse_args()
    options.matrices = QUICK_CASES if options.quick else CASES
    known = [*options.matrices, "growth", "million"]
    options.cases = options.cases.split(",") if options.cases else known
    if unknown := set(options.cases) - set(known):
        parser.error(f"no case {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    if options.repeats is None:
        options.repeats = 0 if options.quick else 5
    return options


def first_calls() -> None:
    """Print what the first use in a process costs, and fit every method once, on few rows."""
    X = synthetic(n=300, d=200, nnz=10).make()
    for name, method in methods(X, 5).items():
        if method.missing:
            continue
        first, _ = cpu_seconds(lambda method=method: answer_of(method.fit(X)))
        again, _ = cpu_seconds(lambda method=method: answer_of(method.fit(X)))
        if name in (OURS, OURS_SPARSE):
            print(
                f"first use of {name}: {first:.2f} s, then {1e3 * again:.1f} ms "
                "(kernels are loaded, or compiled and saved)"
            )


def run(name: str, case: Case, options: argparse.Namespace) -> dict[str, Line]:
    """Time and measure every method on one matrix, print the table and return the lines."""
    if reason := case.missing():
        print(f"\n{name}: {case.title}\n  skipped: {reason}")
        return {}
    X = case.make()
    n, d = X.shape
    print(f"\n{name}: {case.title}; {n} x {d}, {X.nnz} non-zeros ({X.nnz / n / d:.2%})")
    todo = methods(X, case.sketch_size)
    lines = {method: Line(skipped=todo[method].missing) for method in todo}
    peak = gemm_rate([gemm_seconds(np.dtype(np.float64))])
    for method, line in lines.items():
        if (estimate := todo[method].flops / peak) > options.limit and not line.skipped:
            line.skipped = f"about {estimate:.0f} s, limit {options.limit:.0f} s"
    gc.collect()
    answers, repeated = {}, {}
    for method, line in lines.items():
        if not line.skipped:
            found = forked(todo[method], X, with_answer=True)
            answers[method], line.peak_mb = found.answer, found.peak_mb
            line.seconds.append(found.seconds)
            if found.seconds <= options.patience and options.repeats:
                # A fork copies every page it touches, so only what takes long is timed there.
                repeated[method] = line.seconds = []
    for _ in range(options.repeats):
        for method, times in repeated.items():
            seconds, _ = cpu_seconds(lambda fit=todo[method].fit: answer_of(fit(X)))
            times.append(seconds)
    truth = SparseTruth(X, RANK)
    for method, (summary, bound) in answers.items():
        line = lines[method]
        line.covariance_error = line.without_ridge = truth.covariance_error(summary)
        if summary.ridge:
            line.without_ridge = truth.covariance_error(summary.with_ridge(0.0))
        line.certificate = bound / truth.total
        line.projection_error = truth.projection_error(summary.components)
    print(table(lines), flush=True)
    return lines


def table(lines: dict[str, Line]) -> str:
    head = (
        f"{'method':25}{'seconds':>9}{'x SFD':>8}{'x TSVD':>8}{'cov error':>11}{'no ridge':>11}"
        f"{'certificate':>13}{f'proj {RANK}':>10}{'peak MB':>9}{'runs':>6}"
    )
    return "\n".join([head, "-" * len(head), *(_row(x, line, lines) for x, line in lines.items())])


def _row(method: str, line: Line, lines: dict[str, Line]) -> str:
    if line.skipped:
        return f"{method:25}  skipped: {line.skipped}"
    certificate = "-" if math.isnan(line.certificate) else f"{line.certificate:.2e}"
    ratios = "".join(f"{lines[peer].time / line.time:8.2f}" for peer in (TUNED, RANDOMIZED))
    return (
        f"{method:25}{line.time:9.3f}{ratios}{line.covariance_error:11.2e}"
        f"{line.without_ridge:11.2e}{certificate:>13}{line.projection_error:10.5f}"
        f"{line.peak_mb:9.1f}{len(line.seconds):6d}"
    )


def held(name: str, lines: dict[str, Line]) -> list[str]:
    """Return what the paper claims beside what was measured, and each figure asked of ours."""
    found = []
    ours = lines[OURS]

    def times(fast: str, slow: str) -> str:
        ratio = lines[slow].time / lines[fast].time
        return "not run" if math.isnan(ratio) else f"{ratio:.2f}x"

    if claim := CLAIMS.get(name):
        found.append(f"      {name:9}the paper: SFD is {claim} against FD. Measured:")
        for method in (EXPERIMENT, TUNED, OURS_PLAIN, OURS_SPARSE, OURS):
            against = ", ".join(f"{times(method, fd)} {fd}" for fd in (FD_SVD, FD_GRAM))
            found.append(f"      {'':9}  {method.strip():26}{against}")
    printed = ", ".join(
        f"{method.removeprefix('SFD paper ')} {times(OURS, method)}"
        for method in lines
        if method.startswith("SFD paper")
    )
    found.append(f"      {name:9}{OURS} against the paper's SFD on scipy: {printed}")
    checks = []
    for method, least, better in TARGETS.get(name, []):
        ratio = lines[method].time / ours.time
        reached = f"{times(OURS, method)} {method}, at least {least:g} (better {better:g})"
        checks.append((reached, ratio >= least))
    if name in TARGETS:
        for fd in (FD_SVD, FD_GRAM, PRINTED):
            if lines[fd].skipped:
                continue
            error = lines[fd].covariance_error
            text = f"cov error {ours.covariance_error:.2e} (B'B {ours.without_ridge:.2e}), "
            checks.append((text + f"{fd} {error:.2e}", ours.without_ridge <= error))
    return found + [f"{'ok  ' if ok else 'FAIL'}  {name:9}{text}" for text, ok in checks]


if __name__ == "__main__":
    main()
