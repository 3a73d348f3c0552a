"""The parts of a report about an online learner: how it predicted, and its coefficients."""

from __future__ import annotations

from sksketch.present.findings import OnlineFindings
from sksketch.present.report import charts, formatting, html
from sksketch.present.report.formatting import interval, number, percent, plural

MOST_COEFFICIENTS = 15
MOST_OUTCOMES = 6
# Fewer make no curve.
LEAST_MARKS = 3


def figures(found: OnlineFindings) -> list[tuple[str, str]]:
    """Return the figures at the top of the page."""
    show = percent if found.classifies else number
    constant = [] if found.baseline is None else [("Error of a constant", show(found.baseline))]
    return [
        ("Online error", show(found.error)),
        *constant,
        ("Mean loss", number(found.mean_loss)),
    ]


def predictions(found: OnlineFindings) -> str:
    """Return in words how well the rows were predicted before they were learned from."""
    n_rows = plural(int(found.model.n_samples_seen_), "row")
    lead = f"The mean squared error of {n_rows}, each predicted before it was learned from, is "
    lead += f"{number(found.error, 4)}."
    if found.classifies:
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
    parts = [html.paragraph(lead + _constant(found), "lead"), html.paragraph(text)]
    if found.warning is not None:
        parts.append(html.paragraph(f"Warning: {found.warning}."))
    parts += [html.paragraph(f"{text}.") for text in formatting.quality(found.model)]
    box = html.card(*parts, kind="certificate")
    return html.section("predictions", "How it predicted", box, _curve(found))


def _curve(found: OnlineFindings) -> str:
    """Return the progressive error against the rows, where the model has kept it."""
    marks = found.model.online_error_curve_
    if len(marks) < LEAST_MARKS:
        return ""
    show = percent if found.classifies else number
    title = "Online error" if found.classifies else "Mean squared error"
    rows = [[f"{int(n):,}", show(mine), show(constant)] for n, mine, constant in marks]
    table = html.table(["Rows", "Learner", "Constant"], rows, f"{title} of the rows so far")
    legend = [("dot", "the learner"), ("marker", "a constant")]
    return html.grid([html.figure(charts.progress(marks, title), title, legend, table)])


def _constant(found: OnlineFindings) -> str:
    """Return the sentence about the constant, where its error was counted."""
    if found.baseline is None:
        return ""
    if found.classifies:
        return f" The commonest label so far would have been wrong for {percent(found.baseline)}."
    return f" That of the mean so far is {number(found.baseline, 4)}."


def coefficients(found: OnlineFindings) -> str:
    """Return the largest coefficients of each class, or of the target."""
    boxes = []
    for i, outcome in enumerate(found.outcomes[:MOST_OUTCOMES]):
        title = "Largest coefficients"
        if found.classifies:
            title = f"Largest coefficients for class {outcome}"
        elif len(found.outcomes) > 1:
            title = f"Largest coefficients for {outcome}"
        note = f"Intercept {number(float(found.intercepts[i]), 4)}."
        entries = found.largest(i, MOST_COEFFICIENTS)
        bars = html.bars(entries, "Coefficient", title) if entries else ""
        boxes.append(html.card(f"<h3>{html.name(title)}</h3>", html.paragraph(note, "note"), bars))
    notes = f"{plural(found.n_coefficients, 'coefficient')} in all are not zero."
    if len(found.outcomes) > MOST_OUTCOMES:
        notes += f" The first {MOST_OUTCOMES} of {len(found.outcomes):,} outcomes are shown."
    return html.section(
        "coefficients", "Coefficients", html.grid(boxes), html.paragraph(notes, "note")
    )
