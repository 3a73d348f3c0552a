"""Directives for pages that are made of other files: the changelog, figures and commands."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import nested_parse_with_titles

ROOT = Path(__file__).resolve().parents[2]
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
    """Add the directives of this folder."""
    import command_pages
    import kept_figures

    app.add_directive("changelog", Changelog)
    for made in (*kept_figures.DIRECTIVES, *command_pages.DIRECTIVES):
        app.add_directive(*made)
    return {"parallel_read_safe": True}
