"""The few things that a page is made of, as HTML; whatever comes from data is escaped here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from sksketch.present.report.formatting import aligned

LONGEST_NAME, LONGEST_TIP = 64, 400


def name(text: str) -> str:
    """Return the name of a column, cut where it is longer than anyone reads.

    >>> name("<b>")
    '<bdi>&lt;b&gt;</bdi>'
    """
    if len(text) <= LONGEST_NAME:
        return f"<bdi>{escape(text)}</bdi>"
    tip = escape(text[:LONGEST_TIP])
    return f'<bdi title="{tip}">{escape(text[: LONGEST_NAME - 1])}…</bdi>'


def section(identity: str, title: str, *parts: str) -> str:
    """Return a part of the page under a heading."""
    return (
        f'<section aria-labelledby="{identity}"><h2 id="{identity}">{escape(title)}</h2>'
        f"{''.join(parts)}</section>"
    )


def card(*parts: str, kind: str = "") -> str:
    """Return a box."""
    return f'<div class="{f"card {kind}".strip()}">{"".join(parts)}</div>'


def grid(parts: Iterable[str], kind: str = "") -> str:
    """Return boxes side by side, or one below the other where the screen is narrow."""
    return f'<div class="{f"grid {kind}".strip()}">{"".join(parts)}</div>'


def paragraph(text: str, kind: str = "") -> str:
    """Return a paragraph of plain text."""
    return f"<p{_class(kind)}>{escape(text)}</p>"


def figure(chart: str, title: str, legend: Sequence[tuple[str, str]], table: str = "") -> str:
    """Return a chart with its heading, what its marks mean, and its numbers to unfold."""
    keys = "".join(f'<li><i class="{mark}"></i>{escape(text)}</li>' for mark, text in legend)
    numbers = f"<details><summary>Numbers</summary>{table}</details>" if table else ""
    return (
        f'<figure class="card"><figcaption><h3>{escape(title)}</h3>'
        f'<ul class="legend">{keys}</ul></figcaption>{chart}{numbers}</figure>'
    )


def table(headers: Sequence[str], rows: Iterable[Sequence[str]], caption: str) -> str:
    """Return a table of texts; the first column names the rows."""
    head = "".join(f'<th scope="col">{escape(header)}</th>' for header in headers)
    body = "".join(
        f'<tr><th scope="row">{escape(first)}</th>'
        + "".join(f"<td>{escape(cell)}</td>" for cell in rest)
        + "</tr>"
        for first, *rest in rows
    )
    return (
        f'<div class="scroll"><table><caption>{escape(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def bars(
    entries: Sequence[tuple[str, float]], heading: str, caption: str, error: float = 0.0
) -> str:
    """Return a table of columns and values with a bar for each, around zero.

    A positive ``error`` widens every value to an interval, which is drawn as well.
    """
    reach = max((abs(value) for _, value in entries), default=0.0)
    # A bound that says nothing must not flatten the bars: it may reach over their end.
    reach = (reach + min(error, reach)) or 1.0
    rows = "".join(
        f'<tr><th scope="row">{name(column)}</th><td class="bars" aria-hidden="true">'
        f'<span class="track">{_bar(value / reach)}{_spread(value, error, reach)}</span></td>'
        f'<td class="value">{text}</td></tr>'
        for (column, value), text in zip(entries, aligned([v for _, v in entries]), strict=True)
    )
    return (
        f'<table class="loadings"><caption>{escape(caption)}</caption><thead><tr>'
        f'<th scope="col">Column</th><td class="bars"></td><th scope="col" class="value">'
        f"{escape(heading)}</th></tr></thead><tbody>{rows}</tbody></table>"
    )


def _bar(share: float) -> str:
    side = "below" if share < 0 else "above"
    return f'<span class="{side}" style="width:{50 * abs(share):.2f}%"></span>'


def _spread(value: float, error: float, reach: float) -> str:
    """Return the line of an error bar."""
    if not 0 < error < float("inf"):
        return ""
    low = max((value - error) / reach, -1.0)
    high = min((value + error) / reach, 1.0)
    left, width = 50 * (1 + low), 50 * (high - low)
    return f'<span class="spread" style="left:{left:.2f}%;width:{width:.2f}%"></span>'


def facts(entries: Sequence[tuple[str, str]], kind: str = "facts") -> str:
    """Return names and values; a value is text."""
    pairs = "".join(
        f"<div><dt>{escape(term)}</dt><dd>{escape(value)}</dd></div>" for term, value in entries
    )
    return f'<dl class="{kind}">{pairs}</dl>'


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""
