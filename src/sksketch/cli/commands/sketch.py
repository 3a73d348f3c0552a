"""The command sketch: rows into a small file, to merge and to read out later."""

from __future__ import annotations

from typing import Annotated, Any

from sksketch.cli.options import Method, Purpose, Rows, Run, Spread, Target, in_sketch


def sketch(
    rows: Rows,
    run: Run,
    method: Method,
    spread: Spread,
    target: Target = None,
    purpose: Annotated[
        Purpose | None,
        in_sketch("--for", help="What will read it; ridge if a target is given."),
    ] = None,
) -> None:
    """Sketch rows into a small file, to merge with others and to read out later."""
    from sksketch.cli import running
    from sksketch.cli.learning import numbered, save
    from sksketch.cli.saving import of_source
    from sksketch.decomposition import StreamingPCA, StreamingSVD
    from sksketch.ridge import StreamingRidge

    running.keep_sources(rows, run.output)
    purpose = purpose or (Purpose.pca if target is None else Purpose.ridge)
    ridge = purpose == Purpose.ridge
    source = running.open_source(rows, target, run, spread, learns=ridge, numbers=ridge)
    kinds: dict[str, Any] = {"pca": StreamingPCA, "svd": StreamingSVD, "ridge": StreamingRidge}
    model = numbered(kinds[purpose.value](**running.sketch_options(method, source)), method, spread)
    running.learn(model, source, rows, target, run, spread)
    save(of_source(model.sketch_, source), run)
