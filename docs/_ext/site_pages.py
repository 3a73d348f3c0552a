"""Directives for pages that are made of other files: the changelog and the kept figures."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import nested_parse_with_titles

ROOT = Path(__file__).resolve().parents[2]
TITLES = {"claims.json": "Claims of the papers", "peers.json": "Speed beside peers"}
LEVELS = {"#": "=", "##": "-", "###": "."}


class Made(SphinxDirective):
    """A directive whose text comes from `made`."""

    def made(self) -> list[str]:
        raise NotImplementedError

    def run(self) -> list[nodes.Node]:
        node = nodes.section()
        node.document = self.state.document
        nested_parse_with_titles(self.state, StringList(self.made(), source=str(ROOT)), node)
        return node.children


class Changelog(Made):
    """CHANGELOG.md, as reStructuredText."""

    def made(self) -> list[str]:
        path = ROOT / "CHANGELOG.md"
        self.env.note_dependency(str(path))
        return changelog(path.read_text(encoding="utf-8"))


def changelog(text: str) -> list[str]:
    """Turn headings, code and links of the changelog into those of reStructuredText.

    >>> changelog("## 1.0\\n\\n- `fit`: a_ and [b](c)")
    ['', '1.0', '---', '', '- ``fit``: a\\\\_ and b']
    """
    lines: list[str] = []
    for line in text.splitlines():
        mark, _, title = line.partition(" ")
        if mark == "#":
            continue
        if mark in LEVELS:
            lines += ["", title, LEVELS[mark] * len(title)]
            continue
        line = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", line)
        spans = line.split("`")
        spans[::2] = [re.sub(r"([*_|\\])", r"\\\1", span) for span in spans[::2]]
        lines.append("``".join(spans))
    return lines


class KeptFigures(Made):
    """Tables of the claims, of the ratios to peers and of what was measured on a GPU."""

    def made(self) -> list[str]:
        folder = ROOT / "benchmarks" / "results"
        lines: list[str] = []
        chosen = [folder / name for name in TITLES] + sorted(folder.glob("gpu/*.json"))
        for path in filter(Path.exists, chosen):
            self.env.note_dependency(str(path))
            name = path.relative_to(folder).as_posix()
            lines += section(TITLES.get(name, name), path)
        return lines or ["No figures have been kept here; ``make bench`` measures them anew."]


def section(title: str, path: Path) -> list[str]:
    """Return a heading, the facts, the tables and the picture of one file."""
    figures = json.loads(path.read_text(encoding="utf-8"))
    lines = ["", f"{title}", "-" * len(title), ""]
    facts = {name: value for name, value in figures.items() if plain(value)}
    facts |= figures.get("facts", {})
    lines += ["*" + "; ".join(f"{spoken(k)} {v}" for k, v in facts.items()) + "*", ""]
    rest = {name: v for name, v in figures.items() if name != "facts" and not plain(v)}
    lines += tables(rest, [])
    picture = path.with_suffix(".png")
    if picture.exists():
        lines += [f".. image:: ../{picture.relative_to(ROOT).as_posix()}", f"   :alt: {title}", ""]
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


def shown(value: Any) -> str:
    """Return a figure with few digits.

    >>> shown(12345.678), shown(0.0123456), shown(7), shown(None), shown("- a_")
    ('12,346', '0.01235', '7', '', '\\\\- a\\\\_')
    """
    if value is None:
        return ""
    if isinstance(value, bool | str):
        # No markup, and no list where a cell begins with a dash.
        return re.sub(r"([*_|`\\]|^[-+])", r"\\\1", str(value))
    if isinstance(value, int) or abs(value) >= 10_000:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def setup(app: Any) -> dict[str, bool]:
    app.add_directive("changelog", Changelog)
    app.add_directive("kept-figures", KeptFigures)
    return {"parallel_read_safe": True}
