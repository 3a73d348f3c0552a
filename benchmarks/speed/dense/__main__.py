"""Rows per second and error of the dense sketches beside their peers, in one run.

One BLAS thread. Methods are interleaved inside each repeat, on the same rows in memory, and
timed in CPU seconds; the table shows medians. See benchmarks/README.md for how to read it.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.lib.threads import one_thread

import numpy as np

from benchmarks.lib.timing import (
    Line,
    aligned,
    cpu_seconds,
    gemm_rate,
    gemm_seconds,
    machine,
    table,
)
from benchmarks.speed.dense.errors import Truth
from benchmarks.speed.dense.methods import Method, best_batch, methods, sketch_size
from sksketch import datasets

ROWS = {256: 40_000, 500: 40_000, 1000: 24_000, 4096: 24_000, 20_000: 4_000}
CASES = [(256, 32), (500, 32), (1000, 64), (4096, 128), (20_000, 100)]
STREAMS = ("stationary", "drifting", "low_rank_plus_noise")
DTYPES = ("float64", "float32")
GOOD = "IncrementalPCA good"

# Runs of what takes longer than one's patience; what takes eight times as long runs once.
SLOW_RUNS = 3

# From these columns on a run that was not told otherwise takes less, to end in reasonable time.
LARGE, HUGE = 4096, 20_000

# Least ratio to IncrementalPCA that is asked of (StreamingPCA, its exact solver).
TARGETS = {(1000, 64): (6.0, 3.5), (4096, 128): (10.0, 5.0)}
SLOWEST_AGAINST_EIGH = 1.5


@dataclass(frozen=True)
class Setting:
    """One table: a size, a stream and a precision."""

    d: int
    k: int
    n_rows: int
    stream: str
    dtype: str

    def rows(self) -> np.ndarray:
        options = {"rank": self.k // 2} if self.stream == "low_rank_plus_noise" else {}
        source = getattr(datasets, self.stream)(self.n_rows, self.d, dtype=self.dtype, **options)
        return aligned(source.rows(0, self.n_rows))

    def __str__(self) -> str:
        what = self.stream + (f" (rank {self.k // 2})" if "rank" in self.stream else "")
        return f"d={self.d}, {self.k} components, {what}, {self.dtype}, {self.n_rows} rows"


def main() -> None:
    options = parse()
    begun = time.perf_counter()
    with one_thread():
        facts = machine()
        print("\n".join(f"{name:15}{value}" for name, value in facts.items()))
        print(
            "cov error: ||C - answer||_2 / ||A||_F^2 of the centered rows A; certificate: the\n"
            "bound on it that the method itself gives; proj: energy missed by so many components\n"
            "over the least possible. GEMM: 4 d k flops a row at the rate of a matrix product."
        )
        results = []
        for d, k in options.cases:
            n_rows = options.rows or ROWS.get(d, max(2000, 40_000_000 // d))
            for dtype in options.dtypes or DTYPES:
                batches: tuple[int, str] | None = None
                for stream in options.streams or default_streams(d, dtype):
                    setting = Setting(d, k, n_rows, stream, dtype)
                    X = setting.rows()
                    batches = batches or best_batch(X, k)
                    results.append(run(setting, X, batches, options))
    summary = [line for result in results for line in acceptance(result)]
    print("\nacceptance (the targets are for float64)", *summary, sep="\n")
    print(f"{time.perf_counter() - begun:.0f} s in all")
    if options.json:
        Path(options.json).write_text(json.dumps({"machine": facts, "results": results}, indent=1))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, under 40 s")
    parser.add_argument("--cases", nargs="+", type=case, metavar="d,k", help="columns, components")
    parser.add_argument("--streams", nargs="+", choices=STREAMS)
    parser.add_argument("--dtypes", nargs="+", choices=DTYPES)
    parser.add_argument("--rows", type=int, help="rows of every case")
    parser.add_argument("--repeats", type=int)
    parser.add_argument("--patience", type=float, default=4.0, help="seconds; thrice above")
    parser.add_argument("--limit", type=float, default=25.0, help="seconds; skip what needs more")
    parser.add_argument("--json", metavar="FILE", help="write the figures there as well")
    options = parser.parse_args()
    quick = options.quick
    options.cases = options.cases or ([(256, 32), (600, 20)] if quick else CASES)
    options.repeats = options.repeats or (1 if quick else 7)
    options.rows = options.rows or (4000 if quick else None)
    return options


def default_streams(d: int, dtype: str) -> tuple[str, ...]:
    """Return the streams of a size: all, or one where a single fit takes most of a minute."""
    few = d >= HUGE or (d >= LARGE and dtype == "float32")
    return STREAMS[:1] if few else STREAMS


def case(text: str) -> tuple[int, int]:
    d, k = (int(part) for part in text.split(","))
    return d, k


def run(
    setting: Setting, X: np.ndarray, batches: tuple[int, str], options: argparse.Namespace
) -> dict[str, Any]:
    """Time and measure every method on one data set, print the table and return the figures."""
    d, k = setting.d, setting.k
    batch, chosen = batches
    print(f"\n{setting}; sketch size {sketch_size(k)}\nIncrementalPCA good: {chosen}")
    peak = gemm_rate([gemm_seconds(X.dtype)])
    todo = {method.name: method for method in methods(len(X), d, k, batch)}
    lines = {name: Line(name, len(X)) for name in todo}
    for name, method in todo.items():
        if method.flops / peak > options.limit:
            lines[name].skipped = f"about {method.flops / peak:.0f} s, limit {options.limit:.0f} s"
    active = {name: method for name, method in todo.items() if not lines[name].skipped}
    answers, gemm = timed(active, lines, X, options)
    truth = Truth(X, (k // 2, k))
    for name, answer in answers.items():
        line = lines[name]
        line.covariance_error = truth.covariance_error(answer.summary)
        line.certificate = answer.certificate
        half, full = (truth.projection_error(answer.components, rank) for rank in (k // 2, k))
        line.projection_errors = (half, full)
    peak_rows = gemm_rate(gemm) / (4.0 * d * k)
    print(table(list(lines.values()), k, lines[GOOD].rate, peak_rows), flush=True)
    print(f"matrix product {gemm_rate(gemm) / 1e9:.1f} GF/s in these repeats")
    return asdict(setting) | {
        "batch": batch,
        "gemm_rate": gemm_rate(gemm),
        "lines": {name: asdict(line) | {"rate": line.rate} for name, line in lines.items()},
    }


def timed(
    active: dict[str, Method], lines: dict[str, Line], X: np.ndarray, options: argparse.Namespace
) -> tuple[dict[str, Any], list[float]]:
    """Run the methods in turn, again and again; return their answers and the product's times."""
    centered = aligned(X - X.mean(axis=0, dtype=np.float64).astype(X.dtype))
    answers: dict[str, Any] = {}
    gemm = []
    for _ in range(options.repeats):
        gemm.append(gemm_seconds(X.dtype))
        for name, method in active.items():
            line = lines[name]
            if line.seconds and len(line.seconds) >= most_runs(line.seconds[0], options.patience):
                continue
            seconds, fitted = cpu_seconds(
                lambda method=method: _read(method.fit(centered if method.centered else X))
            )
            line.seconds.append(seconds)
            if name not in answers:
                answers[name] = method.read(fitted)
    return answers, gemm


def most_runs(seconds: float, patience: float) -> float:
    """Return how often a method that took so long the first time is run at most."""
    if seconds > 8 * patience:
        return 1
    return SLOW_RUNS if seconds > patience else math.inf


def _read(fitted: Any) -> Any:
    fitted.components_  # noqa: B018  (lazy read-outs are part of the time)
    return fitted


def acceptance(result: dict[str, Any]) -> list[str]:
    """Return a line for each figure that the default is held to, where this result has it.

    Only in float64: of float32 rows the peers keep their sums in float32, we keep them in float64.
    """
    if result["dtype"] != "float64":
        return []
    lines = result["lines"]
    ours, exact, ipca = lines["StreamingPCA"], lines["  solver=exact"], lines[GOOD]
    where = f"d={result['d']}/{result['k']} {result['stream']} {result['dtype']}"
    checks = []
    if targets := TARGETS.get((result["d"], result["k"])):
        for name, line, least in zip(("default", "exact"), (ours, exact), targets, strict=True):
            ratio = line["rate"] / ipca["rate"]
            checks.append((f"{name} {ratio:.1f} x IPCA, at least {least:g}", ratio >= least))
        error, other = ours["covariance_error"], ipca["covariance_error"]
        checks.append((f"cov error {error:.2e}, IPCA {other:.2e}", error <= other))
        for mine, theirs in zip(ours["projection_errors"], ipca["projection_errors"], strict=True):
            checks.append((f"proj {mine:.6f}, IPCA {theirs:.6f}", mine <= theirs + 1e-6))
        if result["stream"] != "drifting":
            mine, theirs = ours["certificate"], exact["certificate"]
            checks.append((f"certificate {mine:.2e}, exact {theirs:.2e}", mine <= theirs))
    if result["d"] == 500:
        eigh = lines["PCA covariance_eigh"]["rate"] / ours["rate"]
        wanted = f"at most {SLOWEST_AGAINST_EIGH:g}"
        checks.append((f"{eigh:.2f} x time of eigh, {wanted}", eigh <= SLOWEST_AGAINST_EIGH))
    return [f"{'ok  ' if passed else 'FAIL'}  {where:42}{text}" for text, passed in checks]


if __name__ == "__main__":
    main()
