"""One run of a command: opens the rows, streams them with a bar, and keeps a checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from sksketch.arrays.namespace import find_device
from sksketch.cli.memory import exact_fits, largest_sketch, parse_size, resident
from sksketch.cli.options import Method, Rows, Run, Spread
from sksketch.cli.printing import echo
from sksketch.cli.saving import STDOUT
from sksketch.cli.show import progress_bar, say
from sksketch.cli.stopping import exit_code
from sksketch.cli.tables.columns import chosen, chosen_numbers, has_patterns, is_choosy
from sksketch.cli.tables.encoding import (
    announce,
    encoder_checkpoint,
    learn_encoder,
    open_alike,
    others_of,
)
from sksketch.models.sketched import SketchEstimator
from sksketch.run import Progress, fit_stream
from sksketch.run.dask import fit_dask_parts
from sksketch.run.shards import shard_template
from sksketch.run.workers import fit_workers
from sksketch.sketches import make_sketch
from sksketch.state.disk import is_same, is_special
from sksketch.state.persistence import read_state
from sksketch.streams import RowSource, divide, open_rows, spare_memory
from sksketch.streams.columns import NotNumericError
from sksketch.streams.encoded import EncodedSource
from sksketch.streams.files import STDIN

# Files whose columns have numbers for names.
LABELED = (".svm", ".svmlight", ".libsvm", ".vw")
NUMBERED = (".npy", ".npz", ".zarr", ".mtx", ".h5", ".hdf5", ".nc", *LABELED)
RANDOM = ("gaussian", "sign", "countsketch", "srht", "sample")


def are_sketches(rows: Rows) -> bool:
    """Return whether the sources are saved sketches, to be read out, and not rows."""
    return all(source.endswith(".sks") for source in rows.sources)


def open_source(
    rows: Rows,
    target: str | None = None,
    run: Run | None = None,
    spread: Spread | None = None,
    *,
    learns: bool = False,
    numbers: bool = False,
    in_units: bool = False,
) -> RowSource:
    """Open what the options describe; a table with other columns than numbers is encoded.

    That takes a pass over the rows, which tells how to write them as numbers. Where the command
    ``learns`` to predict, rows without a target are refused before, and where it predicts
    ``numbers``, a target that is text. ``in_units`` is for coefficients that are read one by one.
    """
    for source in rows.sources:
        if source.endswith(".sks"):
            raise typer.BadParameter(f"{source} is a saved sketch among files of rows")
    spare_memory()
    if rows.like is not None:
        return _with_target(open_alike(rows, target), learns, numbers)
    where, reading = place_of(rows), reading_of(rows, target)
    reading["columns"] = open_columns(rows, where, reading, run)
    if run is None or rows.encode is False or rows.one_hot or are_numbered(rows):
        return _with_target(open_rows(where, **reading), learns, numbers)
    others: list[str] = []
    if not rows.encode:
        try:
            return _with_target(open_rows(where, **reading), learns, numbers)
        except NotNumericError as error:
            if STDIN in rows.sources:
                raise
            others = [str(error.column)]
    table = _with_target(open_rows(where, **raw_reading(reading, rows)), learns, numbers)
    announce(rows, run, others_of(table) or others)
    how = raw_reading(reading, rows), rows, run, spread, checkpoint_of(run)
    return learn_encoder(table, *how, in_units=in_units)


def _with_target(source: RowSource, learns: bool, numbers: bool) -> RowSource:
    if learns:
        require_target(source)
    if numbers:
        require_numbers(source)
    return source


def open_columns(rows: Rows, where: Any, reading: dict[str, Any], run: Run | None = None) -> Any:
    """Return the columns that the options choose, by a look at the table where that takes one."""
    if are_numbered(rows):
        return chosen_numbers(rows, where, reading) if has_patterns(rows) else reading["columns"]
    if not is_choosy(rows):
        return reading["columns"]
    names, skipped = chosen(rows, where, reading)
    if skipped and run is not None:
        say(run, f"sksketch: left out as no numbers: {', '.join(skipped)}")
    return names


def place_of(rows: Rows) -> Any:
    """Return the sources as `open_rows` takes them."""
    return rows.sources[0] if len(rows.sources) == 1 else rows.sources


def are_numbered(rows: Rows) -> bool:
    """Return whether columns have numbers for names."""
    return any(part in source for source in rows.sources for part in NUMBERED)


def are_labeled(rows: Rows) -> bool:
    """Return whether rows are sparse and have labels of their own."""
    return rows.input_format in ("svmlight", "vw") or any(
        part in rows.sources[0] for part in LABELED
    )


def reading_of(rows: Rows, target: str | None) -> dict[str, Any]:
    """Return the options with which rows are opened."""
    numbered = are_numbered(rows)
    encoded = dict(_category(text) for text in rows.one_hot or [])
    if rows.fill is not None and rows.missing is not None:
        raise typer.BadParameter("give either --missing or --fill, which fills in a number")
    missing = "error" if rows.missing is None else rows.missing.value
    return {
        "target": _targets(target, numbered),
        "columns": _split(rows.columns, numbered),
        "missing": missing if rows.fill is None else rows.fill,
        "one_hot": list(encoded) or None,
        "categories": {name: values for name, values in encoded.items() if values} or None,
        "dtype": None if rows.dtype is None else rows.dtype.value,
        "format": None if rows.input_format is None else rows.input_format.value,
        "header": rows.header,
        "delimiter": rows.delimiter,
        "decimal": rows.decimal,
        "thousands": rows.thousands,
        "na": rows.na or (),
        "comment": rows.comment,
        "skip": rows.skip,
        "encoding": rows.encoding,
        "key": rows.key,
        "n_features": rows.n_features,
    }


def raw_reading(reading: dict[str, Any], rows: Rows) -> dict[str, Any]:
    """Return the options with which the same rows are opened as tables."""
    if rows.fill is not None:
        raise typer.BadParameter("--fill is for columns of numbers; encoded ones get their mean")
    missing = "drop" if rows.missing == "drop" else "error"
    return {**reading, "missing": missing, "one_hot": None, "categories": None, "dtype": None} | {
        "raw": True
    }


def keep_sources(rows: Rows, output: str) -> None:
    """Refuse to write the result over the rows that it comes from."""
    for source in rows.sources:
        if output != STDOUT and is_same(output, source):
            raise typer.BadParameter(
                f"refusing to overwrite the input {output}; give another output"
            )


def _split(texts: list[str] | None, numbered: bool) -> list[Any] | None:
    if not texts:
        return None
    words = [word for text in texts for word in text.split(",")]
    return [int(word) if numbered and word.lstrip("-").isdigit() else word for word in words]


def _targets(target: str | None, numbered: bool) -> Any:
    if target is None:
        return None
    found = _split([target], numbered) or []
    return found[0] if len(found) == 1 else found


def _category(text: str) -> tuple[str, list[str]]:
    name, _, values = text.partition("=")
    return name, values.split(",") if values else []


def sketch_options(method: Method, source: RowSource) -> dict[str, Any]:
    """Return the estimator's parameters ``sketch`` and ``sketch_size`` for the options."""
    size, key = method.sketch_size, method.sketch
    if method.memory is not None:
        if size is not None:
            raise typer.BadParameter("give either --sketch-size or --memory, which picks it")
        limit, sparse, before = parse_size(method.memory), _is_sparse(source), resident()
        # What the look at the rows has taken is there for reading them.
        reading = source.spare_memory() - (resident() - before)
        size = largest_sketch(limit, source.n_features, sparse=sparse, reading=reading)
        if key == "auto" and not exact_fits(limit, source.n_features, reading=reading):
            key = "rfd"
    if key in RANDOM:
        shard = 0 if method.shards is not None else method.shard
        return {"sketch": make_sketch(key, size or 64, seed=method.seed, shard=shard)}
    return {"sketch": key, **({} if size is None else {"sketch_size": size})}


def _is_sparse(source: RowSource) -> bool:
    return source.fingerprint()["kind"] in ("svmlight", "vw", "mtx")


def require_target(source: RowSource) -> None:
    """Refuse rows without anything to predict."""
    if not source.n_targets:
        raise typer.BadParameter("there is nothing to predict; name the target with --target")


def require_numbers(source: RowSource) -> None:
    """Refuse targets that are text, where numbers are to be predicted."""
    again = source.n_targets and not source.reads_once
    first = next(iter(source.targets()), None) if again else None
    if first is not None and first.dtype.kind not in "biuf":
        name = (source.target_names or ["it"])[0]
        raise typer.BadParameter(
            f"the target {name!r} is text, such as {str(first.ravel()[0])!r}, and numbers are to "
            "be predicted; for labels there are online, and reduce --task classify"
        )


def in_parts(
    model: object, source: RowSource, rows: Rows, target: str | None, run: Run, spread: Spread
) -> bool:
    """Learn parts of the rows in several processes or on a cluster, if that was asked for."""
    if spread.workers is None and spread.dask is None:
        return False
    if sum(given is not None for given in (spread.workers, spread.dask, spread.device)) > 1:
        raise typer.BadParameter("give one of --workers, --dask and --device")
    if run.checkpoint is not None or run.every is not None or run.restart:
        raise typer.BadParameter("checkpoints are for runs without --workers and --dask")
    shard_template(model)
    parts = divide(source, _reading_again(source, rows, target))
    try:
        with progress_bar(shown=not run.quiet) as bar:
            if spread.dask is not None:
                fit_dask_parts(model, source, parts, spread.dask, progress=bar)
            else:
                fit_workers(model, source, parts, spread.workers or 1, progress=bar)
    except KeyboardInterrupt as error:
        echo("sksketch: stopped and nothing saved", err=True)
        raise typer.Exit(exit_code(error)) from None
    return True


def _reading_again(source: RowSource, rows: Rows, target: str | None) -> dict[str, Any]:
    """Return the options with which workers open the files of a source."""
    reading = reading_of(rows, target)
    return raw_reading(reading, rows) if isinstance(source, EncodedSource) else reading


def learn(
    model: SketchEstimator,
    source: RowSource,
    rows: Rows,
    target: str | None,
    run: Run,
    spread: Spread,
) -> Any:
    """Let a model that keeps a sketch learn from all rows, and return it."""
    try:
        # What cannot be built would otherwise be noticed after the first block was read.
        model.new_sketch(source.n_features)
    except TypeError as error:
        raise typer.BadParameter(str(error)) from None
    if not in_parts(model, source, rows, target, run, spread):
        stream(model, source, run, device=spread.device)
    return model


def stream(
    model: object,
    source: RowSource,
    run: Run,
    *,
    progress: Progress | None = None,
    classes: object = None,
    n_passes: int = 1,
    device: str | None = None,
) -> None:
    """Stream the rows through a model; a signal to stop prints how to resume and ends the command.

    ``progress`` takes the place of the bar.
    """
    if device is not None:
        find_device(device)
    checkpoint = checkpoint_of(run)
    if checkpoint is not None and checkpoint.exists() and not run.restart:
        say(run, f"resuming from {checkpoint}")
    try:
        with progress_bar(shown=not run.quiet and progress is None) as bar:
            fit_stream(
                model,
                source,
                checkpoint=checkpoint,
                every=run.every,
                progress=progress or bar,
                resume=not run.restart,
                classes=classes,
                n_passes=n_passes,
                device=device,
            )
    except KeyboardInterrupt as error:
        echo(_how_to_resume(checkpoint), err=True)
        raise typer.Exit(exit_code(error)) from None


def checkpoint_of(run: Run) -> Path | None:
    """Return where the checkpoint is: as asked for, or beside the output."""
    if run.checkpoint is not None or run.output == STDOUT or is_special(run.output):
        return run.checkpoint
    return Path(f"{run.output}.checkpoint")


def finish(run: Run) -> None:
    """Remove the checkpoint, once the result is saved."""
    checkpoint = checkpoint_of(run)
    for path in (checkpoint, encoder_checkpoint(checkpoint)):
        if path is not None:
            path.unlink(missing_ok=True)


def _how_to_resume(checkpoint: Path | None) -> str:
    if checkpoint is None:
        return "sksketch: stopped and nothing saved; pass --checkpoint FILE to be able to resume"
    if not checkpoint.exists():
        return "sksketch: stopped before the first rows were done"
    n_rows = read_state(checkpoint).count("rows_done")
    return (
        f"sksketch: stopped; {n_rows:,} rows are saved in {checkpoint}. Run the same command again "
        "to resume"
    )
