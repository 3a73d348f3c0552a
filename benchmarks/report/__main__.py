"""Run all comparisons of speed and write one report: ratios to peers and how far they spread.

report.json has versions, every ratio and all that the scripts wrote; report.md has the tables,
with a list of the cases that we lose; peers.json has the ratios alone. A script without JSON is
kept as it was printed, and one that is not run keeps its part of a report with the same versions.
Two reports are compared by benchmarks.compare. See benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.lib import runs
from benchmarks.lib.runs import RESULTS
from benchmarks.report.asked import Asked, asked, why_lost
from benchmarks.report.ratios import Ratio, rates, ratios

# The module of each part of a report.
SCRIPTS = {
    "dense": "benchmarks.speed.dense",
    "sparse": "benchmarks.speed.sparse_rows",
    "memory": "benchmarks.speed.peak_memory",
    "kernels": "benchmarks.speed.compiled_loops",
    "io": "benchmarks.speed.reading",
    "ridge": "benchmarks.speed.ridge",
    "online": "benchmarks.speed.online",
    "reduction": "benchmarks.speed.reduction",
    "kernel": "benchmarks.speed.kernel_components",
    "dask": "benchmarks.speed.clusters",
    "parquet": "benchmarks.speed.parquet_ridge",
    "scale_sim": "benchmarks.scale_sim",
    "windows": "benchmarks.speed.windows",
    "archives": "benchmarks.speed.archives",
    "changes": "benchmarks.speed.changes",
    "outliers": "benchmarks.speed.outliers",
    "moments": "benchmarks.speed.moments",
    "canonical": "benchmarks.speed.canonical",
}
WITHOUT_JSON = {"memory", "kernels"}
GOAL = ("script", "figure", "verdict")
ASKED = "What is asked of the figures"
HEAD = ("case", "ours", "peer", "peer's time over ours", "least", "most", "runs")


def main() -> None:
    options = parse()
    options.results.mkdir(parents=True, exist_ok=True)
    facts = runs.versions()
    print("\n".join(f"{name:15}{value}" for name, value in facts.items()))
    scripts = kept(facts, options)
    report = {"versions": facts, "quick": options.quick, "scripts": scripts}
    for name in options.only:
        print(f"\nrunning {name} ...", flush=True)
        scripts[name] = one(name, options)
        print(scripts[name]["printed"])
        if failure := scripts[name]["failure"]:
            print(f"{name} FAILED: {failure}", flush=True)
        # After each, so that a run that is stopped leaves what it has.
        (options.results / "report.json").write_text(json.dumps(report, indent=1))
        (options.results / "report.md").write_text(text(report))
        path = options.results / "peers.json"
        path.write_text(json.dumps(peers(report, runs.tables(path, facts)), indent=1))
    print(goals(scripts), losses(scripts), sep="\n\n")
    print("wrote report.json, report.md and peers.json")
    sys.exit(1 if any(scripts[name]["failure"] for name in options.only) else 0)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, a minute or two")
    parser.add_argument("--only", nargs="+", choices=SCRIPTS, metavar="NAME", help="of these")
    parser.add_argument("--results", type=Path, help="folder (benchmarks/results, quick/ in it)")
    options = parser.parse_args()
    options.results = options.results or (RESULTS / "quick" if options.quick else RESULTS)
    options.only = options.only or list(SCRIPTS)
    return options


def kept(facts: dict[str, str], options: argparse.Namespace) -> dict[str, Any]:
    """Return what an earlier report has of scripts that are not to be run."""
    path = options.results / "report.json"
    if not path.exists():
        return {}
    found = json.loads(path.read_text())
    if (found["versions"], found["quick"]) != (facts, options.quick):
        return {}
    return {name: part for name, part in found["scripts"].items() if name not in options.only}


def one(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """Run one script; return what it printed and wrote, and the ratios in it."""
    arguments = ["--quick"] if options.quick else []
    written = options.results / f"speed-{name}.json"
    written.unlink(missing_ok=True)
    if name not in WITHOUT_JSON:
        arguments += ["--json", str(written)]
    done = runs.run(SCRIPTS[name], arguments)
    results = json.loads(written.read_text()) if written.exists() else {}
    written.unlink(missing_ok=True)
    figures = results.get("results", results)
    return {
        "command": done.command,
        "seconds": round(done.seconds, 1),
        "failure": done.failure,
        "ratios": [asdict(found) for found in ratios(figures)],
        "rates": dict(rates(figures)),
        "printed": done.printed,
        "results": results,
    }


def row(found: dict[str, Any]) -> tuple[object, ...]:
    spread = ("-", "-")
    if found["runs"] > 1:
        spread = f"{found['low']:.2f}", f"{found['high']:.2f}"
    names = found["where"], found["ours"], found["peer"]
    return *names, f"{found['ratio']:.2f}", *spread, found["runs"]


def text(report: dict[str, Any]) -> str:
    """Return the report as Markdown."""
    parts = ["# Speed beside peers"]
    if report["quick"]:
        parts.append("Small sizes: the ratios show that the scripts work, not what they gain.")
    parts.append(runs.markdown(("what", "version"), list(report["versions"].items())))
    parts += [f"## {ASKED}", goals(report["scripts"])]
    parts += ["## Cases that we lose", losses(report["scripts"])]
    for name, found in report["scripts"].items():
        parts += [f"## {name}", f"`{found['command']}`, {found['seconds']:.0f} s"]
        if found["failure"]:
            parts.append(f"**Failed**: {found['failure']}")
        if found["ratios"]:
            parts.append(runs.markdown(HEAD, [row(ratio) for ratio in found["ratios"]]))
        if found["rates"]:
            lines = [(path, f"{value:.4g}") for path, value in found["rates"].items()]
            parts.append(runs.markdown(("rate or ratio", "value"), lines))
        parts.append(runs.fenced(found["printed"] or "nothing was printed"))
    return "\n\n".join(parts) + "\n"


def goals(scripts: dict[str, dict[str, Any]]) -> str:
    """Return every figure that a script is held to, with the reason of those that fall short."""
    found = asked(scripts)
    said = f"{sum(one.met for one in found)} of {len(found)} figures that are asked for are met."
    if not found:
        return said
    return f"{said}\n\n{runs.markdown(GOAL, [goal(one) for one in found])}"


def goal(one: Asked) -> tuple[str, str, str]:
    return one.script, one.text, "met" if one.met else f"short: {one.why}"


def peers(report: dict[str, Any], earlier: dict[str, Any]) -> dict[str, Any]:
    """Return what was asked for and the ratios, as tables for the site.

    Scripts that the report does not have keep their tables of an earlier one.
    """
    scripts = report["scripts"]
    tables = {title: lines for title, lines in earlier.items() if script_of(title) not in scripts}
    for name, part in scripts.items():
        lines = [dict(zip(HEAD, row(ratio), strict=True)) for ratio in part["ratios"]]
        tables[f"{name}: {part['command']}"] = lines
    reached = [line for line in earlier.get(ASKED, []) if line["script"] not in scripts]
    reached += [dict(zip(GOAL, goal(one), strict=True)) for one in asked(scripts)]
    # Those that fall short first, each in the order of the scripts.
    order = list(SCRIPTS)
    reached.sort(key=lambda line: (line["verdict"] == "met", order.index(line["script"])))
    titles = sorted(filter(script_of, tables), key=lambda title: order.index(script_of(title)))
    return {
        "facts": report["versions"],
        ASKED: reached,
        **{title: tables[title] for title in titles},
    }


def script_of(title: str) -> str:
    """Return the script whose ratios a table has, or nothing."""
    name = title.partition(":")[0]
    return name if name in SCRIPTS else ""


def losses(scripts: dict[str, dict[str, Any]]) -> str:
    """Return the cases in which a peer takes less time, the worst first."""
    every = [(name, Ratio(**r)) for name, found in scripts.items() for r in found["ratios"]]
    lost = sorted(((n, r) for n, r in every if r.ratio < 1.0), key=lambda pair: pair[1].ratio)
    said = f"A peer takes less time in {len(lost)} of {len(every)} comparisons. "
    said += "Its error may be larger, and it may need all rows at once: see the tables as printed."
    if not lost:
        return said
    lines = [(name, *row(asdict(ratio)), why_lost(name, ratio.peer)) for name, ratio in lost]
    return f"{said}\n\n{runs.markdown(('script', *HEAD, 'why'), lines)}"


if __name__ == "__main__":
    main()
