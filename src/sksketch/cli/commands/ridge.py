"""The command ridge: a ridge regression in one pass."""

from __future__ import annotations

import math
from typing import Annotated, Any

import typer

from sksketch.cli.kept_apart import check_holdout, score, shares
from sksketch.cli.learning import numbered, readable, save
from sksketch.cli.options import Holdout, Method, Rows, Run, Spread, Standardize, Target
from sksketch.cli.running import (
    are_sketches,
    keep_sources,
    learn,
    open_source,
    sketch_options,
)
from sksketch.cli.saving import blaming, of_source, read_merged
from sksketch.ridge import StreamingRidge, StreamingRidgeCV

# Penalties that auto chooses from.
ALPHAS = [float(10.0 ** (power / 2)) for power in range(-8, 17)]


def ridge(
    rows: Rows,
    run: Run,
    method: Method,
    spread: Spread,
    target: Target = None,
    alpha: Annotated[
        str,
        typer.Option(metavar="NUMBER", help="Penalty; auto chooses it by cross-validation."),
    ] = "1.0",
    intercept: Annotated[
        bool, typer.Option("--intercept/--no-intercept", help="Whether to learn an intercept.")
    ] = True,
    standardize: Standardize = False,
    holdout: Holdout = 0.0,
) -> None:
    """Learn a ridge regression in one pass, with a bound on the error of its coefficients."""
    if are_sketches(rows):
        with blaming(" or ".join(rows.sources)):
            saved = read_merged(rows.sources)
            sketch = readable(saved.model, "ridge")
            options = {"fit_intercept": sketch.centered, "standardize": standardize}
            model = _model(alpha, **options).reading(sketch, saved.names)
            save(saved._replace(model=model), run)
        return
    keep_sources(rows, run.output)
    check_holdout(holdout, rows, spread)
    source = open_source(rows, target, run, spread, learns=True, numbers=True)
    learned, held = shares(source, holdout)
    options = {"fit_intercept": intercept, "standardize": standardize}
    model = numbered(_model(alpha, **options, **sketch_options(method, source)), method, spread)
    learn(model, learned, rows, target, run, spread)
    score(model, held, run)
    save(of_source(model, source), run)


def _model(alpha: str, **options: Any) -> Any:
    if alpha == "auto":
        return StreamingRidgeCV(ALPHAS, **options)
    try:
        penalty = float(alpha)
    except ValueError:
        penalty = math.nan
    if not 0.0 <= penalty < math.inf:
        raise typer.BadParameter(f"--alpha {alpha} is neither auto nor a number from 0 on")
    return StreamingRidge(penalty, **options)
