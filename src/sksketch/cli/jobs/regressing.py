"""A ridge regression from rows, or read out of saved sketches of them."""

from __future__ import annotations

import math
from typing import Any

import typer

from sksketch.cli.kept_apart import check_holdout, score, shares
from sksketch.cli.learning import numbered, readable, save
from sksketch.cli.options import Method, Rows, Run, Spread
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


def learn_ridge(
    rows: Rows,
    run: Run,
    method: Method,
    spread: Spread,
    target: str | None,
    alpha: str,
    options: dict[str, Any],
    holdout: float,
) -> None:
    """Learn a ridge regression from rows, or read it out of saved sketches, and save it."""
    if are_sketches(rows):
        with blaming(" or ".join(rows.sources)):
            saved = read_merged(rows.sources)
            sketch = readable(saved.model, "ridge")
            options = options | {"fit_intercept": sketch.centered}
            model = _model(alpha, **options).reading(sketch, saved.names)
            save(saved._replace(model=model), run)
        return
    keep_sources(rows, run.output)
    check_holdout(holdout, rows, spread)
    source = open_source(rows, target, run, spread, learns=True, numbers=True)
    learned, held = shares(source, holdout)
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
