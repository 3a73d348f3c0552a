"""The parts of a report about an online learner: how it predicted, and its coefficients."""

from __future__ import annotations

from sksketch.present.findings import OnlineFindings
from sksketch.present.report import html
from sksketch.present.report.formatting import interval, number, percent, plural

MOST_COEFFICIENTS = 15
MOST_OUTCOMES = 6


def figures(found: OnlineFindings) -> list[tuple[str, str]]:
    """Return the figures at the top of the page."""
    loss = ("Mean loss", number(found.mean_loss))
    error = [] if found.error is None else [("Online error", percent(found.error))]
    return [*error, loss]


def predictions(found: OnlineFindings) -> str:
    """Return in words how well the rows were predicted before they were learned from."""
    n_rows = plural(int(found.model.n_samples_seen_), "row")
    lead = f"The mean loss of {n_rows}, each predicted before it was learned from, is "
    lead += f"{number(found.mean_loss, 4)}."
    if found.error is not None:
        lead = (
            f"{percent(found.error)} of {n_rows} were given a wrong label, each before it was "
            "learned from."
        )
    ends = min(found.ridges), max(found.ridges)
    text = (
        f"Method {found.model.method}, loss {found.model.loss}, mean loss "
        f"{number(found.mean_loss, 4)}, ridge {interval(ends)}. In further passes over the "
        "same rows they are no longer new, and these figures flatter."
    )
    box = html.card(html.paragraph(lead, "lead"), html.paragraph(text), kind="certificate")
    return html.section("predictions", "How it predicted", box)


def coefficients(found: OnlineFindings) -> str:
    """Return the largest coefficients of each class, or of the target."""
    boxes = []
    for i, outcome in enumerate(found.outcomes[:MOST_OUTCOMES]):
        title = "Largest coefficients"
        if found.error is not None:
            title = f"Largest coefficients for class {outcome}"
        note = f"Intercept {number(float(found.intercepts[i]), 4)}."
        entries = found.largest(i, MOST_COEFFICIENTS)
        bars = html.bars(entries, "Coefficient", title) if entries else ""
        boxes.append(html.card(f"<h3>{html.name(title)}</h3>", html.paragraph(note, "note"), bars))
    notes = f"{plural(found.n_coefficients, 'coefficient')} in all are not zero."
    if len(found.outcomes) > MOST_OUTCOMES:
        notes += f" The first {MOST_OUTCOMES} of {len(found.outcomes):,} classes are shown."
    return html.section(
        "coefficients", "Coefficients", html.grid(boxes), html.paragraph(notes, "note")
    )
