"""The command ridge: a ridge regression in one pass."""

from __future__ import annotations

from typing import Annotated

import typer

from sksketch.cli.learning import numbered, readable, save
from sksketch.cli.options import Method, Rows, Run, Spread, Standardize, Target
from sksketch.cli.running import (
    are_sketches,
    keep_sources,
    learn,
    open_source,
    require_target,
    sketch_options,
)
from sksketch.cli.saving import Saved, blaming, of_source, read_merged
from sksketch.ridge import StreamingRidge


def ridge(
    rows: Rows,
    run: Run,
    method: Method,
    spread: Spread,
    target: Target = None,
    alpha: Annotated[float, typer.Option(min=0.0, help="Penalty.")] = 1.0,
    intercept: Annotated[
        bool, typer.Option("--intercept/--no-intercept", help="Whether to learn an intercept.")
    ] = True,
    standardize: Standardize = False,
) -> None:
    """Learn a ridge regression in one pass, with a bound on the error of its coefficients."""
    if are_sketches(rows):
        with blaming(" or ".join(rows.sources)):
            saved = read_merged(rows.sources)
            sketch = readable(saved.model, "ridge")
            options = {"alpha": alpha, "fit_intercept": sketch.centered, "standardize": standardize}
            save(Saved(StreamingRidge(**options).reading(sketch, saved.names), saved.names), run)
        return
    keep_sources(rows, run.output)
    source = open_source(rows, target, run, spread)
    require_target(source)
    options = {"alpha": alpha, "fit_intercept": intercept, "standardize": standardize}
    model = numbered(StreamingRidge(**options, **sketch_options(method, source)), method, spread)
    learn(model, source, rows, target, run, spread)
    save(of_source(model, source), run)
