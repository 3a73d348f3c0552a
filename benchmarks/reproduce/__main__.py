"""Run the experiments of the five papers and hold every claim against our figures.

Each paper, and speed.sparse_rows for the sparse one, runs in a process of its own; one that fails
does not stop the others. For each NAME the folder of results gets NAME.json (versions, seeds,
figures, claims), NAME.md (the same as tables) and NAME/ (its pictures). claims.md and claims.json
have all claims, also those of an earlier run with the same versions whose script was not run
again. See benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.lib import runs
from benchmarks.lib.runs import RESULTS
from benchmarks.reproduce.claims import (
    FAILS,
    HOLDS,
    PAPERS,
    UNTESTABLE,
    Row,
    Run,
    embedding_figures,
    rows_of,
)

SPARSE, EMBEDDING = "ghashami2016", "embedding"
# The module of each name, in the order of the papers.
SCRIPTS = {
    "luo2019": "benchmarks.papers.luo2019",
    SPARSE: "benchmarks.speed.sparse_rows",
    EMBEDDING: "benchmarks.papers.embedding",
    "shi2021": "benchmarks.papers.shi2021",
    "xie2015": "benchmarks.papers.xie2015",
    "xie2015_latent": "benchmarks.papers.xie2015.latent",
    "xu2017": "benchmarks.papers.xu2017",
}
SPARSE_CASES = "default,rows,columns,small,large,sparse,dense,news"
HEAD = ("claim", "the paper", "ours", "verdict")
SMALL = "Small sizes: these verdicts show that the scripts work, not what the papers found."


def main() -> None:
    options = parse()
    options.results.mkdir(parents=True, exist_ok=True)
    facts = runs.versions()
    print("\n".join(f"{name:15}{value}" for name, value in facts.items()))
    claims = kept(facts, options)
    failures: dict[str, str] = {}
    for name in options.only:
        print(f"\nrunning {name} ...", flush=True)
        done, run = one(name, options)
        claims[name] = rows_of(name, run)
        if done.failure:
            failures[name] = done.failure
            print(f"{name} FAILED, {done.tail()}")
        write(name, done, run, claims[name], facts, options.results)
        show(name, claims[name], done)
    conclude(claims, failures, facts, options)
    sys.exit(1 if failures else 0)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, no stored data")
    parser.add_argument("--only", nargs="+", choices=SCRIPTS, metavar="NAME", help="of these")
    parser.add_argument("--results", type=Path, help="folder (benchmarks/results, quick/ in it)")
    options = parser.parse_args()
    options.results = options.results or (RESULTS / "quick" if options.quick else RESULTS)
    options.only = options.only or list(SCRIPTS)
    return options


def one(name: str, options: argparse.Namespace) -> tuple[runs.Done, Run]:
    """Run one script and read the JSON that it wrote."""
    folder = options.results / name
    folder.mkdir(exist_ok=True)
    for stale in folder.glob("*.json"):
        stale.unlink()
    arguments = ["--quick"] if options.quick else []
    if name == SPARSE:
        cases = "default,sparse" if options.quick else SPARSE_CASES
        arguments += ["--cases", cases, "--json", str(folder / "sparse.json")]
    elif name != EMBEDDING:
        arguments += ["--output", str(folder)]
    done = runs.run(SCRIPTS[name], arguments)
    failure = done.failure
    results: dict[str, Any] = {}
    if not failure:
        results = {p.stem: json.loads(p.read_text()) for p in sorted(folder.glob("*.json"))}
        # NAME.json has it all, and the site shows every file below results.
        for path in folder.glob("*.json"):
            path.unlink()
        if name == EMBEDDING:
            results[name] = embedding_figures(done.printed)
    return done, Run(results, done.printed, failure, options.quick)


def kept(facts: dict[str, str], options: argparse.Namespace) -> dict[str, list[Row]]:
    """Return the claims of earlier runs, in the order of the scripts."""
    claims = {}
    for name in SCRIPTS:
        path = options.results / f"{name}.json"
        if name in options.only:
            # Its place in the order.
            claims[name] = []
        elif path.exists():
            found = json.loads(path.read_text())
            if (found["versions"], found["quick"]) == (facts, options.quick):
                claims[name] = [Row(**row) for row in found["claims"]]
    return claims


def seeds(figures: Any) -> list[Any]:
    """Return the seeds and orders of rows that are named anywhere in the figures."""
    found: set[Any] = set()
    todo = [figures]
    while todo:
        item = todo.pop()
        if isinstance(item, dict):
            for key, value in item.items():
                if key in ("seed", "order"):
                    found.add(value)
                elif key == "seeds":
                    found.update(value)
            todo += item.values()
        elif isinstance(item, list):
            todo += item
    return sorted(found, key=lambda seed: (isinstance(seed, str), seed))


def write(
    name: str, done: runs.Done, run: Run, rows: list[Row], facts: dict[str, str], results: Path
) -> None:
    """Write NAME.json and NAME.md."""
    pictures = sorted(path.name for path in (results / name).glob("*.png"))
    said = [line.strip() for line in done.printed.splitlines() if re.search(r"\bseeds?\b", line)]
    everything = {
        "name": name,
        "command": done.command,
        "quick": run.quick,
        "versions": facts,
        "seeds": seeds(run.results) or said or "fixed in the script",
        "seconds": round(done.seconds, 1),
        "failure": done.failure,
        "claims": [asdict(row) for row in rows],
        "pictures": pictures,
        "results": run.results,
    }
    (results / f"{name}.json").write_text(json.dumps(everything, indent=1))
    text = [f"# {title(name)}", f"`{done.command}`, {done.seconds:.0f} s"]
    if run.quick:
        text.append(SMALL)
    text.append(runs.markdown(("what", "version"), list(facts.items())))
    text.append(f"Seeds or orders: {everything['seeds']}")
    text += ["## Claims", table(rows), "## Tables, as printed", runs.fenced(done.printed)]
    if done.failure:
        text += ["## Failure", runs.fenced(done.tail())]
    text += [f"![{picture}]({name}/{picture})" for picture in pictures]
    (results / f"{name}.md").write_text("\n\n".join(text) + "\n")


def title(name: str) -> str:
    return PAPERS[name][0] if name in PAPERS else name


def verdict(row: Row) -> str:
    return f"{row.verdict} ({row.why})" if row.why else row.verdict


def table(rows: list[Row]) -> str:
    """Return the claims as Markdown."""
    return runs.markdown(HEAD, [cells(row) for row in rows])


def cells(row: Row) -> tuple[str, str, str, str]:
    return row.claim, row.published, row.ours, verdict(row)


def show(name: str, rows: list[Row], done: runs.Done) -> None:
    """Print the claims of one script."""
    print(f"{title(name)}, {done.seconds:.0f} s")
    for row in rows:
        print(f"  {row.claim}\n      the paper: {row.published}; ours: {row.ours}")
        print(f"      {verdict(row)}", flush=True)


def conclude(
    claims: dict[str, list[Row]],
    failures: dict[str, str],
    facts: dict[str, str],
    options: argparse.Namespace,
) -> None:
    """Print how many claims hold and write the table of all of them."""
    words = (HOLDS, FAILS, UNTESTABLE)
    counts = [
        (
            name,
            *(sum(row.verdict == word for row in rows) for word in words),
            failures.get(name, ""),
        )
        for name, rows in claims.items()
    ]
    print(f"\n{'':16}{'holds':>8}{'does not':>10}{'not testable':>14}")
    for name, holds, fails, unknown, failure in counts:
        print(f"{name:16}{holds:8}{fails:10}{unknown:14}  {failure}".rstrip())
    text = ["# Claims of the papers"]
    if options.quick:
        print(SMALL)
        text.append(SMALL)
    text.append(runs.markdown(("what", "version"), list(facts.items())))
    text.append(runs.markdown(("paper", *words, "failure"), counts))
    for name, rows in claims.items():
        text += [f"## {title(name)}", table(rows)]
    (options.results / "claims.md").write_text("\n\n".join(text) + "\n")
    path = options.results / "claims.json"
    short = runs.tables(path, facts) | {
        title(name): [dict(zip(HEAD, cells(row), strict=True)) for row in rows]
        for name, rows in claims.items()
    }
    titles = [title(name) for name in SCRIPTS if title(name) in short]
    ordered = {name: short[name] for name in titles}
    path.write_text(json.dumps({"facts": facts} | ordered, indent=1))
    print(f"wrote claims.md, claims.json, {', '.join(f'{n}.json, {n}.md' for n in options.only)}")


if __name__ == "__main__":
    main()
