"""Random projections of the rows: Gaussian, signs and Hadamard transform."""

from __future__ import annotations

import functools
import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Literal, Self, TypeAlias

import numpy as np
import scipy.sparse as sp

from sksketch._typing import Array, Matrix
from sksketch.arrays.kernels import kernels
from sksketch.arrays.namespace import copied, full_precision, like, on_device, precision, to_numpy
from sksketch.arrays.random import stream
from sksketch.arrays.rows import TILE_BYTES
from sksketch.sketches.buffer import RowBuffer
from sksketch.sketches.projections.linear_sketch import LinearSketch

# Rows that share one random generator.
TILE_ROWS = 256

Drawn: TypeAlias = tuple[Array, ...]


class Projection(LinearSketch):
    """B = S A, with columns of S drawn for one tile of rows after the other.

    Dense rows wait until a matrix product is worth it; sparse rows are added one after the
    other. What is added together depends on the rows alone, not on how they were cut into
    blocks, so B is the same to the last bit.
    """

    # Whether dense rows wait, and how B lies in memory.
    _waits: ClassVar[bool] = True
    _order: ClassVar[Literal["C", "F"]] = "C"

    @property
    def _tile_rows(self) -> int:
        return TILE_ROWS

    @staticmethod
    @abstractmethod
    def _draw(generator: np.random.Generator, sketch_size: int) -> Drawn:
        """Draw what makes the columns of S for one tile of rows."""

    def _add_tile(
        self, total: Array, drawn: Drawn, inside: slice, rows: Matrix, part: slice
    ) -> None:
        """Add S times ``rows[part]`` to ``total``; these rows lie at ``inside`` of their tile.

        Here for a dense S, of which ``drawn`` has the transposed columns of the tile.
        """
        _add_product(total, self._columns_of_tile(drawn, inside), rows, part)

    def _columns_of_tile(self, drawn: Drawn, inside: slice) -> Any:
        """Return the transposed columns of S at ``inside`` of a tile, dense or CSR."""
        return drawn[0][inside]

    def _drawn_tiles(self, start: int, n_rows: int) -> Iterator[tuple[Drawn, slice, slice]]:
        purpose = f"{self.kind} {self.shard}"
        for index, inside, part in _tiles(start, n_rows, self._tile_rows):
            drawn = _drawn(self._draw, self.seed, purpose, self.sketch_size, index)
            yield drawn, inside, part

    def columns(self, start: int, n_rows: int) -> Iterator[tuple[slice, Any]]:
        """Yield S' tile by tile: which of the rows from ``start`` on, and their columns of S.

        Parameters
        ----------
        start, n_rows : int
            A segment of this shard's rows, whether they have come or not.

        Yields
        ------
        slice
            Within the segment.
        array or csr_array of shape (rows of the slice, sketch_size)
        """
        for drawn, inside, part in self._drawn_tiles(start, n_rows):
            yield part, self._columns_of_tile(drawn, inside)

    def _accumulate(self, total: Array, start: int, rows: Matrix) -> None:
        """Add S times wide rows, of which the first is row ``start`` of this shard."""
        for drawn, inside, part in self._drawn_tiles(start, rows.shape[0]):
            if on_device(rows):
                # A product with S costs a device less than anything cleverer.
                columns = self._columns_of_tile(drawn, inside)
                dense = columns.toarray() if sp.issparse(columns) else columns
                with full_precision(rows):
                    total += like(dense.T, total, precision(total)) @ rows[part]
            else:
                self._add_tile(total, drawn, inside, rows, part)

    def _allocate(self) -> None:
        assert self.dtype is not None
        self._total = np.zeros((self.sketch_size, self._width), self.dtype, order=self._order)
        self._waiting = RowBuffer(self._capacity()).allocate(self._width, self.dtype)

    def _capacity(self) -> int:
        """Return how many dense rows wait: no more than the sketch holds, where that is large."""
        if not self._waits:
            return 1
        row_bytes = self._width * precision(self._total).itemsize
        return min(self._tile_rows, max(self.sketch_size, TILE_BYTES // row_bytes))

    def _add(self, rows: Matrix, norms: Array) -> None:
        if on_device(rows):
            self._total = like(self._total, rows)
        elif on_device(self._total) and not sp.issparse(rows):
            rows = like(rows, self._total)
        first = self._own_rows - len(self._waiting.rows)
        if self._waits and not sp.issparse(rows):
            for block in self._waiting.fill(rows):
                self._accumulate(self._total, first, block)
                first += len(block)
            return
        if first < self._own_rows:
            self._accumulate(self._total, first, self._waiting.rows)
            self._waiting.clear()
        self._accumulate(self._total, self._own_rows, rows)

    def _product(self) -> Array:
        total = copied(self._total) if on_device(self._total) else self._total.copy(order="K")
        if n_waiting := len(self._waiting.rows):
            self._accumulate(total, self._own_rows - n_waiting, self._waiting.rows)
        return to_numpy(total)

    def _join(self, other: Self) -> None:
        self._total += like(other._product(), self._total, precision(self._total))

    def _held(self) -> dict[str, Array]:
        return {"total": np.array(to_numpy(self._total)), "waiting": self._waiting.saved()}

    def _hold(self, arrays: Mapping[str, Array]) -> None:
        self._total[...] = arrays["total"]
        self._waiting.restore(arrays["waiting"])


class GaussianSketch(Projection):
    """B = S A with independent normal entries of variance 1 / sketch_size in S.

    Parameters
    ----------
    sketch_size : int
        Rows of B.
    seed : int
        Chooses S. Shards that are to be merged have the same seed.
    shard : int
        Number of this part of the data: shards with different numbers have independent
        columns of S, and only those can be merged.

    See Also
    --------
    SignSketch : Signs instead of normal numbers; drawn faster.
    HadamardSketch : Rows of a randomized Hadamard transform.
    CountSketch : One entry in each column of S.

    Notes
    -----
    E B'B = A'A, and the mean of ||B'B - A'A||_F^2 is
    (||A||_F^4 + ||A'A||_F^2) / sketch_size. For r orthonormal columns U the singular values of
    S U lie between 1 - sqrt(r / sketch_size) and 1 + sqrt(r / sketch_size) on average [1]_.
    B is kept in the precision of the rows: its rounding is far below these errors.

    References
    ----------
    .. [1] Davidson and Szarek (2001), "Local Operator Theory, Random Matrices and Banach
       Spaces", Handbook of the Geometry of Banach Spaces 1, Theorem II.13.

    Examples
    --------
    >>> X = np.random.default_rng(0).standard_normal((500, 3)) * [3.0, 2.0, 1.0]
    >>> sketch = GaussianSketch(200).update(X, targets=X @ [1.0, 2.0, 3.0])
    >>> sketch.matrix.shape, sketch.targets.shape
    ((200, 3), (200,))
    >>> np.linalg.lstsq(sketch.matrix, sketch.targets)[0].round(6)
    array([1., 2., 3.])
    """

    kind = "gaussian-sketch"
    _order = "F"

    @staticmethod
    def _draw(generator: np.random.Generator, sketch_size: int) -> Drawn:
        return (generator.standard_normal((TILE_ROWS, sketch_size)) / math.sqrt(sketch_size),)


class SignSketch(Projection):
    """B = S A with independent entries +-1 / sqrt(sketch_size) in S.

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
    GaussianSketch : Normal numbers instead of signs.
    CountSketch : One sign in each column of S.

    Notes
    -----
    E B'B = A'A [1]_. Every row keeps its own length, so the mean of ||B'B - A'A||_F^2 is
    (||A||_F^4 + ||A'A||_F^2 - 2 sum_t ||a_t||^4) / sketch_size, below that of `GaussianSketch`,
    and the numbers are drawn much faster.

    References
    ----------
    .. [1] Achlioptas (2003), "Database-Friendly Random Projections: Johnson-Lindenstrauss with
       Binary Coins", J. Comput. Syst. Sci. 66(4), doi:10.1016/S0022-0000(03)00025-4.

    Examples
    --------
    >>> X = np.eye(4)[:, :2]
    >>> np.abs(SignSketch(9).update(X).matrix[0]).round(3)
    array([0.333, 0.333])
    """

    kind = "sign-sketch"
    _order = "F"

    @staticmethod
    def _draw(generator: np.random.Generator, sketch_size: int) -> Drawn:
        signs = random_signs(generator, TILE_ROWS * sketch_size)
        return (signs.reshape(TILE_ROWS, sketch_size) / math.sqrt(sketch_size),)


class HadamardSketch(Projection):
    """B = S A with randomly chosen rows of a randomized Hadamard transform (SRHT).

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
    CountSketch : One sign in each column of S.

    Notes
    -----
    The papers transform all rows at once; rows of a stream come in tiles of N, a power of two
    from 2 sketch_size on. Tile k is multiplied by::

        S_k = diag(s_k) R_k H diag(d_k) / sqrt(sketch_size)

    with H the Walsh-Hadamard matrix of entries +-1, R_k a choice of sketch_size of its N rows
    without replacement, and d_k, s_k independent signs; B is the sum over the tiles. A column
    of S has entries +-1 / sqrt(sketch_size), so its length is one. Two columns t, u of one tile
    have the product d_t d_u times something independent of d, and those of two tiles d_t d'_u
    times something independent of both: the mean is zero either way, so E S'S = I and
    E B'B = A'A. The signs s_k make the mean square of the latter 1 / sketch_size; without them
    the first rows of all tiles would have the same column. Within a tile the mean square is
    less by the factor (N - sketch_size) / (N - 1), so a stream of one tile is sketched as by
    Tropp [1]_, up to the signs s_k.

    References
    ----------
    .. [1] Tropp (2011), "Improved Analysis of the Subsampled Randomized Hadamard Transform",
       Adv. Adapt. Data Anal. 3, doi:10.1142/S1793536911000787.

    Examples
    --------
    >>> X = np.random.default_rng(0).standard_normal((700, 5))
    >>> whole = HadamardSketch(16).update(X).matrix
    >>> parts = HadamardSketch(16).update(X[:99]).update(X[99:]).matrix
    >>> bool((whole == parts).all())
    True
    """

    kind = "hadamard-sketch"

    @property
    def _tile_rows(self) -> int:
        return hadamard_tile_rows(self.sketch_size)

    @staticmethod
    def _draw(generator: np.random.Generator, sketch_size: int) -> Drawn:
        n_rows = hadamard_tile_rows(sketch_size)
        row_signs = random_signs(generator, n_rows)
        signs = random_signs(generator, sketch_size) / math.sqrt(sketch_size)
        return row_signs, generator.permutation(n_rows)[:sketch_size], signs

    def _add(self, rows: Matrix, norms: Array) -> None:
        # Transformed tiles are added row by row, sparse rows column by column.
        if not on_device(self._total):
            self._total = np.asarray(self._total, order="F" if sp.issparse(rows) else "C")
        super()._add(rows, norms)

    def _capacity(self) -> int:
        # A transform needs the whole tile, however much that is.
        return self._tile_rows

    def _columns_of_tile(self, drawn: Drawn, inside: slice) -> Any:
        row_signs, chosen, signs = drawn
        places = np.arange(inside.start, inside.stop)
        odd = np.bitwise_count(places[:, None] & chosen) & 1
        return row_signs[inside, None] * (1.0 - 2.0 * odd) * signs

    def _add_tile(
        self, total: Array, drawn: Drawn, inside: slice, rows: Matrix, part: slice
    ) -> None:
        row_signs, chosen, signs = drawn
        if sp.issparse(rows):
            _add_product(total, self._columns_of_tile(drawn, inside), rows, part)
            return
        tile = np.zeros((self._tile_rows, rows.shape[1]), dtype=total.dtype)
        signed = row_signs[inside, None].astype(total.dtype)
        np.multiply(rows[part], signed, out=tile[inside])
        kernels().walsh_hadamard_inplace(tile)
        total += signs[:, None].astype(total.dtype) * tile[chosen]


def hadamard_tile_rows(sketch_size: int) -> int:
    """Return how many rows are transformed together: a power of two.

    >>> hadamard_tile_rows(16), hadamard_tile_rows(200)
    (256, 512)
    """
    return int(max(TILE_ROWS, 1 << (2 * sketch_size - 1).bit_length()))


# Rows that come one at a time need the same tile again and again.
@functools.lru_cache(maxsize=4)
def _drawn(
    draw: Callable[[np.random.Generator, int], Drawn],
    seed: int,
    purpose: str,
    sketch_size: int,
    index: int,
) -> Drawn:
    arrays = draw(stream(seed, purpose, index), sketch_size)
    for array in arrays:
        array.flags.writeable = False
    return arrays


def random_signs(generator: np.random.Generator, count: int) -> Array:
    """Return +-1.0 with equal chances, from one bit each."""
    n_bytes = -(-count // 8)
    bits = np.unpackbits(generator.integers(0, 256, n_bytes, dtype=np.uint8), count=count)
    return np.asarray(2.0 * bits - 1.0)


def _tiles(start: int, n_rows: int, tile_rows: int) -> Iterator[tuple[int, slice, slice]]:
    """Yield each tile that rows fall into, where they lie in it, and which of the rows they are.

    >>> list(_tiles(6, 3, tile_rows=8))
    [(0, slice(6, 8, None), slice(0, 2, None)), (1, slice(0, 1, None), slice(2, 3, None))]
    """
    done = 0
    while done < n_rows:
        index, offset = divmod(start + done, tile_rows)
        count = min(tile_rows - offset, n_rows - done)
        yield index, slice(offset, offset + count), slice(done, done + count)
        done += count


def _add_product(total: Array, columns: Array, rows: Any, part: slice) -> None:
    """Add ``columns' rows[part]`` to ``total``."""
    columns = columns.astype(total.dtype, copy=False)
    transposed = total.T
    if sp.issparse(rows):
        csr = rows.indptr[part.start : part.stop + 1], rows.indices, rows.data
        kernels().outer_csr_inplace(transposed, columns, *csr)
    else:
        transposed += rows[part].T @ columns
