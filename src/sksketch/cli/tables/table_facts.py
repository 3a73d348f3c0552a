"""The fate of the columns of a table, and of its holes, in text and JSON."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from sksketch.cli.printing import echo
from sksketch.cli.saving import Saved

# Columns that are listed one by one; of more, neighbors with the same fate share a line.
MOST_COLUMNS = 30


def table_facts(saved: Saved) -> dict[str, Any]:
    """Return what became of every column, and how many values and rows were missing."""
    facts: dict[str, Any] = {}
    if saved.n_missing or saved.n_dropped:
        facts = {"missing_values": saved.n_missing, "dropped_rows": saved.n_dropped}
    if saved.encoder is not None:
        plans = saved.encoder.columns_.items()
        facts["table"] = {name: plan._asdict() for name, plan in plans}
    return facts


def print_table(saved: Saved) -> None:
    """Print the same."""
    if saved.n_missing or saved.n_dropped:
        filled = 0 if saved.n_dropped else saved.n_missing
        echo()
        echo(f"missing      {filled:,} values filled, {saved.n_dropped:,} rows left out")
    if saved.encoder is None:
        return
    plans = [(name, str(plan)) for name, plan in saved.encoder.columns_.items()]
    if len(plans) > MOST_COLUMNS:
        plans = [_together(list(group)) for _, group in groupby(plans, key=lambda pair: pair[1])]
    width = max(len("column"), *(len(name) for name, _ in plans))
    echo()
    echo(f"{'column':<{width}}  became")
    for name, text in plans:
        echo(f"{name:<{width}}  {text}")


def _together(pairs: list[tuple[str, str]]) -> tuple[str, str]:
    (first, text), (last, _) = pairs[0], pairs[-1]
    return (first if len(pairs) == 1 else f"{first} to {last} ({len(pairs)})"), text
