"""Passes over the rows: first those in which steps of a pipeline learn, then those of the model."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator
from contextlib import closing
from typing import Any

from sksketch.exceptions import Option, SourceError
from sksketch.models.base import Estimator
from sksketch.models.pipelines.steps import Chain
from sksketch.models.protocols import Converging, Measuring, SeveralPasses
from sksketch.run.passes.settled import TILE_ROWS, Settling
from sksketch.streams import Block, RowSource, reblock
from sksketch.streams.device import device_blocks
from sksketch.streams.prefetch import read_ahead


class Passes:
    """All blocks of a run, pass after pass.

    Parameters
    ----------
    rows : RowSource
        The rows.
    steps : Chain
        The steps before the model.
    model : estimator or sketch
        The last step.
    n_passes : int
        Passes of the model.
    pilot : int or None
        Rows from which the steps learn instead of all, so that they need no pass of their own.
    device : str or None
        Where blocks are copied to.

    Attributes
    ----------
    number : int
        The pass that the last block belongs to.
    pass_rows : int
        Rows of a pass; 0 as long as that is not known.
    """

    def __init__(
        self,
        rows: RowSource,
        steps: Chain,
        model: Any,
        n_passes: int,
        pilot: int | None,
        device: str | None,
    ) -> None:
        self._rows, self._steps, self._model, self._device = rows, steps, model, device
        self._pilot = pilot if steps.n_passes else None
        self.n_early = 0 if self._pilot is not None else steps.n_passes
        self.n_all = self.n_early + n_passes
        self._settling = Settling(steps)
        # What is measured in tiles does not depend on how the rows are cut, and neither do the
        # roundings of scikit-learn's steps.
        measured = isinstance(model, Measuring) and model.n_passes > 1
        rounds = any(not isinstance(part, Estimator) for part in steps.learners())
        tiles = bool(self._settling.estimators) or measured or rounds
        self.n_tile_rows = TILE_ROWS if tiles else None
        self.number = 0
        self.pass_rows = 0

    @property
    def is_early(self) -> bool:
        """Whether steps are learning, and not yet the model."""
        return self.number < self.n_early

    def blocks(self, n_done: int) -> Generator[Block, None, None]:
        """Yield the blocks of all passes, leaving out the first ``n_done`` rows of them."""
        if n_done and not self.pass_rows and self.n_all > 1:
            self.pass_rows = self._rows.n_rows or self._count()
        skip = n_done
        for number in range(self.n_all):
            self._begin_pass(number)
            if isinstance(self._model, Converging) and self._model.has_converged:
                return
            if self.pass_rows and skip >= self.pass_rows:
                skip -= self.pass_rows
                continue
            n_given = skip
            blocks = self._settling.settled(self._pass(skip), None if skip else self._learned())
            with closing(self._mapped(blocks)) as mapped:
                for block in mapped:
                    n_given += int(block.X.shape[0])
                    yield block
            self.pass_rows, skip = n_given, 0

    def _mapped(self, blocks: Iterator[Block]) -> Generator[Block, None, None]:
        """Map the blocks of the model by the steps; in the background where rows are read so."""
        if self.is_early or not self._steps.steps:
            return _given(blocks)
        mapped = (Block(self._steps.transform(b.X), b.y, b.sample_weight, b.times) for b in blocks)
        return read_ahead(mapped, 1) if self._rows.in_background else _given(mapped)

    def _begin_pass(self, number: int) -> None:
        self.number = number
        n_before = number - self.n_early
        if n_before > 0 and isinstance(self._model, SeveralPasses):
            self._model.end_pass(n_before)

    def _learned(self) -> int:
        """Return the passes of the steps that are over."""
        return self.number if self.is_early else self._steps.n_passes

    def _count(self) -> int:
        return sum(int(block.X.shape[0]) for block in self._rows.blocks())

    def _pass(self, start_row: int) -> Iterator[Block]:
        if self._pilot is not None and self.number == 0 and not start_row:
            found = self._after_pilot(self._pilot)
        else:
            found = self._read(start_row)
        return found if self.n_tile_rows is None else reblock(found, self.n_tile_rows)

    def _read(self, start_row: int, *, learning: bool = False) -> Iterator[Block]:
        """Yield blocks, with the columns that the first step needs once it has learned."""
        rows, first = self._rows, self._steps.steps[:1]
        if first and not learning and self._learned() >= first[0].n_passes:
            names = self._steps.columns_used()
            rows = rows if names is None else rows.only(names)
        if self._device is None:
            return rows.blocks(start_row)
        # A device finds missing values faster than the host.
        return device_blocks(rows.unchecked().blocks(start_row), self._device)

    def _after_pilot(self, n_rows: int) -> Iterator[Block]:
        """Let the steps learn from the first rows, and yield all blocks."""
        numbers = range(self._steps.n_passes)
        if self._rows.is_of_files:
            # They are read again, and nothing of them has to be kept.
            for number in numbers:
                with closing(_first(self._read(0, learning=True), n_rows)) as blocks:
                    for X, y in blocks:
                        self._steps.learn(number, X, y)
            return self._read(0)
        again = self._read(0, learning=True)
        waiting: deque[Block] = deque()
        while sum(int(block.X.shape[0]) for block in waiting) < n_rows:
            block = next(again, None)
            if block is None:
                break
            waiting.append(block)
        for number in numbers:
            for X, y in _first(iter(waiting), n_rows):
                self._steps.learn(number, X, y)
        return _emptied(waiting, again)


def check_passes(rows: RowSource, steps: Chain, pilot: int | None) -> None:
    """Refuse steps that read rows again which can be read only once."""
    if steps.n_passes and pilot is None and rows.reads_once:
        raise SourceError(
            f"the pipeline reads the rows {steps.n_passes + 1} times, and they can be read only "
            "once; give a file or array, or let its steps learn from the first rows with ",
            Option("pilot", 100_000),
        )


def _first(blocks: Iterator[Block], n_rows: int) -> Generator[tuple[Any, Any], None, None]:
    """Yield the first rows and their targets."""
    for block in blocks:
        X, y = block
        part = min(n_rows, int(X.shape[0]))
        yield X[:part], None if y is None else y[:part]
        n_rows -= part
        if n_rows <= 0:
            return


def _emptied(waiting: deque[Block], blocks: Iterator[Block]) -> Iterator[Block]:
    """Yield blocks that wait, each of which is let go, and the others."""
    while waiting:
        yield waiting.popleft()
    yield from blocks


def _given(blocks: Iterator[Block]) -> Generator[Block, None, None]:
    yield from blocks
