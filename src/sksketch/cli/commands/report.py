"""The command report: one page about a saved file."""

from __future__ import annotations

from typing import Annotated

import typer

from sksketch.cli.options import Json, Output, in_run


def report(
    file: Annotated[str, typer.Argument(help="A saved sketch, model, checkpoint or archive.")],
    output: Output,
    before: Annotated[
        str | None,
        in_run("--before", metavar="FILE", help="A saved state of earlier rows, to compare with."),
    ] = None,
    as_json: Json = False,
    quiet: Annotated[bool, in_run("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:
    """Write one HTML page, complete in itself, about what a saved file found and certifies."""
    from sksketch.cli.jobs.describing import write_report

    write_report(file, output, before, as_json=as_json, quiet=quiet)
