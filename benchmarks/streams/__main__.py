"""Progressive error of the online learners at their defaults, beside what a user has.

Every row is predicted, then learned from, in one pass. Nothing is tuned, for anybody. Methods
that are not run keep the figures that --json has from the same versions. See benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.lib.threads import one_thread

import numpy as np

from benchmarks.lib import runs
from benchmarks.lib.runs import RESULTS
from benchmarks.streams import classifiers, data, regressors
from benchmarks.streams.verdicts import in_words, shortened, summary, table, verdict

# What a figure of each task is called.
NAMES = {"classification": ("error", "log loss"), "regression": ("MAE", "RMSE")}
# Diverging learners, and those that warn about their own numbers.
IGNORED = (RuntimeWarning, FutureWarning)


def main() -> None:
    options = parse()
    begun = time.perf_counter()
    facts = runs.versions() | {name: runs.version(name) for name in ("river", "vowpalwabbit")}
    print("\n".join(f"{name:15}{value}" for name, value in facts.items()))
    print(f"{'ours':15}{json.dumps(options.parameters) if options.parameters else 'defaults'}")
    kept = kept_results(options, facts)
    results = dict(kept)
    with one_thread(), warnings.catch_warnings():
        for kind in IGNORED:
            warnings.simplefilter("ignore", kind)
        for task in options.tasks:
            results[task] = run_task(task, options, kept.get(task, {}))
    for task in options.tasks:
        print_tables(task, results[task], options.parameters)
    print(f"\n{time.perf_counter() - begun:.0f} s")
    options.json.parent.mkdir(parents=True, exist_ok=True)
    figures = {"versions": facts, "quick": options.quick, "results": results}
    figures["parameters"] = options.parameters
    options.json.write_text(json.dumps(figures, indent=1))


def kept_results(options: argparse.Namespace, facts: dict[str, str]) -> dict[str, Any]:
    """Return the figures of an earlier run, if its peers and sizes were the same.

    Those of ours stay only if it had the same parameters.
    """
    path: Path = options.json
    if not path.exists():
        return {}
    found = json.loads(path.read_text())
    # Ours is what changes between two runs, and it is run again.
    before, now = (
        {k: v for k, v in f.items() if k != "sksketch"} for f in (found["versions"], facts)
    )
    if (before, found["quick"]) != (now, options.quick):
        print(f"the figures in {path.name} are of other versions or sizes and are not kept")
        return {}
    results: dict[str, Any] = found["results"]
    if found["parameters"] != options.parameters:
        for stream in (one for streams in results.values() for one in streams.values()):
            for name in (classifiers.OURS, regressors.OURS):
                stream["lines"].pop(name, None)
    return results


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="the first rows of a few streams")
    parser.add_argument("--tasks", default=",".join(NAMES), help="classification, regression")
    parser.add_argument("--streams", default="", help="names, separated by commas (all)")
    parser.add_argument("--methods", default="", help="beginnings of names (all)")
    parser.add_argument("--parameters", type=json.loads, default={}, help="JSON, for ours")
    parser.add_argument("--json", type=Path, help="figures (results/streams.json)")
    options = parser.parse_args()
    folder = RESULTS / "quick" if options.quick else RESULTS
    options.json = options.json or folder / "streams.json"
    for name in ("tasks", "streams", "methods"):
        words = getattr(options, name)
        setattr(options, name, [word.strip() for word in words.split(",") if word.strip()])
    return options


def run_task(task: str, options: argparse.Namespace, kept: dict[str, Any]) -> dict[str, Any]:
    """Run and print all streams of one task; return the figures, those kept included."""
    classify = task == "classification"
    sources = {
        (True, True): data.QUICK_CLASSIFICATION,
        (True, False): data.CLASSIFICATION,
        (False, True): data.QUICK_REGRESSION,
        (False, False): data.REGRESSION,
    }[classify, options.quick]
    module: Any = classifiers if classify else regressors
    methods = module.methods(options.parameters)
    results: dict[str, Any] = {}
    for name, source in sources.items():
        if options.streams and name not in options.streams:
            if name in kept:
                results[name] = kept[name]
            continue
        if missing := source.missing():
            print(f"\n{name}: skipped, {missing}")
            results[name] = {"skipped": missing, "lines": {}}
            continue
        stream = source.make()
        stream = stream.first(data.QUICK_ROWS) if options.quick else stream
        shape = " x ".join(f"{n:,}" for n in stream.X.shape)
        print(f"\n{name}: {shape}" + (f", {stream.n_classes} classes" if classify else ""))
        lines = run_stream(stream, methods, options, kept.get(name, {}).get("lines", {}), task)
        if classify:
            error = verdict(column(lines, 0), module.OURS, module.PEERS)
            print("  error: " + in_words(error))
        results[name] = {"skipped": "", "shape": stream.X.shape, "lines": lines}
    return results


def column(lines: dict[str, Any], which: int) -> dict[str, float]:
    """Return one figure of every method that has it."""
    return {name: line["figures"][which] for name, line in lines.items() if not line["skipped"]}


def print_tables(task: str, results: dict[str, Any], parameters: dict[str, Any]) -> None:
    """Print a line for each stream, and hold the errors of classifiers against what is asked."""
    module: Any = classifiers if task == "classification" else regressors
    peers = (module.PEERS, module.LOSS_PEERS if task == "classification" else module.PEERS)
    ran = {name: result["lines"] for name, result in results.items() if not result["skipped"]}
    for which, figure in enumerate(NAMES[task]):
        figures = {name: column(lines, which) for name, lines in ran.items()}
        setting = f"ours with {json.dumps(parameters)}" if parameters else "at defaults"
        print(f"\n{figure}, progressive, {setting}:")
        print("\n".join(table(figures, module.OURS, peers[which])))
        if task == "classification" and not which:
            found = {name: verdict(f, module.OURS, module.PEERS) for name, f in figures.items()}
            print("\n".join(summary(found)))


def run_stream(
    stream: data.Stream,
    methods: dict[str, Any],
    options: argparse.Namespace,
    kept: dict[str, Any],
    task: str,
) -> dict[str, Any]:
    """Run and print all methods on one stream."""
    lines: dict[str, Any] = {}
    print(f"  {'':28}{NAMES[task][0]:>12}{NAMES[task][1]:>12}{'seconds':>10}")
    for name, method in methods.items():
        if options.methods and not name.startswith(tuple(options.methods)):
            if name not in kept:
                continue
            lines[name] = kept[name]
        else:
            lines[name] = one(method, stream)
        line = lines[name]
        if line["skipped"]:
            print(f"  {name:28}{'-':>12}{'-':>12}{'':10}  {line['skipped']}", flush=True)
            continue
        shown = [shortened(figure) for figure in line["figures"]]
        seconds = f"{line['seconds']:.1f}"
        print(f"  {name:28}{shown[0]:>12}{shown[1]:>12}{seconds:>10}", flush=True)
    return lines


def one(method: Any, stream: data.Stream) -> dict[str, Any]:
    """Run one method; return its two figures and its time, or why there are none."""
    if reason := method.skipped(stream):
        return {"skipped": reason}
    run: Callable[[data.Stream], tuple[float, float]] = getattr(method, "figures", method.run)
    begun = time.perf_counter()
    try:
        figures = run(stream)
    except (ValueError, OverflowError, np.linalg.LinAlgError) as error:
        return {"skipped": f"failed: {str(error).splitlines()[0][:80]}"}
    seconds = time.perf_counter() - begun
    return {"skipped": "", "figures": figures, "seconds": seconds}


if __name__ == "__main__":
    main()
