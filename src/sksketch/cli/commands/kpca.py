"""The command kpca: components of rows through a kernel."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from sksketch.cli.kernel_options import Count, Features
from sksketch.cli.options import Rows, Run, Spread, in_model


class PcaSolver(StrEnum):
    """Solvers of kernel PCA."""

    auto = "auto"
    sgd = "sgd"
    sketch = "sketch"


def kpca(
    rows: Rows,
    run: Run,
    features: Features,
    spread: Spread,
    components: Count = 2,
    solver: Annotated[PcaSolver, in_model(help="Solver of the components.")] = PcaSolver.auto,
    polish: Annotated[
        int,
        in_model(min=0, help="Further passes over the rows, for --solver sgd."),
    ] = 0,
    center: Annotated[
        bool,
        in_model("--center/--no-center", help="Whether features are centered."),
    ] = True,
) -> None:
    """Find kernel principal components in flat memory, and say which features were taken."""
    from sksketch.cli.learning import save_with_embedding
    from sksketch.cli.running import in_parts, keep_sources, open_source, stream
    from sksketch.kernel_methods import StreamingKernelPCA
    from sksketch.streams.files import STDIN

    keep_sources(rows, run.output)
    if STDIN in rows.sources and polish:
        raise typer.BadParameter("stdin can be read only once; give a file for --polish")
    source = open_source(rows, None, run, spread)
    model = StreamingKernelPCA(
        components, solver=solver.value, polish=polish, center=center, **features.options()
    )
    if not in_parts(model, source, rows, None, run, spread):
        stream(model, source, run, device=spread.device)
    save_with_embedding(model, source, rows, run)
