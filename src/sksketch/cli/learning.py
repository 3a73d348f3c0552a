"""Steps that commands share: parts, saved sketches, the ending."""

from __future__ import annotations

from typing import Any

import typer

from sksketch.cli.jobs.archiving import of_range
from sksketch.cli.options import Method, Rows, Run, Spread, Timing
from sksketch.cli.running import (
    are_sketches,
    finish,
    keep_sources,
    learn,
    open_source,
    sketch_options,
)
from sksketch.cli.saving import STDOUT, Saved, blaming, of_source, read_merged, write
from sksketch.cli.show import print_model, say
from sksketch.cli.tables.timed import open_timed
from sksketch.decomposition import StreamingPCA
from sksketch.models.base import Estimator
from sksketch.sketches import Centered, Regression, Sketch
from sksketch.streams import RowSource
from sksketch.streams.files import STDIN
from sksketch.time.archive import is_archive


def decompose(
    kind: Any,
    options: dict[str, Any],
    rows: Rows,
    method: Method,
    run: Run,
    spread: Spread,
    timing: Timing,
) -> None:
    """Run PCA or SVD over rows, or read it out of saved sketches or an archive."""
    if are_kept(rows):
        with blaming(" or ".join(rows.sources)):
            saved = read_kept(rows, timing)
            sketch = readable(saved.model, "pca" if kind is StreamingPCA else "svd")
            _check_columns(options["n_components"], sketch.n_features)
            save(saved._replace(model=kind(**options).reading(sketch, saved.names)), run)
        return
    keep_sources(rows, run.output)
    source = open_for(timing, rows, None, run, spread)
    _check_columns(options["n_components"], source.n_features)
    options = options | timing.options | sketch_options(method, source)
    model = numbered(kind(**options), method, spread)
    learn(model, source, rows, None, run, spread)
    save(of_source(model, source), run)


def are_kept(rows: Rows) -> bool:
    """Return whether the sources are saved sketches, or an archive of them, and not rows."""
    return are_sketches(rows) or any(is_archive(source) for source in rows.sources)


def read_kept(rows: Rows, timing: Timing) -> Saved:
    """Return what saved sketches are merged to, or the periods of an archive."""
    if timing.options:
        raise typer.BadParameter("--window and --half-life are for rows, not for saved sketches")
    archived = [source for source in rows.sources if is_archive(source)]
    if not archived:
        if timing.start is not None or timing.end is not None:
            raise typer.BadParameter("--from and --to are for an archive, not for saved sketches")
        return read_merged(rows.sources)
    if len(rows.sources) > 1:
        raise typer.BadParameter("give one archive by itself")
    return of_range(archived[0], timing.start, timing.end)


def open_for(
    timing: Timing,
    rows: Rows,
    target: str | None,
    run: Run,
    spread: Spread,
    **checks: bool,
) -> RowSource:
    """Open rows, with their times where a window needs them."""
    if timing.start is not None or timing.end is not None:
        raise typer.BadParameter("--from and --to are for an archive; rows are all learned from")
    if timing.time is None:
        return open_source(rows, target, run, spread, **checks)
    if spread.workers is not None or spread.dask is not None:
        raise typer.BadParameter("--time needs the rows in their order; leave --workers out")
    return open_timed(rows, target, run, timing.time)


def _check_columns(wanted: int | float | None, n_features: int) -> None:
    """Refuse more components than columns, as scikit-learn does."""
    if wanted is not None and wanted > n_features:
        raise typer.BadParameter(
            f"-k {wanted} asks for more components than the {n_features:,} columns have"
        )


def numbered(model: Estimator, method: Method, spread: Spread) -> Any:
    """Return the model for the part that --shard and --shards tell, if they do."""
    if method.shards is None:
        return model
    if method.shard >= method.shards:
        raise typer.BadParameter(f"--shard is 0 to {method.shards - 1}, got {method.shard}")
    if spread.workers is not None or spread.dask is not None:
        raise typer.BadParameter("--shards is for one part; --workers and --dask number their own")
    return model.for_shard(method.shard, method.shards)


def n_components(text: str | None) -> int | float | None:
    """Return what -k gives: a number, a fraction, or None."""
    try:
        return None if text is None else float(text) if "." in text else int(text)
    except ValueError:
        raise typer.BadParameter(f"-k {text} is neither a number nor a fraction") from None


def readable(saved: Estimator | Sketch, purpose: str) -> Any:
    """Return the sketch in a saved file, if it is one that the command can read."""
    sketch = saved if isinstance(saved, Sketch) else getattr(saved, "sketch_", None)
    if not getattr(saved, "is_of_plain_rows", True):
        raise typer.BadParameter(
            f"the rows of the saved {saved.kind} were standardized before they were sketched; give "
            "the rows themselves"
        )
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


def save(saved: Saved, run: Run, inference: bool = False) -> None:
    """Save the result, remove the checkpoint, and print the findings."""
    write(saved, run.output)
    finish(run)
    if run.output == STDOUT:
        say(run, "saved to stdout")
    elif run.as_json or not run.quiet:
        print_model(saved, run.output, run.as_json, inference)


def save_with_embedding(
    model: Any, source: RowSource, rows: Rows, run: Run, *, pairs: bool = False
) -> None:
    """Save a model with some rows' components for its report, and print what was found.

    With ``pairs`` targets are a second view; else they are labels, of no use here.
    """
    if STDIN not in rows.sources:
        block = next(source.blocks())
        # The blocks are bare arrays, and scikit-learn would miss their names.
        names = vars(model).pop("feature_names_in_", None)
        model.keep_embedding(*((block.X, block.y) if pairs else (block.X,)))
        if names is not None:
            model.feature_names_in_ = names
    save(of_source(model, source), run)
