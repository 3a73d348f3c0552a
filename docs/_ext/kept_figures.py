"""Directives for the figures that were kept: ratios to peers, verdicts on claims, runs on a GPU."""

from __future__ import annotations

import json
import math
import sys
from collections import Counter, defaultdict
from html import escape
from pathlib import Path
from typing import Any

from site_pages import ROOT, Made, shown

sys.path.insert(0, str(ROOT))
from tools.picture import drawn

RESULTS = ROOT / "benchmarks" / "results"
# What the figures of a stream are.
FIGURES = {"classification": ("error", "log loss"), "regression": ("mean error", "RMSE")}
# What a claim came to, and its color.
VERDICTS = {"holds": "#0a7d91", "does not hold": "#b5541c", "not testable here": "#aab7bb"}


class Kept(Made):
    """A directive that reads one file of the results."""

    required_arguments = 1
    final_argument_whitespace = True

    def read(self, name: str) -> Any:
        path = RESULTS / name
        self.env.note_dependency(str(path))
        return json.loads(path.read_text(encoding="utf-8"))


class BesidePeers(Kept):
    """A chart and a table of the ratios of one script of ``benchmarks.speed``."""

    def made(self) -> list[str]:
        figures = self.read("peers.json")
        script = self.arguments[0]
        ((command, records),) = ((k, v) for k, v in figures.items() if k.startswith(f"{script}:"))
        return [
            *facts_of(figures),
            f"``{command.partition(': ')[2]}`` measured, in one run on the same rows:",
            "",
            *inline(drawn(bars(records))),
            "The peer's time over ours, the median of all runs, by case. Above 1 we are faster.",
            "",
            *table(pivot(records), []),
        ]


def bars(records: list[dict[str, Any]]) -> list[tuple[str, float, float]]:
    """Return every peer with the least and the greatest of its medians.

    >>> bars([{"peer": "a", "peer's time over ours": n} for n in ("2.5", "0.5")])
    [('a', 0.5, 2.5)]
    """
    found = defaultdict(list)
    for record in records:
        found[record["peer"]].append(float(record["peer's time over ours"]))
    return [(peer[:31], min(ratios), max(ratios)) for peer, ratios in found.items()]


def pivot(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return one record for each case, with a field for each peer."""
    names = {record["ours"] for record in records}
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for record in records:
        row = rows.setdefault((record["case"], record["ours"]), {"case": record["case"]})
        if len(names) > 1:
            row["ours"] = record["ours"]
        row[record["peer"]] = record["peer's time over ours"]
    return list(rows.values())


class Asked(Kept):
    """The figures that the scripts are held to, and the reason where one falls short."""

    required_arguments = 0

    def made(self) -> list[str]:
        figures = self.read("peers.json")
        records = figures["What is asked of the figures"]
        return [*facts_of(figures), *table(records, [])]


class ClaimsInShort(Kept):
    """A chart of what the claims of each paper came to."""

    required_arguments = 0

    def made(self) -> list[str]:
        figures = self.read("claims.json")
        counts = {
            title: Counter(verdict_of(record) for record in records)
            for title, records in figures.items()
            if title != "facts"
        }
        return [*facts_of(figures), *inline(stacked(counts))]


def verdict_of(record: dict[str, Any]) -> str:
    return next(name for name in VERDICTS if record["verdict"].startswith(name))


def stacked(counts: dict[str, Counter[str]]) -> str:
    """Return a bar for each paper, with a part for each verdict, as SVG."""
    left, width, row, top = 16, 520, 50, 44
    most = max(map(Counter.total, counts.values()))
    height = top + row * len(counts) + 8
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 680 {height}" role="img"'
        ' font-family="system-ui, sans-serif" font-size="14" fill="#1b2a30">',
        "<title>How many claims of each paper hold here</title>",
        f'<rect width="680" height="{height}" rx="8" fill="#fff"/>',
    ]
    for i, (verdict, color) in enumerate(VERDICTS.items()):
        x = left + 170 * i
        lines += [
            f'<rect x="{x}" y="14" width="14" height="14" rx="3" fill="{color}"/>',
            f'<text x="{x + 20}" y="26">{verdict}</text>',
        ]
    for i, (title, found) in enumerate(counts.items()):
        x, y = float(left), top + row * i
        lines.append(f'<text x="{left}" y="{y + 15}">{escape(title)}</text>')
        for verdict, color in VERDICTS.items():
            size = width * found[verdict] / most
            if size:
                lines += [
                    f'<rect x="{x:.1f}" y="{y + 21}" width="{size:.1f}" height="18"'
                    f' fill="{color}"/>',
                    f'<text x="{x + size / 2:.1f}" y="{y + 35}" font-size="12" fill="#fff"'
                    f' text-anchor="middle" font-weight="600">{found[verdict]}</text>',
                ]
            x += size
    return "\n".join([*lines, "</svg>", ""])


class Claims(Kept):
    """Every claim of one paper: its figure, ours and what it came to."""

    def made(self) -> list[str]:
        figures = self.read("claims.json")
        (name,) = self.arguments
        (title,) = (title for title in figures if title == name)
        return table(figures[title], [])


class OnGPU(Kept):
    """Tables and pictures of the runs on a GPU."""

    required_arguments = 0

    def made(self) -> list[str]:
        lines: list[str] = []
        for path in sorted(RESULTS.glob("gpu/*.json")):
            lines += section(path.stem, self.read(f"gpu/{path.name}"), path.with_suffix(".png"))
        return lines


class Streams(Kept):
    """Tables of the errors of online learners, a row for each stream."""

    required_arguments = 0

    def made(self) -> list[str]:
        figures = self.read("streams.json")
        lines = facts_of(figures)
        for task, streams in figures["results"].items():
            for which, name in enumerate(FIGURES[task]):
                records = [
                    {"stream": stream} | {m: of_line(line, which) for m, line in found.items()}
                    for stream, found in ((k, v["lines"]) for k, v in streams.items() if v["lines"])
                ]
                lines += ["", f"{task}, {name}".capitalize(), "-" * len(f"{task}, {name}"), ""]
                lines += table(records, [])
        return lines


def of_line(line: dict[str, Any], which: int) -> float | None:
    """Return one figure of a learner, if it has run and has that."""
    value = line["figures"][which] if not line["skipped"] else math.nan
    return None if math.isnan(value) else value


class Threads(Kept):
    """Tables of seconds, a column for each number of threads."""

    required_arguments = 0

    def made(self) -> list[str]:
        figures = self.read("threads.json")
        lines = facts_of({"facts": figures["machine"]})
        for job in figures["jobs"]:
            records = [
                {"seconds on": name} | {f"{n} threads": v for n, v in seconds.items()}
                for name, seconds in job["seconds"].items()
            ]
            lines += ["", job["job"], "-" * len(job["job"]), "", *table(records, [])]
        return lines


DIRECTIVES = (
    ("beside-peers", BesidePeers),
    ("asked-figures", Asked),
    ("claims-in-short", ClaimsInShort),
    ("claims", Claims),
    ("gpu-figures", OnGPU),
    ("streams-figures", Streams),
    ("threads-figures", Threads),
)


def facts_of(figures: dict[str, Any]) -> list[str]:
    """Return one line with versions and machine."""
    facts = {name: value for name, value in figures.items() if plain(value)}
    facts |= figures.get("facts", {}) | figures.get("versions", {})
    return ["*" + "; ".join(f"{spoken(k)} {said(v)}" for k, v in facts.items()) + "*", ""]


def said(fact: Any) -> str:
    return ", ".join(map(shown, fact)) if isinstance(fact, list) else shown(fact)


def inline(svg: str) -> list[str]:
    """Return a picture that is part of the page."""
    return [".. raw:: html", "", *(f"   {line}" for line in svg.splitlines()), ""]


def section(title: str, figures: dict[str, Any], picture: Path | None) -> list[str]:
    """Return a heading, the facts, the tables and the picture of one file."""
    lines = ["", title, "-" * len(title), ""] if title else []
    lines += facts_of(figures)
    named = ("facts", "versions")
    lines += tables({n: v for n, v in figures.items() if n not in named and not plain(v)}, [])
    if picture is not None and picture.exists():
        lines += [f".. image:: /../{picture.relative_to(ROOT).as_posix()}", f"   :alt: {title}", ""]
    return lines


def tables(value: Any, trail: list[str]) -> list[str]:
    """Return tables of all records in a tree of figures, each with its way from the root."""
    if isinstance(value, list):
        records = [v for v in value if isinstance(v, dict)]
        if all(flat(wide(v)) for v in records):
            return table([wide(v) for v in records], trail) if records else []
        return [line for v in records for line in tables(v, [*trail, name_of(v)])]
    if not isinstance(value, dict):
        return []
    deeper = {name: v for name, v in value.items() if not plain(v)}
    if not deeper:
        return table([value], trail) if value else []
    if all(map(flat, deeper.values())):
        return table([{"": spoken(name)} | v for name, v in deeper.items()], trail)
    return [line for name, v in deeper.items() for line in tables(v, [*trail, name])]


def name_of(record: dict[str, Any]) -> str:
    """Return the name of a record, or its plain values."""
    own = {name: v for name, v in record.items() if plain(v)}
    return own.get("name") or ", ".join(f"{spoken(n)} {shown(v)}" for n, v in own.items())


def wide(record: dict[str, Any]) -> dict[str, Any]:
    """Put small records inside a record beside its own values.

    >>> wide({"error": 1, "seconds": {"median": 2}})
    {'error': 1, 'seconds median': 2}
    """
    found = {}
    for name, value in record.items():
        inner = value if isinstance(value, dict) and flat(value) else None
        found |= {name: value} if inner is None else {f"{name} {n}": v for n, v in inner.items()}
    return found


def flat(record: Any) -> bool:
    return isinstance(record, dict) and all(plain(v) for v in record.values())


def table(records: list[dict[str, Any]], trail: list[str]) -> list[str]:
    """Return one list-table of flat records."""
    names = list(dict.fromkeys(name for record in records for name in record))
    title = ", ".join(spoken(name) for name in trail if name != "results")
    lines = [f".. list-table:: {title}", "   :header-rows: 1", "   :class: figures", ""]
    for row in ([spoken(n) for n in names], *([shown(r.get(n)) for n in names] for r in records)):
        lines += [f"   {'* -' if i == 0 else '  -'} {cell}" for i, cell in enumerate(row)]
    return [*lines, ""]


def plain(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float)


def spoken(name: str) -> str:
    return name.replace("_", " ")
