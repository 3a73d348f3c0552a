"""The command pca: principal components in one pass."""

from __future__ import annotations

from typing import Annotated

from sksketch.cli.options import (
    Components,
    Method,
    RowsOrSketches,
    Run,
    Spread,
    Standardize,
    Timing,
    Tolerance,
    in_model,
)


def pca(
    rows: RowsOrSketches,
    run: Run,
    method: Method,
    spread: Spread,
    timing: Timing,
    components: Components = None,
    tol: Tolerance = None,
    standardize: Standardize = False,
    whiten: Annotated[
        bool,
        in_model("--whiten", help="Scale scores to unit variance."),
    ] = False,
) -> None:
    """Find principal components in one pass over the rows, centered in that pass."""
    from sksketch.cli.learning import decompose, n_components
    from sksketch.decomposition import StreamingPCA

    options = {"n_components": n_components(components), "tol": tol, "whiten": whiten}
    options |= {"standardize": standardize}
    decompose(StreamingPCA, options, rows, method, run, spread, timing)
