"""S A held as sparse rows, for sketches of more columns than ever have an entry."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from sksketch._typing import Array, Matrix

# Held as sparse rows where all entries would take more than this.
DENSE_BYTES = 64 << 20

# Entries that wait to be added, or as many as are held if those are more.
WAITING_ENTRIES = 1 << 20


class SparseTotal:
    """The sum of sparse rows, each with a sign, at a few positions.

    Entries are added in the order of the rows however these were cut into blocks, so the sums
    are the same to the last bit.

    Examples
    --------
    >>> total = SparseTotal(2, 3, np.dtype(float))
    >>> total.add(np.array([0, 0]), np.array([1.0, -1.0]), sp.csr_array(np.eye(3)[:2]))
    >>> total.settled().toarray()
    array([[ 1., -1.,  0.],
           [ 0.,  0.,  0.]])
    """

    def __init__(self, size: int, n_features: int, dtype: np.dtype[Any]) -> None:
        self._rows = sp.csr_array((size, n_features), dtype=dtype)
        self._waiting: list[tuple[Array, Array, Any]] = []
        self._n_waiting = 0

    def add(self, positions: Array, signs: Array, rows: sp.csr_array) -> None:
        """Add ``signs[t]`` times row t to the row ``positions[t]`` of the sum."""
        self._waiting.append((positions, signs, rows))
        self._n_waiting += rows.nnz
        if self._n_waiting >= max(self._rows.nnz, WAITING_ENTRIES):
            self.settled()
        else:
            # What waits must not change when the caller's arrays do.
            self._waiting[-1] = positions, signs, rows.copy()

    def settled(self) -> Any:
        """Return the sum as a CSR array, in canonical form."""
        if self._waiting:
            size = self._rows.shape[0]
            positions = np.concatenate([p for p, _, _ in self._waiting])
            signs = np.concatenate([s for _, s, _ in self._waiting])
            rows = sp.vstack([self._rows, *(r for _, _, r in self._waiting)], format="csr")
            # A product of sparse matrices adds from left to right: first what is there.
            where = np.concatenate([np.arange(size), positions]), np.arange(rows.shape[0])
            factors = np.concatenate([np.ones(size), signs]).astype(self._rows.dtype)
            self._waiting, self._n_waiting = [], 0
            self._rows = sp.csr_array((factors, where), shape=(size, rows.shape[0])) @ rows
            self._rows.sort_indices()
        return self._rows

    def restore(self, rows: Matrix) -> None:
        """Hold a sum that `settled` has returned."""
        self._rows, self._waiting, self._n_waiting = rows, [], 0


def with_rows(kept: Matrix, slots: Array, rows: Matrix) -> Any:
    """Return the CSR array ``kept`` with some of its rows replaced."""
    order = np.arange(kept.shape[0])
    order[slots] = kept.shape[0] + np.arange(len(slots))
    return sp.vstack([kept, sp.csr_array(rows)], format="csr")[order]
