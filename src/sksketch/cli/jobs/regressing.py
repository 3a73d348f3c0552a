"""A ridge regression from rows, or read out of saved sketches of them."""

from __future__ import annotations

import math
from typing import Any

import typer

from sksketch.cli.kept_apart import check_holdout, score, shares
from sksketch.cli.learning import are_kept, numbered, open_for, read_kept, readable, save
from sksketch.cli.options import Method, Rows, Run, Spread, Timing
from sksketch.cli.running import keep_sources, learn, sketch_options
from sksketch.cli.saving import blaming, of_source
from sksketch.cli.tables.encoding import by_formula
from sksketch.ridge import StreamingRidge, StreamingRidgeCV
from sksketch.streams import RowSource

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
    ends: tuple[float, bool, str | None],
    timing: Timing,
) -> None:
    """Learn a ridge regression from rows, or read it out of what was saved, and save it.

    ``ends`` is the share of rows that are kept apart, whether standard errors are printed, and a
    formula.
    """
    holdout, inference, formula = ends
    if inference and alpha == "auto":
        raise typer.BadParameter(
            "--inference is for a penalty that was not chosen by the same rows; give a number, "
            "such as --alpha 0"
        )
    if are_kept(rows):
        with blaming(" or ".join(rows.sources)):
            saved = read_kept(rows, timing)
            sketch = readable(saved.model, "ridge")
            options = options | {"fit_intercept": sketch.centered}
            model = _model(alpha, **options).reading(sketch, saved.names)
            save(saved._replace(model=model), run, inference)
        return
    keep_sources(rows, run.output)
    check_holdout(holdout, rows, spread)
    if alpha == "auto" and timing.options:
        raise typer.BadParameter("--alpha auto is for all rows; give a number with --window")
    if holdout and timing.time is not None:
        raise typer.BadParameter("--holdout and --time do not go together; leave one out")
    if formula is not None and timing.time is not None:
        raise typer.BadParameter("--formula and --time do not go together; leave one out")
    source: RowSource
    if formula is not None:
        source, has_intercept = by_formula(formula, rows, target, run, spread)
        options = options | {"fit_intercept": options["fit_intercept"] and has_intercept}
    else:
        # Least squares has the same predictions in any units.
        checks = {"learns": True, "numbers": True, "in_units": inference and _penalty(alpha) == 0.0}
        source = open_for(timing, rows, target, run, spread, **checks)
    options = options | timing.options
    learned, held = shares(source, holdout)
    model = numbered(_model(alpha, **options, **sketch_options(method, source)), method, spread)
    learn(model, learned, rows, target, run, spread)
    score(model, held, run)
    save(of_source(model, source), run, inference)


def _penalty(alpha: str) -> float:
    """Return the number that --alpha gives, NaN for none."""
    try:
        return float(alpha)
    except ValueError:
        return math.nan


def _model(alpha: str, **options: Any) -> Any:
    if alpha == "auto":
        return StreamingRidgeCV(ALPHAS, **options)
    penalty = _penalty(alpha)
    if not 0.0 <= penalty < math.inf:
        raise typer.BadParameter(f"--alpha {alpha} is neither auto nor a number from 0 on")
    return StreamingRidge(penalty, **options)
