"""Print what the tests reach of each package, and fail below a floor.

``python tools/coverage_by_package.py --fail-under 80`` reads .coverage, which ``make coverage`` has
written. Lines and branches count; compiled loops, which are not traced, do not.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

COUNTS = ("num_statements", "num_branches")
REACHED = ("covered_lines", "covered_branches")


def measured() -> dict[str, dict[str, int]]:
    """Return the counts of every file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "coverage.json"
        command = [sys.executable, "-m", "coverage", "json", "-q", "-o", str(path)]
        subprocess.run(command, check=True)
        files = json.loads(path.read_text())["files"]
    return {name: found["summary"] for name, found in files.items()}


def package(name: str) -> str:
    """Return the first folder of a file inside the package."""
    parts = Path(name).parts
    below = parts[parts.index("sksketch") + 1 :]
    return below[0] if len(below) > 1 else "sksketch"


def main() -> int:
    """Print a line for each package; return 1 if all together are below the floor."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fail-under", type=float, default=0.0, metavar="PERCENT")
    options = parser.parse_args()
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for name, summary in measured().items():
        for key in (package(name), "all"):
            counts[key][0] += sum(summary[count] for count in COUNTS)
            counts[key][1] += sum(summary[count] for count in REACHED)
    everything = counts.pop("all")
    for name, (total, reached) in [*sorted(counts.items()), ("in all", everything)]:
        sys.stdout.write(f"{name:<16}{total:8,} lines and branches{100 * reached / total:8.1f} %\n")
    percent = 100 * everything[1] / everything[0]
    if percent < options.fail_under:
        sys.stdout.write(f"{percent:.1f} % is below the floor of {options.fail_under:g} %\n")
    return 1 if percent < options.fail_under else 0


if __name__ == "__main__":
    sys.exit(main())
