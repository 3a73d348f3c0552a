"""Rows with targets that follow a linear model."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.fft

from sksketch._typing import Array
from sksketch.arrays.random import stream
from sksketch.datasets.dense import TILE_ENTRIES
from sksketch.streams import Block, reblock


class LinearModelRows:
    """Gaussian rows of a soft rank, with noisy targets that depend on the strong directions.

    With z standard normal, D = diag(exp(-i^2 / effective_rank^2)) for i = 0, 1, ... and C
    the orthonormal cosine transform, a row is ``C D z`` and its target
    ``x'D z + noise_sd * w``, w standard normal. The first ``effective_rank`` entries of x
    are standard normal, the others zero, and x has length 1. These are the synthetic data
    of Shi and Phillips (2021), AISTATS, section 4, where ``effective_rank`` is
    ``n_features // 10`` (LR) or ``n_features // 2`` (HR). Rows are a function of seed, position
    and ``n_features``, and noise is not part of them: two sources that differ in ``noise_sd``
    have the same rows.

    Parameters
    ----------
    n_rows, n_features : int
        Shape of the matrix.
    effective_rank : int
        Directions that the targets depend on; beyond it the rows fade quickly.
    noise_sd : float, default=2.0
        Standard deviation of the noise in the targets. The paper prints N(0, 4 I), which can
        be read as 2 or as 4.
    seed : int, default=0
        Chooses rows, coefficients and noise.
    batch_rows : int, default=None
        Rows of a block; by default about half a million entries.

    Attributes
    ----------
    coefficients : array of shape (n_features,)
        Those of the model, in the columns of the rows: a target is ``row @ coefficients``
        and noise.

    See Also
    --------
    GaussianRows : Rows without targets.
    StreamingRidge : Ridge regression of such a source.

    Examples
    --------
    >>> source = LinearModelRows(1000, 50, effective_rank=5, noise_sd=0.0, batch_rows=300)
    >>> [block.X.shape for block in source.blocks()]
    [(300, 50), (300, 50), (300, 50), (100, 50)]
    >>> X, y = source.rows(0, 1000)
    >>> bool(np.allclose(X @ source.coefficients, y))
    True
    """

    def __init__(
        self,
        n_rows: int,
        n_features: int,
        *,
        effective_rank: int,
        noise_sd: float = 2.0,
        seed: int = 0,
        batch_rows: int | None = None,
    ) -> None:
        if n_rows < 0 or not 1 <= effective_rank <= n_features:
            raise ValueError(
                f"cannot draw {n_rows} rows of {n_features} columns with effective_rank "
                f"{effective_rank}; give n_rows >= 0 and a rank from 1 to n_features"
            )
        if not 0 <= noise_sd < np.inf or (batch_rows is not None and batch_rows < 1):
            raise ValueError(
                f"noise_sd is {noise_sd} and batch_rows is {batch_rows}; "
                "give noise_sd >= 0 and at least 1 row"
            )
        self.n_rows, self.n_features = n_rows, n_features
        self.effective_rank = effective_rank
        self.noise_sd = float(noise_sd)
        self.seed = seed
        self._tile_rows = max(1, TILE_ENTRIES // n_features)
        self.batch_rows = batch_rows or self._tile_rows
        self._strengths: Array = np.exp(-((np.arange(n_features) / effective_rank) ** 2))
        x = np.zeros(n_features)
        x[:effective_rank] = stream(seed, "coefficients", 0).standard_normal(effective_rank)
        self.coefficients: Array = scipy.fft.dct(x / np.linalg.norm(x), norm="ortho")

    def blocks(self) -> Iterator[Block]:
        """Yield the rows and targets in order, starting over at each call."""
        return reblock(self._tiles(0, self.n_rows), self.batch_rows)

    def rows(self, start: int, stop: int) -> Block:
        """Return the rows from ``start`` to before ``stop`` and their targets."""
        stop = min(stop, self.n_rows)
        if not 0 <= start <= stop:
            raise ValueError(
                f"rows {start} to {stop} are not among {self.n_rows}; give 0 <= start <= stop"
            )
        tiles = list(self._tiles(start, stop))
        X = np.concatenate([np.empty((0, self.n_features)), *(tile.X for tile in tiles)])
        return Block(X, np.concatenate([np.empty(0), *(tile.y for tile in tiles)]))

    def _tiles(self, start: int, stop: int) -> Iterator[Block]:
        for tile in range(start // self._tile_rows, -(-stop // self._tile_rows)):
            origin = tile * self._tile_rows
            part = slice(max(start - origin, 0), stop - origin)
            normals = stream(self.seed, "rows", tile).standard_normal(
                (self._tile_rows, self.n_features)
            )
            noise = stream(self.seed, "noise", tile).standard_normal(self._tile_rows)
            X = scipy.fft.dct(normals[part] * self._strengths, axis=1, norm="ortho")
            yield Block(X, X @ self.coefficients + self.noise_sd * noise[part])
