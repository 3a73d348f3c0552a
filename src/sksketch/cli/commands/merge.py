"""The command merge: saved sketches or models of different rows into one."""

from __future__ import annotations

from typing import Annotated

import typer

from sksketch.cli.options import Json, Output


def merge(
    files: Annotated[list[str], typer.Argument(help="Saved sketches of the same columns.")],
    output: Output,
    as_json: Json = False,
) -> None:
    """Merge saved sketches or models of different rows into one."""
    from sksketch.cli.printing import echo
    from sksketch.cli.saving import STDOUT, blaming, read_merged, write
    from sksketch.cli.show import print_model

    if len(files) < 2:
        raise typer.BadParameter("give at least two files to merge")
    with blaming(" or ".join(files)):
        merged = read_merged(files)
        write(merged, output)
    echo(f"merged {len(files)} files into {output}", err=True)
    if output != STDOUT:
        with blaming(output):
            print_model(merged, output, as_json)
