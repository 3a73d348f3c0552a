"""Kernel PCA and kernel CCA beside their peers as rows grow: time, peak of memory and quality.

Every fit runs in a fork of its own on one core; CPU time, medians of interleaved repeats.
See benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.lib.threads import one_thread

from benchmarks.lib.timing import machine
from benchmarks.speed.kernel_components.child import CCA_BANDWIDTH, PCA_BANDWIDTH, alone, warm_up
from benchmarks.speed.kernel_components.methods import (
    CCA_COLUMNS,
    CCA_COMPONENTS,
    CCA_METHODS,
    CCA_RANDOM,
    CCA_RIDGE,
    DENSE,
    GB,
    N_COLUMNS,
    N_COMPONENTS,
    N_LANDMARKS,
    N_RANDOM,
    PCA_METHODS,
    STREAMED,
    Method,
)

SIZES = {"pca": (2000, 8000, 32_000, 128_000, 1_000_000), "cca": (1000, 4000, 16_000, 100_000)}
QUICK_SIZES = {"pca": (2500,), "cca": (500,)}
OURS = {"pca": "StreamingKernelPCA", "cca": "StreamingKernelCCA"}
METHODS = {"pca": PCA_METHODS, "cca": CCA_METHODS}
# With so many rows dense kernel PCA is the reference of the angles.
REFERENCE_ROWS = 8000
ACCEPTED_ROWS, ACCEPTED_MB = 1_000_000, 1000.0


def main() -> None:
    options = parse()
    begun = time.perf_counter()
    with one_thread():
        facts = machine()
        compare(facts, options)
    print(f"{time.perf_counter() - begun:.0f} s in all")


def compare(facts: dict[str, str], options: argparse.Namespace) -> None:
    print("\n".join(f"{name:15}{value}" for name, value in facts.items()))
    print(
        f"Rows in float32. x ours: CPU time over that of our default, median and range; extra: "
        f"peak of resident\nmemory above what was there with the rows; peak: all of it.\n"
        f"pca: {N_COLUMNS} columns, {N_COMPONENTS} components, bandwidth {PCA_BANDWIDTH}, "
        f"{N_RANDOM} random features, {N_LANDMARKS} landmarks. kept: variance\ncaptured on 2,000 "
        "held-out rows over the most possible; sin^2: of the largest angle to dense kernel PCA\n"
        f"of the same rows. cca: {CCA_COLUMNS} columns a view, {CCA_COMPONENTS} components, "
        f"bandwidth {CCA_BANDWIDTH}, {CCA_RANDOM} features, ridge {CCA_RIDGE:g};\ntotal: sum of "
        "correlations on held-out rows."
    )
    if "cca-zoo KCCA" not in CCA_METHODS:
        print("cca-zoo is not installed: dense kernel CCA in numpy stands in for it")
    results = {}
    for part in options.parts:
        warm_up(list(METHODS[part]))
        results[part] = {str(n): run(part, n, options) for n in options.sizes[part]}
    print("\nwhere our default, as a user gets it, is slower")
    for part, by_size in results.items():
        for n, lines in by_size.items():
            print(f"  {part} {n:>8}  {losses(part, lines)}")
    if "pca" in results:
        print("\n".join(acceptance(results["pca"])))
    if options.json:
        Path(options.json).write_text(json.dumps({"machine": facts, "results": results}, indent=1))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few rows, under 30 s")
    parser.add_argument("--parts", help="some of pca,cca")
    parser.add_argument("--rows", help="for example 2000,1000000; for all parts")
    parser.add_argument("--methods", help="only methods that contain one of these words")
    parser.add_argument("--repeats", type=int, help="3, or 1 if quick")
    parser.add_argument("--patience", type=float, default=20.0, help="seconds; do not repeat above")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds; skip what needs more")
    parser.add_argument("--gigabytes", type=float, default=6.0, help="skip what needs more")
    parser.add_argument("--json", metavar="FILE", help="write the figures there as well")
    options = parser.parse_args()
    options.parts = options.parts.split(",") if options.parts else list(SIZES)
    if unknown := set(options.parts) - set(SIZES):
        parser.error(f"no part {', '.join(sorted(unknown))}; there are {', '.join(SIZES)}")
    options.sizes = dict(QUICK_SIZES if options.quick else SIZES)
    if options.rows:
        options.sizes = dict.fromkeys(SIZES, tuple(map(int, options.rows.split(","))))
    options.repeats = options.repeats or (1 if options.quick else 3)
    return options


def run(part: str, n_rows: int, options: argparse.Namespace) -> dict[str, Any]:
    """Measure every method with so many rows, and print the table."""
    lines: dict[str, Any] = {}
    words = options.methods.split(",") if options.methods else [""]
    chosen = {
        name: method
        for name, method in METHODS[part].items()
        if any(word in name for word in words)
    }
    for name, method in chosen.items():
        reason = too_much(method, n_rows, options)
        lines[name] = {"skipped": reason, "seconds": []}
    for number in range(options.repeats):
        for name, line in lines.items():
            if line["skipped"] or (number and line["seconds"][0] > options.patience):
                continue
            first = number == 0
            found = alone(name, n_rows, with_reference=first and n_rows <= REFERENCE_ROWS)
            line["seconds"].append(found.pop("seconds"))
            print(f"  {name.strip()} with {n_rows} rows done", file=sys.stderr, flush=True)
            if first:
                line.update(found)
    print(f"\n{part}, {n_rows} rows\n{table(part, lines)}", flush=True)
    return lines


def too_much(method: Method, n_rows: int, options: argparse.Namespace) -> str:
    """Say why a method is not run with so many rows; nothing if it is."""
    if (size := method.n_bytes(n_rows) / GB) > options.gigabytes:
        return f"would hold about {size:,.0f} GB"
    if (seconds := method.n_seconds(n_rows)) > options.limit:
        return f"would take about {seconds:,.0f} s"
    return ""


def table(part: str, lines: dict[str, Any]) -> str:
    quality = f"{'kept':>10}{'sin^2':>10}" if part == "pca" else f"{'total':>10}"
    head = f"{'method':29}{'seconds':>9}{'x ours':>24}{'extra':>10}{'peak':>10}{quality}{'runs':>6}"
    ours = lines.get(OURS[part], {}).get("seconds")
    return "\n".join(
        [head, "-" * len(head), *(_row(part, name, line, ours) for name, line in lines.items())]
    )


def _row(part: str, name: str, line: dict[str, Any], ours: list[float] | None) -> str:
    if line["skipped"]:
        return f"{name:29}  skipped: {line['skipped']}"
    times, span = line["seconds"], "-"
    if ours:
        ratios = [mine / other for mine, other in zip(times, ours, strict=False)]
        span = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
    extra = line["peak_mb"] - line["before_mb"]
    if part == "pca":
        sine = f"{line['sine_squared']:.1e}" if "sine_squared" in line else "-"
        quality = f"{line['kept']:10.5f}{sine:>10}"
    else:
        quality = f"{line['total']:10.3f}"
    return (
        f"{name:29}{statistics.median(times):9.2f}{span:>24}{extra:7.0f} MB"
        f"{line['peak_mb']:7.0f} MB{quality}{len(times):6d}"
    )


def losses(part: str, lines: dict[str, Any]) -> str:
    """Return the peers that are faster than our default, and by how much."""
    times = {name: statistics.median(x["seconds"]) for name, x in lines.items() if x["seconds"]}
    mine = times.get(OURS[part])
    if mine is None:
        return "not run"
    # Our own variants begin with a space.
    faster = {name: s for name, s in times.items() if s < mine and not name.startswith(" ")}
    return ", ".join(f"than {name} {mine / s:.2f}x" for name, s in faster.items()) or "nowhere"


def acceptance(results: dict[str, Any]) -> list[str]:
    """Return what the project asks of a million rows, and whether it is so."""
    asked = f"\nacceptance: {ACCEPTED_ROWS} x {N_COLUMNS} rows in less than {ACCEPTED_MB:.0f} MB"
    lines = results.get(str(ACCEPTED_ROWS))
    if lines is None:
        return [f"{asked}: not run"]
    said = [asked]
    for name in (OURS["pca"], STREAMED):
        if lines.get(name, {}).get("seconds"):
            peak = lines[name]["peak_mb"]
            verdict = "holds" if peak < ACCEPTED_MB else "does not hold"
            said.append(f"  {name.strip():28}{peak:.0f} MB: {verdict}")
    matrix = 4.0 * ACCEPTED_ROWS**2 / 1e12
    said.append(
        f"  {DENSE.split()[0]:28}the kernel matrix alone has {matrix:.0f} TB in float32, "
        f"{2 * matrix:.0f} TB in float64"
    )
    return said


if __name__ == "__main__":
    main()
