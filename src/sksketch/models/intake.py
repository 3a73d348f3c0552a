"""Rows on their way into a sketch: divided by units of the columns, for which the first ones wait.

A sketch needs its rows in their units from the first one on: those of all rows where they can be
read twice, else those of the first rows, which wait for it. What units are, a `Units` knows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp

from sksketch._typing import Array, Rows, RowsLike
from sksketch.arrays.device_sparse import on_host
from sksketch.arrays.namespace import cast, copied, like, on_device, precision, to_numpy
from sksketch.arrays.rows import as_rows, as_weights, squared_row_norms
from sksketch.sketches import Sketch
from sksketch.sketches.column_moments import ColumnMoments
from sksketch.state.persistence import State
from sksketch.state.rows import pack_rows, unpack_rows
from sksketch.streams.blocks import concatenated


class FirstRows(NamedTuple):
    """Rows and what came with them; never changed.

    Parameters
    ----------
    X : array or CSR array of shape (n_rows, n_features)
        Rows, where they are.
    targets : array of shape (n_rows,) or (n_rows, n_targets), or None
        Their targets, if they have any.
    weights : array of shape (n_rows,) or None
        Their weights; None for ones.

    Examples
    --------
    >>> rows = FirstRows.of(np.array([[1.0], [3.0]]), None, None)
    >>> FirstRows.joined([rows, rows]).X.shape, rows.scale()
    ((4, 1), array([1.]))
    """

    X: Any
    targets: Any
    weights: Array | None

    @classmethod
    def of(cls, X: Rows, targets: Any, weights: object) -> FirstRows:
        """Return rows with their weights checked."""
        return cls(on_host(X), targets, as_weights(weights, X.shape[0]))

    def check(self) -> None:
        """Refuse rows that a sketch would refuse, as they are."""
        squared_row_norms(self.X, precision(self.X))

    def scale(self) -> Array:
        """Return the standard deviation of each column, and one where it never changes."""
        return ColumnMoments.empty(self.X.shape[1]).updated(self.X, self.weights).scale()

    def part(self, start: int, stop: int) -> FirstRows:
        """Return some of the rows."""
        return FirstRows(*(None if part is None else part[start:stop] for part in self))

    def head(self, n_rows: int) -> FirstRows:
        """Return the first rows."""
        return self.part(0, n_rows)

    @classmethod
    def joined(cls, parts: Sequence[FirstRows]) -> FirstRows:
        """Return all rows, in the precision and place of the first ones."""
        first = parts[0].X
        blocks = [cast(part.X, precision(first)) for part in parts]
        if on_device(first):
            blocks = [
                like(block.toarray() if sp.issparse(block) else block, first) for block in blocks
            ]
        X = concatenated(blocks)
        targets = None
        if parts[0].targets is not None:
            targets = np.concatenate([to_numpy(part.targets) for part in parts])
        if all(part.weights is None for part in parts):
            return cls(X, targets, None)
        counts = [np.ones(p.X.shape[0]) if p.weights is None else p.weights for p in parts]
        return cls(X, targets, np.concatenate(counts))

    def owned(self) -> FirstRows:
        """Return copies, which nobody else can change."""
        X, *others = self
        X = copied(X) if on_device(X) else X.copy()
        targets, weights = (None if part is None else np.array(part) for part in others)
        return FirstRows(X, targets, weights)

    def arrays(self) -> dict[str, Array]:
        """Return plain arrays for a saved state."""
        found = {f"waiting.{name}": part for name, part in pack_rows(self.X).items()}
        found |= {} if self.targets is None else {"waiting.targets": np.array(self.targets)}
        return found | ({} if self.weights is None else {"waiting.weights": self.weights.copy()})

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, Array]) -> FirstRows:
        """Return what `arrays` came from."""
        rows = as_rows(unpack_rows(arrays))
        return cls.of(rows, arrays.get("targets"), arrays.get("weights"))


class Intake(NamedTuple):
    """Intake of rows between an estimator and its sketch; never changed.

    Parameters
    ----------
    scale : array of shape (n_features,), default=None
        Units that rows are divided by on their way in; None before they are known, and where rows
        are taken as they come.
    n_rows : int, default=0
        Rows that the units are from; 0 if these are all.
    waiting : tuple of FirstRows, default=()
        Rows that wait for units.
    columns : ColumnMoments, default=None
        Means and variances: of all rows while they are measured, or beside those of a sketch that
        does not tell how much a column varies.
    measuring : bool, default=False
        Whether all rows come once for their units alone.

    Examples
    --------
    >>> rows = FirstRows.of(np.eye(3), None, None)
    >>> Intake(waiting=(rows, rows)).n_waiting
    6
    """

    scale: Array | None = None
    n_rows: int = 0
    waiting: tuple[FirstRows, ...] = ()
    columns: ColumnMoments | None = None
    measuring: bool = False

    @property
    def divides(self) -> bool:
        """Whether rows are divided on their way in, or wait for that."""
        return self.scale is not None or bool(self.waiting)

    @property
    def n_waiting(self) -> int:
        """Rows that wait."""
        return sum(part.X.shape[0] for part in self.waiting)

    def units_alone(self) -> Intake:
        """Return the units, for other rows."""
        return Intake(self.scale, self.n_rows)

    def counted(self, rows: FirstRows, decay: float = 1.0) -> Intake:
        """Return that with the moments of more rows."""
        before = self.columns or ColumnMoments.empty(rows.X.shape[1])
        return self._replace(columns=before.updated(rows.X, rows.weights, decay))

    def take(self, rows: FirstRows, units: Units, give: Give) -> Intake:
        """Let rows in, or keep them until there are enough; return what is left to wait."""
        rows.check()
        if self.measuring:
            return self.counted(rows)
        if self.scale is not None:
            give(rows, self.scale)
            return self
        limit = units.n_first(rows.X.shape[1])
        if self.n_waiting + rows.X.shape[0] < limit:
            return self._replace(waiting=(*self.waiting, rows.owned()))
        rows = FirstRows.joined([*self.waiting, rows])
        scale = units.scale_of(rows.head(limit))
        give(rows, scale)
        return self._replace(scale=scale, n_rows=limit, waiting=())

    def scale_now(self, units: Units) -> Array | None:
        """Return the units by now: of the rows that wait, where there are some."""
        if not self.waiting:
            return self.scale
        return units.scale_of(FirstRows.joined(self.waiting))

    def with_columns_of(self, other: Intake, n_rows_seen: int) -> Intake:
        """Return that with the moments of other rows beside those of ``n_rows_seen``."""
        if n_rows_seen == 0 or self.columns is None:
            columns = None if n_rows_seen else other.columns
        else:
            columns = other.columns and self.columns.merged(other.columns)
        return self._replace(columns=columns)

    def stored(self, state: State, units: Units) -> State:
        """Return a state with all of this stored in it."""
        if self.scale is not None:
            state = units.stored(state, self.scale, self.n_rows)
        if self.columns is not None:
            state = state.with_more({"measuring": self.measuring}, self.columns.arrays())
        if self.waiting:
            state = state.with_more({}, FirstRows.joined(self.waiting).arrays())
        return state

    @classmethod
    def of_state(cls, state: State, units: Units, n_features: int) -> Intake:
        """Return what `stored` has stored."""
        meta: Any = state.meta
        scale, n_rows = units.recalled(state, n_features)
        intake = cls(scale, n_rows)
        if "moments" in state.arrays:
            state.array("moments", 3, n_features)
            columns = ColumnMoments.of_arrays(state.arrays)
            intake = intake._replace(columns=columns, measuring=bool(meta["measuring"]))
        waiting = state.behind("waiting.")
        return intake._replace(waiting=(FirstRows.of_arrays(waiting),)) if waiting else intake


#: Gives rows to a sketch, divided by units.
Give: TypeAlias = Callable[[FirstRows, Array], None]


class Units(ABC):
    """How the columns of rows are measured before a sketch takes them."""

    @abstractmethod
    def are_for(self, sketch: Sketch) -> bool:
        """Return whether a sketch takes rows divided by units."""

    @abstractmethod
    def n_first(self, n_features: int) -> int:
        """Return how many rows units are taken from, where all cannot be read first."""

    @abstractmethod
    def scale_of(self, rows: FirstRows) -> Array:
        """Return the units of rows."""

    @abstractmethod
    def rounding(self, rows: FirstRows) -> float:
        """Return the relative error of entries that were divided."""

    @abstractmethod
    def difference(self, mine: Array | None, theirs: Array | None) -> str:
        """Say why rows in one of these units cannot be added to those in the other."""

    @abstractmethod
    def stored(self, state: State, scale: Array, n_rows: int) -> State:
        """Return a state with units of ``n_rows`` rows stored in it."""

    @abstractmethod
    def recalled(self, state: State, n_features: int) -> tuple[Array | None, int]:
        """Return the units that `stored` has stored, and how many rows they are from."""

    @abstractmethod
    def check(self, intake: Intake, sketch: Sketch) -> None:
        """Refuse more rows if the rows so far were measured otherwise."""

    @abstractmethod
    def check_alike(self, sketch: Sketch, other: Units, other_sketch: Sketch) -> None:
        """Refuse to merge what was measured otherwise."""

    # Where a sketch tells units itself, and answers are in them

    def beside(
        self, intake: Intake, sketch: Sketch, rows: Rows, sample_weight: RowsLike | None
    ) -> Intake:
        """Return what is known beside a sketch that has taken rows as they are."""
        return intake

    def of_answers(self, intake: Intake, sketch: Sketch) -> Array | None:
        """Return the units of the columns that answers are in; None for the user's."""
        return None

    def are_of_answers(self, intake: Intake) -> bool:
        """Return whether answers are in units."""
        return False
