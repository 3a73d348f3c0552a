"""Learning row by row in one pass, with a table of the progressive loss."""

from __future__ import annotations

from typing import Any

import numpy as np
import typer

from sksketch._typing import Array
from sksketch.cli.commands.online import Learner, Task
from sksketch.cli.kept_apart import check_holdout, score, shares
from sksketch.cli.options import Rows, Run
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
from sksketch.present.findings import OnlineFindings
from sksketch.run.classes import find_classes
from sksketch.streams import RowSource
from sksketch.streams.files import STDIN

# Losses by default.
LOSSES = {Task.classify: "logistic", Task.regress: "squared"}


def learn_online(
    rows: Rows, run: Run, learner: Learner, target: str | None, holdout: float
) -> None:
    """Learn row by row, print the table as it grows, and save the model."""
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
