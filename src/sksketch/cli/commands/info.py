"""The command info: what a saved file has seen and certifies."""

from __future__ import annotations

from typing import Annotated

import typer

from sksketch.cli.options import Json
from sksketch.cli.saving import blaming, named
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
