"""The distance of a sketch from the data it has seen, measured from the data themselves.

Every function reads the rows again, as an array, a sparse matrix or a source,
and uses nothing of the sketch but its answer. The data are taken as they are:
for a sketch of centered rows, give centered rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, eigsh

from sksketch._typing import Array
from sksketch.arrays.random import stream
from sksketch.low_rank import LowRankPlusRidge
from sksketch.streams import Block, BlockSource, as_source, reblock
from sksketch.streams.blocks import unweighted

__all__ = ["covariance_error", "projection_error", "spectral_error", "tail_energy"]

# Up to here a matrix of n_features ** 2 entries is cheaper than repeated passes.
DENSE_FEATURES = 2048
TILE_ENTRIES = 2**20
LANCZOS_VECTORS = 40
EPS = float(np.finfo(np.float64).eps)


def spectral_error(X: object, summary: LowRankPlusRidge, *, initial_ridge: float = 0.0) -> float:
    """Return ``||X'X + initial_ridge I - summary||_2``.

    Parameters
    ----------
    X : array, sparse matrix or BlockSource of n_features columns
        The rows that the sketch has seen. Above 2048 columns they are read
        once for each Lanczos step, so a source must be able to start over, and
        the result is from below, to about six digits.
    summary : LowRankPlusRidge
        The sketch's answer.
    initial_ridge : float, default=0.0
        The ridge that the sketch started from; it belongs to the target.

    Returns
    -------
    float
        The norm of the difference.

    See Also
    --------
    covariance_error : The same over the squared norm.
    Sketch.error_bound : The certified bound on it.

    Examples
    --------
    >>> X = np.diag([3.0, 2.0, 1.0])
    >>> spectral_error(X, LowRankPlusRidge(np.eye(3)[:1], np.array([9.0])))
    4.0
    """
    source = _source_of(X, summary.n_features)
    if source.n_features <= DENSE_FEATURES:
        difference = _gram(source) - summary.with_ridge(0.0).to_dense()
        # Both ridges together, so that a large one does not swallow the difference.
        difference[np.diag_indices_from(difference)] += initial_ridge - summary.ridge
        return float(np.abs(np.linalg.eigvalsh(difference)).max())
    return _lanczos_norm(source, summary, initial_ridge - summary.ridge)


def covariance_error(X: object, summary: LowRankPlusRidge) -> float:
    """Return the spectral error over ``||X||_F ** 2``, the usual measure of covariance sketches.

    It is 0.0 for rows of zeros that are answered by zero.

    Parameters
    ----------
    X : array, sparse matrix or BlockSource of n_features columns
        The rows that the sketch has seen.
    summary : LowRankPlusRidge
        The sketch's answer.

    Returns
    -------
    float
        The error as a fraction of the energy of the rows.

    See Also
    --------
    spectral_error : The error itself.
    projection_error : Quality of components instead of the operator.

    Examples
    --------
    >>> X = np.diag([3.0, 2.0, 1.0])
    >>> round(covariance_error(X, LowRankPlusRidge(np.eye(3)[:1], np.array([9.0]))), 4)
    0.2857
    """
    error = spectral_error(X, summary)
    energy = sum(_energy(tile) for tile in _tiles(_source_of(X, summary.n_features)))
    if energy == 0.0:
        return 0.0 if error == 0.0 else math.inf
    return error / energy


def projection_error(X: object, components: Array, rank: int) -> float:
    """Return the energy that ``rank`` components miss, over the least that any could miss.

    With V the first ``rank`` rows of ``components``::

        ||X - X V'V||_F^2 / ||X - X_rank||_F^2

    The residual is summed itself instead of as a difference of energies, so
    the ratio keeps its digits for rows that are almost of low rank. It is 1.0
    if both energies are zero to rounding, ``inf`` if only the second is.

    Parameters
    ----------
    X : array, sparse matrix or BlockSource of n_features columns
        Read once, with the memory of `tail_energy`.
    components : array of shape (at least rank, n_features)
        Orthonormal rows, most important first.
    rank : int
        Number of components to use.

    Returns
    -------
    float
        The ratio, at least 1 but for rounding.

    See Also
    --------
    tail_energy : The least energy that can be missed.
    covariance_error : Quality of the operator.

    Examples
    --------
    >>> X = np.diag([3.0, 2.0, 1.0])
    >>> projection_error(X, np.eye(3), rank=1)
    1.0
    >>> projection_error(X, np.eye(3)[::-1], rank=1)
    2.6
    """
    V = np.asarray(components)[:rank]
    if rank < 0 or V.shape[0] < rank:
        raise ValueError(
            f"rank {rank} was asked of components of shape {np.shape(components)}; "
            "give a rank from 0 to their number"
        )
    residual = energy = 0.0
    factor: Array | None = None
    source = _source_of(X, V.shape[1])
    for tile in _tall_tiles(source):
        residual += _energy(tile - (tile @ V.T) @ V)
        energy += _energy(tile)
        factor = _append_rows(factor, tile)
    rounding = source.n_features * (10 * EPS) ** 2 * energy
    # Components in float32 are orthonormal to float32 rounding only.
    unit = float(np.finfo(V.dtype).eps) if V.dtype.kind == "f" else EPS
    if residual <= max(rounding, (30 * unit) ** 2 * energy):
        return 1.0
    tail = _tail_of(factor, rank)
    return residual / tail if tail > rounding else math.inf


def tail_energy(X: object, rank: int) -> float:
    """Return ``||X - X_rank||_F ** 2``, the sum of the squared singular values after ``rank``.

    The singular values come from a triangular factor that is built row block
    by row block. No squares are subtracted, so even a tail of 1e-20 of the
    whole is right in its leading digits. Takes one pass, and memory for a few
    matrices of min(n_rows, n_features) by n_features.

    Parameters
    ----------
    X : array, sparse matrix or BlockSource of n_features columns
        Read once.
    rank : int
        Number of leading singular values that are left out.

    Returns
    -------
    float
        The energy.

    See Also
    --------
    projection_error : The energy that given components miss.

    Examples
    --------
    >>> round(tail_energy(np.diag([3.0, 2.0, 1.0]), rank=1), 12)
    5.0
    """
    if rank < 0:
        raise ValueError(f"rank is {rank}; give 0 or more")
    factor: Array | None = None
    for tile in _tall_tiles(as_source(X)):
        factor = _append_rows(factor, tile)
    return _tail_of(factor, rank)


def _source_of(X: object, n_features: int) -> BlockSource:
    source = as_source(X)
    if source.n_features != n_features:
        raise ValueError(
            f"the data have {source.n_features} features and the sketch's answer has {n_features}; "
            "compare a sketch with the rows it has seen"
        )
    return source


def _tiles(source: BlockSource) -> Iterator[Array]:
    """Yield the rows in dense float64 tiles; sparse blocks are opened a few rows at a time."""
    n_rows = max(1, TILE_ENTRIES // source.n_features)
    for block in unweighted(source.blocks(), "the exact error"):
        X: Any = block.X
        for start in range(0, X.shape[0], n_rows):
            yield _dense(X[start : start + n_rows])


def _tall_tiles(source: BlockSource) -> Iterator[Array]:
    """Yield the rows in tiles so tall that a triangular factor on top costs little."""
    for block in reblock(map(Block, _tiles(source)), 2 * source.n_features):
        yield block.X


def _dense(X: Any) -> Array:
    return np.asarray(X.toarray() if bool(sp.issparse(X)) else X, dtype=np.float64)


def _gram(source: BlockSource) -> Array:
    gram = np.zeros((source.n_features, source.n_features))
    for tile in _tiles(source):
        gram += tile.T @ tile
    return gram


def _lanczos_norm(source: BlockSource, summary: LowRankPlusRidge, shift: float) -> float:
    """Return ||X'X + shift I - low-rank part of summary||_2 by products with vectors."""
    low_rank = summary.with_ridge(0.0)

    def matvec(v: Array) -> Array:
        v = np.asarray(v, dtype=np.float64).ravel()
        result = shift * v - low_rank @ v
        for block in unweighted(source.blocks(), "the exact error"):
            result += block.X.T @ (block.X @ v)
        return result

    n_features = source.n_features
    start = stream(0, "lanczos start").standard_normal(n_features)
    start /= np.linalg.norm(start)
    # A random direction shows about 1/sqrt(n_features) of the Frobenius norm. If
    # that is rounding noise, Lanczos has nothing to converge to.
    seen = math.sqrt(n_features) * float(np.linalg.norm(matvec(start)))
    if seen <= 10 * n_features * EPS * summary.trace():
        return seen

    def largest(matvec: Callable[..., Array], which: str, tol: float) -> float:
        operator = LinearOperator(summary.shape, matvec=matvec, dtype=np.float64)
        n_vectors = min(LANCZOS_VECTORS, n_features)
        found = eigsh(operator, 1, which=which, v0=start, tol=tol, ncv=n_vectors)[0]
        return float(np.abs(found).max())

    # The largest and the smallest eigenvalue may be all but opposite, as a half read-out makes
    # them, and either may be almost zero. So each is looked for alone, and shifted by about the
    # norm, of which the tolerance is then a part.
    rough = largest(matvec, "LM", 0.1)
    ends = (
        largest(lambda v, s=s: rough * np.ravel(v) + s * matvec(v), "LA", 1e-5) for s in (1, -1)
    )
    return max(max(ends) - rough, 0.0)


def _append_rows(factor: Array | None, rows: Array) -> Array:
    """Return R with R'R = factor'factor + rows'rows, of at most n_features rows."""
    # Always a copy: a source may use the memory of its blocks again.
    both = np.concatenate([rows] if factor is None else [factor, rows])
    if both.shape[0] <= both.shape[1]:
        return both
    (triangular,) = scipy.linalg.qr(both, mode="r")
    return np.asarray(triangular[: both.shape[1]])


def _tail_of(factor: Array | None, rank: int) -> float:
    if factor is None:
        return 0.0
    tail = np.linalg.svd(factor, compute_uv=False)[rank:]
    return float(tail @ tail)


def _energy(X: Array) -> float:
    return float(np.vdot(X, X))
