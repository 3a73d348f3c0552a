"""Independent Gaussian rows with a known spectrum, and a stream that defeats truncation."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.fft

from sksketch._typing import Array
from sksketch.arrays.random import stream
from sksketch.streams import Block, reblock

TILE_ENTRIES = 2**19


class GaussianRows:
    """Independent Gaussian rows with a given spectrum, in a random orthonormal basis.

    A row is ``rotation @ (sqrt(spectrum) * z)`` with z standard normal. The
    rotation is a permutation, an orthonormal cosine transform and random
    signs, so a row costs O(n_features log n_features) and no matrix is kept.
    Rows are a function of seed, position, spectrum and dtype: they are the
    same for every ``batch_rows``, and again at every reading.

    Parameters
    ----------
    n_rows : int
        Number of rows.
    spectrum : array of shape (n_features,)
        Eigenvalues of the covariance matrix of a single row, largest first.
    n_phases : int, default=1
        The rows are cut into this many equal parts, each with an
        independent rotation.
    seed : int, default=0
        Chooses rows and rotations.
    batch_rows : int, default=None
        Rows of a block; by default about half a million entries.
    dtype : float64 or float32, default=float64
        The rows of the two are different draws.

    See Also
    --------
    stationary : Rows of a spectrum that falls as a power.
    drifting : The same with directions that change half way.
    low_rank_plus_noise : A few strong directions under white noise.

    Examples
    --------
    >>> source = GaussianRows(1000, spectrum=np.array([4.0, 1.0, 0.25]), batch_rows=300)
    >>> [len(block.X) for block in source.blocks()]
    [300, 300, 300, 100]
    >>> bool((source.rows(299, 301)[0] == source.rows(0, 300)[-1]).all())
    True
    """

    def __init__(
        self,
        n_rows: int,
        spectrum: Array,
        *,
        n_phases: int = 1,
        seed: int = 0,
        batch_rows: int | None = None,
        dtype: npt.DTypeLike = np.float64,
    ) -> None:
        spectrum = np.asarray(spectrum, dtype=np.float64)
        if n_rows < 0 or spectrum.ndim != 1 or len(spectrum) < 1 or not np.all(spectrum >= 0.0):
            raise ValueError(
                f"cannot draw {n_rows} rows with {spectrum.size} eigenvalues; give n_rows >= 0 "
                "and at least one eigenvalue, none of them negative"
            )
        if n_phases < 1 or (batch_rows is not None and batch_rows < 1):
            raise ValueError(
                f"n_phases is {n_phases} and batch_rows is {batch_rows}; give at least 1"
            )
        if np.dtype(dtype) not in (np.float64, np.float32):
            raise ValueError(f"dtype is {np.dtype(dtype)}; give float64 or float32")
        self.n_rows = n_rows
        self.n_features = len(spectrum)
        self.spectrum = spectrum
        self.n_phases = n_phases
        self.seed = seed
        self.dtype = np.dtype(dtype)
        # A function of n_features alone, so that batch_rows cannot change a row.
        self._tile_rows = max(1, TILE_ENTRIES // self.n_features)
        self.batch_rows = batch_rows or self._tile_rows

    def blocks(self) -> Iterator[Block]:
        """Yield the rows in order, starting over at each call."""
        return reblock(map(Block, self._tiles(0, self.n_rows)), self.batch_rows)

    def rows(self, start: int, stop: int) -> Array:
        """Return the rows from ``start`` to before ``stop``, wherever they lie."""
        stop = min(stop, self.n_rows)
        if not 0 <= start <= stop:
            raise ValueError(
                f"rows {start} to {stop} are not among {self.n_rows}; give 0 <= start <= stop"
            )
        empty = np.empty((0, self.n_features), dtype=self.dtype)
        return np.concatenate([empty, *self._tiles(start, stop)])

    def components(self, rank: int, phase: int = 0) -> Array:
        """Return the first ``rank`` true directions as orthonormal rows, shape (rank, n_features).

        >>> V = GaussianRows(10, spectrum=np.ones(5)).components(2)
        >>> bool(np.allclose(V @ V.T, np.eye(2)))
        True
        """
        positions, signs = self._rotation(phase)
        chosen = np.zeros((rank, self.n_features))
        chosen[np.arange(rank), positions[:rank]] = 1.0
        return self._rotate(chosen, signs)

    def _tiles(self, start: int, stop: int) -> Iterator[Array]:
        """Yield the rows from start to before stop, a tile or a part of one at a time."""
        # Phase p holds the rows from p * n_rows / n_phases on, rounded up.
        edges = [-(-self.n_rows * phase // self.n_phases) for phase in range(self.n_phases + 1)]
        for phase, (first, last) in enumerate(pairwise(edges)):
            low, high = max(start, first), min(stop, last)
            if low >= high:
                continue
            positions, signs = self._rotation(phase)
            strengths = np.empty(self.n_features, dtype=self.dtype)
            strengths[positions] = np.sqrt(self.spectrum)
            for tile in range(low // self._tile_rows, -(-high // self._tile_rows)):
                origin = tile * self._tile_rows
                part = slice(max(low - origin, 0), min(high - origin, self._tile_rows))
                yield self._rotate(self._normals(tile)[part] * strengths, signs)

    def _normals(self, tile: int) -> Array:
        shape = (self._tile_rows, self.n_features)
        generator: Any = stream(self.seed, "rows", tile)
        normals: Array = generator.standard_normal(shape, dtype=self.dtype)
        return normals

    def _rotation(self, phase: int) -> tuple[Array, Array]:
        """Return the cosine that each eigenvalue gets, and the sign of each column."""
        generator = stream(self.seed, "rotation", phase)
        positions = generator.permutation(self.n_features)
        signs = generator.choice(np.array([-1.0, 1.0]), self.n_features).astype(self.dtype)
        return positions, signs

    @staticmethod
    def _rotate(rows: Array, signs: Array) -> Array:
        rotated: Array = scipy.fft.idct(rows, axis=1, norm="ortho", overwrite_x=True)
        rotated *= signs
        return rotated


def stationary(
    n_rows: int,
    n_features: int,
    *,
    decay: float = 0.75,
    seed: int = 0,
    batch_rows: int | None = None,
    dtype: npt.DTypeLike = np.float64,
) -> GaussianRows:
    """Return rows whose singular values fall as ``i ** -decay``, the same from first to last.

    Parameters
    ----------
    n_rows : int
        Number of rows.
    n_features : int
        Number of columns.
    decay : float, default=0.75
        Exponent of the power law.
    seed : int, default=0
        Chooses rows and rotations.
    batch_rows : int, default=None
        Rows of a block; by default about half a million entries.
    dtype : {float64, float32}, default=float64
        Precision; the rows of the two are different draws.

    Returns
    -------
    GaussianRows
        A source of rows, drawn when they are read.

    See Also
    --------
    GaussianRows : The class of the source.
    drifting : The same with directions that change half way.

    Examples
    --------
    >>> stationary(1000, 4, decay=0.5).spectrum.round(3)
    array([1.   , 0.5  , 0.333, 0.25 ])
    """
    spectrum = _power_law(n_features, decay)
    return GaussianRows(n_rows, spectrum, seed=seed, batch_rows=batch_rows, dtype=dtype)


def drifting(
    n_rows: int,
    n_features: int,
    *,
    decay: float = 0.75,
    seed: int = 0,
    batch_rows: int | None = None,
    dtype: npt.DTypeLike = np.float64,
) -> GaussianRows:
    """Return rows as `stationary` does, whose directions change half way.

    The second half has the same spectrum in an independent basis, so a sketch
    must forget or make room for what it has learned.

    Parameters
    ----------
    n_rows : int
        Number of rows.
    n_features : int
        Number of columns.
    decay : float, default=0.75
        Exponent of the power law.
    seed : int, default=0
        Chooses rows and rotations.
    batch_rows : int, default=None
        Rows of a block; by default about half a million entries.
    dtype : {float64, float32}, default=float64
        Precision; the rows of the two are different draws.

    Returns
    -------
    GaussianRows
        A source of rows, drawn when they are read.

    See Also
    --------
    GaussianRows : The class of the source.
    stationary : The same without the change.

    Examples
    --------
    >>> source = drifting(1000, 64)
    >>> before, after = source.components(1, phase=0), source.components(1, phase=1)
    >>> bool(abs(before @ after.T) < 0.5)
    True
    """
    spectrum = _power_law(n_features, decay)
    return GaussianRows(n_rows, spectrum, n_phases=2, seed=seed, batch_rows=batch_rows, dtype=dtype)


def low_rank_plus_noise(
    n_rows: int,
    n_features: int,
    *,
    rank: int = 20,
    noise: float = 0.1,
    seed: int = 0,
    batch_rows: int | None = None,
    dtype: npt.DTypeLike = np.float64,
) -> GaussianRows:
    """Return ``rank`` directions of linearly falling strength under white noise.

    A row is ``sum_i (1 - i / rank) z_i v_i + noise * w`` for i = 0, ..., rank - 1,
    with z and w standard normal: the usual test matrix of frequent directions
    (Ghashami et al. (2016), SIAM J. Comput. 45(5)), with ``noise`` for 1 / zeta.

    Parameters
    ----------
    n_rows : int
        Number of rows.
    n_features : int
        Number of columns.
    rank : int, default=20
        Number of strong directions.
    noise : float, default=0.1
        Standard deviation of the noise in each column.
    seed : int, default=0
        Chooses rows and rotations.
    batch_rows : int, default=None
        Rows of a block; by default about half a million entries.
    dtype : {float64, float32}, default=float64
        Precision; the rows of the two are different draws.

    Returns
    -------
    GaussianRows
        A source of rows, drawn when they are read.

    See Also
    --------
    GaussianRows : The class of the source.
    stationary : Rows of a spectrum that falls as a power.

    Examples
    --------
    >>> low_rank_plus_noise(1000, 4, rank=2, noise=0.0).spectrum
    array([1.  , 0.25, 0.  , 0.  ])
    """
    if not 1 <= rank <= n_features:
        raise ValueError(f"rank is {rank}; give a number from 1 to n_features = {n_features}")
    spectrum = np.full(n_features, float(noise) ** 2)
    spectrum[:rank] += (1.0 - np.arange(rank) / rank) ** 2
    return GaussianRows(n_rows, spectrum, seed=seed, batch_rows=batch_rows, dtype=dtype)


def truncation_breaker(
    sketch_size: int, n_copies: int, *, norm: float = 0.7, n_features: int | None = None
) -> Array:
    """Return a short stream on which plain truncation loses all that comes late.

    ``sketch_size`` unit rows along the axes, then ``n_copies`` of one row of
    length ``norm`` along the next axis. A sketch that truncates to
    ``sketch_size`` rows without shrinking drops every copy, if those it gathers
    before a truncation weigh less than one unit row (``norm ** 2`` times their
    number below 1): its error is ``n_copies * norm ** 2``, while that of frequent
    directions stays at most 1 (Luo et al. (2019), appendix F). The axes matter:
    rotated copies leave rounding errors that grow until truncation sees them.

    Parameters
    ----------
    sketch_size : int
        Number of unit rows.
    n_copies : int
        Number of copies of the late row.
    norm : float, default=0.7
        Length of the late row.
    n_features : int, default=None
        Number of columns; by default ``sketch_size + 1``.

    Returns
    -------
    array of shape (sketch_size + n_copies, n_features)
        The rows, in order.

    See Also
    --------
    FrequentDirections : The sketch that keeps the late rows.

    Examples
    --------
    >>> truncation_breaker(2, n_copies=3)
    array([[1. , 0. , 0. ],
           [0. , 1. , 0. ],
           [0. , 0. , 0.7],
           [0. , 0. , 0.7],
           [0. , 0. , 0.7]])
    """
    if n_features is None:
        n_features = sketch_size + 1
    if n_features <= sketch_size:
        raise ValueError(
            f"n_features is {n_features}, but {sketch_size} unit rows and one more direction are "
            f"needed; give at least {sketch_size + 1}"
        )
    rows = np.zeros((sketch_size + n_copies, n_features))
    rows[:sketch_size, :sketch_size] = np.eye(sketch_size)
    rows[sketch_size:, sketch_size] = norm
    return rows


def _power_law(n_features: int, decay: float) -> Array:
    """Return eigenvalues whose roots fall as i ** -decay."""
    eigenvalues: Array = np.arange(1.0, n_features + 1) ** (-2.0 * decay)
    return eigenvalues
