"""Row sampling: a few of the rows themselves, chosen by their squared norms."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from sksketch._typing import Array, Matrix
from sksketch.arrays.namespace import like, to_numpy
from sksketch.arrays.random import stream
from sksketch.arrays.sparse import from_sparse_arrays, scaled_rows, sparse_arrays
from sksketch.sketches.projections.linear_sketch import LinearSketch
from sksketch.sketches.projections.sparse_total import with_rows


class RowSampleSketch(LinearSketch):
    """Rows drawn with probability proportional to their squared norms, with replacement.

    Parameters
    ----------
    sketch_size : int
        Rows drawn; each is drawn independently of the others.
    seed : int
        Makes the choice repeatable. Shards that are to be merged have the same seed.
    shard : int
        Number of this part of the data; only different ones can be merged.

    See Also
    --------
    CountSketch : Sums of rows instead of single ones.
    GaussianSketch : Normal combinations of all rows.

    Notes
    -----
    Each slot [1]_ holds row t with probability ||a_t||^2 / ||A||_F^2, scaled to the length
    ||A||_F / sqrt(sketch_size), so E B'B = A'A and the mean of ||B'B - A'A||_F^2 is
    (||A||_F^4 - ||A'A||_F^2) / sketch_size.

    A row that brings the sum of squared norms from F - w to F replaces a slot with probability
    w / F. So the sum may grow from F to beyond G without a replacement with probability F / G:
    instead of a number for every row and slot we draw, at each replacement, the sum F / u at
    which the next one comes, u uniform. Few are needed, about log(n_rows) per slot. Merging
    takes each slot from either side with probability proportional to its sum.

    References
    ----------
    .. [1] Drineas, Kannan and Mahoney (2006), "Fast Monte Carlo Algorithms for Matrices I:
       Approximating Matrix Multiplication", SIAM J. Comput. 36(1),
       doi:10.1137/S0097539704442684.

    Examples
    --------
    >>> X = np.diag([3.0, 0.0, 4.0])
    >>> B = RowSampleSketch(100).update(X).matrix
    >>> np.unique(B[:, 0]), np.unique(B[:, 2])
    (array([0. , 0.5]), array([0. , 0.5]))
    """

    kind = "row-sample"
    _keeps_zeros = True

    def _allocate(self) -> None:
        size = self.sketch_size
        empty: Any = sp.csr_array if self._sparse else np.zeros
        self._kept: Any = empty((size, self._width), dtype=self.dtype)
        self._kept_norms = np.zeros(size)
        # The sum of squared norms that the next replacement in a slot waits for, and how many
        # it has had since the shards came together.
        self._thresholds = np.zeros(size)
        self._replacements = np.zeros(size, dtype=np.int64)

    def _add(self, rows: Matrix, norms: Array) -> None:
        # One after the other, from where the last block ended: the same sums for any blocks.
        sums = np.cumsum(np.concatenate([[self._squared_norm], norms]))
        chosen = np.full(self.sketch_size, -1)
        due = np.flatnonzero(self._thresholds < sums[-1])
        while len(due):
            rows_due = np.searchsorted(sums[1:], self._thresholds[due], side="right")
            chosen[due] = rows_due
            self._wait_from(due, sums[1:][rows_due])
            due = due[self._thresholds[due] < sums[-1]]
        slots = np.flatnonzero(chosen >= 0)
        if len(slots):
            picked = rows[chosen[slots]] if sp.issparse(rows) else rows[like(chosen[slots], rows)]
            # They are few, so they are kept on the host.
            self._keep(slots, picked if sp.issparse(picked) else to_numpy(picked))
            self._kept_norms[slots] = norms[chosen[slots]]

    def _keep(self, slots: Array, rows: Any) -> None:
        """Put rows into these slots."""
        if self._sparse:
            self._kept = with_rows(self._kept, slots, rows)
        else:
            self._kept[slots] = rows.toarray() if sp.issparse(rows) else rows

    def _wait_from(self, slots: Array, sums: Array) -> None:
        """Draw when these slots are replaced next, after a replacement at the given sums."""
        numbers = self._replacements[slots]
        for number in np.unique(numbers):
            same = numbers == number
            u = _uniforms(self.seed, f"{self.kind} {self.shards}", self.sketch_size, int(number))
            self._thresholds[slots[same]] = sums[same] / u[slots[same]]
        self._replacements[slots] += 1

    def _scales(self) -> Array:
        """Return the factors that bring all kept rows to the same length."""
        scale = np.zeros(self.sketch_size)
        ratio = self._squared_norm / self.sketch_size
        np.divide(ratio, self._kept_norms, out=scale, where=self._kept_norms > 0)
        return np.sqrt(scale)

    def _compact(self) -> Any:
        return scaled_rows(self._kept, self._scales())

    def _product(self) -> Array:
        if self._sparse:
            return np.asarray(self._compact().toarray())
        return np.asarray((self._scales()[:, None] * self._kept).astype(self._kept.dtype))

    def _join(self, other: Self) -> None:
        shards = tuple(sorted(self._shards | other._shards))
        total = self._squared_norm + other._squared_norm
        u = stream(self.seed, f"{self.kind} merge {shards}").random(self.sketch_size)
        theirs = np.flatnonzero(u * total >= self._squared_norm)
        self._keep(theirs, other._kept[theirs])
        self._kept_norms[theirs] = other._kept_norms[theirs]
        self._shards = frozenset(shards)
        self._replacements[:] = 0
        self._wait_from(np.arange(self.sketch_size), np.full(self.sketch_size, total))

    def _held(self) -> dict[str, Array]:
        kept = sparse_arrays("kept", self._kept) if self._sparse else {"kept": self._kept.copy()}
        return kept | {name: getattr(self, f"_{name}").copy() for name in _FIELDS}

    def _hold(self, arrays: Mapping[str, Array]) -> None:
        if self._sparse:
            self._kept = from_sparse_arrays("kept", arrays, self._width)
        else:
            self._kept[...] = arrays["kept"]
        for name in _FIELDS:
            getattr(self, f"_{name}")[...] = arrays[name]


_FIELDS = ("kept_norms", "thresholds", "replacements")


@functools.lru_cache(maxsize=64)
def _uniforms(seed: int, purpose: str, size: int, number: int) -> Array:
    """Return one number in (0, 1] for each slot."""
    return np.asarray(1.0 - stream(seed, purpose, number).random(size))
