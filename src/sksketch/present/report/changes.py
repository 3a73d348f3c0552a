"""The sections on what changed since an earlier state, and from period to period."""

from __future__ import annotations

from collections.abc import Sequence

from sksketch.present.report import charts, html
from sksketch.present.report.formatting import interval, number
from sksketch.time import Comparison

# Columns in the table: those that changed most.
MOST_COLUMNS = 20
# Columns that are named for a period.
MOST_NAMES = 3


def section(found: Comparison, names: Sequence[str] | None) -> str:
    """Return what a comparison says, with a table of the columns that changed most."""
    numbers = {str(i) for i in range(len(found.columns))}
    known = names is not None and {column.name for column in found.columns} == numbers
    rows = [
        (
            str(names[int(c.name)]) if known and names is not None else c.name,
            *(number(mean) for mean in c.means),
            f"{c.z_mean:+.2f}",
            *(number(variance) for variance in c.variances),
            f"{c.z_variance:+.2f}",
        )
        for c in found.columns[:MOST_COLUMNS]
    ]
    heading = ("column", "mean before", "after", "z", "variance before", "after", "z")
    table = html.table(heading, rows, "Columns that changed most, in standard errors")
    words = (
        "Intervals are certain about the rows of both states. A direction or a mean counts as "
        "changed if neither errors nor samples of one distribution explain it."
    )
    card = html.card(
        html.paragraph(f"{found.verdict[0].upper()}{found.verdict[1:]}."),
        html.facts(found.facts()),
        html.paragraph(words),
        table,
    )
    return html.section("changes", "What changed", card)


def drift(changes: Sequence[tuple[str, Comparison]]) -> str:
    """Return how the periods of an archive differ from one state.

    Each comes with the start of its period.
    """
    rows = [
        (
            str(i + 1),
            start,
            f"{found.n_rows[1]:,}",
            interval(found.largest_change),
            f"{found.n_changed:,}",
            "yes" if found.distinguishable else "",
            ", ".join(column.name for column in found.columns[:MOST_NAMES])
            if found.distinguishable
            else "",
        )
        for i, (start, found) in enumerate(changes)
    ]
    heading = ("", "from", "rows", "largest change", "directions", "changed", "most in")
    words = (
        "Each period stands beside the first of them, or beside the state that was given. The "
        "largest change of variance in any direction is an interval that is certain about the "
        "rows. A period changed if neither errors nor samples of one distribution explain it, in "
        "a direction or in a mean."
    )
    legend = [
        ("whisker", "largest change of variance, certified"),
        ("dot", "directions that certainly changed"),
        ("marker", "what errors and samples explain"),
    ]
    table = html.table(heading, rows, "Periods in their order")
    chart = html.figure(charts.drift(changes), "Change by period", legend, table)
    return html.section("drift", "Period by period", html.card(html.paragraph(words), chart))
