"""Scores of rows before they are learned: tiles that wait, the threshold, and what was usual."""

from __future__ import annotations

from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from sksketch._typing import Array
from sksketch.models.intake import FirstRows
from sksketch.sketches.windows.times import (
    DATES,
    NANOSECONDS,
    as_duration,
    as_times,
    check_order,
)
from sksketch.state.persistence import State
from sksketch.time.distances import TILE_ROWS, Distances
from sksketch.time.score_history import ScoreHistory

# What is usual is read anew after this part of the rows so far, in whole tiles.
GROWTH = 0.25

# Scores without which no row counts as an outlier that is better not learned from.
FEWEST_SCORES = 4 * TILE_ROWS

# Copies of a row that its weight can stand for in the threshold.
MOST_COPIES = 1000


class Places(NamedTuple):
    """The places at which rows came: numbers, or times in seconds; and these times exactly.

    Parameters
    ----------
    values : array of shape (n_rows,)
        Numbers or seconds.
    moments : array of shape (n_rows,) or None
        Times, in nanoseconds or in the user's unit; None of rows without.
    clock : str or None
        What the times are.

    Examples
    --------
    >>> Places.of(None, 2, 7).values
    array([7., 8.])
    """

    values: Array
    moments: Array | None = None
    clock: str | None = None

    @classmethod
    def of(cls, times: object, n_rows: int, first: int) -> Places:
        """Return those of rows with times, or of numbers from ``first`` on."""
        if times is None:
            return cls(float(first) + np.arange(n_rows, dtype=np.float64))
        moments, clock = as_times(times, n_rows)
        return cls(moments / NANOSECONDS if clock == DATES else moments, moments, clock)

    def part(self, which: Any) -> Places:
        """Return those of some rows."""
        moments = None if self.moments is None else self.moments[which]
        return self._replace(values=self.values[which], moments=moments)

    def later(self, n_rows: int) -> Places:
        """Return those of rows that come after a number of others."""
        return self._replace(values=self.values + n_rows)

    @property
    def times(self) -> Array | None:
        """Times as users have them."""
        if self.moments is None or self.clock != DATES:
            return self.moments
        return self.moments.astype("datetime64[ns]")


class Tile(NamedTuple):
    """Rows with the places at which they came."""

    rows: FirstRows
    places: Places

    @property
    def n_rows(self) -> int:
        """How many rows."""
        return len(self.places.values)


class Progress:
    """Progressive scores of a stream.

    Parameters
    ----------
    history : ScoreHistory
        Of the scores.
    reach : float or None
        Rows after which what is usual may be another; None where nothing is forgotten.
    """

    def __init__(self, history: ScoreHistory, reach: float | None = None) -> None:
        self.history, self._reach = history, reach
        # What was usual when it was last read, and the tiles until it is read again.
        self.usual: Distances | None = None
        self.next_read = 1
        self._pending: tuple[Tile, ...] = ()
        self.n_scored = self.flagged = 0

    @classmethod
    def of(cls, window: Any, half_life: float | None) -> Progress:
        """Return that of no rows, for a detector that forgets so."""
        rows = duration = None
        if isinstance(window, Integral):
            rows = int(window)
        elif window is not None:
            duration = as_duration(window)
        history = ScoreHistory.of(rows, duration, half_life)
        return cls(history, half_life if rows is None else float(rows))

    @property
    def n_pending(self) -> int:
        """Rows that wait to be scored."""
        return sum(tile.n_rows for tile in self._pending)

    @property
    def room(self) -> int:
        """Rows that complete the tile."""
        return TILE_ROWS - self.n_pending

    @property
    def room_until_read(self) -> int:
        """Rows that complete the tile after which what is usual is read anew."""
        n_tiles = max(self.next_read - -(-self.n_scored // TILE_ROWS), 1)
        return n_tiles * TILE_ROWS - self.n_pending

    @property
    def n_rows(self) -> int:
        """Rows that have come."""
        return self.n_scored + self.n_pending

    def check_after(self, places: Places) -> None:
        """Refuse times that go back behind those of the rows that wait."""
        if self._pending and places.moments is not None:
            latest = self._pending[-1].places.moments
            if latest is not None and places.clock == self._pending[-1].places.clock:
                check_order(places.moments, latest[-1].item(), str(places.clock))

    def wait(self, rows: FirstRows, places: Places) -> None:
        """Let rows wait for their tile to be complete."""
        self._pending = (*self._pending, Tile(rows.owned(), places))

    def _tile(self) -> Tile:
        if len(self._pending) == 1:
            return self._pending[0]
        rows = FirstRows.joined([tile.rows for tile in self._pending])
        places = [tile.places for tile in self._pending]
        values = np.concatenate([place.values for place in places])
        moments = [place.moments for place in places if place.moments is not None]
        whole = np.concatenate(moments) if len(moments) == len(places) else None
        return Tile(rows, Places(values, whole, places[0].clock))

    def close(self, contamination: float) -> tuple[Tile, Array]:
        """Score the rows that wait by what was usual; return them, and which are no outliers."""
        tile = self._tile()
        usual = np.ones(tile.n_rows, dtype=bool)
        if self.usual is not None:
            scores = -self.usual.squared(tile.rows.X)
            flagged = scores < self.history.quantile(contamination)
            self.flagged += int(np.count_nonzero(flagged))
            self._add(self.history, tile, scores)
            usual = ~flagged if self.history.n >= FEWEST_SCORES else usual
        self._pending = ()
        self.n_scored += tile.n_rows
        return tile, usual

    def add_by(self, tile: Tile, now: Distances) -> None:
        """Add rows that came first, by what they made usual themselves."""
        self._add(self.history, tile, -now.squared(tile.rows.X))

    @staticmethod
    def _add(history: ScoreHistory, tile: Tile, scores: Array) -> None:
        history.add(*repeated(tile.rows.weights, scores, tile.places.values))

    @property
    def is_due(self) -> bool:
        """Whether what is usual is to be read anew."""
        return -(-self.n_scored // TILE_ROWS) >= self.next_read

    def now_usual(self, found: Distances) -> None:
        """Take what is usual now."""
        n_tiles = -(-self.n_scored // TILE_ROWS)
        longest = 1 << 40 if self._reach is None else int(self._reach / (4 * TILE_ROWS))
        self.usual = found
        self.next_read = n_tiles + max(min(int(GROWTH * n_tiles), longest), 1)

    def scores(self, now: Any) -> ScoreHistory:
        """Return the scores with those of rows that wait; ``now`` gives what is usual by now."""
        if not self._pending:
            return self.history
        tile = self._tile()
        usual = now() if self.usual is None else self.usual
        history = self.history.copy()
        self._add(history, tile, -usual.squared(tile.rows.X))
        return history

    def merged(self, other: Progress, by_rows: bool) -> Progress:
        """Return the scores of both; by rows those of the other came later."""
        shift, n_scored = 0, self.n_scored + other.n_scored
        if by_rows and np.isfinite(other.history.part):
            shift = int(self.n_scored // other.history.part)
        history = self.history.up_to(n_scored).merge(other.history.up_to(n_scored), shift)
        both = Progress(history, self._reach)
        later = self.n_rows if by_rows else 0
        theirs = (Tile(tile.rows, tile.places.later(later)) for tile in other._pending)
        both._pending = (*self._pending, *theirs)
        both.n_scored = n_scored
        both.flagged = self.flagged + other.flagged
        return both

    def saved_in(self, state: State) -> State:
        """Return a state with all of this."""
        facts = {"next_read": self.next_read, "n_scored": self.n_scored, "flagged": self.flagged}
        arrays = {f"history.{name}": part for name, part in self.history.arrays().items()}
        if self.usual is not None:
            arrays |= {f"usual.{name}": part for name, part in self.usual.arrays().items()}
        if self._pending:
            tile = self._tile()
            arrays |= {f"pending.{name}": part for name, part in tile.rows.arrays().items()}
            arrays["pending.places"] = tile.places.values
            if tile.places.moments is not None:
                arrays["pending.moments"] = tile.places.moments
        return state.with_more(facts, arrays)

    def restore(self, state: State, clock: str | None) -> Progress:
        """Take back what `saved_in` has stored of rows with times of some kind."""
        meta: Any = state.meta
        self.next_read, self.n_scored = meta["next_read"], meta["n_scored"]
        self.flagged = meta["flagged"]
        # Before parts doubled there was one, for all rows.
        self.history = self.history.restore(state.behind("history.")).up_to(self.n_scored)
        if usual := state.behind("usual."):
            self.usual = Distances.of_arrays(usual)
        if pending := state.behind("pending."):
            places = Places(pending.pop("places"), pending.pop("moments", None), clock)
            rows = {name.removeprefix("waiting."): part for name, part in pending.items()}
            self._pending = (Tile(FirstRows.of_arrays(rows), places),)
        return self


def cut_times(times: Any, start: int, stop: int) -> Any:
    """Return some of the times of rows."""
    return times.iloc[start:stop] if hasattr(times, "iloc") else times[start:stop]


def repeated(weights: Array | None, *columns: Array) -> tuple[Array, ...]:
    """Return numbers of rows as often as their weights say, if those are whole.

    Otherwise each row that has a weight counts once.

    >>> repeated(np.array([2.0, 0.0, 1.0]), np.array([5.0, 6.0, 7.0]))
    (array([5., 5., 7.]),)
    """
    if weights is None:
        return columns
    counts = weights if (weights == np.floor(weights)).all() else weights > 0.0
    counts = np.minimum(counts, MOST_COPIES).astype(np.int64)
    return tuple(np.repeat(column, counts) for column in columns)
