"""Steps of a pipeline that the first rows settle, and that stay as they are from then on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sksketch.models.pipelines.steps import Chain
from sksketch.models.protocols import Settled
from sksketch.streams.blocks import Block, concatenated

# Products of matrices round differently for other numbers of rows. So these steps get the same
# rows at a time in every run, also in one that resumes: this many, from the first row on.
TILE_ROWS = 512


def settled_by_first_rows(steps: Chain) -> list[Any]:
    """Return the estimators that need to see the first rows."""
    return [step.estimator for step in steps.steps if isinstance(step.estimator, Settled)]


class Settling:
    """Lets the steps of a chain see the first rows where they need them, each once.

    How the rows are cut into blocks makes no difference to the steps.
    """

    def __init__(self, steps: Chain) -> None:
        self._steps = steps.steps
        self.estimators = settled_by_first_rows(steps)
        self._done: set[int] = set()

    def settled(self, blocks: Iterator[Block], n_learned: int | None) -> Iterator[Block]:
        """Yield all blocks, after the first rows of them have settled steps.

        Only steps before the one that learns after ``n_learned`` passes are settled; none if that
        is None, since they were before.
        """
        before = [] if n_learned is None else self._before(n_learned)
        waiting = [
            step.estimator
            for step in before
            if isinstance(step.estimator, Settled) and id(step.estimator) not in self._done
        ]
        if not waiting:
            return blocks
        return self._first_rows(blocks, before, max(one.settling_rows for one in waiting))

    def _before(self, n_learned: int) -> list[Any]:
        found = []
        for step in self._steps:
            if n_learned < step.n_passes:
                break
            n_learned -= step.n_passes
            found.append(step)
        return found

    def _first_rows(
        self, blocks: Iterator[Block], before: list[Any], n_rows: int
    ) -> Iterator[Block]:
        waiting: list[Block] = []
        for block in blocks:
            waiting.append(block)
            if sum(int(one.X.shape[0]) for one in waiting) >= n_rows:
                break
        if waiting:
            rows = concatenated([block.X for block in waiting])
            for step in before:
                estimator = step.estimator
                if isinstance(estimator, Settled) and id(estimator) not in self._done:
                    estimator.settle(rows[: estimator.settling_rows])
                    self._done.add(id(estimator))
                rows = step.transform(rows)
        yield from waiting
        yield from blocks
