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
from typing import NamedTuple

import numpy as np

from sksketch._typing import Array
from sksketch.arrays.krylov import TopEigenvalue, top_eigenvalue
from sksketch.arrays.linalg import eigh_descending, thin_svd
from sksketch.arrays.namespace import cast, joined, like
from sksketch.arrays.products import combined_rows, squared_norm
from sksketch.arrays.random import stream
from sksketch.arrays.rounding import eigen_error, gamma, perturbed_gram, single_error
from sksketch.sketches.directions.shrink.ledger import Ledger
from sksketch.sketches.directions.shrink.operand import (
    GRAM_RESOLUTION,
    DenseOperand,
    Projection,
    unit_rows,
)
from sksketch.sketches.directions.shrink.rules import Losses
from sksketch.sketches.directions.shrink.sparse_operand import SparseOperand

Operand = DenseOperand | SparseOperand

OVERSAMPLING = 8
PROBES = 8
MAX_PASSES = 4

# Where the noise of cheap products is more than this part of what is lost, exact ones take over,
# and where it can change the kept rows by more than the other part of all cuts.
ACCURACY, TOLERATED = 5e-2, 8e-2

# An eigenvalue below this part of the largest one is zero, to rounding.
ZERO = 1e-26

# One warm pass is repeated when the loss is this many times the cut, because the directions
# moved; but not for a loss of this many times what rounding may do.
REPEAT_ABOVE, NEGLIGIBLE = 4.0, 4.0


@dataclass(frozen=True)
class Task:
    """One shrink: what to compress and how much loss is acceptable.

    ``largest`` and ``cut`` are what to expect of the largest eigenvalue and of the cut. They only
    decide in which precision to begin. ``before`` is what earlier shrinks have lost, and
    ``lost_before`` how much of it in all.
    """

    operand: Operand
    shrink: Callable[[Array, int, Losses], tuple[Array, float]]
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
    lost_before: float = 0.0

    def tolerates(self, allowance: float, cut: float) -> bool:
        """Return whether roundings stay small beside what all shrinks, this one with them, cut."""
        allowed = TOLERATED * (self.before.kept_loss + cut)
        return self.before.measured + allowance <= allowed

    def shrunk(self, spectrum: Array, size: int) -> tuple[Array, float]:
        """Return the eigenvalues to keep and the cut; what the spectrum lacks is lost anyway."""
        outside = max(self.operand.squared_norm - float(spectrum.sum()), 0.0)
        losses = Losses(self.before.kept_loss, self.lost_before + outside)
        return self.shrink(spectrum, size, losses)


@dataclass(frozen=True)
class Shrunk:
    """The rows that a shrink kept (orthogonal, heaviest first) and what it lost.

    ``allowance`` is for roundings on either side, of which the part ``measured`` is not proved;
    ``skew`` bounds what the Gram matrix of the rows has beside the eigenvalues; ``luck`` states
    whether ``loss_bound`` holds with a probability only.
    """

    matrix: Array
    eigenvalues: Array
    largest: float
    cut: float
    loss: float
    loss_bound: float
    allowance: float
    skew: float
    floor: float = 0.0
    measured: float = 0.0
    luck: bool = False
    graded: bool = False
    sketch_size: int = 0


def shrink_exact(task: Task) -> Shrunk:
    """Shrink through all eigenvalues of the buffer's Gram matrix.

    When dense rows span more than a Gram matrix resolves, a QR factorization takes over and
    stays (``graded``).
    """
    P = task.operand
    dense = P if isinstance(P, DenseOperand) else None
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
    kept, cut = task.shrunk(spectrum[: P.n_features], size)
    keep = kept > 0
    largest = float(spectrum[0])
    if V is None:
        matrix, error = P.combined(_shrunk_columns(U, spectrum, kept).T)
        small = 2.0 * eigen_error(P.n_rows, largest) + perturbed_gram(math.sqrt(largest), error)
        allowance = small + P.gram_error
    else:
        matrix = like(np.sqrt(kept[keep])[:, None], V) * V[like(np.flatnonzero(keep), V)]
        # A factorization is that of a matrix which is so near.
        error = gamma(4 * (P.n_rows + P.n_features)) * math.sqrt(P.squared_norm)
        allowance = perturbed_gram(math.sqrt(largest), error)
    # Rank n_features in the buffer means that every direction lost something.
    floor = 0.0
    if P.n_rows >= P.n_features and cut > 0:
        losses = spectrum[: P.n_features].copy()
        losses[: len(kept)] -= kept
        floor = max(float(losses.min()), 0.0)
    return Shrunk(
        matrix,
        kept[keep],
        largest=largest,
        cut=cut,
        loss=cut,
        loss_bound=cut,
        allowance=allowance,
        skew=allowance,
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
    P = task.operand
    rng = stream(task.seed, "directions", task.index)
    size = task.sketch_size
    start = P.start(size)
    largest, cut = task.largest, task.cut
    for passes in itertools.count(1):
        n_fresh = P.width(max(size, len(start)) + OVERSAMPLING) - len(start)
        fresh = rng.standard_normal((n_fresh, P.n_features), dtype=np.float32)
        likely = perturbed_gram(math.sqrt(largest), single_error(P.n_rows) * math.sqrt(largest))
        for Z in P.project(start, fresh, cheap=task.tolerates(likely, cut)):
            found = _shrink_projection(task, Z, size)
            largest, cut = found.largest, found.cut
            if not Z.measured or task.tolerates(Z.allowance(largest), cut):
                break
        matrix = found.matrix
        lost = max(P.squared_norm - squared_norm(matrix), 0.0)
        tolerable = max(REPEAT_ABOVE * cut, NEGLIGIBLE * Z.allowance(largest))
        enough = tolerable if passes < MAX_PASSES and task.acceptable_loss == np.inf else np.inf
        loss = _measure_loss(task, matrix, lost, passes, enough)
        top = loss.top
        bound = min(top.upper, lost + P.squared_norm_error)
        if bound > task.acceptable_loss and size < task.max_sketch_size:
            size = min(task.max_sketch_size, size + size // 2 + 1)
        elif top.estimate <= tolerable or passes >= MAX_PASSES:
            break
        start = joined([unit_rows(matrix), top.vectors])
    rounding = Z.allowance(largest)
    return Shrunk(
        matrix,
        found.kept,
        largest=largest,
        cut=cut,
        loss=max(top.estimate, cut),
        loss_bound=bound,
        allowance=rounding + found.skew,
        skew=found.skew,
        measured=(rounding if Z.measured else 0.0) + (loss.noise if loss.measured else 0.0),
        luck=task.certify,
        graded=task.graded,
        sketch_size=size,
    )


class _Found(NamedTuple):
    """Rows that a shrink of a projection keeps."""

    matrix: Array
    kept: Array
    largest: float
    cut: float
    skew: float


def _shrink_projection(task: Task, Z: Projection, size: int) -> _Found:
    """Return the shrunk rows of Z."""
    spectrum, U = eigh_descending(Z.gram())
    spectrum = np.maximum(spectrum, 0.0)
    kept, cut = task.shrunk(spectrum, size)
    C = _shrunk_columns(U, spectrum, kept).T
    matrix = combined_rows(C, Z.rows)
    largest, energy = float(spectrum.max(initial=0.0)), float(spectrum.sum())
    error = gamma(len(Z.rows) + 4) * math.sqrt(len(C) * energy)
    skew = gamma(task.operand.n_features + 2) * energy + 2.0 * eigen_error(len(spectrum), largest)
    skew += perturbed_gram(math.sqrt(largest), error)
    return _Found(matrix, kept[kept > 0], largest, cut, skew)


def _shrunk_columns(U: Array, spectrum: Array, kept: Array) -> Array:
    """Return the eigenvectors of what is kept, each with the factor that shrinks its row."""
    keep = np.flatnonzero(kept > 0)
    scale = np.sqrt(kept[keep] / spectrum[keep])
    columns: Array = U[:, like(keep, U)] * like(scale, U)
    return columns


class _Loss(NamedTuple):
    """The outcome of a verification, and how much of its bound is for noise."""

    top: TopEigenvalue
    noise: float = 0.0
    measured: bool = False


def _measure_loss(task: Task, matrix: Array, lost: float, passes: int, enough: float) -> _Loss:
    """Bound the largest eigenvalue of P'P - B'B by block Lanczos with fresh probes.

    There is no need to know it well if it is more than ``enough``. The probes are addressed by
    a digest of the rows, so whoever made these could not know them.
    """
    n_features = task.operand.n_features
    if not task.certify or lost == 0.0:
        return _Loss(TopEigenvalue(0.0, lost, unit_rows(matrix[:0])))
    purpose = f"verification {passes} of {task.operand.digest.hex()}"
    probes = stream(task.seed, purpose, task.index).standard_normal((PROBES, n_features))
    # Each pass may fail on its own, and so may the cheap and the exact look at it.
    chance = task.failure_probability / 2**passes
    for loss in task.operand.loss_operators(matrix, lost):
        limit = enough / loss.scale
        chance *= 7 / 8 if loss.measured else 1 / 8
        top = top_eigenvalue(loss.apply, like(probes, matrix), chance, task.operand.depth, limit)
        noise = loss.noise()
        if not loss.measured or noise <= ACCURACY * top.estimate * loss.scale:
            break
    found = TopEigenvalue(
        top.estimate * loss.scale,
        top.upper * loss.scale + noise,
        cast(top.vectors, np.float32),
    )
    return _Loss(found, noise, loss.measured)


SOLVERS: dict[str, Callable[[Task], Shrunk]] = {"exact": shrink_exact, "block": shrink_block}
