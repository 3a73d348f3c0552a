"""The command info: what a saved file has seen and certifies."""

from __future__ import annotations

from typing import Annotated

import typer

from sksketch.cli.options import Json


def info(
    file: Annotated[str, typer.Argument(help="A saved sketch, model or checkpoint.")],
    as_json: Json = False,
) -> None:
    """Print what a saved file has seen and what it certifies."""
    from sksketch.cli.jobs.describing import print_info

    print_info(file, as_json=as_json)
