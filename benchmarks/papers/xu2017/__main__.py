"""Learning on few coordinates: the experiments of Xu et al. (2017), section 5.

The three synthetic sets with every operator and method, beside reference figures; and real rows
over many sizes, with the time split into reduction and optimisation. Every claim is held against
the figures by code. See benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict
from pathlib import Path

from benchmarks.lib.threads import one_thread

from benchmarks.lib.runs import RESULTS
from benchmarks.lib.timing import machine
from benchmarks.papers.xu2017.data import FILES, missing, real, synthetic
from benchmarks.papers.xu2017.methods import (
    Leads,
    Record,
    leads_by_sampling,
    measured,
    on_real,
    on_synthetic,
)
from benchmarks.papers.xu2017.tables import Figures, bars, claims, draw, draws_claims, table
from sksketch import ReducedClassifier

ALPHAS = (1e-3, 1e-4)
REAL_ALPHA = 1e-4
SIZES = (50, 100, 200, 500, 1000)
# Rows and columns of the synthetic sets, and coordinates.
FULL_SIZE, QUICK = (100_000, 1_000, 100), (4_000, 120, 20)


def main() -> None:
    options = parse()
    begun = time.perf_counter()
    options.output.mkdir(parents=True, exist_ok=True)
    everything: dict[str, object] = {}
    with one_thread():
        everything["machine"] = facts = machine()
        print("\n".join(f"{name:15}{value}" for name, value in facts.items()))
        if "synthetic" in options.data:
            records = run_synthetic(options)
            n_test = (QUICK if options.quick else FULL_SIZE)[0] // 10
            found = claims(Figures(records), n_test=n_test, full_size=not options.quick)
            found += draws_claims(run_draws(options))
            print("\nclaims on the synthetic sets")
            for claim, verdict in found:
                print(f"{claim}\n    {verdict}")
            everything["claims"] = [{"claim": c, "verdict": v} for c, v in found]
            everything["synthetic"] = [asdict(record) for record in records]
            print(f"wrote {bars(Figures(records), options.output).name}")
        if names := [name for name in options.data if name in FILES]:
            everything["real"] = [asdict(r) for r in run_real(names, options)]
    (options.output / "xu2017.json").write_text(json.dumps(everything, indent=1))
    print(f"{time.perf_counter() - begun:.0f} s in all")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, no stored data")
    parser.add_argument("--data", help=f"some of synthetic,{','.join(FILES)}")
    parser.add_argument("--sizes", help="coordinates for real rows, for example 50,500")
    parser.add_argument("--draws", type=int, help="of every operator on synthetic rows (3)")
    parser.add_argument("--output", type=Path, help="folder of pictures and JSON")
    options = parser.parse_args()
    options.output = options.output or (RESULTS / "quick" if options.quick else RESULTS)
    standard = ["synthetic"] if options.quick else ["synthetic", *FILES]
    options.data = options.data.split(",") if options.data else standard
    if unknown := set(options.data) - {"synthetic", *FILES}:
        parser.error(
            f"no data {', '.join(sorted(unknown))}; there are synthetic, {', '.join(FILES)}"
        )
    options.draws = options.draws or (1 if options.quick else 3)
    options.sizes = tuple(map(int, options.sizes.split(","))) if options.sizes else SIZES
    return options


def run_synthetic(options: argparse.Namespace) -> list[Record]:
    """Run all methods on the three sets; print a table for each."""
    n_rows, n_features, size = QUICK if options.quick else FULL_SIZE
    print(
        f"{n_rows} rows of {n_features} columns and ten of noise, seed 0; {size} coordinates, "
        f"means over {options.draws} draws of every operator"
    )
    records: list[Record] = []
    problems = synthetic(n_rows, n_features, seed=0)
    # The first use compiles the loops or loads them.
    warm = synthetic(100, 20, seed=1)[0]
    measured(warm, ReducedClassifier(5), "warm-up")
    for problem in problems:
        for alpha in ALPHAS:
            new = list(on_synthetic(problem, alpha, size, options.draws))
            print(f"\n{problem.name}, lambda {alpha:g}")
            print(table(new), flush=True)
            records += new
    return records


def run_draws(options: argparse.Namespace) -> list[Leads]:
    """Compare NOR and RP on many draws of exp-1: one draw decides between the two by chance."""
    n_rows, n_features, size = QUICK if options.quick else FULL_SIZE
    leads = []
    for seed in range(1, 1 + (3 if options.quick else 8)):
        (problem,) = synthetic(n_rows, n_features, seed, ("exp-1",))
        leads.append(leads_by_sampling(problem, ALPHAS, size, seed))
    return leads


def run_real(names: list[str], options: argparse.Namespace) -> list[Record]:
    """Run the methods on real rows; print a table for each set and draw all of them."""
    records: list[Record] = []
    for name in names:
        if reason := missing(name):
            print(f"\n{name} skipped: {reason}")
            continue
        problem = real(name)
        new = list(on_real(problem, options.sizes, REAL_ALPHA))
        n_rows, n_features = problem.X.shape
        print(f"\n{name}: {n_rows} rows of {n_features} columns, hinge, lambda {REAL_ALPHA:g}")
        print(table(new), flush=True)
        records += new
    if records:
        print(f"wrote {draw(Figures(records), options.output, 'xu2017_real.png').name}")
    return records


if __name__ == "__main__":
    main()
