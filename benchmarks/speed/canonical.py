"""Linear CCA beside cca-zoo's stochastic one, and of a million pairs of wide rows in one pass.

``python -m benchmarks.speed.canonical [--quick]``

*Beside cca-zoo* (skipped where it is not installed): seconds until the total correlation of rows
kept apart is within a thousandth of that of the exact solution. cca-zoo's learner is fitted with
the batch and the number of epochs, of those in a grid, that get there soonest, what it takes to
find these not counted; and once with its defaults. *One pass*: rows of 2,048 and 2,048 columns in
float32, streamed through a fresh process; its peak memory and the planted correlations beside the
certified intervals.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import benchmarks.lib.threads  # noqa: F401

from benchmarks.lib.resident import memory_mb

MODULE = "benchmarks.speed.canonical"
N_COMPONENTS = 4
BLOCK_ROWS = 2_000
GRID = {"batch_size": (64, 256, 1024), "max_iter": (1, 2, 5, 10, 20, 50, 100)}
REPEATS = 3
# The total correlation has to be as near as this to that of the exact solution.
NEAR = 1e-3
# What is asked of the figures.
LEAST_TIMES, MOST_MB = 10.0, 1000.0


def planted(n_rows: int, columns: int, seed: int, noise: float = 1.0) -> tuple[Any, Any]:
    """Return rows of two views with four signals in common, of decreasing strength."""
    import numpy as np

    maps = np.random.default_rng(0)
    rng = np.random.default_rng(seed)
    strengths = np.array([2.0, 1.5, 1.0, 0.7])
    shared = rng.standard_normal((n_rows, N_COMPONENTS), dtype=np.float32) * strengths
    views = []
    for _ in range(2):
        directions = np.linalg.qr(maps.standard_normal((columns, N_COMPONENTS)))[0].T
        scales = maps.uniform(0.5, 2.0, columns)
        own = noise * rng.standard_normal((n_rows, columns), dtype=np.float32)
        own += (shared @ directions).astype(np.float32)
        own *= scales.astype(np.float32)
        views.append(own)
    return views[0], views[1]


def total(scores: tuple[Any, Any]) -> float:
    """Return the sum of the canonical correlations of scores.

    Not of their correlations pair by pair: those of scores that repeat one another would count
    twice.
    """
    import numpy as np

    x, y = (np.linalg.qr(one - one.mean(axis=0))[0] for one in scores)
    return float(np.linalg.svd(x.T @ y, compute_uv=False).sum())


def beside(n_rows: int, columns: int) -> dict[str, Any] | None:
    """Return seconds of ours and of cca-zoo's to the same total correlation."""
    import numpy as np

    from sksketch import StreamingCCA

    try:
        from cca_zoo.stochastic import StochasticCCAEY
    except ImportError:
        return None
    X, Y = (view.astype(np.float64) for view in planted(n_rows, columns, 1))
    tests = [view.astype(np.float64) for view in planted(5_000, columns, 2)]

    def ours() -> tuple[float, float]:
        start = time.perf_counter()
        model = StreamingCCA(N_COMPONENTS)
        for first in range(0, n_rows, BLOCK_ROWS):
            model.partial_fit(X[first : first + BLOCK_ROWS], Y[first : first + BLOCK_ROWS])
        model.x_weights_  # noqa: B018  (the read-out counts)
        seconds = time.perf_counter() - start
        return seconds, total(model.transform(*tests))

    def peer(**options: int) -> tuple[float, float]:
        start = time.perf_counter()
        with warnings.catch_warnings():
            # Epochs are bounded on purpose.
            warnings.simplefilter("ignore")
            model = StochasticCCAEY(N_COMPONENTS, random_state=0, **options).fit([X, Y])
        seconds = time.perf_counter() - start
        return seconds, total(tuple(model.transform(tests)))

    found = [ours() for _ in range(REPEATS)]
    asked = found[0][1] - NEAR
    tried: list[tuple[float, float, dict[str, int]]] = []
    for batch in GRID["batch_size"]:
        for epochs in GRID["max_iter"]:
            options = {"batch_size": batch, "max_iter": epochs}
            seconds, quality = peer(**options)
            tried.append((seconds, quality, options))
            if quality >= asked:
                break
    enough = [one for one in tried if one[1] >= asked]
    best = min(enough) if enough else max(tried, key=lambda one: one[1])
    default = peer()
    again = [best[0], *(peer(**best[2])[0] for _ in range(REPEATS - 1))]
    return {
        "rows": n_rows,
        "columns": columns,
        "total correlation": found[0][1],
        "seconds": statistics.median(seconds for seconds, _ in found),
        "peer total correlation": best[1],
        "peer reached it": bool(enough),
        "peer seconds": statistics.median(again),
        "peer options": best[2],
        "peer default seconds": default[0],
        "peer default total correlation": default[1],
    }


def one_pass(n_rows: int, columns: int) -> dict[str, Any]:
    """Stream rows through one model; return its peak memory and what it found."""
    import numpy as np

    from sksketch import StreamingCCA

    # Two blocks of rows, again and again at scales that differ: drawing them takes longer.
    X, Y = planted(2 * BLOCK_ROWS, columns, 3, noise=0.1)
    block_x, block_y = X[:BLOCK_ROWS].copy(), Y[:BLOCK_ROWS].copy()
    model = StreamingCCA(N_COMPONENTS, ridge=0.05 * n_rows)
    before = memory_mb("VmRSS")
    start = time.perf_counter()
    for number in range(n_rows // BLOCK_ROWS):
        half = slice(BLOCK_ROWS * (number % 2), BLOCK_ROWS * (number % 2) + BLOCK_ROWS)
        factor = np.float32(1.0 + 0.25 * np.sin(number))
        np.multiply(X[half], factor, out=block_x)
        np.multiply(Y[half], factor, out=block_y)
        model.partial_fit(block_x, block_y)
    intervals = model.correlation_intervals_
    return {
        "rows": n_rows,
        "columns": 2 * columns,
        "seconds": time.perf_counter() - start,
        "before MB": before,
        "peak MB": memory_mb("VmHWM"),
        "correlations": model.correlations_.tolist(),
        "intervals": intervals.tolist(),
        "plan": model.plan_,
    }


def in_fresh_process(n_rows: int, columns: int) -> dict[str, Any]:
    """Return what `one_pass` found in a process of its own."""
    command = [sys.executable, "-m", MODULE, "--child", str(n_rows), str(columns)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    parser.add_argument("--child", nargs=2, type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(one_pass(*options.child)))
        return
    figures: dict[str, Any] = {"beside": [], "one pass": None}
    for n_rows, columns in [(4_000, 40)] if options.quick else [(100_000, 100), (50_000, 300)]:
        found = beside(n_rows, columns)
        if found is None:
            print("cca-zoo is not installed: skipped")
            break
        figures["beside"].append(found)
        ratio = found["peer seconds"] / found["seconds"]
        verb = "reached" if found["peer reached it"] else "never reached"
        print(
            f"{n_rows:,} pairs of {columns} + {columns} columns: total correlation "
            f"{found['total correlation']:.4f} in {found['seconds']:.3f} s; cca-zoo {verb} it: "
            f"{found['peer total correlation']:.4f} in {found['peer seconds']:.3f} s "
            f"({found['peer options']}), {ratio:.1f} times as long; with its defaults "
            f"{found['peer default total correlation']:.4f} in "
            f"{found['peer default seconds']:.1f} s",
            flush=True,
        )
    size = (20_000, 256) if options.quick else (1_000_000, 2_048)
    figures["one pass"] = found = in_fresh_process(*size)
    print(
        f"{found['rows']:,} pairs of {size[1]:,} + {size[1]:,} columns in float32: "
        f"{found['seconds']:.1f} s, peak {found['peak MB']:,.0f} MB "
        f"({found['before MB']:,.0f} MB before the first row)"
    )
    for value, ends in zip(found["correlations"], found["intervals"], strict=True):
        print(f"  {value:.4f} in [{ends[0]:.4f}, {ends[1]:.4f}]")
    print(f"  {found['plan']}")
    print()
    for line in figures["beside"]:
        ratio = line["peer seconds"] / line["seconds"]
        default = line["peer default seconds"] / line["seconds"]
        for times, setting in ((ratio, "best setting"), (default, "defaults")):
            text = f"{line['columns']} columns: {times:.1f} x the speed of cca-zoo's {setting}"
            print(f"{'ok  ' if times >= LEAST_TIMES else 'FAIL'}  {text}, at least {LEAST_TIMES:g}")
    passed = found["peak MB"] < MOST_MB
    print(f"{'ok  ' if passed else 'FAIL'}  peak {found['peak MB']:,.0f} MB, under {MOST_MB:,.0f}")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
