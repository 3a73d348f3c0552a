"""The command svd: a truncated SVD in one pass."""

from __future__ import annotations

from sksketch.cli.learning import decompose, n_components
from sksketch.cli.options import Components, Method, Rows, Run, Spread, Standardize, Tolerance
from sksketch.decomposition import StreamingSVD


def svd(
    rows: Rows,
    run: Run,
    method: Method,
    spread: Spread,
    components: Components = None,
    tol: Tolerance = None,
    standardize: Standardize = False,
) -> None:
    """Find a truncated SVD in one pass over the rows, without centering."""
    options = {"n_components": n_components(components), "tol": tol, "standardize": standardize}
    decompose(StreamingSVD, options, rows, method, run, spread)
