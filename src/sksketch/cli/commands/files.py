"""The commands that look at saved files: info and merge."""

from __future__ import annotations

from typing import Annotated

import typer

from sksketch.cli.options import Json, Output
from sksketch.cli.printing import echo
from sksketch.cli.saving import STDOUT, blaming, named, read_merged, write
from sksketch.cli.show import print_facts, print_model
from sksketch.run.checkpoints import KIND
from sksketch.state.persistence import read_state


def info(
    file: Annotated[str, typer.Argument(help="A saved sketch, model or checkpoint.")],
    as_json: Json = False,
) -> None:
    """Print what a saved file has seen and what it certifies."""
    state = read_state(file)
    with blaming(file):
        if state.kind == KIND:
            facts = {
                "file": file,
                "kind": KIND,
                "of": state.inner("model").kind,
                "rows done": state.count("rows_done"),
            }
            print_facts(facts, as_json)
        else:
            print_model(named(state, file), file, as_json)


def merge(
    files: Annotated[list[str], typer.Argument(help="Saved sketches of the same columns.")],
    output: Output,
    as_json: Json = False,
) -> None:
    """Merge saved sketches or models of different rows into one."""
    if len(files) < 2:
        raise typer.BadParameter("give at least two files to merge")
    with blaming(" or ".join(files)):
        merged = read_merged(files)
        write(merged, output)
    echo(f"merged {len(files)} files into {output}", err=True)
    if output != STDOUT:
        with blaming(output):
            print_model(merged, output, as_json)
