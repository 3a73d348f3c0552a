"""The command reduce: rows to few coordinates, or a model learned on them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from sksketch._keys import DUAL_CLASSIFICATION, DUAL_REGRESSION, REDUCED_METHODS
from sksketch.cli.options import Holdout, Rows, Run, Spread, Standardize, Target, in_model


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
        in_model("--components", "-k", min=1, metavar="N", help="Number of coordinates of a row."),
    ] = 100
    method: Annotated[
        str,
        in_model(metavar="KEY", help=f"{', '.join(REDUCED_METHODS)}; without target nor or rp."),
    ] = "nor"
    operator: Annotated[Operator, in_model(help="Random operator of the reduction.")] = (
        Operator.countsketch
    )
    power_passes: Annotated[
        int, in_model(min=0, help="Further passes over the rows, for a better subspace.")
    ] = 0
    seed: Annotated[int, in_model(help="Random seed.")] = 0
    shard: Annotated[
        int, in_model(min=0, help="Number of this part, if subspaces are to be merged.")
    ] = 0
    task: Annotated[
        Task | None,
        in_model(help="classify (default) or regress."),
    ] = None
    loss: Annotated[
        str | None,
        in_model(
            metavar="NAME",
            help=f"{', '.join(DUAL_CLASSIFICATION)}; to regress {', '.join(DUAL_REGRESSION)}.",
        ),
    ] = None
    alpha: Annotated[float, in_model(help="Penalty on the mean loss.")] = 1e-3
    tol: Annotated[float, in_model(help="Duality gap to reach.")] = 1e-3
    intercept: Annotated[
        bool, in_model("--intercept/--no-intercept", help="Whether to learn an intercept.")
    ] = True
    standardize: Standardize = False
    holdout: Holdout = 0.0
    coordinates: Annotated[
        str | None,
        in_model(
            metavar="FILE",
            help="Output file of the coordinates: .parquet, .npz, .npy or .csv.",
        ),
    ] = None


def reduce(rows: Rows, run: Run, reducing: Reducing, spread: Spread, target: Target = None) -> None:
    """Reduce rows of very many columns to few coordinates, and learn on them if there is a target.

    Without --target or --task the subspace is saved, and with --coordinates those of the rows.
    With one of them a linear model of the original columns is, and how much better the best can be.
    """
    from sksketch.cli.jobs.reducing import reduce_rows

    reduce_rows(rows, run, reducing, spread, target)
