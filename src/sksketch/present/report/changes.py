"""The section on what changed since an earlier state."""

from __future__ import annotations

from collections.abc import Sequence

from sksketch.present.report import html
from sksketch.present.report.formatting import number
from sksketch.time import Comparison

# Columns in the table: those that changed most.
MOST_COLUMNS = 20


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
