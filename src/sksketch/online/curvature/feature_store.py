"""Rows of features in memory: those that wait, those in the cache, and what leads to now."""

from __future__ import annotations

import numpy as np

from sksketch._typing import Array
from sksketch.arrays.linalg import aligned_empty
from sksketch.exceptions import StateFormatError
from sksketch.online.kernels import layout
from sksketch.online.kernels.records import Features, Maps, Pending
from sksketch.online.kernels.version_table import live_nodes, versions
from sksketch.online.vocabulary import grown
from sksketch.state.persistence import State

FEWEST_CACHED = 1024
SAVED = (
    "rows",
    "place",
    "cache",
    "cache_pending",
    "cached",
    "pend_start",
    "pend_slot",
    "maps",
)


class FeatureStore:
    """The arrays behind `Features`, `Pending` and `Maps`, which grow as features come.

    Parameters
    ----------
    n_columns : int
        Numbers of a feature's row.
    n_pending : int
        Rows between two shrinks.
    width : int
        Columns of the rows, for the size of the table.
    """

    def __init__(self, n_columns: int, n_pending: int, width: int) -> None:
        D, Dp = -(-n_columns // 4) * 4, -(-n_pending // 4) * 4
        self.n_pending = n_pending
        self.versions = versions(D, width)
        n_nodes = sum(self.versions // layout.BASE**level for level in range(5))
        self.rows, self.place = _empty(0, D), np.empty((0, 2), np.int32)
        self.cache, self.cache_pending = _empty(FEWEST_CACHED, D), _empty(FEWEST_CACHED, Dp)
        self.cached = np.empty(FEWEST_CACHED, np.int32)
        self.pend_start = np.zeros(n_pending + 1, np.int64)
        self.pend_slot = np.empty(0, np.int32)
        self.maps = _empty(n_nodes * D, D).reshape(n_nodes, D, D)

    def make_room(self, n_known: int, longest: int) -> None:
        """Make room for features, and for pending rows of that many entries."""
        self.rows = grown(self.rows, n_known)
        self.place = grown(self.place, n_known, -1)
        most = self.pend_start.max() + self.n_pending * longest
        self.pend_slot = grown(self.pend_slot, most)

    def enlarge_cache(self, n_more: int) -> None:
        """Make room for more features in the cache, at least twice as many as before."""
        n_cached = len(self.cache) + max(n_more, len(self.cache))
        self.cache = grown(self.cache, n_cached)
        self.cache_pending = grown(self.cache_pending, len(self.cache))
        self.cached = grown(self.cached, len(self.cache))

    def features(self, n_known: int) -> Features:
        """Return the record for compiled loops."""
        arrays = self.rows, self.place, self.cache, self.cache_pending, self.cached
        return Features(*arrays, n_known)

    @property
    def pending(self) -> Pending:
        """The pending rows, whose values are in the cache."""
        return Pending(self.pend_start, self.pend_slot, np.empty(0))

    @property
    def table(self) -> Maps:
        """The table of maps."""
        return Maps(self.maps.reshape(-1, self.maps.shape[2]), self.versions)

    def arrays(self, counters: Array, n_kept: int) -> dict[str, Array]:
        """Return the parts that matter, by name."""
        n_cached = int(counters[layout.CACHED])
        n_rows = max(int(counters[layout.USED]) - n_kept, 0)
        n_pending = int(self.pend_start[n_rows])
        used = (self.place[:, 0] >= 0) | (self.place[:, 1] >= 0)
        n_known = int(np.flatnonzero(used).max(initial=-1)) + 1
        lengths = {
            "rows": n_known,
            "place": n_known,
            "cache": n_cached,
            "cache_pending": n_cached,
            "cached": n_cached,
            "pend_slot": n_pending,
        }
        found = {name: getattr(self, name)[: lengths.get(name)].copy() for name in SAVED[:-1]}
        live = live_nodes(int(counters[layout.NOW]), self.versions)
        return found | {"maps": self.maps[live].copy()}

    def restore(self, state: State, counters: Array, n_kept: int) -> None:
        """Take the arrays that `arrays` gave, after a look whether they fit together."""
        D, Dp = self.cache.shape[1], self.cache_pending.shape[1]
        n_known = len(state.array("rows", None, D))
        n_cached, n_pending = len(state.array("cache", None, D)), len(state.arrays["pend_slot"])
        state.array("place", n_known, 2)
        state.array("cache_pending", n_cached, Dp)
        state.array("cached", n_cached)
        state.array("pend_start", self.n_pending + 1)
        self.make_room(n_known, 0)
        self.pend_slot = grown(self.pend_slot, n_pending)
        if n_cached > len(self.cache):
            self.enlarge_cache(n_cached)
        for name in SAVED[:-1]:
            found = state.arrays[name]
            getattr(self, name)[: len(found)] = found
        self._check(counters, n_kept, (n_known, n_cached, n_pending))
        live = live_nodes(int(counters[layout.NOW]), self.versions)
        self.maps[live] = state.array("maps", None, D, D)

    def _check(self, counters: Array, n_kept: int, sizes: tuple[int, int, int]) -> None:
        """Refuse numbers of a file that would lead a compiled loop out of its arrays."""
        n_known, n_cached, n_pending = sizes
        c = counters
        starts = self.pend_start[: max(int(c[layout.USED]) - n_kept, 0) + 1]
        for values, least, most in (
            (c[[layout.USED, layout.KEPT]], 0, n_kept + self.n_pending),
            (c[[layout.NOW, layout.CACHED]], [0, n_cached], [self.versions, n_cached]),
            (self.place[:n_known], -1, [c[layout.NOW], n_cached - 1]),
            (self.cached[:n_cached], 0, n_known - 1),
            (starts, np.append(0, starts[:-1]), n_pending),
            (self.pend_start, 0, 2**31),
            (self.pend_slot[:n_pending], 0, n_cached - 1),
        ):
            if (values < least).any() or (values > most).any():
                raise StateFormatError(
                    "the places of a learner's features are outside of its arrays; take another "
                    "copy of the file or save it again"
                )


def _empty(n_rows: int, n_columns: int) -> Array:
    return aligned_empty((n_rows, n_columns), np.dtype(np.float64))
