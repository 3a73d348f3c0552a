"""The parts of a report that come from the rows: certificate, spectrum, loadings, regression."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sksketch.present.findings import Estimates, Findings, largest_columns
from sksketch.present.report import charts, formatting, html
from sksketch.present.report.formatting import interval, number, percent
from sksketch.ridge import StreamingRidgeCV

MOST_COMPONENTS = 30
# Components whose loadings are spread out; others are folded, and the last ones left out.
OPEN_CARDS, MOST_CARDS = 4, 20
MOST_LOADINGS = 10
MOST_COEFFICIENTS = 15
MOST_PANELS, MOST_PANELS_OF_SEVERAL = 6, 3
MOST_TARGETS = 6


def certificate(found: Findings) -> str:
    """Return what is certain, in words."""
    sentences = formatting.certificate(found)
    warns = not found.is_certified or found.certificate.n_certain == 0
    lead, *rest = sentences
    box = html.card(
        html.paragraph(lead, "lead"),
        *(html.paragraph(sentence) for sentence in rest),
        kind="certificate warns" if warns else "certificate",
    )
    title = "What is certain about the rows" if found.is_regression else "What is certain"
    return html.section("certain", title, box)


def spectra(found: Findings) -> str:
    """Return the spectrum and what it explains, as charts and numbers."""
    if found.n_components == 0:
        return ""
    n = min(found.n_components, MOST_COMPONENTS)
    spectrum = _first(found.spectrum, n)
    shares, captured = _first(found.shares, n), _first(found.captured, n)
    penalty = found.alpha if found.is_regression else None
    certified = found.is_certified
    legend = [("interval", "certified interval")] * certified + [("estimate", "estimate")]
    if penalty:
        legend.append(("marker", f"penalty {number(penalty)}"))
    whole = "variance" if found.is_centered else "energy"
    pictures = [
        html.figure(
            charts.spectrum(spectrum, found.quantity, penalty),
            "Spectrum" if found.quantity == "eigenvalue" else f"Spectrum: {found.quantity} per row",
            legend,
            _numbers(spectrum, "Component", found.quantity.capitalize(), number),
        ),
        html.figure(
            charts.explained_variance(shares, captured),
            f"Explained {whole}",
            [("share", "each component"), ("dot", "the first ones together")]
            + [("whisker", "certified")] * certified,
            _numbers(shares, "Component", "Share", percent)
            + _numbers(captured, "First", "Share together", percent),
        ),
    ]
    notes = []
    if found.n_components > n:
        notes.append(f"The first {n} of {found.n_components:,} components are shown. ")
    if penalty:
        notes.append("Directions whose eigenvalue is below the penalty hardly count. ")
    if found.quantity == "eigenvalue":
        centered = "the rows around their means" if found.is_centered else "the rows as they came"
        notes.append(f"Eigenvalues are those of A'A, with A {centered}.")
    note = html.paragraph("".join(notes), "note") if notes else ""
    return html.section("spectrum-part", "Spectrum", html.grid(pictures), note)


def _first(estimates: Estimates, n: int) -> Estimates:
    intervals = estimates.intervals
    return Estimates(estimates.values[:n], None if intervals is None else intervals[:n])


def _numbers(estimates: Estimates, first: str, heading: str, show: Callable[..., str]) -> str:
    headers, rows = [first, heading], []
    if estimates.intervals is not None:
        headers += ["At least", "At most"]
    for i, value in enumerate(estimates.values):
        ends = () if estimates.intervals is None else estimates.intervals[i]
        rows.append([str(i + 1), show(float(value)), *(show(float(end)) for end in ends)])
    return html.table(headers, rows, f"{heading}, with what is certified of it")


def loadings(found: Findings) -> str:
    """Return the largest loadings of the first components, by name."""
    if found.n_components == 0:
        return ""
    n = min(found.n_components, MOST_CARDS)
    boxes = [_component(found, i) for i in range(n)]
    parts = [html.grid(boxes[:OPEN_CARDS])]
    if n > OPEN_CARDS:
        parts.append(
            f"<details><summary>Components {OPEN_CARDS + 1} to {n}</summary>"
            f"{html.grid(boxes[OPEN_CARDS:])}</details>"
        )
    notes = []
    if found.n_features > MOST_LOADINGS:
        notes.append(f"The {MOST_LOADINGS} largest of {found.n_features:,} columns each. ")
    if found.n_components > n:
        notes.append(f"The file has {found.n_components:,} components.")
    if notes:
        parts.append(html.paragraph("".join(notes), "note"))
    return html.section("loadings", "What the components are made of", *parts)


def _component(found: Findings, i: int) -> str:
    share, intervals = found.shares.values[i], found.shares.intervals
    text = f"{percent(share)} of the total"
    if intervals is not None and interval(intervals[i], percent) != percent(share):
        text += f", certified {interval(intervals[i], percent)}"
    entries = found.largest(found.components[i], MOST_LOADINGS)
    return html.card(
        f"<h3>Component {i + 1}</h3>",
        html.paragraph(text, "note"),
        html.bars(entries, "Loading", f"Largest loadings of component {i + 1}"),
    )


def regression(found: Findings) -> str:
    """Return coefficients and, where the penalty was chosen, the scores of all penalties."""
    coef = found.coefficients
    n_targets = min(len(coef), MOST_TARGETS)
    intercepts = np.atleast_1d(found.model.intercept_)
    errors = np.atleast_1d(found.model.coef_error_bound_absolute_)
    several = len(coef) > 1
    warns = found.model.coef_error_bound_ >= formatting.WEAK and not found.is_refined
    rated = [html.paragraph(f"{text}.") for text in formatting.quality(found.model)]
    units = "Coefficients are shown for columns divided by their standard deviations."
    intro = html.card(
        html.paragraph(formatting.coefficients(found), "lead"),
        *rated,
        html.paragraph(units, "note") if found.is_standardized else "",
        kind="certificate warns" if warns else "certificate",
    )
    boxes = []
    for target in range(n_targets):
        error = 0.0 if found.is_refined else float(errors[target])
        largest = float(np.abs(coef[target]).max())
        title = f"Target {target + 1}" if several else "Largest coefficients"
        entries = found.largest(coef[target], MOST_COEFFICIENTS)
        note = f"Intercept {number(float(intercepts[target]), 4)}. "
        boxes.append(
            html.card(
                f"<h3>{title}</h3>",
                html.paragraph(note + formatting.each_coefficient(error, largest), "note"),
                html.bars(entries, "Coefficient", title, error if error <= largest else 0.0),
            )
        )
    if isinstance(found.model, StreamingRidgeCV):
        boxes.append(_scores(found.model))
    notes = []
    if found.n_features > MOST_COEFFICIENTS:
        notes.append(f"The {MOST_COEFFICIENTS} largest of {found.n_features:,} coefficients. ")
    if len(coef) > n_targets:
        notes.append(f"The first {n_targets} of {len(coef):,} targets.")
    note = html.paragraph("".join(notes), "note") if notes else ""
    return html.section("coefficients", "Coefficients", intro, html.grid(boxes), note)


def paths(found: Findings) -> str:
    """Return the largest coefficients of each target against the penalty."""
    several = len(found.coefficients) > 1
    parts = [_path(found, i, several) for i in range(min(len(found.coefficients), MOST_TARGETS))]
    note = (
        "Bars are certified errors: the coefficients of the exact covariance lie within them. A "
        "bar longer than the picture is cut at its edge. "
    )
    if not np.isfinite(found.model.coef_error_bound_):
        note = "No error is certified, so there are no bars. "
    note += "The dashed line is the penalty of the model."
    title = "Coefficients against the penalty"
    return html.section("path", title, *parts, html.paragraph(note, "note"))


def _path(found: Findings, target: int, several: bool) -> str:
    path = found.path(target=target)
    columns = largest_columns(
        found.coefficients[target], MOST_PANELS_OF_SEVERAL if several else MOST_PANELS
    )
    ends = charts.path_range(path, columns)
    panels = []
    for i, column in enumerate(columns):
        title = f"Path of {found.name(column)}"
        chart = charts.path_panel(f"path-{target}-{i}", title, path, column, found.alpha, ends)
        caption = f"<figcaption><h3>{html.name(found.name(column))}</h3></figcaption>"
        panels.append(f'<figure class="card">{caption}{chart}</figure>')
    heading = f"<h3>Target {target + 1}</h3>" if several else ""
    return heading + html.grid(panels, "panels")


def _scores(model: StreamingRidgeCV) -> str:
    alphas = np.atleast_1d(np.asarray(model.alphas, dtype=np.float64))
    # Of several targets with a penalty each, the mean.
    scores = model.scores_.reshape(len(alphas), -1).mean(axis=1)
    intervals = model.score_intervals_.reshape(len(alphas), -1, 2).mean(axis=1)
    chosen = float(np.mean(model.alpha_))
    kinds = {"gcv": "generalized cross-validation", "holdout": "squared error on rows kept apart"}
    pairs = zip(alphas, scores, intervals, strict=True)
    rows = [[number(float(a)), number(float(s)), *map(number, ends)] for a, s, ends in pairs]
    caption = "Scores of the penalties"
    table = html.table(["Alpha", "Score", "At least", "At most"], rows, caption)
    chart = charts.scores(alphas, scores, intervals, chosen)
    legend = [("dot", kinds[model.selection]), ("marker", f"chosen: {number(chosen)}")]
    return html.figure(chart, caption, legend, table)
