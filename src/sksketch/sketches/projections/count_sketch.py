"""CountSketch: each row is added to one of a few, which sparse rows of any width can afford."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from sksketch._typing import Array, Matrix
from sksketch.arrays.kernels import kernels
from sksketch.arrays.sparse import from_sparse_arrays, sparse_arrays
from sksketch.sketches.projections.projection import Drawn, Projection, random_signs
from sksketch.sketches.projections.sparse_total import SparseTotal

# Rows that share one random generator.
COUNT_TILE_ROWS = 4096


class CountSketch(Projection):
    """B = S A with a single +-1 in each column of S: each row is added to one row of B.

    Parameters
    ----------
    sketch_size : int
        Rows of B.
    seed : int
        Chooses S. Shards that are to be merged have the same seed.
    shard : int
        Number of this part of the data; only different ones can be merged.

    See Also
    --------
    SignSketch : Independent signs in all entries of S.
    HadamardSketch : Rows of a randomized Hadamard transform.

    Notes
    -----
    A row costs one addition for each of its non-zero entries [1]_, whatever ``sketch_size``.
    E B'B = A'A with the same mean squared error as `SignSketch`. But for r orthonormal columns
    an error below one in every direction needs of the order of r^2 rows in the worst case,
    where the others need r: if r of the rows are those of an identity matrix, no two of them
    may meet, as in the birthday problem. The mean square above says that r^2 are enough.

    References
    ----------
    .. [1] Clarkson and Woodruff (2017), "Low-Rank Approximation and Regression in Input Sparsity
       Time", J. ACM 63(6), doi:10.1145/3019134.

    Examples
    --------
    >>> here = CountSketch(8, shard=0).update([[1.0, 2.0]])
    >>> there = CountSketch(8, shard=1).update([[3.0, 4.0]])
    >>> (here | there).shards, (here | there).squared_norm
    ((0, 1), 30.0)
    """

    kind = "countsketch"
    _waits = False
    _keeps_zeros = True

    @property
    def _tile_rows(self) -> int:
        return COUNT_TILE_ROWS

    @staticmethod
    def _draw(generator: np.random.Generator, sketch_size: int) -> Drawn:
        positions = generator.integers(0, sketch_size, COUNT_TILE_ROWS)
        return positions, random_signs(generator, COUNT_TILE_ROWS)

    def _columns_of_tile(self, drawn: Drawn, inside: slice) -> Any:
        positions, signs = drawn[0][inside], drawn[1][inside]
        n_rows = len(positions)
        return sp.csr_array(
            (signs, positions, np.arange(n_rows + 1)), shape=(n_rows, self.sketch_size)
        )

    def _allocate(self) -> None:
        if not self._sparse:
            super()._allocate()
            return
        assert self.dtype is not None
        self._sum = SparseTotal(self.sketch_size, self._width, self.dtype)

    def _add(self, rows: Matrix, norms: Array) -> None:
        if not self._sparse:
            super()._add(rows, norms)
            return
        tiles = self._drawn_tiles(self._own_rows, rows.shape[0])
        drawn = [(positions[inside], signs[inside]) for (positions, signs), inside, _ in tiles]
        positions, signs = (np.concatenate(parts) for parts in zip(*drawn, strict=True))
        self._sum.add(positions, signs, sp.csr_array(rows))

    def _compact(self) -> Any:
        return self._sum.settled()

    def _product(self) -> Array:
        return self._compact().toarray() if self._sparse else super()._product()

    def _join(self, other: Self) -> None:
        if not self._sparse:
            super()._join(other)
            return
        theirs = other._compact() if other._sparse else sp.csr_array(other._product())
        self._sum.restore(sp.csr_array(self._compact() + theirs.astype(self.dtype)))

    def _held(self) -> dict[str, Array]:
        return sparse_arrays("total", self._compact()) if self._sparse else super()._held()

    def _hold(self, arrays: Mapping[str, Array]) -> None:
        if self._sparse:
            self._sum.restore(from_sparse_arrays("total", arrays, self._width))
        else:
            super()._hold(arrays)

    def _add_tile(self, total: Array, drawn: Drawn, inside: slice, rows: Any, part: slice) -> None:
        positions, signs = drawn[0][inside], drawn[1][inside].astype(total.dtype)
        if sp.issparse(rows):
            csr = rows.indptr[part.start : part.stop + 1], rows.indices, rows.data
            kernels().scatter_csr_inplace(total, positions, signs, *csr)
        else:
            kernels().scatter_rows_inplace(total, positions, signs, rows[part])
