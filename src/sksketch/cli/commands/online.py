"""The command online: learns row by row in one pass, and prints its progressive loss."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

import numpy as np
import typer

from sksketch._typing import Array
from sksketch.cli.kept_apart import check_holdout, score, shares
from sksketch.cli.options import Holdout, Rows, Run, Target
from sksketch.cli.printing import echo, label_text
from sksketch.cli.progressive import Printer, Progressive, as_records
from sksketch.cli.running import (
    finish,
    keep_sources,
    open_source,
    stream,
)
from sksketch.cli.saving import STDOUT, of_source, write
from sksketch.cli.show import online_facts, print_json, print_model, say, warnings_in_one_line
from sksketch.online import OnlineNewtonClassifier, OnlineNewtonRegressor
from sksketch.online.catalog import METHODS
from sksketch.online.losses import CLASSIFICATION, REGRESSION
from sksketch.present.findings import OnlineFindings
from sksketch.run.classes import find_classes
from sksketch.streams import RowSource
from sksketch.streams.files import STDIN


def known_methods(incomplete: str) -> list[str]:
    """Return the methods that begin so, for the completion of the shell."""
    return [key for key in METHODS if key.startswith(incomplete)]


class Task(StrEnum):
    """The kind of targets."""

    classify = "classify"
    regress = "regress"


class Curvature(StrEnum):
    """The making of the curvature."""

    loss = "loss"
    gradient = "gradient"


# Losses by default.
LOSSES = {Task.classify: "logistic", Task.regress: "squared"}


@dataclass(frozen=True)
class Learner:
    """The learner and the number of its passes."""

    task: Annotated[Task, typer.Option(help="classify (default) or regress.")] = Task.classify
    classes: Annotated[
        str | None,
        typer.Option(
            metavar="A,B",
            help="All labels. By default a first pass over the files collects them; those of stdin "
            "are -1 and 1, or 0 and 1.",
        ),
    ] = None
    method: Annotated[
        str,
        typer.Option(metavar="KEY", help=f"{', '.join(METHODS)}.", autocompletion=known_methods),
    ] = "rfd"
    sketch_size: Annotated[int, typer.Option(min=2, help="Directions of curvature kept.")] = 20
    loss: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help=f"{', '.join(CLASSIFICATION)}; to regress {', '.join(REGRESSION)}. By default "
            "logistic for labels, squared for numbers.",
        ),
    ] = None
    curvature: Annotated[
        Curvature,
        typer.Option(help="Take the curvature from the loss, or from gradients as the paper does."),
    ] = Curvature.loss
    normalize: Annotated[
        bool,
        typer.Option(
            "--normalize/--no-normalize",
            help="Whether each column gets units of its own; only for --curvature loss.",
        ),
    ] = True
    C: Annotated[
        str | None,
        typer.Option(
            "--C",
            metavar="NUMBER",
            help="With gradients, bound on predictions: by default 1 for labels, auto for numbers.",
        ),
    ] = None
    initial_ridge: Annotated[
        str, typer.Option(metavar="NUMBER", help="Curvature at the start, or auto.")
    ] = "auto"
    intercept: Annotated[
        bool, typer.Option("--intercept/--no-intercept", help="Whether to learn an intercept.")
    ] = True
    passes: Annotated[
        int,
        typer.Option(
            min=1,
            help="Times to go through the rows, one by one; after the first they are not new.",
        ),
    ] = 1


def online(
    rows: Rows, run: Run, learner: Learner, target: Target = None, holdout: Holdout = 0.0
) -> None:
    """Learn a classifier or regression row by row, nothing to tune, and print as it goes.

    Each row is predicted before it is learned from. The table has the mean loss of these
    predictions since its last line and since the start, and the last label and prediction. At the
    end comes the error beside that of a constant: the commonest label, or the mean, so far.
    """
    keep_sources(rows, run.output)
    check_holdout(holdout, rows)
    if STDIN in rows.sources and learner.passes > 1:
        raise typer.BadParameter("stdin can be read only once; give a file for more --passes")
    source = open_source(rows, target, run, learns=True, numbers=learner.task == Task.regress)
    if source.n_targets > 1:
        raise typer.BadParameter("give one --target; the table is about one")
    model = Progressive(_estimator(learner))
    classes = _labels(learner, rows, source) if learner.task == Task.classify else None
    printer = None
    if not run.quiet and not run.as_json:
        printer = Printer(model, lambda line: echo(line, err=run.output == STDOUT))
    with warnings_in_one_line():
        learned, held = shares(source, holdout)
        stream(model, learned, run, progress=printer, classes=classes, n_passes=learner.passes)
    fitted = model.fitted
    if source.feature_names is not None:
        fitted.feature_names_in_ = np.asarray(source.feature_names, dtype=object)
    score(fitted, held, run)
    saved = of_source(fitted, source)
    write(saved, run.output)
    finish(run)
    if printer is not None:
        printer.finish()
        echo("", err=run.output == STDOUT)
    if run.output == STDOUT:
        say(run, "saved to stdout")
    elif run.as_json:
        print_json(online_facts(saved, run.output) | {"table": as_records(model.table())})
    elif not run.quiet:
        print_model(saved, run.output, as_json=False)
    if (warning := OnlineFindings(fitted).warning) is not None:
        say(run, f"sksketch: warning: {warning}")


def _estimator(learner: Learner) -> Any:
    options: dict[str, Any] = {} if learner.C is None else {"C": _number("--C", learner.C)}
    kinds: dict[Task, Any] = {
        Task.classify: OnlineNewtonClassifier,
        Task.regress: OnlineNewtonRegressor,
    }
    return kinds[learner.task](
        learner.method,
        sketch_size=learner.sketch_size,
        loss=learner.loss or LOSSES[learner.task],
        curvature=str(learner.curvature),
        normalize=learner.normalize,
        initial_ridge=_number("--initial-ridge", learner.initial_ridge),
        fit_intercept=learner.intercept,
        **options,
    )


def _number(name: str, text: str) -> float | str:
    try:
        return text if text == "auto" else float(text)
    except ValueError:
        raise typer.BadParameter(f"{name} {text} is neither auto nor a number") from None


def _labels(learner: Learner, rows: Rows, source: RowSource) -> Array | None:
    """Return all labels: as given, as found in files, or None for those of stdin."""
    if learner.classes is not None:
        words = learner.classes.split(",")
        try:
            return np.unique([float(word) for word in words])
        except ValueError:
            return np.array(sorted(words), dtype=object)
    if STDIN in rows.sources:
        return None
    try:
        found = find_classes(source)
    except ValueError as error:
        raise typer.BadParameter(f"{error}; pass --task regress") from None
    if len(found) < 2:
        labels = ", ".join(map(label_text, found)) or "missing"
        raise typer.BadParameter(
            f"all labels are {labels}, so there is nothing to tell apart; name the labels to come "
            "with --classes"
        )
    return found
