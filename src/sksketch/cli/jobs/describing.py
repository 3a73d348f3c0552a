"""A saved file in lines or on a page: a sketch, a model or the checkpoint of a run."""

from __future__ import annotations

import json
import os
from pathlib import Path

import typer

from sksketch.cli.jobs.archiving import drift_of, since_the_last_gap
from sksketch.cli.printing import echo
from sksketch.cli.saving import STDOUT, Saved, blaming, check_alike, named, opened
from sksketch.cli.show import print_facts, print_json, print_model
from sksketch.present.report import Source, render
from sksketch.run.checkpoints import KIND
from sksketch.state.blame import fitting
from sksketch.state.disk import is_same
from sksketch.state.persistence import State, read_state
from sksketch.tables import TableEncoder
from sksketch.time.archive import is_archive


def print_info(file: str, *, as_json: bool) -> None:
    """Print what a file has seen and certifies."""
    state = read_state(file)
    with blaming(file):
        if state.kind != KIND:
            print_model(named(state, file), file, as_json)
            return
        kind = model_kind(state)
        facts = {"file": file, "kind": KIND, "of": kind, "rows done": state.count("rows_done")}
        if has_model(kind) or as_json:
            print_facts(facts, as_json)
        else:
            echo(f"{file}: {_before_model(state, file)}")


def model_kind(checkpoint: State) -> str | None:
    """Return the kind of the model in a checkpoint, or None if it has not seen a row yet."""
    return checkpoint.inner("model").kind if "model.kind" in checkpoint.meta else None


def has_model(kind: str | None) -> bool:
    """Return whether a checkpoint has more than the columns of a table, which are found first."""
    return kind not in (None, TableEncoder.kind)


def _before_model(checkpoint: State, file: str) -> str:
    """Say what a run was doing that had not come to its model when it was stopped."""
    n_rows = checkpoint.count("rows_done")
    if model_kind(checkpoint) == TableEncoder.kind:
        return f"checkpoint of a first look at the columns of a table, after {n_rows:,} rows"
    with fitting(file):
        estimator = json.loads(str(checkpoint.meta["estimator"]))["class"]
    return f"checkpoint of {estimator} after {n_rows:,} rows, before its model learns from any"


def write_report(file: str, output: str, before: str | None, *, as_json: bool, quiet: bool) -> None:
    """Write the page about a file."""
    if is_same(output, file):
        raise typer.BadParameter(f"{output} holds the model; give another name for the page")
    with blaming(file):
        archived = is_archive(file)
        saved, rows_done = (since_the_last_gap(file), None) if archived else _read(file)
        columns = None if saved.encoder is None else saved.encoder.columns_
        source = Source(Path(file).resolve().name, _n_bytes(file), rows_done, columns)
        earlier = None if before is None else _read(before)[0]
        if earlier is not None and before is not None:
            check_alike(earlier, saved, before, file)
        first = None if earlier is None else earlier.model
        drift = drift_of(file, saved.names, first) if archived else []
        page = render(saved.model, source, saved.names, first, drift).encode()
    with opened(output) as target:
        target.write(page)
    if output == STDOUT:
        return
    if as_json:
        facts = {"file": file, "kind": saved.model.kind, "report": output, "bytes": len(page)}
        print_json(facts)
    elif not quiet:
        echo(f"report of {file}: {output}, {len(page) / 1e3:,.0f} kB")


def _n_bytes(file: str) -> int:
    """Return the size of a file, or of all in a directory."""
    if not os.path.isdir(file):
        return os.path.getsize(file)
    return sum(inside.stat().st_size for inside in Path(file).rglob("*") if inside.is_file())


def _read(file: str) -> tuple[Saved, int | None]:
    """Return what is in a file, and the rows done if it is a checkpoint of a run."""
    state = read_state(file)
    if state.kind != KIND:
        return named(state, file), None
    if not has_model(model_kind(state)):
        raise typer.BadParameter(f"{file} has nothing to report yet: {_before_model(state, file)}")
    return named(state.inner("model"), file), state.count("rows_done")
