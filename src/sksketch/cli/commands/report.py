"""The command report: one page about a saved file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from sksketch.cli.options import Json, Output
from sksketch.cli.printing import echo
from sksketch.cli.saving import STDOUT, Saved, blaming, named, opened
from sksketch.cli.show import print_json
from sksketch.present.report import Source, render
from sksketch.run.checkpoints import KIND
from sksketch.state.disk import is_same
from sksketch.state.persistence import read_state


def report(
    file: Annotated[str, typer.Argument(help="A saved sketch, model or checkpoint.")],
    output: Output,
    as_json: Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:
    """Write one HTML page, complete in itself, about what a saved file found and certifies."""
    if is_same(output, file):
        raise typer.BadParameter(f"{output} holds the model; give another name for the page")
    with blaming(file):
        saved, rows_done = _read(file)
        source = Source(Path(file).name, os.path.getsize(file), rows_done)
        page = render(saved.model, source, saved.names).encode()
    with opened(output) as target:
        target.write(page)
    if output == STDOUT:
        return
    if as_json:
        facts = {"file": file, "kind": saved.model.kind, "report": output, "bytes": len(page)}
        print_json(facts)
    elif not quiet:
        echo(f"report of {file}: {output}, {len(page) / 1e3:,.0f} kB")


def _read(file: str) -> tuple[Saved, int | None]:
    """Return what is in a file, and the rows done if it is a checkpoint of a run."""
    state = read_state(file)
    if state.kind != KIND:
        return named(state, file), None
    return named(state.inner("model"), file), state.count("rows_done")
