"""The commands that learn: pca, svd, ridge and sketch."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from sksketch.cli.options import (
    Components,
    Method,
    Purpose,
    Rows,
    Run,
    Spread,
    Target,
    Tolerance,
)
from sksketch.cli.running import (
    are_sketches,
    finish,
    keep_sources,
    learn,
    open_source,
    require_target,
    sketch_options,
)
from sksketch.cli.saving import STDOUT, Saved, blaming, read_merged, write
from sksketch.cli.show import print_model, say
from sksketch.decomposition import StreamingPCA, StreamingSVD
from sksketch.models.base import Estimator
from sksketch.ridge import StreamingRidge
from sksketch.sketches import Centered, Regression, Sketch


def pca(
    rows: Rows,
    run: Run,
    method: Method,
    spread: Spread,
    components: Components = None,
    tol: Tolerance = None,
    whiten: Annotated[
        bool, typer.Option("--whiten", help="Scale scores to unit variance.")
    ] = False,
) -> None:
    """Find principal components in one pass over the rows, centered in that pass."""
    options = {"n_components": _n_components(components), "tol": tol, "whiten": whiten}
    _decompose(StreamingPCA, options, rows, method, run, spread)


def svd(
    rows: Rows,
    run: Run,
    method: Method,
    spread: Spread,
    components: Components = None,
    tol: Tolerance = None,
) -> None:
    """Find a truncated SVD in one pass over the rows, without centering."""
    options = {"n_components": _n_components(components), "tol": tol}
    _decompose(StreamingSVD, options, rows, method, run, spread)


def ridge(
    rows: Rows,
    run: Run,
    method: Method,
    spread: Spread,
    target: Target = None,
    alpha: Annotated[float, typer.Option(min=0.0, help="Penalty.")] = 1.0,
    intercept: Annotated[
        bool, typer.Option("--intercept/--no-intercept", help="Whether to learn an intercept.")
    ] = True,
) -> None:
    """Learn a ridge regression in one pass, with a bound on the error of its coefficients."""
    if are_sketches(rows):
        with blaming(" or ".join(rows.sources)):
            saved = read_merged(rows.sources)
            sketch = _readable(saved.model, "ridge")
            options = {"alpha": alpha, "fit_intercept": sketch.centered}
            _save(Saved(StreamingRidge(**options).reading(sketch, saved.names), saved.names), run)
        return
    keep_sources(rows, run.output)
    source = open_source(rows, target)
    require_target(source)
    options = {"alpha": alpha, "fit_intercept": intercept}
    model = _numbered(StreamingRidge(**options, **sketch_options(method, source)), method, spread)
    learn(model, source, rows, target, run, spread)
    _save(Saved(model, source.feature_names), run)


def sketch(
    rows: Rows,
    run: Run,
    method: Method,
    spread: Spread,
    target: Target = None,
    purpose: Annotated[
        Purpose | None, typer.Option("--for", help="What will read it; ridge if a target is given.")
    ] = None,
) -> None:
    """Sketch rows into a small file, to merge with others and to read out later."""
    keep_sources(rows, run.output)
    purpose = purpose or (Purpose.pca if target is None else Purpose.ridge)
    source = open_source(rows, target)
    if purpose == Purpose.ridge:
        require_target(source)
    kinds: dict[str, Any] = {"pca": StreamingPCA, "svd": StreamingSVD, "ridge": StreamingRidge}
    model = _numbered(kinds[purpose.value](**sketch_options(method, source)), method, spread)
    learn(model, source, rows, target, run, spread)
    _save(Saved(model.sketch_, source.feature_names), run)


def _decompose(
    kind: Any, options: dict[str, Any], rows: Rows, method: Method, run: Run, spread: Spread
) -> None:
    """Run PCA or SVD over rows, or read it out of saved sketches."""
    if are_sketches(rows):
        with blaming(" or ".join(rows.sources)):
            saved = read_merged(rows.sources)
            sketch = _readable(saved.model, "pca" if kind is StreamingPCA else "svd")
            _save(Saved(kind(**options).reading(sketch, saved.names), saved.names), run)
        return
    keep_sources(rows, run.output)
    source = open_source(rows)
    model = _numbered(kind(**options, **sketch_options(method, source)), method, spread)
    learn(model, source, rows, None, run, spread)
    _save(Saved(model, source.feature_names), run)


def _numbered(model: Estimator, method: Method, spread: Spread) -> Any:
    """Return the model for the part that --shard and --shards tell, if they do."""
    if method.shards is None:
        return model
    if method.shard >= method.shards:
        raise typer.BadParameter(f"--shard is 0 to {method.shards - 1}, got {method.shard}")
    if spread.workers is not None or spread.dask is not None:
        raise typer.BadParameter("--shards is for one part; --workers and --dask number their own")
    return model.for_shard(method.shard, method.shards)


def _n_components(text: str | None) -> int | float | None:
    try:
        return None if text is None else float(text) if "." in text else int(text)
    except ValueError:
        raise typer.BadParameter(f"-k {text} is neither a number nor a fraction") from None


def _readable(saved: Estimator | Sketch, purpose: str) -> Any:
    """Return the sketch in a saved file, if it is one that the command can read."""
    sketch = saved if isinstance(saved, Sketch) else getattr(saved, "sketch_", None)
    if purpose == "ridge":
        readable = isinstance(sketch, Regression) and sketch.target_shape is not None
    else:
        if isinstance(sketch, Regression):
            sketch = sketch.sketch
        readable = isinstance(sketch, Centered) == (purpose == "pca")
    if sketch is None or not readable or sketch.n_features is None:
        raise typer.BadParameter(
            f"the saved {saved.kind} cannot be read out by {purpose}; sketch the rows again with "
            f"--for {purpose}"
        )
    return sketch


def _save(saved: Saved, run: Run) -> None:
    """Save the result, remove the checkpoint, and print the findings."""
    write(saved, run.output)
    finish(run)
    if run.output == STDOUT:
        say(run, "saved to stdout")
    elif run.as_json or not run.quiet:
        print_model(saved, run.output, run.as_json)
