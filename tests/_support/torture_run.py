"""Run the certificate torture, or one case of it.

``make torture`` runs all of it, ``PYTHONPATH=tests python -m _support.torture_run --case 7`` shows
every check of one case.

Ends with 1 if a bound that is meant to be certain failed once, or one with a stated probability
more often than that.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext

from _support import torture

# Cases that a process takes at a time, and violations that are shown of each kind.
CASES, SHOWN = 250, 5


def say(text=""):
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def part(numbers):
    """Return the tally of some cases, as plain data."""
    tally = torture.Tally()
    for number in numbers:
        tally.add(torture.run(number))
    return tally.plain()


def one(number):
    """Show every check of one case."""
    case = torture.run(number)
    say(f"case {number}: {case.theme}; {case.name or case.refused}")
    for check in sorted(case.checks, key=lambda check: -check.worst):
        state = "BROKEN" if check.broken else "holds"
        say(f"  {state:<7} {check.kind:<40} low / high {check.worst:.6g}, stated {check.failure:g}")
    return any(check.broken for check in case.checks)


def many(streams, seed, workers):
    """Run many cases and print the tables."""
    start = time.perf_counter()
    tally = torture.Tally()
    numbers = [range(i, min(i + CASES, seed + streams)) for i in range(seed, seed + streams, CASES)]
    with ProcessPoolExecutor(workers) if workers > 1 else nullcontext() as pool:
        for plain in map(part, numbers) if pool is None else pool.map(part, numbers):
            seen = len(tally.violations)
            tally.merge(plain)
            for kind, worst, number, _ in tally.violations[seen:]:
                sys.stderr.write(f"\r{kind}: {worst:.6g} times, case {number}\n")
            sys.stderr.write(f"\r{tally.n_streams:,} streams, {len(tally.violations):,} violations")
    sys.stderr.write("\n")
    seconds = time.perf_counter() - start
    refused = sum(tally.refused.values())
    say(f"{tally.n_streams:,} streams, {refused:,} of them refused, in {seconds:.0f} s\n")
    say(torture.table(tally))
    say()
    say(torture.rules(tally))
    for reason, count in tally.refused.items():
        say(f"refused {count:,} times: {reason}")
    shown = dict.fromkeys((kind for kind, *_ in tally.violations), 0)
    for kind, worst, number, name in sorted(tally.violations, key=lambda v: (v[0], -v[1])):
        shown[kind] += 1
        if shown[kind] <= SHOWN:
            say(f"\n{kind}: {worst:.6g} times\n  {name}")
            say(f"  PYTHONPATH=tests python -m _support.torture_run --case {number}")
    return not tally.holds


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--streams", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0, help="number of the first case")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--case", type=int, help="run one case and show all of its checks")
    given = parser.parse_args(arguments)
    if given.case is not None:
        return int(one(given.case))
    return int(many(given.streams, given.seed, given.workers))


if __name__ == "__main__":
    sys.exit(main())
