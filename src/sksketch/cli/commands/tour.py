"""The command tour: the main job on made-up data, and how far from the truth it was."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sksketch.cli.options import Json

PICTURE = Path("sksketch-tour.png")


def tour(
    as_json: Json = False,
    picture: Annotated[Path, typer.Option(help="Output file of the picture.")] = PICTURE,
    rows: Annotated[int, typer.Option(hidden=True, min=1_000)] = 200_000,
    columns: Annotated[int, typer.Option(hidden=True, min=20)] = 1_000,
) -> None:
    """Stream a matrix that is never in memory through PCA, and check the answer."""
    from sksketch.cli.jobs.touring import take_tour

    take_tour(rows, columns, picture, as_json=as_json)
