"""Rows to few coordinates, or a model learned on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import typer

from sksketch.cli.commands.reduce import Reducing, Task
from sksketch.cli.jobs.answering import check_output, write_answers
from sksketch.cli.kept_apart import score, shares
from sksketch.cli.options import Rows, Run, Spread
from sksketch.cli.running import finish, keep_sources, learn, open_source, stream
from sksketch.cli.saving import STDOUT, of_source, write
from sksketch.cli.show import print_model, progress_bar, say, warnings_in_one_line
from sksketch.reduction import (
    RandomReduction,
    ReducedClassifier,
    ReducedRegressor,
    SubspaceReduction,
)
from sksketch.reduction.reduced_problem import RECOVERED, SUBSPACE
from sksketch.state.disk import is_same
from sksketch.streams import RowSource
from sksketch.streams.files import STDIN
from sksketch.streams.source_in_units import SourceInUnits

# Looks at the rows for the bounds of a subspace.
CERTIFYING = 2


def reduce_rows(
    rows: Rows, run: Run, reducing: Reducing, spread: Spread, target: str | None
) -> None:
    """Learn a subspace or a model on its coordinates, and save it."""
    keep_sources(rows, run.output)
    learns = target is not None or reducing.task is not None
    again = learns or reducing.power_passes or reducing.coordinates is not None
    if STDIN in rows.sources and again:
        raise typer.BadParameter("stdin can be read only once; give a file to look again")
    if not learns and (reducing.standardize or reducing.holdout):
        raise typer.BadParameter(
            "--standardize and --holdout are for models; name what to predict with --target"
        )
    if (learns or reducing.method == "rp") and (spread.workers or spread.dask):
        raise typer.BadParameter("--workers and --dask are for subspaces, without a target")
    if reducing.coordinates is not None:
        check_output(reducing.coordinates)
        keep_sources(rows, reducing.coordinates)
        if is_same(reducing.coordinates, run.output):
            raise typer.BadParameter(f"{run.output} is to hold the model; name other --coordinates")
    numbers = reducing.task == Task.regress
    rows_read = source = open_source(rows, target, run, spread, learns=learns, numbers=numbers)
    with warnings_in_one_line():
        if not learns:
            model = _reduction(reducing)
            if isinstance(model, SubspaceReduction):
                learn(model, source, rows, target, run, spread)
                if STDIN not in rows.sources:
                    with _watching(run, source, CERTIFYING) as watch:
                        model.certify(source, n_looks=CERTIFYING, watch=watch)
            else:
                stream(model, source, run)
        else:
            model = _learner(reducing)
            reduction = model.new_reduction()
            learned, held = shares(source, reducing.holdout)
            with _watching(run, learned, 1 if reducing.standardize else 0) as watch:
                in_units = model.in_units(learned, watch)
            stream(reduction, in_units, run)
            with _watching(run, in_units, 3 if reducing.method in RECOVERED else 2) as watch:
                model.fit_rows(in_units, reduction=reduction, watch=watch)
            score(model, held, run)
            rows_read = SourceInUnits(source, model.scale_)
    write(of_source(model, source), run.output)
    finish(run)
    if reducing.coordinates is not None:
        reduction = model.reduction_ if learns else model
        write_answers(reduction, rows_read, reducing.coordinates, quiet=run.quiet)
    if run.output == STDOUT:
        say(run, "saved to stdout")
    elif run.as_json or not run.quiet:
        print_model(of_source(model, source), run.output, run.as_json)


@contextmanager
def _watching(run: Run, source: RowSource, n_looks: int) -> Iterator[Callable[[int], None]]:
    """Show a bar over several looks at the rows; yield what takes the rows of each block."""
    n_done, n_rows = 0, source.n_rows
    total = None if n_rows is None else n_rows * n_looks
    with progress_bar(shown=not run.quiet and n_looks > 0) as bar:
        bar(0, total)

        def watch(n: int) -> None:
            nonlocal n_done
            n_done += n
            bar(n_done, total)

        yield watch


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
