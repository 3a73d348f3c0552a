"""Rows kept apart by --holdout, and what a model makes of them."""

from __future__ import annotations

from typing import Any

import typer

from sksketch.cli.options import Rows, Run, Spread
from sksketch.cli.show import progress_bar, say
from sksketch.models.quality import warning
from sksketch.run.rating import rate
from sksketch.streams import RowSource
from sksketch.streams.files import STDIN
from sksketch.streams.holdout import Share


def check_holdout(fraction: float, rows: Rows, spread: Spread | None = None) -> None:
    """Refuse to keep rows apart where they cannot be read again, before any are read."""
    if fraction and STDIN in rows.sources:
        raise typer.BadParameter("stdin can be read only once; give a file for --holdout")
    if fraction and spread is not None and (spread.workers or spread.dask):
        raise typer.BadParameter("--holdout is for runs without --workers and --dask")


def shares(source: RowSource, fraction: float) -> tuple[RowSource, RowSource | None]:
    """Return the rows to learn from, and those to keep apart if any are."""
    if not fraction:
        return source, None
    return Share(source, fraction, held=False), Share(source, fraction, held=True)


def score(model: Any, held: RowSource | None, run: Run) -> None:
    """Let a fitted model predict the rows kept apart, and say so if a constant does better."""
    if held is None:
        return
    try:
        with progress_bar(shown=not run.quiet) as bar:
            found = rate(model, held, bar)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    if (sentence := warning(found)) is not None:
        say(run, f"sksketch: warning: on the rows kept apart {sentence}")
