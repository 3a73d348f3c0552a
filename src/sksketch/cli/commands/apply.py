"""The command apply: coordinates or predictions of rows, block by block."""

from __future__ import annotations

from typing import Annotated

import typer

from sksketch.cli.options import Output, Rows, in_columns, in_run


def apply(
    model: Annotated[str, typer.Argument(help="A saved model.")],
    rows: Rows,
    output: Output,
    identity: Annotated[
        list[str] | None,
        in_columns("--id", metavar="NAME", help="Column that tells the rows; it comes first."),
    ] = None,
    keep: Annotated[
        list[str] | None,
        in_columns(metavar="A,B", help="Further columns of the source to write beside."),
    ] = None,
    quiet: Annotated[bool, in_run("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Write the scores or predictions of rows: .npy, .npz, .parquet or .csv, or CSV to stdout."""
    from sksketch.cli.jobs.answering import apply_saved

    beside = list(identity or [])
    beside += [word for text in keep or [] for word in text.split(",")]
    apply_saved(model, rows, output, beside, quiet=quiet)
