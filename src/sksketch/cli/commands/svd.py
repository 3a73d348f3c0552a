"""The command svd: a truncated SVD in one pass."""

from __future__ import annotations

from sksketch.cli.options import (
    Components,
    Method,
    RowsOrSketches,
    Run,
    Spread,
    Standardize,
    Timing,
    Tolerance,
)


def svd(
    rows: RowsOrSketches,
    run: Run,
    method: Method,
    spread: Spread,
    timing: Timing,
    components: Components = None,
    tol: Tolerance = None,
    standardize: Standardize = False,
) -> None:
    """Find a truncated SVD in one pass over the rows, without centering."""
    from sksketch.cli.learning import decompose, n_components
    from sksketch.decomposition import StreamingSVD

    options = {"n_components": n_components(components), "tol": tol, "standardize": standardize}
    decompose(StreamingSVD, options, rows, method, run, spread, timing)
