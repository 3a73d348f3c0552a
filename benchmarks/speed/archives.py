"""Archives: adding ten thousand hourly states, and asking for any range of them.

``python -m benchmarks.speed.archives [--quick]``

States of 200 columns, a few rows each, one for every hour of 14 months. Printed are seconds of an
addition while the archive grows; seconds of a query and files it merges, over random ranges and the
whole; the peak memory of a fresh process that asks for one range; and how far the answer is from
that of merging the hours one by one, beside what both certificates allow.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.lib.threads import one_thread  # isort: skip

import numpy as np

from benchmarks.lib.resident import memory_mb
from sksketch import Archive, Centered, FrequentDirections

MODULE = "benchmarks.speed.archives"
FIRST = np.datetime64("2025-01-01T00", "h")
N_COLUMNS, ROWS = 200, 40
# What is asked of a query.
MOST_SECONDS, MOST_MB = 2.0, 500


def hourly(number: int, sketch_size: int) -> Centered:
    """Return the state of one hour."""
    rng = np.random.default_rng(number)
    rows = rng.standard_normal((ROWS, N_COLUMNS)) / np.arange(1, N_COLUMNS + 1)
    # The day has a rhythm.
    rows[:, 0] *= 1.0 + 0.5 * np.sin(2.0 * np.pi * number / 24.0)
    return Centered(FrequentDirections(sketch_size)).update(rows)


def fill(archive: Archive, n_hours: int, sketch_size: int) -> list[float]:
    """Add all hours; return the mean seconds of an addition in each tenth."""
    seconds = []
    for number in range(n_hours):
        state = hourly(number, sketch_size)
        start = time.perf_counter()
        archive.add(state, FIRST + number, FIRST + number + 1)
        seconds.append(time.perf_counter() - start)
    return [float(np.mean(part)) for part in np.array_split(seconds, 10)]


def ranges(n_hours: int, n_queries: int) -> list[tuple[int, int]]:
    """Return random ranges, and all."""
    rng = np.random.default_rng(0)
    found = [sorted(rng.choice(n_hours + 1, 2, replace=False)) for _ in range(n_queries - 1)]
    return [*((int(a), int(b)) for a, b in found), (0, n_hours)]


def ask(archive: Archive, first: int, stop: int) -> tuple[float, int, Any]:
    """Return seconds, files merged, and the answer."""
    start = time.perf_counter()
    found = archive.query(FIRST + first, FIRST + stop)
    found.certificate()
    seconds = time.perf_counter() - start
    _, periods = archive._read()
    return seconds, len(list(archive._cover(periods, first, stop))), found


def peak(path: Path, first: int, stop: int) -> float:
    """Return the peak memory of a process that asks for one range."""
    command = [sys.executable, "-m", MODULE, "--child", str(path), str(first), str(stop)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout)


def beside_one_by_one(archive: Archive, first: int, stop: int, sketch_size: int) -> list[float]:
    """Return how far the answer is from merging hour by hour, and the sum of both bounds."""
    found = archive.query(FIRST + first, FIRST + stop)
    one = hourly(first, sketch_size)
    for number in range(first + 1, stop):
        one.merge(hourly(number, sketch_size))
    apart = np.linalg.norm(one.summary().to_dense() - found.summary().to_dense(), 2)
    return [float(apart), one.error_bound() + found.error_bound()]


def measure(path: Path, n_hours: int, n_queries: int, sketch_size: int) -> dict[str, Any]:
    """Return all figures of one archive."""
    archive = Archive(path)
    added = fill(archive, n_hours, sketch_size)
    asked = ranges(n_hours, n_queries)
    answers = [ask(archive, *one)[:2] for one in asked]
    seconds = [one[0] for one in answers]
    longest = asked[int(np.argmax(seconds))]
    far, allowed = beside_one_by_one(archive, *asked[0], sketch_size)
    return {
        "hours": n_hours,
        "sketch_size": sketch_size,
        "megabytes": sum(file.stat().st_size for file in path.rglob("*")) / 1e6,
        "add seconds": added,
        "query seconds": {"median": float(np.median(seconds)), "longest": max(seconds)},
        "files": {"median": float(np.median([f for _, f in answers])), "most": max(answers)[1]},
        "peak MB": max(peak(path, *longest), peak(path, 0, n_hours)),
        "apart": far,
        "allowed": allowed,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="300 hours")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        path, first, stop = options.child
        ask(Archive(path), int(first), int(stop))
        print(memory_mb("VmHWM"))
        return
    n_hours, n_queries = (300, 10) if options.quick else (10_000, 100)
    with one_thread(), tempfile.TemporaryDirectory() as folder:
        found = measure(Path(folder) / "hours", n_hours, n_queries, 32)
    print(
        f"{n_hours:,} hourly states of {N_COLUMNS} columns: {found['megabytes']:.0f} MB\n"
        f"  one addition     {1e3 * found['add seconds'][0]:.1f} ms at first, "
        f"{1e3 * found['add seconds'][-1]:.1f} ms in the end\n"
        f"  one query        {found['query seconds']['median']:.3f} s, at most "
        f"{found['query seconds']['longest']:.3f} s of {n_queries}\n"
        f"  files merged     {found['files']['median']:.0f}, at most {found['files']['most']}\n"
        f"  peak memory      {found['peak MB']:.0f} MB\n"
        f"  beside one by one {found['apart']:.3g} apart, {found['allowed']:.3g} allowed"
    )
    print()
    longest = found["query seconds"]["longest"]
    for passed, text in (
        (longest < MOST_SECONDS, f"longest query {longest:.2f} s, under {MOST_SECONDS:g}"),
        (found["peak MB"] < MOST_MB, f"peak memory {found['peak MB']:.0f} MB, under {MOST_MB}"),
        (found["apart"] <= found["allowed"], "the answer is that of merging one by one"),
    ):
        print(f"{'ok  ' if passed else 'FAIL'}  {text}")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
