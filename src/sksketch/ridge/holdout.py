"""A sample of the stream that is kept apart, to choose between models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from sksketch._typing import Array, Rows
from sksketch.arrays.random import stream
from sksketch.arrays.rows import without_traps

TILE_ROWS = 4096

# Until the reservoir is full it takes this share of the rows, so that short streams learn too.
SHARE = 0.2


class Reservoir:
    """A random sample of the rows of a stream; the others are for learning.

    A row that leaves the reservoir is given back in the place of the one that enters, so every
    row is either held or learned from. Which rows are held depends on the seed and on the
    position of rows alone.

    Parameters
    ----------
    capacity : int
        Rows to hold.
    seed : int
        Chooses them.

    Examples
    --------
    >>> reservoir = Reservoir(2, seed=0)
    >>> rows = np.arange(50.0)[:, None]
    >>> X, y, w = reservoir.exchange(rows, rows, np.ones(50))
    >>> sorted([*X.ravel(), *reservoir.X.ravel()]) == list(np.arange(50.0)), len(reservoir.X)
    (True, 2)
    """

    def __init__(self, capacity: int, seed: int) -> None:
        self.capacity, self.seed = capacity, seed
        self.n_seen = 0
        self.X: Any = None
        self.y: Array = np.zeros((0, 0))
        self.weights: Array = np.zeros(0)

    def exchange(self, X: Rows, y: Array, weights: Array) -> tuple[Any, Array, Array]:
        """Offer rows; return those to learn from, some of them held until now."""
        n_rows = X.shape[0]
        draws = self._draws(n_rows)
        first = np.flatnonzero(draws < SHARE)[: self.capacity - len(self.weights)]
        full = len(self.weights) + len(first) == self.capacity
        # The rows from which on one must leave for each that enters.
        late = n_rows if not full else (int(first[-1]) + 1 if len(first) else 0)
        slots = np.full(n_rows, self.capacity)
        slots[late:] = draws[late:] * (self.n_seen + 1 + np.arange(late, n_rows))
        self.n_seen += n_rows
        if len(first):
            self.X = X[first] if self.X is None else _joined(self.X, X[first])
            self.y = np.concatenate([self.y, y[first]]) if len(self.y) else y[first]
            self.weights = np.append(self.weights, weights[first])
            rest = np.delete(np.arange(n_rows), first)
            X, y, weights, slots = X[rest], y[rest], weights[rest], slots[rest]
        entering = np.flatnonzero(slots < self.capacity)
        if not len(entering):
            return X, y, weights
        # All rows at hand in one list; each exchange swaps two places of it.
        places = np.arange(len(self.weights) + X.shape[0])
        for i in entering:
            held, offered = slots[i], len(self.weights) + i
            places[held], places[offered] = places[offered], places[held]
        held, learned = places[: len(self.weights)], places[len(self.weights) :]
        every = (
            _joined(self.X, X),
            np.concatenate([self.y, y]),
            np.append(self.weights, weights),
        )
        self.X, self.y, self.weights = (part[held] for part in every)
        return every[0][learned], every[1][learned], every[2][learned]

    def _draws(self, n_rows: int) -> Array:
        """Return the chance numbers of the next rows, which depend on their position alone."""
        start = self.n_seen
        tiles = range(start // TILE_ROWS, (start + n_rows - 1) // TILE_ROWS + 1)
        draws = [stream(self.seed, "holdout", tile).random(TILE_ROWS) for tile in tiles]
        first = start - tiles[0] * TILE_ROWS
        return np.concatenate(draws)[first : first + n_rows]

    def arrays(self) -> dict[str, Array]:
        """Return what is held, for a saved state."""
        if self.X is None:
            return {}
        parts = {"y": self.y, "weights": self.weights}
        if sp.issparse(self.X):
            parts |= {name: getattr(self.X, name) for name in ("data", "indices", "indptr")}
        else:
            parts["X"] = self.X
        return {f"holdout_{name}": np.array(part) for name, part in parts.items()}

    def restore(self, arrays: Mapping[str, Array], n_seen: int, n_features: int) -> None:
        """Hold what `arrays` returned."""
        self.n_seen = n_seen
        if "holdout_y" in arrays:
            self.y, self.weights = arrays["holdout_y"], arrays["holdout_weights"]
            if "holdout_X" in arrays:
                self.X = arrays["holdout_X"]
            else:
                parts = tuple(arrays[f"holdout_{n}"] for n in ("data", "indices", "indptr"))
                self.X = without_traps(sp.csr_array(parts, shape=(len(self.y), n_features)))


def _joined(first: Rows, second: Rows) -> Any:
    if sp.issparse(first) or sp.issparse(second):
        return sp.vstack([first, second], format="csr")
    return np.concatenate([first, second])
