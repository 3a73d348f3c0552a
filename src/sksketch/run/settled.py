"""Steps of a pipeline that the first rows settle, and that stay as they are from then on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sksketch.models.protocols import Settled
from sksketch.streams.blocks import Block, concatenated

# Products of matrices round differently for other numbers of rows. So these steps get the same
# rows at a time in every run, also in one that resumes: this many, from the first row on.
TILE_ROWS = 512


def settled(steps: Sequence[Any]) -> list[Any]:
    """Return the steps that need to see the first rows."""
    return [step for step in steps if isinstance(step, Settled)]


def settling(blocks: Iterator[Block], steps: Sequence[Any]) -> Iterator[Block]:
    """Let steps see the first rows where they need them, and yield all blocks.

    How the rows are cut into blocks makes no difference to the steps.
    """
    n_rows = max(step.settling_rows for step in settled(steps))
    waiting: list[Block] = []
    for block in blocks:
        waiting.append(block)
        if sum(int(one.X.shape[0]) for one in waiting) >= n_rows:
            break
    if waiting:
        rows = concatenated([block.X for block in waiting])
        for step in steps:
            if isinstance(step, Settled):
                step.settle(rows[: step.settling_rows])
            rows = step.transform(rows)
    yield from waiting
    yield from blocks
