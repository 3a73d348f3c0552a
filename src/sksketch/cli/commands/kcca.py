"""The command kcca: components of two views of rows through a kernel."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from sksketch.cli.kernel_options import Count, Features, number_of
from sksketch.cli.options import Rows, Run, in_columns, in_model


class CcaSolver(StrEnum):
    """Solvers of kernel CCA."""

    auto = "auto"
    exact = "exact"
    sgd = "sgd"


def kcca(
    rows: Rows,
    run: Run,
    features: Features,
    other: Annotated[
        str,
        in_columns("--other", metavar="A,B", help="Columns of the second view."),
    ],
    components: Count = 2,
    ridge: Annotated[
        str,
        in_model(
            metavar="NUMBER",
            help="Penalty; auto follows the number of rows.",
        ),
    ] = "auto",
    solver: Annotated[CcaSolver, in_model(help="Solver of the components.")] = CcaSolver.auto,
) -> None:
    """Find functions of two views of the rows that correlate most, in flat memory."""
    from sksketch.cli.learning import save_with_embedding
    from sksketch.cli.running import keep_sources, open_source, stream
    from sksketch.kernel_methods import StreamingKernelCCA

    keep_sources(rows, run.output)
    source = open_source(rows, other, run, numbers=True)
    model = StreamingKernelCCA(
        components, ridge=_ridge(ridge), solver=solver.value, **features.options()
    )
    stream(model, source, run)
    save_with_embedding(model, source, rows, run, pairs=True)


def _ridge(text: str) -> float | str:
    return text if text == "auto" else number_of("--ridge", text)
