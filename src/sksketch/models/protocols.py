"""Protocols of runners beyond scikit-learn's contract: shards, passes, first rows."""

from __future__ import annotations

from typing import Protocol, Self, runtime_checkable

from sksketch._typing import Rows
from sksketch.state.persistence import State


@runtime_checkable
class Shardable(Protocol):
    """An estimator whose rows can be learned in parts, apart from one another, and merged."""

    def shard_template(self) -> Self:
        """Return an unfitted copy with a fixed seed, or say why parts cannot be merged."""

    def for_shard(self, index: int, n_shards: int) -> Self:
        """Return a copy of the template for one of the parts."""

    def compact(self) -> None:
        """Make the state small, before it travels."""

    def merge(self, other: Self) -> Self:
        """Add what was learned from another part."""

    def state(self) -> State:
        """Return all that was learned, as plain data."""


@runtime_checkable
class SeveralPasses(Protocol):
    """An estimator that needs all rows more than once."""

    n_passes: int

    def end_pass(self, number: int) -> None:
        """All rows have come ``number`` times; called again when a run resumes later."""


@runtime_checkable
class Converging(SeveralPasses, Protocol):
    """An estimator that may need fewer passes than it has said."""

    @property
    def has_converged(self) -> bool:
        """Whether no further pass is needed; asked after `end_pass`."""


@runtime_checkable
class Piloted(Protocol):
    """An estimator that must see some rows before it can tell all parts how to learn.

    Where it needs none with the parameters it has, ``pilot_rows`` is 0.
    """

    pilot_rows: int

    def take_pilot(self, rows: Rows) -> None:
        """Choose by these rows what all parts must have in common."""


@runtime_checkable
class Measuring(Piloted, Protocol):
    """An estimator that looks at all rows before it learns from any, instead of at a pilot."""

    n_passes: int

    def measure_first(self, n_features: int) -> None:
        """All rows can be read twice; ``n_passes`` says from now on if that is needed."""


@runtime_checkable
class Settled(Protocol):
    """A transformer that the first rows settle: all rows are transformed in the same way."""

    settling_rows: int

    def settle(self, rows: Rows) -> None:
        """Choose by these rows how to transform, forgetting others."""
