"""Routes from a full buffer to ``sketch_size`` rows: the shrink of Frequent Directions.

The buffer is P = [kept; rows]. A route returns rows B with B'B <= P'P and says how much
of P'P any direction can have lost.

``exact`` finds all eigenvalues of the small Gram matrix P P'. Deterministic.

``block`` takes many more rows at once and one step of subspace iteration that starts at
the kept rows: with Y orthonormal, Z = Y'P has Z'Z <= P'P whatever Y is, so a shrink of Z
is a valid shrink of P. What lies outside Y is lost too, so the loss is not only the cut:
a block Lanczos bound on P'P - B'B certifies it, with a stated probability.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sksketch._typing import Array
from sksketch.arrays.krylov import TopEigenvalue, top_eigenvalue
from sksketch.arrays.linalg import eigh_descending, gram, orthonormal_rows, squared_norm, thin_svd
from sksketch.arrays.random import stream

OVERSAMPLING = 8
PROBES = 8
DEPTH = 7
MAX_PASSES = 4

# A cold start looks at this many sketch sizes of rows first.
WARM_UP = 2

# Single precision perturbs the loss by about this much of the largest eigenvalue; where that is
# more than the given part of the loss, double precision takes over.
SINGLE_NOISE, SINGLE_ACCURACY = 2e-6, 5e-2

# Squared norms whose squares are far from the ends of single precision.
MODERATE = 1e-10, 1e10

# The Gram matrix resolves directions down to about 1e-5 of the largest singular value.
GRAM_RESOLUTION = 1e-10

# An eigenvalue below this part of the largest one is zero, to rounding.
ZERO = 1e-26

# One warm pass is repeated when the loss is this many times the cut, because the directions
# moved; but not for a loss of so few roundings of the largest eigenvalue.
REPEAT_ABOVE, NEGLIGIBLE = 3.0, 64.0

# Rows of a verification product: still in cache when its second half reads them again, and
# within the size for which OpenBLAS has kernels that do not repack them.
CHUNK_ENTRIES = 1 << 16


@dataclass(frozen=True)
class Task:
    """One shrink: what to compress and how much loss is acceptable."""

    kept: Array
    eigenvalues: Array
    rows: Array
    squared_norm: float
    shrink: Callable[[Array, int], tuple[Array, float]]
    sketch_size: int
    max_sketch_size: int
    acceptable_loss: float
    graded: bool
    certify: bool
    failure_probability: float
    seed: int
    index: int
    scratch: Callable[[int], Array]

    @property
    def n_rows(self) -> int:
        """Rows of the buffer, the kept ones included."""
        return len(self.kept) + len(self.rows)


@dataclass(frozen=True)
class Shrunk:
    """The rows that a shrink kept (orthogonal, heaviest first) and what it lost."""

    matrix: Array
    eigenvalues: Array
    largest: float
    cut: float
    loss: float
    loss_bound: float
    floor: float = 0.0
    failure_probability: float = 0.0
    graded: bool = False
    sketch_size: int = 0


def shrink_exact(task: Task) -> Shrunk:
    """Shrink through all eigenvalues of the buffer's Gram matrix.

    The kept rows are orthogonal, so in float64 their part of the Gram matrix is
    diagonal and known. When the spectrum spans more than the Gram matrix resolves, a
    QR factorisation takes over and stays (``graded``).
    """
    P = np.concatenate([task.kept, task.rows])
    n_features = P.shape[1]
    last = min(task.sketch_size, len(P), n_features) - 1
    by_gram = not task.graded
    graded = task.graded
    if by_gram:
        spectrum, U = eigh_descending(_buffer_gram(task, P))
        spectrum = np.maximum(spectrum, 0.0)
        by_gram = bool(spectrum[last] >= GRAM_RESOLUTION * spectrum[0])
    if not by_gram:
        singular_values, V = thin_svd(P)
        spectrum = singular_values**2
        # Zeros need no resolution; small directions that are really there do.
        relative = spectrum[: last + 1] / max(spectrum[0], np.finfo(np.float64).tiny)
        graded |= bool(((relative > ZERO) & (relative < GRAM_RESOLUTION)).any())
    size = _grown(spectrum, task)
    kept, cut = task.shrink(spectrum[:n_features], size)
    keep = kept > 0
    if by_gram:
        scale = np.sqrt(kept[keep] / spectrum[: len(kept)][keep])
        matrix = (U[:, : len(kept)][:, keep] * scale).T.astype(P.dtype) @ P
    else:
        matrix = np.sqrt(kept[keep])[:, None] * V[: len(kept)][keep]
    # Rank n_features in the buffer means that every direction lost something.
    losses = spectrum[:n_features] - np.pad(kept, (0, max(min(len(P), n_features) - len(kept), 0)))
    floor = max(float(losses.min()), 0.0) if len(P) >= n_features and cut > 0 else 0.0
    return Shrunk(
        matrix.astype(P.dtype, copy=False),
        kept[keep],
        largest=float(spectrum[0]),
        cut=cut,
        loss=cut,
        loss_bound=cut,
        floor=floor,
        graded=graded,
        sketch_size=size,
    )


def _buffer_gram(task: Task, P: Array) -> Array:
    if P.dtype != np.float64 or not len(task.kept):
        return gram(P)
    n_kept = len(task.kept)
    G = np.empty((len(P), len(P)))
    G[:n_kept, :n_kept] = np.diag(task.eigenvalues)
    G[n_kept:, n_kept:] = task.rows @ task.rows.T
    cross = task.kept @ task.rows.T
    G[:n_kept, n_kept:] = cross
    G[n_kept:, :n_kept] = cross.T
    return G


def _grown(spectrum: Array, task: Task) -> int:
    """Return the smallest size from ``sketch_size`` on whose cut is acceptable."""
    sizes = spectrum[task.sketch_size : task.max_sketch_size]
    return task.sketch_size + int(np.count_nonzero(sizes > task.acceptable_loss))


def shrink_block(task: Task) -> Shrunk:
    """Shrink by warm subspace iteration, then verify the loss.

    A cold start takes its directions from the first rows. A pass is repeated, from the new
    rows and the directions that lost most, while the loss is several times the cut; the sketch
    grows while the loss is more than acceptable.
    """
    rng = stream(task.seed, "directions", task.index)
    single = _Single(task)
    start = _unit_rows(task.kept if len(task.kept) >= task.sketch_size else _first_rows(task))
    size = task.sketch_size
    for passes in itertools.count(1):
        n_fresh = max(size - len(start), 0) + OVERSAMPLING
        fresh = rng.standard_normal((n_fresh, task.rows.shape[1]), dtype=np.float32)
        matrix, kept, spectrum, cut = _one_pass(task, single, np.concatenate([start, fresh]), size)
        largest = float(spectrum.max(initial=0.0))
        lost = max(task.squared_norm - squared_norm(matrix), 0.0)
        top = _measure_loss(task, single, matrix, largest, lost, passes)
        bound = min(top.upper, lost)
        negligible = NEGLIGIBLE * float(np.finfo(matrix.dtype).eps) * largest
        if bound > task.acceptable_loss and size < task.max_sketch_size:
            size = min(task.max_sketch_size, size + size // 2 + 1)
        elif top.estimate <= max(REPEAT_ABOVE * cut, negligible) or passes >= MAX_PASSES:
            break
        start = np.concatenate([_unit_rows(matrix), top.vectors])
    return Shrunk(
        matrix,
        kept,
        largest=largest,
        cut=cut,
        loss=max(top.estimate, cut),
        loss_bound=bound,
        failure_probability=task.failure_probability if task.certify else 0.0,
        graded=task.graded,
        sketch_size=size,
    )


class _Single:
    """The buffer in single precision: good enough to find directions.

    Every orthonormal Y gives a valid shrink, so directions may be rough, and products with it
    cost half. Scaled to unit norm where fourth powers might leave the range of the precision.
    """

    def __init__(self, task: Task) -> None:
        moderate = MODERATE[0] < task.squared_norm < MODERATE[1]
        self.scale = 1.0 if moderate else 1.0 / np.sqrt(task.squared_norm)
        self.kept = self.cast(task.kept)
        self.rows = self.cast(task.rows, task.scratch(len(task.rows)))

    def cast(self, rows: Array, out: Array | None = None) -> Array:
        """Return ``rows`` scaled, in single precision."""
        out = np.empty(rows.shape, dtype=np.float32) if out is None else out
        if self.scale == 1.0:
            np.copyto(out, rows, casting="same_kind")
        else:
            np.multiply(rows, rows.dtype.type(self.scale), out=out, casting="same_kind")
        return out


def _first_rows(task: Task) -> Array:
    """Return the principal directions of the kept rows and the first of the new ones.

    A few more than will be kept, which mostly saves the second pass of a cold start.
    """
    P = np.concatenate([task.kept, task.rows[: WARM_UP * task.sketch_size]])
    spectrum, U = eigh_descending(gram(P))
    wanted = task.sketch_size + task.sketch_size // 3
    keep = spectrum[:wanted] > GRAM_RESOLUTION * max(spectrum[0], 0.0)
    return np.asarray(U[:, :wanted][:, keep].T.astype(P.dtype) @ P)


def _one_pass(
    task: Task, single: _Single, start: Array, size: int
) -> tuple[Array, Array, Array, float]:
    """Project the buffer on its image of the ``start`` rows and shrink the projection."""
    n_kept = len(task.kept)
    T = np.empty((len(start), task.n_rows), dtype=task.rows.dtype)
    T[:, :n_kept] = start @ single.kept.T
    T[:, n_kept:] = (single.rows @ start.T).T
    Y = orthonormal_rows(T)
    Z = Y[:, n_kept:] @ task.rows
    if n_kept:
        Z += Y[:, :n_kept] @ task.kept
    spectrum, U = eigh_descending(gram(Z))
    spectrum = np.maximum(spectrum, 0.0)
    kept, cut = task.shrink(spectrum, size)
    keep = kept > 0
    scale = np.sqrt(kept[keep] / spectrum[: len(kept)][keep])
    matrix = (U[:, : len(kept)][:, keep] * scale).T.astype(Z.dtype) @ Z
    return matrix, kept[keep], spectrum, cut


def _unit_rows(matrix: Array) -> Array:
    rows = matrix.astype(np.float64, copy=False)
    lengths = np.sqrt(np.vecdot(rows, rows))
    nonzero = lengths > 0
    return np.asarray((rows[nonzero] / lengths[nonzero, None]).astype(np.float32))


def _measure_loss(
    task: Task, single: _Single, matrix: Array, largest: float, lost: float, passes: int
) -> TopEigenvalue:
    """Bound the largest eigenvalue of P'P - B'B by block Lanczos with fresh probes.

    In single precision, unless the loss is too small against the largest eigenvalue.
    """
    if not task.certify or lost == 0.0:
        return TopEigenvalue(0.0, lost, single.rows[:0])
    rng = stream(task.seed, f"verification {passes}", task.index)
    probes = rng.standard_normal((PROBES, task.rows.shape[1]))
    # Each pass may fail on its own, so their probabilities add up to the whole.
    chance = task.failure_probability / 2**passes
    noise = SINGLE_NOISE * largest
    apply = _loss_operator(single.kept, single.rows, single.cast(matrix), 1.0)
    top = top_eigenvalue(apply, probes.astype(np.float32), chance, DEPTH)
    scale = single.scale**-2
    if top.estimate * scale < noise / SINGLE_ACCURACY:
        # Divided by its trace the matrix has norm at most one: no overflow, no underflow.
        apply = _loss_operator(task.kept, task.rows, matrix, 1.0 / lost)
        top, scale, noise = top_eigenvalue(apply, probes, chance, DEPTH), lost, 0.0
    return TopEigenvalue(
        top.estimate * scale, top.upper * scale + noise, top.vectors.astype(np.float32)
    )


def _loss_operator(
    kept: Array, rows: Array, matrix: Array, scale: float
) -> Callable[[Array], Array]:
    """Return W -> scale W (P'P - B'B) for P = [kept; rows], reading the rows once."""
    step = max(4, CHUNK_ENTRIES // rows.shape[1])

    def apply(W: Array) -> Array:
        image = (scale * (W @ kept.T)) @ kept - (scale * (W @ matrix.T)) @ matrix
        for start in range(0, len(rows), step):
            piece = rows[start : start + step]
            image += (scale * (W @ piece.T)) @ piece
        return np.asarray(image)

    return apply


SOLVERS: dict[str, Callable[[Task], Shrunk]] = {"exact": shrink_exact, "block": shrink_block}
