"""Routes from a full buffer to ``sketch_size`` rows: the shrink of Frequent Directions.

The buffer is P = [kept; rows]. A route returns rows B with B'B <= P'P and says how much
of P'P any direction can have lost.

``exact`` finds all eigenvalues of the small Gram matrix P P'. Deterministic.

``block`` takes many more rows at once and one step of subspace iteration that starts at
the kept rows: with Y orthonormal, Z = Y'P has Z'Z <= P'P whatever Y is, so a shrink of Z
is a valid shrink of P. What lies outside Y is lost too, so the loss is not only the cut:
a block Lanczos bound on P'P - B'B certifies it, with a stated probability. Where roundings
of single precision are small against the cut, Z is computed in it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from sksketch._typing import Array
from sksketch.arrays.krylov import TopEigenvalue, top_eigenvalue
from sksketch.arrays.linalg import eigh_descending, squared_norm, thin_svd
from sksketch.arrays.namespace import cast, joined, like, precision
from sksketch.arrays.random import stream
from sksketch.sketches.ledger import Ledger, rounding_allowance
from sksketch.sketches.stacks import (
    GRAM_RESOLUTION,
    DenseStack,
    Projection,
    Stack,
    single_roundings,
    unit_rows,
)

OVERSAMPLING = 8
PROBES = 8
MAX_PASSES = 4

SINGLE_EPS = float(np.finfo(np.float32).eps)

# Where the noise of cheap products is more than this part of what is lost, exact ones take over.
ACCURACY = 5e-2

# An eigenvalue below this part of the largest one is zero, to rounding.
ZERO = 1e-26

# One warm pass is repeated when the loss is this many times the cut, because the directions
# moved; but not for a loss of so few roundings of the largest eigenvalue.
REPEAT_ABOVE, NEGLIGIBLE = 4.0, 64.0


@dataclass(frozen=True)
class Task:
    """One shrink: what to compress and how much loss is acceptable.

    ``largest`` and ``cut`` are what to expect of the largest eigenvalue and of the cut. They only
    decide in which precision to begin. ``before`` is what earlier shrinks have lost.
    """

    stack: Stack
    shrink: Callable[[Array, int], tuple[Array, float]]
    sketch_size: int
    max_sketch_size: int
    acceptable_loss: float
    graded: bool
    certify: bool
    failure_probability: float
    seed: int
    index: int
    largest: float = 0.0
    cut: float = np.inf
    before: Ledger = field(default_factory=Ledger)

    def tolerates(self, allowance: float, cut: float) -> bool:
        """Say whether roundings stay small beside what all shrinks, this one with them, cut."""
        allowed = ACCURACY * (self.before.kept_loss + cut)
        return math.hypot(self.before.allowance, allowance) <= allowed


@dataclass(frozen=True)
class Shrunk:
    """The rows that a shrink kept (orthogonal, heaviest first) and what it lost.

    ``allowance`` is for roundings beyond those that rows of their precision bring.
    """

    matrix: Array
    eigenvalues: Array
    largest: float
    cut: float
    loss: float
    loss_bound: float
    floor: float = 0.0
    allowance: float = 0.0
    failure_probability: float = 0.0
    graded: bool = False
    sketch_size: int = 0


def shrink_exact(task: Task) -> Shrunk:
    """Shrink through all eigenvalues of the buffer's Gram matrix.

    When dense rows span more than a Gram matrix resolves, a QR factorisation takes over and
    stays (``graded``).
    """
    P = task.stack
    dense = P if isinstance(P, DenseStack) else None
    last = min(task.sketch_size, P.n_rows, P.n_features) - 1
    graded, V = task.graded, None
    by_gram = dense is None or not graded
    if by_gram:
        spectrum, U = eigh_descending(P.gram(), task.max_sketch_size)
        spectrum = np.maximum(spectrum, 0.0)
        by_gram = dense is None or bool(spectrum[last] >= GRAM_RESOLUTION * spectrum[0])
    if dense is not None and not by_gram:
        singular_values, V = thin_svd(dense.matrix)
        spectrum = singular_values**2
        # Zeros need no resolution; small directions that are really there do.
        relative = spectrum[: last + 1] / max(spectrum[0], np.finfo(np.float64).tiny)
        graded |= bool(((relative > ZERO) & (relative < GRAM_RESOLUTION)).any())
    size = _grown(spectrum, task)
    kept, cut = task.shrink(spectrum[: P.n_features], size)
    keep = kept > 0
    if V is None:
        matrix = P.combined(_shrunk_columns(U, spectrum, kept).T)
    else:
        matrix = like(np.sqrt(kept[keep])[:, None], V) * V[like(np.flatnonzero(keep), V)]
    # Rank n_features in the buffer means that every direction lost something.
    floor = 0.0
    if P.n_rows >= P.n_features and cut > 0:
        losses = spectrum[: P.n_features].copy()
        losses[: len(kept)] -= kept
        floor = max(float(losses.min()), 0.0)
    return Shrunk(
        cast(matrix, precision(P.rows)),
        kept[keep],
        largest=float(spectrum[0]),
        cut=cut,
        loss=cut,
        loss_bound=cut,
        floor=floor,
        graded=graded,
        sketch_size=size,
    )


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
    P = task.stack
    rng = stream(task.seed, "directions", task.index)
    size = task.sketch_size
    start = P.start(size)
    largest, cut = task.largest, task.cut
    for passes in itertools.count(1):
        n_fresh = P.width(max(size, len(start)) + OVERSAMPLING) - len(start)
        fresh = rng.standard_normal((n_fresh, P.n_features), dtype=np.float32)
        likely = rounding_allowance(SINGLE_EPS, largest, single_roundings(P.n_rows))
        cheap = task.tolerates(likely, cut)
        for Z in P.project(joined([start, like(fresh, start)]), cheap):
            matrix, kept, largest, cut = _shrink_projection(task, Z, size)
            if task.tolerates(Z.allowance(largest), cut):
                break
        lost = max(P.squared_norm - squared_norm(matrix), 0.0)
        tolerable = max(REPEAT_ABOVE * cut, NEGLIGIBLE * Z.eps * largest)
        enough = tolerable if passes < MAX_PASSES and task.acceptable_loss == np.inf else np.inf
        top = _measure_loss(task, matrix, lost, passes, enough)
        bound = min(top.upper, lost)
        if bound > task.acceptable_loss and size < task.max_sketch_size:
            size = min(task.max_sketch_size, size + size // 2 + 1)
        elif top.estimate <= tolerable or passes >= MAX_PASSES:
            break
        start = joined([unit_rows(matrix), top.vectors])
    return Shrunk(
        matrix,
        kept,
        largest=largest,
        allowance=Z.allowance(largest),
        cut=cut,
        loss=max(top.estimate, cut),
        loss_bound=bound,
        failure_probability=task.failure_probability if task.certify else 0.0,
        graded=task.graded,
        sketch_size=size,
    )


def _shrink_projection(task: Task, Z: Projection, size: int) -> tuple[Array, Array, float, float]:
    """Return the shrunk rows of Z, their eigenvalues, the largest before, and the cut."""
    spectrum, U = eigh_descending(Z.gram())
    spectrum = np.maximum(spectrum, 0.0)
    kept, cut = task.shrink(spectrum, size)
    matrix = Z.combined(_shrunk_columns(U, spectrum, kept).T, precision(task.stack.rows))
    return matrix, kept[kept > 0], float(spectrum.max(initial=0.0)), cut


def _shrunk_columns(U: Array, spectrum: Array, kept: Array) -> Array:
    """Return the eigenvectors of what is kept, each with the factor that shrinks its row."""
    keep = np.flatnonzero(kept > 0)
    scale = np.sqrt(kept[keep] / spectrum[keep])
    columns: Array = U[:, like(keep, U)] * like(scale, U)
    return columns


def _measure_loss(
    task: Task, matrix: Array, lost: float, passes: int, enough: float
) -> TopEigenvalue:
    """Bound the largest eigenvalue of P'P - B'B by block Lanczos with fresh probes.

    There is no need to know it well if it is more than ``enough``.
    """
    n_features = task.stack.n_features
    if not task.certify or lost == 0.0:
        return TopEigenvalue(0.0, lost, unit_rows(matrix[:0]))
    rng = stream(task.seed, f"verification {passes}", task.index)
    probes = rng.standard_normal((PROBES, n_features))
    # Each pass may fail on its own, so their probabilities add up to the whole.
    chance = task.failure_probability / 2**passes
    for loss in task.stack.loss_operators(matrix, lost):
        limit = enough / loss.scale
        top = top_eigenvalue(loss.apply, like(probes, matrix), chance, task.stack.depth, limit)
        if loss.noise() <= ACCURACY * top.estimate * loss.scale:
            break
    return TopEigenvalue(
        top.estimate * loss.scale,
        top.upper * loss.scale + loss.noise(),
        cast(top.vectors, np.float32),
    )


SOLVERS: dict[str, Callable[[Task], Shrunk]] = {"exact": shrink_exact, "block": shrink_block}
