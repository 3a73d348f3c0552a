"""Scores of rows as they came, for a threshold: of all of them, or of the last ones alone."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from sksketch._typing import Array
from sksketch.time.quantiles import QuantileSketch, quantile_of

# Parts of a window, of which the oldest is dropped as a whole; parts of a half-life, and how many
# of these are remembered.
WINDOW_PARTS, AGE_PARTS, HALF_LIVES = 8, 4, 16


class ScoreHistory:
    """Quantile sketches of scores, one for each part of the time that counts.

    Parameters
    ----------
    part : float
        Length of a part, in rows or in time; ``inf`` for parts that double, as what is usual is
        known better with every row: the scores of the first ones then count no longer.
    n_parts : int
        Parts that are remembered.
    decay : float
        What a part counts less than the one after it.

    Examples
    --------
    >>> history = ScoreHistory(100.0, 2, 1.0)
    >>> for start in range(0, 1000, 50):
    ...     _ = history.add(np.arange(start, start + 50.0), np.arange(start, start + 50.0))
    >>> history.quantile(0.0), history.n
    (800.0, 200)
    >>> history = ScoreHistory()
    >>> for row in range(1000):
    ...     _ = history.add(np.array([float(row)]), np.array([row]))
    >>> history.quantile(0.0), history.n
    (255.0, 745)
    """

    def __init__(self, part: float = math.inf, n_parts: int = 2, decay: float = 1.0) -> None:
        self.part, self.n_parts, self.decay = part, n_parts, decay
        self._sketches: dict[int, QuantileSketch] = {}

    @classmethod
    def of(cls, rows: int | None, duration: float | None, half_life: float | None) -> ScoreHistory:
        """Return the history for a window of rows or of a duration, or for a half-life."""
        if half_life is not None:
            parts = AGE_PARTS * HALF_LIVES
            return cls(max(half_life / AGE_PARTS, 1.0), parts, 0.5 ** (1.0 / AGE_PARTS))
        reach = duration if rows is None else rows
        if reach is None:
            return cls()
        return cls(reach / WINDOW_PARTS, WINDOW_PARTS)

    @property
    def n(self) -> int:
        """Scores remembered."""
        return sum(sketch.n for sketch in self._sketches.values())

    @property
    def rank_error(self) -> float:
        """Bound on the part of the scores that a quantile is off by."""
        weights = self._weights()
        off = sum(weights[key] * sketch.rank_error for key, sketch in self._sketches.items())
        whole = sum(weights[key] * sketch.n for key, sketch in self._sketches.items())
        return off / whole if whole else 0.0

    def add(self, scores: Array, places: Array) -> ScoreHistory:
        """Add scores with their places in rows or time, in order.

        Where parts double all are of the last part, since they are by what was known at once.
        """
        if math.isinf(self.part):
            key = math.floor(math.log2(places.max(initial=0.0) + 1.0))
            keys = np.full(len(scores), key, dtype=np.int64)
        else:
            keys = np.floor(places / self.part).astype(np.int64)
        for key in np.unique(keys).tolist():
            self._sketches.setdefault(key, QuantileSketch()).update(scores[keys == key])
        return self._forget()

    def _forget(self) -> ScoreHistory:
        if self._sketches:
            first = max(self._sketches) - self.n_parts + 1
            self._sketches = {k: s for k, s in sorted(self._sketches.items()) if k >= first}
        return self

    def merge(self, other: ScoreHistory, shift: int = 0) -> ScoreHistory:
        """Add another one, whose parts come ``shift`` parts later than they say."""
        for key, sketch in other._sketches.items():
            self._sketches.setdefault(key + shift, QuantileSketch()).merge(sketch)
        return self._forget()

    def up_to(self, n_rows: int) -> ScoreHistory:
        """Return a copy whose last part is that of a row with this number, if parts double."""
        shift = 0
        if math.isinf(self.part) and self._sketches:
            shift = max(n_rows, 1).bit_length() - 1 - max(self._sketches)
        return ScoreHistory(self.part, self.n_parts, self.decay).merge(self, shift)

    def copy(self) -> ScoreHistory:
        """Return an independent copy."""
        twin = ScoreHistory(self.part, self.n_parts, self.decay)
        return twin.merge(self)

    def _weights(self) -> dict[int, float]:
        latest = max(self._sketches, default=0)
        return {key: self.decay ** (latest - key) for key in self._sketches}

    def quantile(self, share: float) -> float:
        """Return a score with about that share of all below it; minus infinity without any."""
        weights = self._weights()
        found = [
            (values, counted * weights[key])
            for key, sketch in self._sketches.items()
            for values, counted in sketch.levels()
        ]
        return quantile_of(found, share)

    def arrays(self) -> dict[str, Array]:
        """Return plain arrays, for a saved state."""
        found = {"keys": np.array(list(self._sketches), dtype=np.int64)}
        for i, sketch in enumerate(self._sketches.values()):
            found |= {f"{i}.{name}": value for name, value in sketch.arrays().items()}
        return found

    def restore(self, arrays: Mapping[str, Array]) -> ScoreHistory:
        """Take back what `arrays` came from."""
        for i, key in enumerate(arrays["keys"].tolist()):
            mine = {n.removeprefix(f"{i}."): v for n, v in arrays.items() if n.startswith(f"{i}.")}
            self._sketches[key] = QuantileSketch.of_arrays(mine)
        return self
