"""The parts of a report about kernel models, reductions and the models learned on them."""

from __future__ import annotations

from sksketch.present.findings import Estimates, PlainFindings
from sksketch.present.report import charts, html
from sksketch.present.report.formatting import number

MOST_OUTCOMES = 6
MOST_VALUES = 40


def figures(found: PlainFindings) -> list[tuple[str, str]]:
    """Return the figures at the top of the page."""
    wanted = ("rows seen", "columns", "components", "coordinates", "features", "clusters")
    shown = [
        (name.capitalize(), f"{found.facts[name]:,}") for name in wanted if name in found.facts
    ]
    return shown[:4]


def body(found: PlainFindings) -> str:
    """Return all that was found, part after part."""
    lead = html.paragraph(found.sentence, "lead")
    facts = dict(found.facts)
    plan = facts.pop("plan", "")
    entries = [(name.capitalize(), _text(value)) for name, value in facts.items()]
    plan = html.paragraph(f"{plan[:1].upper()}{plan[1:]}.") if plan else ""
    rated = [html.paragraph(f"{text[0].upper()}{text[1:]}.") for text in found.quality]
    box = html.card(lead, *rated, plan, html.facts(entries), kind="certificate")
    parts = [html.section("found", "What it is", box)]
    pictures = []
    if found.values is not None:
        quantity, values = found.values
        rows = [[str(i + 1), number(value, 6)] for i, value in enumerate(values)]
        title = f"{quantity.capitalize()}s"
        table = html.table(["Number", quantity.capitalize()], rows, title)
        chart = charts.spectrum(Estimates(values[:MOST_VALUES], None), quantity)
        pictures.append(html.figure(chart, title, [("estimate", quantity)], table))
    if found.points is not None:
        title = "Some rows"
        legend = [
            (
                "dot",
                f"{len(found.points.x):,} rows: {found.points.across} to the right, "
                f"{found.points.upward} upward",
            )
        ]
        pictures.append(html.figure(charts.scatter(found.points), title, legend))
    if pictures:
        parts.append(html.section("pictures", "Pictures", html.grid(pictures)))
    if found.largest:
        boxes = []
        for outcome, largest in list(found.largest.items())[:MOST_OUTCOMES]:
            title = f"Coefficients for {outcome}"
            bars = html.bars(list(largest.items()), "Coefficient", title)
            boxes.append(html.card(f"<h3>{html.name(title)}</h3>", bars))
        parts.append(html.section("coefficients", "Largest coefficients", html.grid(boxes)))
    return "".join(parts)


def _text(value: object) -> str:
    if isinstance(value, float):
        return number(value, 6)
    if isinstance(value, int):
        return f"{value:,}"
    return ", ".join(map(_text, value.tolist())) if hasattr(value, "tolist") else str(value)
