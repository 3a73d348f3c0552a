"""Online Newton learners: the experiments of Luo et al. (2019), section 6.

All learners of the paper, one pass over 70% of the rows at every initial ridge of its grid and
three sketch sizes, tested on the other rows: Tables 2 and 3 and Figures 3 to 11 on the data of
the paper that can be had and on others like them, and Figures 1 and 2, the errors of the sketches
themselves. Every claim is held against the figures by code. See benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.lib.threads import one_thread

from benchmarks.lib.runs import RESULTS
from benchmarks.lib.timing import machine
from benchmarks.papers.luo2019.claims import Claims, acceptance
from benchmarks.papers.luo2019.data import FILES, QUICK, Data
from benchmarks.papers.luo2019.methods import GRID, QUICK_GRID, Figures, Record, passes
from benchmarks.papers.luo2019.sketches import sketch_claims, sketch_errors, sketch_table
from benchmarks.papers.luo2019.tables import accuracy_table, draw, error_table, time_table


def main() -> None:
    options = parse()
    begun = time.perf_counter()
    records: list[Record] = []
    skipped: dict[str, str] = {}
    errors: dict[str, Any] = {}
    with one_thread():
        facts = machine()
        print("\n".join(f"{name:15}{value}" for name, value in facts.items()))
        print(
            "squared loss, |w'x| <= 1, no bias, buffers of 2 m rows, one pass over 70% of the rows"
        )
        if options.quick:
            print("no data of the paper: zero-one rows drawn at random stand in for a9a")
        for name, data in options.data.items():
            if reason := data.missing():
                skipped[name] = reason
                print(f"\n{name} skipped: {reason}")
                continue
            records += run(name, data, options.grid)
            if data.small:
                errors[name] = sketch_errors(data)
                print(f"\n{name}: spectral error over that of FD (Figures 1 and 2)")
                print(sketch_table(errors[name]), flush=True)
    if records:
        conclude(Figures(records), errors, skipped, facts, options)
    print(f"{time.perf_counter() - begun:.0f} s in all")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="rows drawn at random, under 15 s")
    parser.add_argument("--data", help=f"some of {','.join(FILES)}")
    parser.add_argument("--output", type=Path, help="folder of pictures and JSON")
    options = parser.parse_args()
    options.output = options.output or (RESULTS / "quick" if options.quick else RESULTS)
    known = QUICK if options.quick else FILES
    names = options.data.split(",") if options.data else list(known)
    if unknown := set(names) - set(known):
        parser.error(f"no data {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    options.data = {name: known[name] for name in names}
    options.grid = QUICK_GRID if options.quick else GRID
    return options


def run(name: str, data: Data, grid: tuple[float, ...]) -> list[Record]:
    """Run every learner on one data set and print its tables."""
    records = list(passes(name, data, grid))
    figures = Figures(records)
    orders = ", ".join(data.orders)
    print(f"\n{name}, orders {orders}: test accuracy, best initial ridge (and the worst); Table 2")
    print(accuracy_table(figures, name))
    print(f"\n{name}: online error in percent, best initial ridge")
    print(error_table(figures, name))
    print(f"\n{name}: microseconds a row (CPU, median over ridges and orders); Table 3")
    print(time_table(figures, name), flush=True)
    return records


def conclude(
    figures: Figures,
    errors: dict[str, Any],
    skipped: dict[str, str],
    facts: dict[str, str],
    options: argparse.Namespace,
) -> None:
    """Print claims and acceptance, write pictures and JSON."""
    claims = [*sketch_claims(errors), *Claims(figures).lines()]
    print("\nclaims of the paper")
    for claim, verdict in claims:
        print(f"{claim}\n    {verdict}")
    checks = acceptance(figures)
    print("\nacceptance" if checks else "\nacceptance: needs a9a or farm-ads")
    for text, passed in checks:
        print(f"{'ok  ' if passed else 'FAIL'}  {text}")
    options.output.mkdir(parents=True, exist_ok=True)
    everything = {
        "machine": facts,
        "skipped": skipped,
        "claims": [{"claim": claim, "verdict": str(verdict)} for claim, verdict in claims],
        "acceptance": [{"text": text, "passed": bool(passed)} for text, passed in checks],
        "sketch_errors": errors,
        "records": [asdict(record) for record in figures.records],
    }
    (options.output / "luo2019.json").write_text(json.dumps(everything, indent=1))
    for path in draw(figures, options.output):
        print(f"wrote {path.name}")


if __name__ == "__main__":
    main()
