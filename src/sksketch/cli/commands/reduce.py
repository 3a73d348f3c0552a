"""The command reduce: rows to few coordinates, or a model learned on them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

import typer

from sksketch.cli.commands.apply import check_output, write_answers
from sksketch.cli.options import Rows, Run, Spread, Standardize, Target
from sksketch.cli.running import finish, keep_sources, learn, open_source, require_target, stream
from sksketch.cli.saving import STDOUT, of_source, write
from sksketch.cli.show import print_model, say, warnings_in_one_line
from sksketch.reduction import (
    RandomReduction,
    ReducedClassifier,
    ReducedRegressor,
    SubspaceReduction,
)
from sksketch.reduction.dual_losses import CLASSIFICATION, REGRESSION
from sksketch.reduction.reduced_problem import METHODS, SUBSPACE
from sksketch.state.disk import is_same
from sksketch.streams.files import STDIN


class Operator(StrEnum):
    """Random operators that sum rows or columns."""

    countsketch = "countsketch"
    gaussian = "gaussian"
    srht = "srht"
    sample = "sample"


class Task(StrEnum):
    """The kind of targets."""

    classify = "classify"
    regress = "regress"


@dataclass(frozen=True)
class Reducing:
    """The reduction of the rows, and the model learned on their coordinates."""

    components: Annotated[
        int,
        typer.Option(
            "--components", "-k", min=1, metavar="N", help="Number of coordinates of a row."
        ),
    ] = 100
    method: Annotated[
        str,
        typer.Option(metavar="KEY", help=f"{', '.join(METHODS)}; without target nor or rp."),
    ] = "nor"
    operator: Annotated[Operator, typer.Option(help="Random operator of the reduction.")] = (
        Operator.countsketch
    )
    power_passes: Annotated[
        int, typer.Option(min=0, help="Further passes over the rows, for a better subspace.")
    ] = 0
    seed: Annotated[int, typer.Option(help="Random seed.")] = 0
    shard: Annotated[
        int, typer.Option(min=0, help="Number of this part, if subspaces are to be merged.")
    ] = 0
    task: Annotated[
        Task | None,
        typer.Option(help="classify (default) or regress."),
    ] = None
    loss: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help=f"{', '.join(CLASSIFICATION)}; to regress {', '.join(REGRESSION)}.",
        ),
    ] = None
    alpha: Annotated[float, typer.Option(help="Penalty on the mean loss.")] = 1e-3
    tol: Annotated[float, typer.Option(help="Duality gap to reach.")] = 1e-3
    intercept: Annotated[
        bool, typer.Option("--intercept/--no-intercept", help="Whether to learn an intercept.")
    ] = True
    standardize: Standardize = False
    coordinates: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Output file of the coordinates: .parquet, .npz, .npy or .csv.",
        ),
    ] = None


def reduce(rows: Rows, run: Run, reducing: Reducing, spread: Spread, target: Target = None) -> None:
    """Reduce rows of very many columns to few coordinates, and learn on them if there is a target.

    Without --target or --task the subspace is saved, and with --coordinates those of the rows.
    With one of them a linear model of the original columns is, and how much better the best can be.
    """
    keep_sources(rows, run.output)
    learns = target is not None or reducing.task is not None
    again = learns or reducing.power_passes or reducing.coordinates is not None
    if STDIN in rows.sources and again:
        raise typer.BadParameter("stdin can be read only once; give a file to look again")
    source = open_source(rows, target, run, spread)
    if learns:
        require_target(source)
    elif reducing.standardize:
        raise typer.BadParameter("--standardize is for models; name what to predict with --target")
    if (learns or reducing.method == "rp") and (spread.workers or spread.dask):
        raise typer.BadParameter("--workers and --dask are for subspaces, without a target")
    if reducing.coordinates is not None:
        check_output(reducing.coordinates)
        keep_sources(rows, reducing.coordinates)
        if is_same(reducing.coordinates, run.output):
            raise typer.BadParameter(f"{run.output} is to hold the model; name other --coordinates")
    rows_read = source
    with warnings_in_one_line():
        if not learns:
            model = _reduction(reducing)
            if isinstance(model, SubspaceReduction):
                learn(model, source, rows, target, run, spread)
                if STDIN not in rows.sources:
                    model.certify(source)
            else:
                stream(model, source, run)
        else:
            model = _learner(reducing)
            reduction = model.new_reduction()
            rows_read = model.in_units(source)
            stream(reduction, rows_read, run)
            model.fit_rows(rows_read, reduction=reduction)
    write(of_source(model, source), run.output)
    finish(run)
    if reducing.coordinates is not None:
        reduction = model.reduction_ if learns else model
        write_answers(reduction, rows_read, reducing.coordinates, quiet=run.quiet)
    if run.output == STDOUT:
        say(run, "saved to stdout")
    elif run.as_json or not run.quiet:
        print_model(of_source(model, source), run.output, run.as_json)


def _reduction(reducing: Reducing) -> Any:
    options: dict[str, Any] = {"operator": reducing.operator.value, "random_state": reducing.seed}
    if reducing.method == "rp":
        return RandomReduction(reducing.components, **options)
    if reducing.method not in SUBSPACE:
        raise typer.BadParameter(
            f"--method {reducing.method} takes a model back; name what to predict with --target"
        )
    options |= {"n_power_iter": reducing.power_passes, "shard": reducing.shard}
    return SubspaceReduction(reducing.components, **options)


def _learner(reducing: Reducing) -> Any:
    kind: Any = ReducedRegressor if reducing.task == Task.regress else ReducedClassifier
    return kind(
        reducing.components,
        method=reducing.method,
        alpha=reducing.alpha,
        tol=reducing.tol,
        operator=reducing.operator.value,
        n_power_iter=reducing.power_passes,
        fit_intercept=reducing.intercept,
        random_state=reducing.seed,
        standardize=reducing.standardize,
        **({} if reducing.loss is None else {"loss": reducing.loss}),
    )
