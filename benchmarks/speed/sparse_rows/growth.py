"""Time against stored entries: more of them in a row, and more rows."""

from __future__ import annotations

import math
from statistics import median
from typing import Any

import numpy as np

from benchmarks.speed.sparse_rows.data import synthetic
from benchmarks.speed.sparse_rows.methods import OURS, OURS_SPARSE, forked, methods

REPEATS = 3


def growth(quick: bool) -> None:
    """Print the time of our sketches while the entries of the matrix double."""
    n, d, size = (1000, 600, 10) if quick else (20_000, 2000, 50)
    per_row = (5, 10, 20) if quick else (10, 20, 40, 80, 160, 320)
    rows = (1000, 2000) if quick else (20_000, 40_000, 80_000, 160_000)
    fixed = per_row[2]
    _table(
        f"entries a row, at n={n}, d={d}, l={size}",
        {nnz: synthetic(n, d, size, nnz).make for nnz in per_row},
        size,
    )
    _table(
        f"rows, at d={d}, l={size}, {fixed} non-zeros a row",
        {count: synthetic(count, d, size, fixed).make for count in rows},
        size,
    )


def _table(what: str, makers: dict[int, Any], size: int) -> None:
    print(f"\ngrowth with {what} (1.00 in 'power': time is linear in the non-zeros)")
    head = f"{'':10}{'non-zeros':>11}"
    for name in (OURS, OURS_SPARSE):
        head += f"{name:>27}{'ns/nz/l':>9}{'power':>7}"
    print(head)
    before: dict[str, tuple[float, int]] = {}
    first: dict[str, tuple[float, int]] = {}
    for number, make in makers.items():
        X = make()
        todo = methods(X, size)
        line = f"{number:10d}{X.nnz:11d}"
        runs: dict[str, list[float]] = {OURS: [], OURS_SPARSE: []}
        for _ in range(REPEATS):
            for name, times in runs.items():
                times.append(forked(todo[name], X, with_answer=False).seconds)
        for name, times in runs.items():
            seconds = median(times)
            power = "-"
            if name in before:
                power = f"{_power(before[name], (seconds, X.nnz)):.2f}"
            first.setdefault(name, (seconds, X.nnz))
            before[name] = seconds, X.nnz
            line += f"{1e3 * seconds:24.1f} ms{1e9 * seconds / X.nnz / size:9.2f}{power:>7}"
        print(line, flush=True)
    for name, last in before.items():
        print(f"from first to last: power {_power(first[name], last):.2f} for {name}")


def _power(before: tuple[float, int], after: tuple[float, int]) -> float:
    return float(np.log(after[0] / before[0]) / math.log(after[1] / before[1]))
