"""The commands that look at saved files: info and merge."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from sksketch.cli.options import Json, Output
from sksketch.cli.printing import echo
from sksketch.cli.saving import STDOUT, read, read_merged, write
from sksketch.cli.show import print_facts, print_model
from sksketch.drive.checkpoints import KIND
from sksketch.persistence import read_state


def info(
    file: Annotated[str, typer.Argument(help="A saved sketch, model or checkpoint.")],
    as_json: Json = False,
) -> None:
    """Say what a saved file has seen and what it certifies."""
    state = read_state(file)
    if state.kind == KIND:
        meta: Any = state.meta
        facts = {
            "file": file,
            "kind": KIND,
            "of": meta["model.kind"],
            "rows done": meta["rows_done"],
        }
        print_facts(facts, as_json)
        return
    print_model(read(file), file, as_json)


def merge(
    files: Annotated[list[str], typer.Argument(help="Saved sketches of the same columns.")],
    output: Output,
    as_json: Json = False,
) -> None:
    """Merge saved sketches or models of different rows into one."""
    if len(files) < 2:
        raise typer.BadParameter("give at least two files to merge")
    merged = read_merged(files)
    write(merged, output)
    echo(f"merged {len(files)} files into {output}", err=True)
    if output != STDOUT:
        print_model(merged, output, as_json)
