"""How much of the rows a subspace leaves out: bounds on the spectral norm of the rest."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from sksketch._typing import Array, Rows
from sksketch.arrays.krylov import top_eigenvalue
from sksketch.arrays.random import stream
from sksketch.arrays.rounding import eigen_error, gamma
from sksketch.arrays.rows import laid_out, squared_row_norms
from sksketch.arrays.sparse import in_units
from sksketch.reduction.subspace import LinearMap
from sksketch.streams import RowSource
from sksketch.streams.blocks import unweighted

# Of the upper bound.
FAILURE_PROBABILITY = 1e-6
N_PROBES, DEPTH = 8, 4
# Directions along which rows are looked at for their digest.
DIGEST = 4
# Probes take together no more memory than this.
PROBE_BYTES = 1 << 28
# Rows of another precision are converted in tiles of this size.
TILE_BYTES = 1 << 24

# Blocks of rows and the weight of each row; the rows come again at each call.
Blocks = Callable[[], Iterable[tuple[Any, Array]]]


class Looked(NamedTuple):
    """The number of rows, the sum of their squared entries, and a text that depends on them."""

    n_rows: int
    squared_norm: float
    digest: str


def look(blocks: Blocks) -> Looked:
    """Return what a first look at rows tells, each counted with its weight.

    The text depends on every entry of the rows and on the weights, not on the cuts. It is made of
    the images of each row along some random directions, which cost less than the entries
    themselves would. Along a single one a row can be made to have any image.

    >>> whole, zeros = np.eye(2), np.zeros((2, 2))
    >>> halves = lambda: [(whole[:1], np.ones(1)), (whole[1:], np.ones(1))]
    >>> look(halves) == look(lambda: [(whole, np.ones(2))])
    True
    >>> look(halves).digest == look(lambda: [(zeros, np.ones(2))]).digest
    False
    """
    found, directions = hashlib.blake2b(digest_size=16), np.zeros((0, 0))
    n_rows, total = 0, 0.0
    for rows, weights in blocks():
        if directions.shape[1] != rows.shape[1]:
            directions = stream(0, "digest").standard_normal((DIGEST, rows.shape[1]))
        # Dense rows one at a time, so that no bit depends on how they were cut.
        sparse = sp.issparse(rows)
        images = rows @ directions.T if sparse else np.vecdot(rows[:, None], directions)
        found.update(np.column_stack([weights, images]).tobytes())
        n_rows += len(weights)
        total += float(weights @ squared_row_norms(rows, rows.dtype))
    return Looked(n_rows, total, found.hexdigest())


def spectral_error(
    blocks: Blocks, basis: LinearMap, looked: Looked, seed: int, n_looks: int | None = None
) -> tuple[float, float]:
    """Bound the largest eigenvalue of X'X outside of the basis from both sides.

    Parameters
    ----------
    blocks : callable
        Gives the rows, each counted with its weight.
    basis : LinearMap
        With orthonormal columns U.
    looked : Looked
        What `look` says of the rows, or whoever has seen them.
    seed : int
        Chooses the probes, together with the rows: whoever makes rows for probes changes them.
    n_looks : int, default=None
        Times that the rows may be read; by default as often as bounds become tight.

    Returns
    -------
    lower, upper : float
        ``|X (I - U U')|_2^2`` is at least ``lower``, and at most ``upper`` with probability
        ``1 - FAILURE_PROBABILITY``.

    Notes
    -----
    Let Z = X (I - U U'). A product with X or U has sums of up to n_rows + n_features + n_components
    terms, so with g = gamma of those, what is computed for Z w is off by at most a |w| with
    a = g (1 + 2 size of U) |X|, and that for Z'Z w by (2 |Z| + a) a |w|. The largest eigenvalue t
    and the one of what is computed, s, then differ by::

        sqrt(s) - a  <=  sqrt(t)  <=  sqrt(s + 2 a^2) + a
    """
    n_rows, squared_norm, _ = looked
    if squared_norm == 0.0:
        return 0.0, 0.0
    n_features = basis.n_features
    n_probes = int(np.clip(PROBE_BYTES // (8 * n_features), 2, N_PROBES))

    def by_columns(W: Array) -> Array:
        outside = _outside(basis, W.T)
        image = np.zeros_like(outside)
        for rows, weights in blocks():
            image += rows.T @ (weights[:, None] * (rows @ outside))
        return np.ascontiguousarray(_outside(basis, image).T) / squared_norm

    def by_rows(W: Array) -> Array:
        roots = np.sqrt(np.concatenate([weights for _, weights in blocks()]))
        outside = combination(blocks, (W * roots).T)
        # Twice, as between the rows on both sides: once would leave its rounding, times X.
        outside = _outside(basis, _outside(basis, outside))
        images = [np.asarray(rows @ outside) for rows, _ in blocks()]
        return np.ascontiguousarray(np.concatenate(images).T * roots) / squared_norm

    # X'X and X X' have the same eigenvalues; take the smaller, in units in which squares of them
    # neither overflow nor vanish.
    # A product by rows takes two looks at them.
    few = n_rows < n_features and n_looks is None
    apply, width = (by_rows, n_rows) if few else (by_columns, n_features)
    purpose = f"residual {looked.digest}"
    probes = stream(seed, purpose).standard_normal((min(n_probes, width), width))
    top = top_eigenvalue(apply, probes, FAILURE_PROBABILITY, n_looks or DEPTH)
    g = gamma(n_rows + n_features + basis.n_components + 16)
    a = g * (1.0 + 2.0 * basis.size)
    # The small problem of Lanczos has roundings of its own, relative to what it finds.
    small = gamma(width + 16) + eigen_error(DEPTH * len(probes), 1.0)
    upper = (math.sqrt(top.upper * (1.0 + small) + 2.0 * a * a) + a) ** 2
    upper = min(upper, 1.0 + gamma(n_rows * n_features))
    lower = min(max(math.sqrt(top.estimate * (1.0 - small)) - a, 0.0) ** 2, upper)
    # Ritz values leave out directions of the Krylov space below 1e-10 of it, which costs as much.
    return lower * (1.0 - 1e-8) * squared_norm, upper * (1.0 + 1e-12) * squared_norm


def _outside(basis: LinearMap, columns: Array) -> Array:
    """Return (I - U U') times some columns."""
    return np.asarray(columns - basis.lift(basis.project(np.ascontiguousarray(columns.T)).T))


def combination(blocks: Blocks, coefficients: Array) -> Array:
    """Return X' c for the columns c of coefficients; the weights of the rows do not count.

    >>> combination(lambda: [(np.eye(2), np.ones(2))], np.array([[1.0], [2.0]]))
    array([[1.],
           [2.]])
    """
    total, start = None, 0
    for rows, weights in blocks():
        image = np.asarray(rows.T @ coefficients[start : start + len(weights)])
        total = image if total is None else total + image
        start += len(weights)
    assert total is not None
    return total


def projected(
    blocks: Blocks, basis: LinearMap, n_extra: int = 0, known: Array | None = None
) -> Array:
    """Return the coordinates of all rows in float64, with ``n_extra`` columns of ones.

    Those that are ``known`` need not be found again.
    """
    parts = [known] if known is not None else [basis.project(rows) for rows, _ in blocks()]
    if n_extra:
        parts = [np.column_stack([part, np.ones((len(part), n_extra))]) for part in parts]
    whole = parts[0] if len(parts) == 1 else np.concatenate(parts)
    return np.ascontiguousarray(whole, dtype=np.float64)


def kept(rows: Any) -> Any:
    """Return rows of a block in float64, laid out, or sparse."""
    return sp.csr_array(rows) if sp.issparse(rows) else rows.astype(np.float64, order="C")


def from_source(
    source: RowSource, weights: Array | None = None, watch: Callable[[int], None] | None = None
) -> Blocks:
    """Return rows that are read again at each call, all of weight one unless given.

    ``watch`` gets the number of rows of every block.
    """

    def blocks() -> Iterator[tuple[Any, Array]]:
        start = 0
        for rows, _ in unweighted(source.blocks(), "a reduction"):
            stop = start + rows.shape[0]
            yield kept(rows), np.ones(stop - start) if weights is None else weights[start:stop]
            if watch is not None:
                watch(stop - start)
            start = stop

    return blocks


def blocks_in_units(blocks: Blocks, units: Array) -> Blocks:
    """Return the same rows with columns divided by ``units``, at each call."""
    return lambda: ((in_units(rows, units), weights) for rows, weights in blocks())


def in_memory(rows: Rows, weights: Array) -> Blocks:
    """Return rows in memory as blocks of float64, sparse ones and those that are so as one."""
    rows = laid_out(rows)
    if sp.issparse(rows) or rows.dtype == np.float64:
        return lambda: [(rows, weights)]
    starts = range(0, rows.shape[0], max(1, TILE_BYTES // (8 * rows.shape[1])))

    def tiles() -> Iterator[tuple[Any, Array]]:
        for start in starts:
            part = slice(start, start + starts.step)
            yield rows[part].astype(np.float64), weights[part]

    return tiles
