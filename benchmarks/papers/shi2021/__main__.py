"""Ridge regression from sketches: the experiments of Shi and Phillips (2021), section 4.

Six methods of the paper, exact ridge and the "energy" read-out on its synthetic data LR and HR
and on a temperature series, at sketch sizes from 16 to 256. A method is run as users get it,
and where the paper fixes the batches also "printed": exact shrinks after every l rows. Every
claim of the paper is held against the figures by code. See benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict
from pathlib import Path

from benchmarks.lib.threads import one_thread

import numpy as np

from benchmarks.lib.runs import RESULTS
from benchmarks.lib.timing import machine
from benchmarks.papers.shi2021.claims import Claims, penalties, reference_lines, robust_line
from benchmarks.papers.shi2021.data import GRID, PAPER, QUICK, Problem, Sizes, make, missing
from benchmarks.papers.shi2021.methods import Figures, Record, measure, ridge
from benchmarks.papers.shi2021.tables import (
    draw,
    error_table,
    prediction_table,
    time_table,
    total_table,
)

DATA = ("LR", "HR", "TEMP")
SKETCH_SIZES, QUICK_SKETCH_SIZES = (16, 32, 64, 128, 256), (8, 32)
WARM_UP = Sizes(n_rows=256, n_features=64, n_test=16)
# Roundings in the exact solution, relative to its length.
ROUNDING = 1e-8


def main() -> None:
    options = parse()
    begun = time.perf_counter()
    sizes = QUICK if options.quick else PAPER
    records: list[Record] = []
    tests: dict[str, list[np.ndarray]] = {}
    skipped = {}
    with one_thread():
        facts = machine()
        print("\n".join(f"{name:15}{value}" for name, value in facts.items()))
        print(
            f"{sizes.n_rows} rows of {sizes.n_features} columns, {sizes.n_test} to test, "
            f"{options.repeats} repetitions with seeds 0, 1, ..."
        )
        print_plans(sizes.n_features, options.sketch_sizes)
        # The first use of a method also loads or compiles its kernels.
        list(measure(make("LR", WARM_UP, 0), (4,), 0))
        for name in options.data:
            if reason := missing(name):
                skipped[name] = reason
                print(f"\n{name} skipped: {reason}")
                continue
            for seed in range(options.repeats):
                problem = make(name, sizes, seed)
                scale = sizes.n_rows / PAPER.n_rows
                for label, errors in zip(problem.labels, on_grid(problem, scale), strict=True):
                    tests.setdefault(label, []).append(errors)
                records += measure(problem, options.sketch_sizes, seed)
            figures = Figures([r for r in records if r.data in problem.labels])
            print_tables(figures, sizes.n_rows)
    if records:
        figures = Figures(records)
        best = {
            label: scale * GRID[np.mean(found, axis=0).argmin()] for label, found in tests.items()
        }
        claims = conclude(figures, best, sizes.n_rows, skipped, full_size=sizes == PAPER)
        options.output.mkdir(parents=True, exist_ok=True)
        everything = {
            "machine": facts,
            "sizes": asdict(sizes),
            "seeds": list(range(options.repeats)),
            "skipped": skipped,
            "best_penalties": best,
            "claims": claims,
            "records": [asdict(record) for record in records],
        }
        (options.output / "shi2021.json").write_text(json.dumps(everything, indent=1))
        for path in draw(figures, options.output):
            print(f"wrote {path.name}")
    print(f"{time.perf_counter() - begun:.0f} s in all")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, no stored data")
    parser.add_argument("--data", help=f"some of {','.join(DATA)}")
    parser.add_argument("--sketch-sizes", help="for example 16,64")
    parser.add_argument("--repeats", type=int, help="10 as in the paper, 2 if quick")
    parser.add_argument("--output", type=Path, help="folder of pictures and JSON")
    options = parser.parse_args()
    options.output = options.output or (RESULTS / "quick" if options.quick else RESULTS)
    known = DATA[:2] if options.quick else DATA
    options.data = options.data.split(",") if options.data else list(known)
    if unknown := set(options.data) - set(DATA):
        parser.error(f"no data {', '.join(sorted(unknown))}; there are {', '.join(DATA)}")
    options.repeats = options.repeats or (2 if options.quick else 10)
    standard = QUICK_SKETCH_SIZES if options.quick else SKETCH_SIZES
    asked = options.sketch_sizes
    options.sketch_sizes = tuple(map(int, asked.split(","))) if asked else standard
    return options


def on_grid(problem: Problem, scale: float) -> np.ndarray:
    """Return test errors of exact ridge, shape (n_targets, n_penalties)."""
    return np.array([problem.test_errors(problem.exact(scale * alpha)) for alpha in GRID]).T


def print_tables(figures: Figures, n_rows: int) -> None:
    for label in figures.labels():
        print(f"\n{label}: |x_hat - x| / |x| against exact ridge, and its certificate (mean)")
        print(error_table(figures, label))
        print(f"\n{label}: mean squared error on the test rows (mean)")
        print(prediction_table(figures, label))
    label = figures.labels()[0]
    print(
        f"\n{label}: CPU seconds of training, of the coefficients after it, and of those of a "
        "second penalty\n(medians); x RR: training and coefficients of exact ridge over those"
    )
    print(time_table(figures, label))
    print(f"\n{label}: CPU seconds of training and of a query after every l rows (medians)")
    print(total_table(figures, label, n_rows), flush=True)


def print_plans(n_features: int, sketch_sizes: tuple[int, ...]) -> None:
    """Print what RFDRR holds as users get it; printed it holds twice the sketch."""
    print("RFDRR as users get it")
    for size in sketch_sizes:
        model = ridge(1.0, size, sketch="rfd").partial_fit(np.eye(2, n_features), np.zeros(2))
        print(f"  {model.sketch_.plan()}")


def conclude(
    figures: Figures,
    best: dict[str, float],
    n_rows: int,
    skipped: dict[str, str],
    *,
    full_size: bool,
) -> list[dict[str, str]]:
    """Print certificates, claims and references; return the claims with their verdicts."""
    broken = [r for r in figures.records if not r.coefficient_error <= r.certificate + ROUNDING]
    certified = sum(np.isfinite(r.certificate) for r in figures.records)
    print(
        f"\ncertificates: {certified} of {len(figures.records)} answers have one, "
        f"{len(broken)} of them are wrong"
    )
    print("\nclaims of the paper | as printed, shrinks after every l rows | as users get it")
    found = []
    by_feed = [Claims(figures, n_rows, printed=printed).lines() for printed in (True, False)]
    for (claim, printed), (_, default) in zip(*by_feed, strict=True):
        print(f"{claim}\n    printed  {printed}\n    default  {default}")
        found.append({"claim": claim, "printed": str(printed), "default": str(default)})
    scale = n_rows / PAPER.n_rows
    for claim, verdict in penalties(best, scale):
        print(f"{claim}\n    exact    {verdict}")
        found.append({"claim": claim, "exact": str(verdict)})
    never = "time linear in n, FD queries linear in d"
    print(f"{never}\n    one n and one d are run: not testable here")
    found.append({"claim": never, "verdict": "not testable here"})
    for name, reason in skipped.items():
        print(f"{name} is not part of any of these: {reason}")
    print("\nreference errors, sketch 64, seed 0, noise sd 2, at most 5% above")
    print(
        f"{'data':5}{'method':8}{'reference':>10}{'limit':>8}  {'default':>7}{'':9}{'printed':>7}"
    )
    print("\n".join(reference_lines(figures, full_size)))
    print(robust_line(figures, DATA))
    return found


if __name__ == "__main__":
    main()
