"""Show two reports side by side: python -m benchmarks.compare A.json B.json.

Ratios to peers first; rates differ between machines, and are listed with --rates only.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from benchmarks.lib import runs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("first", type=Path)
    parser.add_argument("second", type=Path)
    parser.add_argument("--rates", action="store_true", help="list rates as well")
    options = parser.parse_args()
    reports = [json.loads(path.read_text()) for path in (options.first, options.second)]
    print(runs.markdown(("what", "A", "B"), versions(*reports)))
    if reports[0]["quick"] != reports[1]["quick"]:
        print("\nOne of them has small sizes: their figures are not comparable.")
    head = ("script", "case", "A", "B", "B / A", "spreads")
    print(f"\n{runs.markdown(head, rows(*(ratios(report) for report in reports)))}")
    if options.rates:
        print(f"\n{runs.markdown(head[:-1], rates(*reports))}")


def versions(first: dict[str, Any], second: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return the versions of both, each that either has."""
    names = dict.fromkeys([*first["versions"], *second["versions"]])
    return [
        (name, first["versions"].get(name, "-"), second["versions"].get(name, "-"))
        for name in names
    ]


def ratios(report: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    """Return every ratio of a report, by script and case."""
    return {
        (name, f"{r['where']}: {r['ours'].strip()} to {r['peer'].strip()}"): r
        for name, found in report["scripts"].items()
        for r in found["ratios"]
    }


def rows(first: dict[tuple[str, str], Any], second: dict[tuple[str, str], Any]) -> list[Any]:
    """Return a line for each ratio; spreads that do not meet are a difference."""
    lines = []
    for key in dict.fromkeys([*first, *second]):
        a, b = first.get(key), second.get(key)
        if a is None or b is None:
            lines.append(
                (*key, *("-" if r is None else f"{r['ratio']:.2f}" for r in (a, b)), "-", "-")
            )
            continue
        meet = a["low"] <= b["high"] and b["low"] <= a["high"]
        word = "overlap" if meet else "apart"
        if min(a["runs"], b["runs"]) < 2:
            word = "-"
        shown = f"{a['ratio']:.2f}", f"{b['ratio']:.2f}", f"{b['ratio'] / a['ratio']:.2f}"
        lines.append((*key, *shown, word))
    return lines


def rates(first: dict[str, Any], second: dict[str, Any]) -> list[tuple[str, ...]]:
    """Return the rates that both have."""
    lines = []
    for name, found in first["scripts"].items():
        other = second["scripts"].get(name, {"rates": {}})["rates"]
        for path, a in found["rates"].items():
            if path in other and a:
                b = other[path]
                lines.append((name, path, f"{a:.4g}", f"{b:.4g}", f"{b / a:.2f}"))
    return lines


if __name__ == "__main__":
    main()
