"""Microseconds a row of the online Newton classifier beside its peers, and who learns better.

One thread, CPU time, medians of interleaved repeats. Setting up a learner, parsing and turning
rows into the form it wants are not timed; the time of setting up is a column of its own. Every
accuracy is progressive: a row is predicted before it is learned. See benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.lib.threads import one_thread

import numpy as np

from benchmarks.lib.timing import cpu_seconds, machine
from benchmarks.speed.online.data import Stream, dense, text
from benchmarks.speed.online.growth import growth, held
from benchmarks.speed.online.methods import (
    RIVER,
    SGD_ROWS,
    Line,
    Method,
    as_paper,
    methods,
    oja,
    ours,
    paper,
)


@dataclass(frozen=True)
class Case:
    """A stream and the sketch sizes to run on it."""

    title: str
    n_rows: int
    n_features: int
    nnz: int
    sizes: tuple[int, ...]
    slow_rows: int

    def make(self) -> Stream:
        if self.nnz < self.n_features:
            return text(self.n_rows, self.n_features, self.nnz)
        return dense(self.n_rows, self.n_features)


CASES = {
    "text": Case("like rcv1", 20_000, 47_000, 74, (10, 20, 50), 1000),
    "dense": Case("dense", 20_000, 50, 50, (10, 20, 50), 1000),
}
QUICK_CASES = {
    "text": Case("like rcv1", 600, 4000, 40, (5, 10), 100),
    "dense": Case("dense", 600, 20, 20, (5,), 100),
}

# Least speed over that of a peer: (case, sketch size, peer) and the ratio.
TARGETS = (
    ("text", 20, paper(20), 45.0),
    ("text", 50, paper(50), 45.0),
    ("text", 10, oja(10), 1.0),
    ("text", 20, oja(20), 1.6),
    ("text", 50, oja(50), 5.0),
    ("dense", 10, oja(10), 1.7),
    ("dense", 10, RIVER, 3.0),
    ("dense", 10, SGD_ROWS, 100.0),
)


def main() -> None:
    options = parse()
    begun = time.perf_counter()
    results: dict[str, Any] = {}
    grown: dict[str, Any] = {}
    with one_thread():
        facts = machine()
        print("\n".join(f"{name:15}{value}" for name, value in facts.items()))
        print(
            "us/row: CPU time of learning, median and range; set-up: seconds before the first\n"
            "row, parsing included, not part of it. accuracy: progressive, with the defaults of\n"
            "each method; best: of a few settings, chosen on these very rows. No bias anywhere."
        )
        for name in options.cases:
            results[name] = run(name, options.known[name], options)
        if options.growth:
            grown = growth(options.quick)
    print("\nacceptance (the targets are meant for full sizes)")
    checks = [check for name, lines in results.items() for check in acceptance(name, lines)]
    for text_, passed in checks + (held(grown) if grown else []):
        print(f"{'ok  ' if passed else 'FAIL'}  {text_}")
    print(f"{time.perf_counter() - begun:.0f} s in all")
    if options.json:
        figures = {
            name: {method: asdict(line) | {"time": line.time} for method, line in lines.items()}
            for name, lines in results.items()
        }
        everything = {"machine": facts, "results": figures, "growth": grown}
        Path(options.json).write_text(json.dumps(everything, indent=1))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, under 15 s")
    parser.add_argument("--cases", help=f"some of {','.join(CASES)},growth")
    parser.add_argument("--repeats", type=int)
    parser.add_argument("--json", metavar="FILE", help="write the figures there as well")
    options = parser.parse_args()
    options.known = QUICK_CASES if options.quick else CASES
    asked = options.cases.split(",") if options.cases else [*options.known, "growth"]
    options.growth = "growth" in asked
    options.cases = [name for name in asked if name != "growth"]
    if unknown := set(options.cases) - set(options.known):
        parser.error(f"no case {', '.join(unknown)}; there are {', '.join(options.known)}, growth")
    options.repeats = options.repeats or (1 if options.quick else 5)
    return options


def run(name: str, case: Case, options: argparse.Namespace) -> dict[str, Line]:
    """Time and measure every method on one stream, and print the table."""
    stream = case.make()
    print(f"\n{name}: {case.title}, {case.n_rows} rows of {case.n_features} columns,", end=" ")
    print(f"{case.nnz} non-zeros a row")
    todo = methods(case.sizes, case.slow_rows)
    lines = {method: Line(skipped=todo[method].missing) for method in todo}
    active = {method: how for method, how in todo.items() if not how.missing}
    for method, how in active.items():
        # The first pass also loads or compiles kernels.
        lines[method].n_rows = min(how.n_rows or case.n_rows, case.n_rows)
        measure(how, lines[method], stream.first(lines[method].n_rows))
    for _ in range(options.repeats):
        for method, how in active.items():
            line = lines[method]
            rows = stream.first(line.n_rows)
            line.setup, begun = cpu_seconds(lambda how=how, rows=rows: how.begin(rows, None))
            line.seconds.append(cpu_seconds(begun.learn)[0])
            begun.close()
    print(table(lines, ours(case.sizes[0])), flush=True)
    return lines


def measure(how: Method, line: Line, stream: Stream) -> None:
    """Find the progressive accuracy with the defaults and with the best setting."""
    line.accuracy = line.best_accuracy = accuracy(how, stream, None)
    for setting in how.settings:
        if (found := accuracy(how, stream, setting)) > line.best_accuracy:
            line.best_accuracy, line.best_setting = found, str(setting)


def accuracy(how: Method, stream: Stream, setting: Any) -> float:
    begun = how.begin(stream, setting)
    learned = begun.learn()
    if begun.scores is None:
        return math.nan
    right = np.where(begun.scores(learned) >= 0, 1.0, -1.0) == stream.y
    begun.close()
    return float(np.mean(right))


def table(lines: dict[str, Line], reference: str) -> str:
    head = (
        f"{'method':31}{'us/row':>9}{'range':>18}{'rows':>7}{'set-up':>8}{'accuracy':>10}"
        f"{'best':>8}  of the settings"
    )
    return "\n".join([head, "-" * len(head), *(_row(m, line) for m, line in lines.items())])


def _row(method: str, line: Line) -> str:
    if line.skipped:
        return f"{method:31}  skipped: {line.skipped}"
    times = line.microseconds
    span = f"{min(times):.1f} to {max(times):.1f}"
    if math.isnan(line.accuracy):
        learned = f"{'as below':>10}"
    else:
        learned = f"{line.accuracy:10.2%}{line.best_accuracy:8.2%}  {line.best_setting}"
    return f"{method:31}{line.time:9.1f}{span:>18}{line.n_rows:7d}{line.setup:8.2f}{learned}"


def acceptance(case: str, lines: dict[str, Line]) -> list[tuple[str, bool]]:
    """Return what the speed is held to on this stream, where it was measured."""
    checks = []
    for where, size, peer, least in TARGETS:
        for name in (ours(size), as_paper(size)):
            mine, other = lines.get(name), lines.get(peer)
            if where != case or mine is None or other is None or not other.seconds:
                continue
            pairs = zip(other.microseconds, mine.microseconds, strict=True)
            ratios = [theirs / own for theirs, own in pairs]
            ratio = statistics.median(ratios)
            span = f"{min(ratios):.3g} to {max(ratios):.3g}"
            which = "" if name == ours(size) else ", as in the paper"
            text_ = f"{case}, m={size}{which}: {ratio:.3g} x {peer} ({span}), at least {least:g}"
            checks.append((text_, ratio >= least))
    return checks


if __name__ == "__main__":
    main()
