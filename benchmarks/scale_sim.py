"""What 10^12 rows of 10^5 columns would take on 1,000 to 10,000 machines, on paper.

First it measures on this machine what a plan rests on: the speed of a sketch, the time of a merge,
the bytes of a state, and what merging does to the error. The cost model of the planner carries the
times to the size asked for, and its predictions at a second size are printed beside the truth. Then
machines are simulated event by event: slow ones, slow tasks, machines that die and take a task with
them, second copies of late tasks, and a tree of merges.

What is assumed and not measured is an option: cores, network, storage, failures, slowness.
"""

from __future__ import annotations

import argparse
import heapq
import json
import time
from collections import deque
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.lib.runs import RESULTS
from sksketch import FrequentDirections
from sksketch.arrays.threads import one_blas_thread
from sksketch.sketches.planning import operations_per_row
from sksketch.state.persistence import to_bytes

ALL = 0  # the fan-in of "all at once"


def rows_of(n_rows: int, n_features: int, seed: int = 0, dtype: Any = np.float32) -> np.ndarray:
    """Return rows with singular values that fall like i^-0.75."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_features), dtype=np.float32)
    return (X * np.arange(1, n_features + 1, dtype=np.float32) ** -0.75).astype(dtype)


def clock(work: Any, repeats: int) -> float:
    """Return the least processor time of some calls: others use this machine as well."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


class Costs(NamedTuple):
    """What one core does at one size."""

    row: float
    merge: float
    state: int


def measure(n_features: int, size: int, repeats: int) -> Costs:
    """Time rows and merges at one size, with the solver that wide rows get."""
    X = rows_of(12 * size, n_features)

    def sketch() -> FrequentDirections:
        return FrequentDirections(size, solver="exact").update(X)

    sketch()
    row = clock(sketch, repeats) / len(X)
    # As many rows wait as may travel: the largest state, and the longest merge.
    full = FrequentDirections(size, solver="exact").update(X[: 5 * size]).compact()
    parts = [full.copy() for _ in range(8)]
    merge = clock(lambda: fold([full.copy(), *parts[1:]]).compact(), repeats) / (len(parts) - 1)
    return Costs(row, merge, len(to_bytes(full.state())))


def operations(n_features: int, size: int) -> float:
    return operations_per_row(n_features, size)["exact"]


def scaled(costs: Costs, here: tuple[int, int], there: tuple[int, int]) -> Costs:
    """Carry costs to another size: a row by the planner's model, a merge as ``size`` rows."""
    ratio = operations(*there) / operations(*here)
    size, width = there[1] / here[1], there[0] / here[0]
    return Costs(costs.row * ratio, costs.merge * ratio * size, round(costs.state * size * width))


def merging_error(n_features: int, size: int, n_rows: int) -> list[dict[str, float]]:
    """Sketch the same rows in one piece and in many; return errors and bounds of |A|_F^2."""
    X = rows_of(n_rows, n_features, seed=1, dtype=np.float64)
    exact, total = X.T @ X, float(np.sum(X * X))
    lines = []
    for n_shards in (1, 2, 4, 8, 16, 32, 64):
        for fan_in in (2, 8, ALL) if n_shards > 8 else (2,):
            template = FrequentDirections(size, solver="exact")
            level = [template.fresh().update(part) for part in np.array_split(X, n_shards)]
            while len(level) > 1:
                step = fan_in or len(level)
                groups = [level[i : i + step] for i in range(0, len(level), step)]
                level = [fold(group) for group in groups]
            error = np.linalg.norm(exact - level[0].summary().to_dense(), 2)
            bound = level[0].error_bound()
            line = {"shards": n_shards, "fan_in": fan_in, "error": error / total}
            lines.append(line | {"bound": bound / total, "in_advance": 0.5 / (size + 1)})
    return lines


def fold(group: list[FrequentDirections]) -> FrequentDirections:
    for other in group[1:]:
        group[0].merge(other)
    return group[0]


def slack(n_features: int, size: int, n_shards: int) -> float:
    """Return how much the block solver's bound grows with a share of the failure probability."""
    X = rows_of(60 * size, n_features, seed=2)
    template = FrequentDirections(size, solver="block")
    bounds = [s.update(X).error_bound() for s in (template, template.for_shard(0, n_shards))]
    return bounds[1] / bounds[0]


def device_rates(folder: Path, there: tuple[int, int]) -> list[tuple[str, float, float]]:
    """Return a device, its verified rows per second, and what becomes of them at this size."""
    found = []
    for path in sorted(folder.glob("dense*.json")):
        figures = json.loads(path.read_text())
        for case in figures["results"]:
            routes = {route["route"]: route["rows_per_second"] for route in case["routes"]}
            here = case["n_features"], case["sketch_size"]
            rate = routes["block, verified"]["median"]
            ratio = operations_per_row(*here)["block"] / operations_per_row(*there)["block"]
            found.append((f"{figures['device']} at {here}", rate, rate * ratio))
    return found


def simulate(n: int, per_worker: int, task: float, o: argparse.Namespace, seed: int) -> dict:
    """Let n machines work off n * per_worker tasks; return hours, failures and copies."""
    rng = np.random.default_rng(seed)
    n_tasks = n * per_worker
    pace = task * rng.lognormal(-(o.machine_spread**2) / 2, o.machine_spread, n)
    left, done, copied = deque(range(n_tasks)), np.zeros(n_tasks, bool), np.zeros(n_tasks, bool)
    running: deque[int] = deque()
    # Drawn in one go: a million small draws would take longer than the rest.
    n_draws = 2 * n_tasks + 16 * n
    luck = rng.lognormal(-(o.task_spread**2) / 2, o.task_spread, n_draws).tolist()
    life = rng.exponential(o.days_to_failure * 86400, n_draws).tolist()
    events: list[tuple[float, int, int, bool]] = [(0.0, w, -1, True) for w in range(n)]
    idle: list[int] = []
    now, remaining, failures, copies, draw = 0.0, n_tasks, 0, 0, 0
    while remaining:
        now, worker, number, good = heapq.heappop(events)
        if number >= 0 and good and not done[number]:
            done[number] = True
            remaining -= 1
        if not good:
            failures += 1
            if not done[number]:
                left.append(number)
            heapq.heappush(events, (now + o.restart, worker, -1, True))
        else:
            idle.append(worker)
        while idle:
            if left:
                number = left.popleft()
            elif o.copies:
                while running and (done[running[0]] or copied[running[0]]):
                    running.popleft()
                if not running:
                    break
                number = running.popleft()
                copied[number] = True
                copies += 1
            else:
                break
            if not copied[number]:
                running.append(number)
            worker = idle.pop()
            length, alive = pace[worker] * luck[draw % n_draws], life[draw % n_draws]
            draw += 1
            heapq.heappush(events, (now + min(length, alive), worker, number, length <= alive))
    return {"hours": now / 3600, "failures": failures, "copies": copies}


def tree(n: int, fan_in: int, costs: Costs, o: argparse.Namespace) -> dict[str, float]:
    """Return bytes, depth, the critical path and the largest memory of one tree of merges.

    A merge runs where one of its parts lies, so that all trees move n - 1 states; the parts of one
    merge come through one network card and are merged one after the other, on one core.
    """
    step = fan_in or n
    depth, width, seconds = 0, n, 0.0
    send = costs.state / o.network
    while width > 1:
        parts = min(step, width)
        seconds += send + (parts - 1) * max(send, costs.merge)
        width = -(-width // step)
        depth += 1
    moved, memory = (n - 1) * costs.state, min(step, n) * costs.state
    return {"moved": moved, "depth": depth, "seconds": seconds, "memory": memory}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, few machines")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--rows", type=float, default=1e12)
    parser.add_argument("--columns", type=int, default=100_000)
    parser.add_argument("--sketch-size", type=int, default=256)
    parser.add_argument("--workers", type=int, nargs="+", default=[1000, 3000, 10000])
    parser.add_argument("--fan-in", type=int, nargs="+", default=[2, 8, 32, ALL], help="0: all")
    parser.add_argument("--tasks", type=int, default=16, help="tasks of each machine")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--cores", type=int, default=32, help="of a machine")
    parser.add_argument("--storage", type=float, default=2e9, help="bytes/s read by a machine")
    parser.add_argument("--network", type=float, default=3e9, help="bytes/s between machines")
    parser.add_argument("--memory", type=float, default=256e9, help="bytes of a machine")
    parser.add_argument("--days-to-failure", type=float, default=30.0, help="mean, of a machine")
    parser.add_argument("--restart", type=float, default=600.0, help="seconds to replace one")
    parser.add_argument("--machine-spread", type=float, default=0.15, help="sd of log speed")
    parser.add_argument("--task-spread", type=float, default=0.35, help="sd of log time")
    o = parser.parse_args()
    sizes = ((8000, 64), (16000, 128)) if not o.quick else ((500, 8), (1000, 16))
    if o.quick:
        o.workers, o.runs, o.tasks, o.rows = [20, 60], 3, 4, 1e8
    there = (o.columns, o.sketch_size)
    with one_blas_thread():
        measured = [measure(*size, repeats=1 if o.quick else 5) for size in sizes]
        errors = merging_error(*((60, 6, 2000) if o.quick else (400, 32, 64_000)))
        share = slack(*((400, 8) if o.quick else (2000, 32)), max(o.workers) * o.tasks * o.cores)
    costs = scaled(measured[1], sizes[1], there)
    print("measured on one core, float32, and what the model makes of the smaller size:")
    for size, found, guess in zip(
        sizes, measured, (measured[0], scaled(measured[0], *sizes)), strict=True
    ):
        rate = operations(*size) / found.row / 1e9
        print(
            f"  {size[0]:,} columns, sketch {size[1]}: {1 / found.row:,.0f} rows/s ({rate:.0f} "
            f"model GF/s), a merge {1e3 * found.merge:.1f} ms, a full state "
            f"{found.state / 1e6:.1f} MB; model / measured {guess.row / found.row:.2f}, "
            f"{guess.merge / found.merge:.2f}, {guess.state / found.state:.2f}"
        )
    print(
        f"carried to {o.columns:,} columns, sketch {o.sketch_size}: {1 / costs.row:,.0f} rows/s, "
        f"a merge {costs.merge:.1f} s, a state {4e-6 * o.columns * o.sketch_size:,.0f} MB of "
        "kept rows and at most as much of waiting ones"
    )
    print("\nthe error after merging, of the squared norm of all rows:")
    print(f"{'shards':>8}{'fan-in':>8}{'error':>11}{'certificate':>13}{'in advance':>12}")
    for line in errors:
        fan = line["fan_in"] or "all"
        print(
            f"{line['shards']:8}{fan:>8}{line['error']:11.2e}{line['bound']:13.2e}"
            f"{line['in_advance']:12.2e}"
        )
    total = o.rows * o.columns * 4
    print(f"\n{o.rows:.0e} rows x {o.columns:,} columns in float32: {total:.0e} bytes to read")
    cpu = o.cores / costs.row * 4 * o.columns
    print(
        f"one machine: reads {o.storage / 1e9:.2g} GB/s, its {o.cores} cores sketch {cpu / 1e9:.2g}"
    )
    for device, rate, carried in device_rates(RESULTS / "gpu", there):
        print(f"{device}: {rate:,.0f} rows/s, here {carried * 4e-9 * o.columns:.2g} GB/s")
    print(f"the bottleneck is {'reading the rows' if o.storage < cpu else 'the sketch'}")
    head = f"{'machines':>9}{'fan-in':>8}{'moved':>10}{'depth':>7}{'merges':>10}{'memory':>12}"
    print(
        f"\n{head}{'p50 h':>9}{'p95 h':>8}{'+copies':>9}{'ideal':>8}{'failures':>10}{'budget':>10}"
    )
    table = []
    for n in o.workers:
        # The cores of a machine learn parts of their own, which it merges before it goes on.
        task = total / n / o.tasks / min(o.storage, cpu) + (o.cores - 1) * costs.merge
        runs = {}
        for o.copies in (False, True):
            runs[o.copies] = [simulate(n, o.tasks, task, o, seed) for seed in range(o.runs)]
        hours, copied = ([run["hours"] for run in runs[key]] for key in (False, True))
        simulated = {"p50": np.median(hours), "p95": np.quantile(hours, 0.95)}
        simulated["copies"] = np.median(copied)
        failures = np.median([run["failures"] for run in runs[False]])
        for fan_in in o.fan_in:
            t = tree(n, fan_in, costs, o)
            line = {"workers": n, "fan_in": fan_in, **t, "ideal": task * o.tasks / 3600}
            line |= {name: value + t["seconds"] / 3600 for name, value in simulated.items()}
            line |= {"failures": failures, "budget": 0.01 / (n * o.tasks * o.cores)}
            line["breaks"] = t["memory"] > o.memory
            table.append(line)
            print(
                f"{n:9,}{fan_in or 'all':>8}{t['moved'] / 1e12:7.2f} TB{t['depth']:7}"
                f"{t['seconds'] / 60:6.1f} min{t['memory'] / 1e9:9,.1f} GB{line['p50']:9.2f}"
                f"{line['p95']:8.2f}{line['copies']:9.2f}{line['ideal']:8.2f}{failures:10.0f}"
                f"{line['budget']:10.0e}{'  does not fit' if line['breaks'] else ''}"
            )
    bound = 0.5 / (o.sketch_size + 1)
    print(f"\ncertificate after any of these trees: at most {bound:.2e} of the squared norm")
    print(f"a block solver with the smallest budget has a bound {share:.3f} times as large")
    if o.json:
        figures = {"costs": costs._asdict(), "errors": errors, "slack": share, "table": table}
        o.json.write_text(json.dumps(figures, indent=1, default=float))


if __name__ == "__main__":
    main()
