"""The command online: learns row by row in one pass, and prints its progressive loss."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from sksketch._keys import ONLINE_CLASSIFICATION, ONLINE_METHODS, ONLINE_REGRESSION
from sksketch.cli.options import Holdout, Rows, Run, Target, in_model


def known_methods(incomplete: str) -> list[str]:
    """Return the methods that begin so, for the completion of the shell."""
    return [key for key in ONLINE_METHODS if key.startswith(incomplete)]


class Task(StrEnum):
    """The kind of targets."""

    classify = "classify"
    regress = "regress"


class Curvature(StrEnum):
    """The making of the curvature."""

    loss = "loss"
    gradient = "gradient"


@dataclass(frozen=True)
class Learner:
    """The learner and the number of its passes."""

    task: Annotated[Task, in_model(help="classify (default) or regress.")] = Task.classify
    classes: Annotated[
        str | None,
        in_model(
            metavar="A,B",
            help="All labels. By default a first pass over the files collects them; those of stdin "
            "are -1 and 1, or 0 and 1.",
        ),
    ] = None
    method: Annotated[
        str,
        in_model(metavar="KEY", help=f"{', '.join(ONLINE_METHODS)}.", autocompletion=known_methods),
    ] = "rfd"
    sketch_size: Annotated[int, in_model(min=2, help="Directions of curvature kept.")] = 20
    loss: Annotated[
        str | None,
        in_model(
            metavar="NAME",
            help=f"{', '.join(ONLINE_CLASSIFICATION)}; to regress "
            f"{', '.join(ONLINE_REGRESSION)}. By default logistic for labels, squared for numbers.",
        ),
    ] = None
    curvature: Annotated[
        Curvature,
        in_model(help="Take the curvature from the loss, or from gradients as the paper does."),
    ] = Curvature.loss
    normalize: Annotated[
        bool,
        in_model(
            "--normalize/--no-normalize",
            help="Whether each column gets units of its own; only for --curvature loss.",
        ),
    ] = True
    C: Annotated[
        str | None,
        in_model(
            "--C",
            metavar="NUMBER",
            help="With gradients, bound on predictions: by default 1 for labels, auto for numbers.",
        ),
    ] = None
    initial_ridge: Annotated[
        str, in_model(metavar="NUMBER", help="Curvature at the start, or auto.")
    ] = "auto"
    intercept: Annotated[
        bool, in_model("--intercept/--no-intercept", help="Whether to learn an intercept.")
    ] = True
    passes: Annotated[
        int,
        in_model(
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
    from sksketch.cli.jobs.learning_online import learn_online

    learn_online(rows, run, learner, target, holdout)
