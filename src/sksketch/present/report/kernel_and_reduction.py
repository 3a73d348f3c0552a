"""The parts of a report about kernel models, reductions and the models learned on them."""

from __future__ import annotations

import numpy as np

from sksketch.models.inference import Inference
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
        ends = None if found.intervals is None else found.intervals[:MOST_VALUES]
        if ends is not None and not np.isfinite(ends).all():
            ends = None
        chart = charts.spectrum(Estimates(values[:MOST_VALUES], ends), quantity)
        legend = [("interval", "certified interval")] * (ends is not None)
        pictures.append(html.figure(chart, title, [*legend, ("estimate", quantity)], table))
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
    if found.inference is not None:
        parts.append(standard_errors(found.inference))
    return "".join(parts)


def standard_errors(found: Inference) -> str:
    """Return coefficients with standard errors, as a table for each target."""
    letter = "t" if found.distribution == "t" else "z"
    headers = ["Coefficient", "Estimate", "Standard error", letter, "p", "From", "To"]
    boxes = []
    for target in range(found.n_targets):
        rows = []
        for name, *values in zip(found.names, *found.columns(target).values(), strict=True):
            rows.append([html.name(str(name)), *(number(float(value), 4) for value in values)])
        facts = found.facts(target)
        several = f" of target {target + 1}" if found.n_targets > 1 else ""
        text = (
            f"{found.title}{several}: R2 {number(facts['r2'], 4)}, {facts['rows']:,.6g} rows, "
            f"{number(facts['df_resid'], 6)} degrees of freedom. The intervals have level "
            f"{found.confidence:g}, with {found.covariance} standard errors."
        )
        notes = [html.paragraph(f"{note[:1].upper()}{note[1:]}.", "note") for note in found.notes]
        caption = f"Coefficients with standard errors{several}"
        boxes.append(html.card(html.paragraph(text), html.table(headers, rows, caption), *notes))
    return html.section("inference", "Standard errors", *boxes)


def _text(value: object) -> str:
    if isinstance(value, float):
        return number(value, 6)
    if isinstance(value, int):
        return f"{value:,}"
    return ", ".join(map(_text, value.tolist())) if hasattr(value, "tolist") else str(value)
