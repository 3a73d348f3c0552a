"""Kernel components by doubly stochastic steps: the experiments of Xie, Liang and Song (2015).

Three parts. `hermite` is section 7.1, where the answer is known: convergence, eigenvalues and
eigenfunctions. `optimisers` holds steps against passes of block Krylov for one set of random
features of the digits. `table3` is kernel CCA of the two halves of digits, as they are and as an
endless deformed stream. Section 7.2 is latent.py, and the 3000 steps of table 3 are
gpu/kcca.py. Every claim is decided by code. See benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.lib.threads import one_thread

from benchmarks.lib.runs import RESULTS
from benchmarks.lib.timing import machine
from benchmarks.papers.xie2015 import hermite, kcca, kpca, tables
from benchmarks.papers.xie2015.digits import Digits, missing, mnist, rows, small

PAPER = hermite.Sizes(
    1_000_000, 262_144, 128, 512, (16, 32, 64, 129, 256, 400, 656, 1024, 1477, 2048)
)
GROWING = hermite.Sizes(130_000, 1_000_000, 16, 64, (200, 400, 800, 1200, 1600, 2000))
QUICK = hermite.Sizes(50_000, 16_384, 128, 256, (16, 32, 64, 129))
QUICK_GROWING = hermite.Sizes(20_000, 1_000_000, 16, 64, (50, 100, 200))
SEEDS, QUICK_SEEDS = range(4), range(2)

TABLE = kcca.Sizes(
    50, (256, 512, 1024, 2048, 4096), 20_480, 1024, (100, 300), 100_000, (1e-6, 1e-7)
)
QUICK_TABLE = kcca.Sizes(10, (64, 256), 512, 256, (10, 40), 3000, (1e-3, 1e-4))


def main() -> None:
    options = parse()
    begun = time.perf_counter()
    with one_thread():
        facts = machine()
        print("\n".join(f"{name:15}{value}" for name, value in facts.items()))
        for name in options.parts:
            found = PARTS[name](options)
            if not found:
                continue
            for each in found["claims"]:
                print(f"{each['claim']}\n    {each['verdict']}")
            options.output.mkdir(parents=True, exist_ok=True)
            path = options.output / f"xie2015_{name}.json"
            path.write_text(json.dumps({"machine": facts, **found}, indent=1))
            print(f"wrote {path.name}", flush=True)
    print(f"{time.perf_counter() - begun:.0f} s in all")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, no stored data")
    parser.add_argument("--parts", help=f"some of {','.join(PARTS)}")
    parser.add_argument("--streams", help="of table3: some of plain,deformed")
    parser.add_argument("--methods", help=f"of table3: some of {','.join(METHODS)}")
    parser.add_argument("--output", type=Path, help="folder of pictures and JSON")
    options = parser.parse_args()
    options.output = options.output or (RESULTS / "quick" if options.quick else RESULTS)
    for name, known in (("parts", PARTS), ("streams", STREAMS), ("methods", METHODS)):
        asked = getattr(options, name)
        chosen = asked.split(",") if asked else list(known)
        if unknown := set(chosen) - set(known):
            parser.error(f"no {', '.join(sorted(unknown))}; there are {', '.join(known)}")
        setattr(options, name, chosen)
    return options


def digits(options: argparse.Namespace, part: str) -> Digits | None:
    """Return the digits of a part, or say why it is skipped."""
    if options.quick:
        return small()
    if reason := missing():
        print(f"\n{part} skipped: {reason}")
        return None
    return mnist()


def run_hermite(options: argparse.Namespace) -> dict[str, Any]:
    sizes, small_steps = (QUICK, QUICK_GROWING) if options.quick else (PAPER, GROWING)
    print(
        f"\nhermite: x ~ N(0, 1), k(x, y) = exp(-(x - y)^2 / 2), {sizes.n_rows} rows in float32, "
        f"up to {sizes.n_random_features}\nfeatures, {sizes.feature_batch} features and "
        f"{sizes.batch_size} rows a step, {hermite.N_COMPONENTS} components",
        flush=True,
    )
    seeds = QUICK_SEEDS if options.quick else SEEDS
    growing = [hermite.converge(small_steps, seed) for seed in seeds]
    run = hermite.converge(sizes, 0)
    full_size = not options.quick
    print(tables.hermite_table(run, growing, full_size))
    options.output.mkdir(parents=True, exist_ok=True)
    for path in tables.draw_hermite(run, growing, options.output):
        print(f"wrote {path.name}")
    return {
        "sizes": asdict(sizes),
        "growing_sizes": asdict(small_steps),
        "claims": tables.hermite_claims(run, growing, full_size),
        "run": asdict(run),
        "growing": [asdict(found) for found in growing],
    }


def run_optimisers(options: argparse.Namespace) -> dict[str, Any]:
    images = digits(options, "optimisers")
    if images is None:
        return {}
    n_features, n_pilot, batch = (512, 200, 64) if options.quick else (4096, 2000, 512)
    ranks, marks = ((3, 10), (20, 80)) if options.quick else ((5, 50), (117, 468, 1200))
    seeds = range(1 if options.quick else 3)
    X = rows(images.train)
    print(
        f"\noptimisers: {images.name}, {len(X)} rows, {n_features} features, not centred, pilot of "
        f"{n_pilot} rows,\n{batch} rows a step; medians over {len(seeds)} draws of the features",
        flush=True,
    )
    efforts: list[kpca.Effort] = []
    values = []
    for seed in seeds:
        problem = kpca.Problem(X, n_features, max(ranks), n_pilot, seed)
        values.append(problem.values.tolist())
        around = ", ".join(f"{problem.values[k - 1]:.5f} | {problem.values[k]:.5f}" for k in ranks)
        print(
            f"draw {seed}: bandwidth {problem.bandwidth:.2f}, eigenvalues next to the last "
            f"component {around}",
            flush=True,
        )
        for k in ranks:
            for method in kpca.STEPS:
                efforts += kpca.stepped(problem, k, method, batch, marks)
            efforts += kpca.passed(problem, k, 4)
    typical = kpca.medians(efforts)
    print(tables.effort_table(typical, not options.quick))
    return {
        "bandwidth": problem.bandwidth,
        "eigenvalues": values,
        "claims": tables.effort_claims(typical),
        "efforts": [asdict(effort) for effort in efforts],
    }


def run_table3(options: argparse.Namespace) -> dict[str, Any]:
    images = digits(options, "table3")
    if images is None:
        return {}
    sizes = QUICK_TABLE if options.quick else TABLE
    claims, records = [], []
    print(
        f"\ntable3: halves of {images.name}, {sizes.n_components} components, "
        f"{len(images.test)} pairs held out; DSGD with {sizes.n_random_features}\nfeatures and "
        f"{sizes.batch_size} pairs a step. total: sum of correlations of paired columns on the "
        "held-out pairs;\ncanonical: sum of their canonical correlations; ridge: the best total of "
        f"{', '.join(f'{r:g}' for r in kcca.RIDGES)},\nin units of the total variance for linear, "
        "fixed for DSGD; minutes of CPU time, one solution\nincluded"
    )
    for stream in options.streams:
        deform = STREAMS[stream]
        views = kcca.Views(images, deform, sizes)
        widths = ", ".join(f"{kernel.bandwidth:.2f}" for kernel in views.kernels)
        print(f"\n{stream}: bandwidths {widths}", flush=True)
        lines = []
        for name in options.methods:
            for line in METHODS[name](views):
                print(f"  {line.label} {line.paired:.2f}", file=sys.stderr, flush=True)
                lines.append(line)
        print(tables.total_table(lines, deform, not options.quick), flush=True)
        claims += tables.total_claims(lines, deform, not options.quick)
        records += [asdict(line) for line in lines]
    return {"sizes": asdict(sizes), "claims": claims, "records": records}


def of_all_sizes(method: str) -> Callable[[kcca.Views], Any]:
    return lambda views: (kcca.exact(views, method, n) for n in views.sizes.n_features)


STREAMS = {"plain": False, "deformed": True}
METHODS: dict[str, Callable[[kcca.Views], Any]] = {
    "linear": lambda views: [kcca.linear(views)],
    "rff": of_all_sizes(kcca.RANDOM),
    "nystrom": of_all_sizes(kcca.NYSTROM),
    "plain": lambda views: kcca.stepped(views, kcca.PLAIN),
    "preconditioned": lambda views: kcca.stepped(views, kcca.PRECONDITIONED),
}
PARTS: dict[str, Callable[[argparse.Namespace], dict[str, Any]]] = {
    "hermite": run_hermite,
    "optimisers": run_optimisers,
    "table3": run_table3,
}


if __name__ == "__main__":
    main()
