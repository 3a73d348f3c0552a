"""The command ridge: a ridge regression in one pass."""

from __future__ import annotations

from typing import Annotated

from sksketch.cli.options import (
    Holdout,
    Method,
    RowsOrSketches,
    Run,
    Spread,
    Standardize,
    Target,
    Timing,
    in_columns,
    in_model,
)


def ridge(
    rows: RowsOrSketches,
    run: Run,
    method: Method,
    spread: Spread,
    timing: Timing,
    target: Target = None,
    alpha: Annotated[
        str,
        in_model(
            metavar="NUMBER",
            help="Penalty; auto chooses it by cross-validation.",
        ),
    ] = "1.0",
    intercept: Annotated[
        bool,
        in_model(
            "--intercept/--no-intercept",
            help="Whether to learn an intercept.",
        ),
    ] = True,
    standardize: Standardize = False,
    holdout: Holdout = 0.0,
    formula: Annotated[
        str | None,
        in_columns(
            "--formula",
            metavar="TEXT",
            help="Target and terms, such as 'kwh ~ temp + C(city)'.",
        ),
    ] = None,
    inference: Annotated[
        bool,
        in_model(
            "--inference",
            help="Print standard errors, tests and intervals; with --alpha 0 of least squares.",
        ),
    ] = False,
) -> None:
    """Learn a ridge regression in one pass, with a bound on the error of its coefficients."""
    from sksketch.cli.jobs.regressing import learn_ridge

    options = {"fit_intercept": intercept, "standardize": standardize}
    ends = holdout, inference, formula
    learn_ridge(rows, run, method, spread, target, alpha, options, ends, timing)
