"""The immutable state of a sketch that shrinks: kept rows and a ledger of what was lost."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sksketch._typing import Array
from sksketch.arrays.namespace import cast, full_precision, joined, like, precision, to_numpy
from sksketch.arrays.products import norm_error, squared_norm
from sksketch.arrays.random import stream
from sksketch.arrays.rounding import gamma
from sksketch.arrays.sparse import SparseRows
from sksketch.sketches import planning
from sksketch.sketches.directions.shrink.ledger import Ledger
from sksketch.sketches.directions.shrink.operand import DenseOperand
from sksketch.sketches.directions.shrink.rules import RULES, Losses
from sksketch.sketches.directions.shrink.solvers import SOLVERS, Operand, Task
from sksketch.sketches.directions.shrink.sparse_operand import SparseOperand

N_PROBES = 8


@dataclass(frozen=True)
class Settings:
    """Settings of a shrink.

    ``n_reads`` is 0 for a shrink that stays, and for one that is made to read a sketch the number
    of moments, from one shrink to the next, at which that could happen.
    """

    route: str
    rule: str
    fraction: float
    max_sketch_size: int
    tol: float | None
    certify: bool
    failure_probability: float
    seed: int
    probes: bool
    n_reads: int = 0

    def shrink(self, eigenvalues: Array, size: int, losses: Losses) -> tuple[Array, float]:
        """Return the eigenvalues to keep and the cut."""
        return RULES[self.rule](eigenvalues, size, self.fraction, losses)

    def chance(self, index: int) -> float:
        """Return the probability with which the verification of shrink ``index`` may fail.

        All shrinks and all reads of a stream together have less than the whole (pi^2 / 12 of it).
        """
        return shared_chance(self.failure_probability, index, self.n_reads)


def shared_chance(failure_probability: float, index: int, n_reads: int) -> float:
    """Return the share of verification ``index``, or of one of ``n_reads`` reads before it.

    The two together have 1 / (2 index^2) of the whole: the shrink 7/8 of that, and the reads the
    rest, which counts twice where rows of two kinds can wait.

    >>> shared_chance(1.0, 1, 0) + 2 * 100 * shared_chance(1.0, 1, 100)
    0.5
    """
    part = failure_probability / (2 * index**2)
    return part / (16 * n_reads) if n_reads else part * 7 / 8


@dataclass(frozen=True, eq=False)
class ShrinkState:
    """Kept rows (orthogonal, heaviest first) and the ledger of what was lost.

    Parameters
    ----------
    matrix : array of shape (rank, n_features)
        B, in float64 whatever the precision of the rows: what a shrink adds to the kept rows is
        small against them, and in single precision it would be rounded away.
    eigenvalues : array of shape (rank,)
        Squared lengths of the rows of B, in float64.
    ledger : Ledger
        The loss A'A - B'B in numbers.
    sketch_size : int
        Rows to keep; grows where a tolerance asks for it.
    graded : bool
        Whether the spectrum has shown more range than a Gram matrix resolves.
    image : array of shape (n_probes, n_features) or None
        ``G A'A`` for the probes G, if they are kept.
    probe_seed : int
        Seed of those probes.
    components : array of shape (rank, n_features) or None
        The rows of B at unit length, where they are known to be orthonormal.
    skew : float
        Bound on the norm of B B' less the diagonal matrix of ``eigenvalues``.
    """

    matrix: Array
    eigenvalues: Array
    ledger: Ledger
    sketch_size: int
    graded: bool = False
    image: Array | None = None
    probe_seed: int = 0
    components: Array | None = None
    skew: float = 0.0

    @classmethod
    def empty(cls, n_features: int, sketch_size: int) -> ShrinkState:
        """Return the state of no rows."""
        return cls(np.zeros((0, n_features)), np.zeros(0), Ledger(), sketch_size)

    @functools.cached_property
    def lost_mass(self) -> float:
        """The trace of A'A - B'B."""
        return max(self.ledger.squared_norm - squared_norm(self.matrix), 0.0)

    @property
    def mass_error(self) -> float:
        """Bound on the error of `lost_mass`."""
        kept = self.ledger.squared_norm - self.lost_mass
        return self.ledger.mass_error + norm_error(self.matrix) * abs(kept)

    @property
    def upper(self) -> float:
        """Certified bound on the largest eigenvalue of A'A - B'B."""
        surely = self.lost_mass + self.mass_error
        return min(self.ledger.shrinkage, surely) + self.ledger.allowance

    def scaled(self, factor: float) -> ShrinkState:
        """Return the state with the weight of every row multiplied by ``factor``."""
        if factor == 1.0:
            return self
        kept = float(self.eigenvalues.sum()) + self.skew
        # Of the power and its root, and of the product.
        rounding = gamma(16) * factor * kept
        return replace(
            self,
            matrix=self.matrix * float(np.sqrt(factor)),
            eigenvalues=self.eigenvalues * factor,
            ledger=self.ledger.scaled(factor).allowing(rounding),
            image=None if self.image is None else self.image * factor,
            skew=self.skew * factor + rounding,
        )

    def allowing(self, amount: float) -> ShrinkState:
        """Return the state with more allowed for rounding."""
        return replace(self, ledger=self.ledger.allowing(amount)) if amount else self

    def with_losses_of(self, other: ShrinkState) -> ShrinkState:
        """Return this state with all of ``other`` added, except its rows."""
        image = self.image
        if other.image is not None:
            # The image of other's kept rows comes again when those rows are taken in.
            kept = probe_image(other.matrix, other.probe_seed)
            image = (0.0 if image is None else image) + other.image - kept
        # ... and so does their squared norm.
        squares = squared_norm(other.matrix)
        kept_norm = Ledger(squared_norm=-squares, mass_error=norm_error(other.matrix) * squares)
        return replace(
            self,
            ledger=self.ledger + other.ledger + kept_norm,
            sketch_size=min(self.sketch_size, other.sketch_size),
            graded=self.graded or other.graded,
            image=image,
            probe_seed=other.probe_seed,
        )

    def with_rows(self, components: Array, eigenvalues: Array, rows: Ledger) -> ShrinkState:
        """Return this state of nothing but losses with kept rows and their ledger added."""
        matrix = np.sqrt(eigenvalues)[:, None] * components
        image = self.image
        if image is not None:
            image = image + probe_image(matrix, self.probe_seed)
        return replace(
            self,
            matrix=matrix,
            eigenvalues=eigenvalues,
            ledger=self.ledger + rows,
            image=image,
            components=components,
            skew=0.0,
        )

    def beside(self, rows: Array) -> ShrinkState:
        """Return this state with its rows where ``rows`` are."""
        matrix = like(self.matrix, rows)
        return self if matrix is self.matrix else replace(self, matrix=matrix)

    def without_rows(self) -> ShrinkState:
        """Return this state with no kept rows, as when all of them are zero."""
        return replace(self, matrix=self.matrix[:0], eigenvalues=self.eigenvalues[:0], skew=0.0)

    def without(self, energy: float) -> ShrinkState:
        """Return this state after rows of at most that energy were dropped."""
        if energy == 0.0:
            return self
        lost = Ledger(shrinkage=energy, mass_error=energy)
        return replace(self, ledger=self.ledger + lost)

    def numbers(self) -> dict[str, Any]:
        """Return the plain values of the state, for a saved state."""
        ledger = {f"ledger.{name}": value for name, value in self.ledger.as_dict().items()}
        return ledger | {
            "size": self.sketch_size,
            "graded": self.graded,
            "probe_seed": self.probe_seed,
            "skew": self.skew,
        }

    def arrays(self) -> dict[str, Array]:
        """Return the arrays of the state, for a saved state."""
        matrix = np.array(to_numpy(self.matrix))
        arrays = {"matrix": matrix, "eigenvalues": self.eigenvalues.copy()}
        return arrays if self.image is None else arrays | {"image": self.image.copy()}

    @classmethod
    def from_plain(cls, meta: Mapping[str, Any], arrays: Mapping[str, Array]) -> ShrinkState:
        """Build the state that `numbers` and `arrays` came from."""
        start = "ledger."
        ledger = {n.removeprefix(start): x for n, x in meta.items() if n.startswith(start)}
        matrix = np.asarray(arrays["matrix"])
        largest = float(arrays["eigenvalues"].max(initial=0.0))
        # Earlier releases kept rows in the precision of what came in.
        skew = gamma(sum(matrix.shape), precision(matrix)) * largest
        return cls(
            cast(matrix, np.float64),
            arrays["eigenvalues"],
            Ledger.from_dict(ledger),
            sketch_size=meta["size"],
            graded=meta["graded"],
            image=arrays.get("image"),
            probe_seed=meta["probe_seed"],
            skew=meta.get("skew", skew),
        )


def probes(rows: Array | SparseRows, seed: int) -> Array:
    """Return the fixed standard normal probes for rows as wide as these."""
    G = stream(seed, "probes").standard_normal((N_PROBES, rows.shape[1]))
    return G.astype(precision(rows))


def probe_image(rows: Array | SparseRows, seed: int) -> Array:
    """Return ``G rows' rows`` for the probes G, in float64."""
    G = probes(rows, seed)
    if isinstance(rows, SparseRows):
        columns = np.ascontiguousarray(G.T, dtype=np.float64)
        return to_numpy(rows.normal(like(columns, rows.sparse.data))).T
    image = (like(G, rows) @ rows.T) @ rows
    return np.asarray(to_numpy(image), dtype=np.float64)


def _expected(held: ShrinkState, gained: float) -> tuple[float, float]:
    """Return the largest eigenvalue and the cut to expect of energy like that before."""
    before = held.ledger.squared_norm
    # After a merge, a squared norm that is all rounding may be below zero.
    if before <= 0.0 or not len(held.eigenvalues):
        return 0.0, np.inf
    share = gained / before
    return float(held.eigenvalues[0]) * (1.0 + share), held.ledger.kept_loss * share


def _task(
    held: ShrinkState, operand: Operand, settings: Settings, gained: float, kept: float
) -> Task:
    """Return the shrink to do, of rows with energy ``gained`` on top of ``kept``."""
    acceptable = np.inf
    if settings.tol is not None:
        spent = held.ledger.shrinkage
        acceptable = max(settings.tol * (held.ledger.squared_norm + gained) - spent, 0.0)
    index = held.ledger.n_shrinks + 1
    likely_largest, likely_cut = _expected(held, gained)
    return Task(
        operand=operand,
        shrink=settings.shrink,
        sketch_size=held.sketch_size,
        max_sketch_size=max(settings.max_sketch_size, held.sketch_size),
        acceptable_loss=acceptable,
        graded=held.graded,
        certify=settings.certify,
        failure_probability=settings.chance(index),
        seed=settings.seed,
        index=index,
        largest=likely_largest,
        cut=likely_cut,
        before=held.ledger,
        lost_before=max(held.ledger.squared_norm - kept, 0.0),
    )


def compress(
    held: ShrinkState,
    rows: Array,
    sparse: SparseRows | None,
    settings: Settings,
    scratch: Callable[[int], Array],
) -> ShrinkState:
    """Return the state after ``rows`` and ``sparse`` as well; changes nothing it was given.

    ``scratch(n)`` lends room for n rows in single precision.
    """
    # Sparse rows decide where the work is done, because they do not move.
    rows = rows if sparse is None else like(rows, sparse.sparse.data)
    held = held.beside(rows)
    tiles = [tile for tile in (rows, sparse) if tile is not None and len(tile)]
    gained = squared_norm(rows) + (0.0 if sparse is None else sparse.squared_norm)
    kept = squared_norm(held.matrix)
    total = kept + gained
    if total == 0.0:
        # Around a center far away, what is left of squared norms may be rounding.
        unknown = 0.0 if sparse is None else sparse.squared_norm_error
        return held.without_rows().without(unknown)
    operand: Operand
    if sparse is None:
        operand = DenseOperand(held.matrix, held.eigenvalues, held.skew, rows, total, scratch)
    else:
        dense = joined([held.matrix, cast(rows, np.float64)]) if len(rows) else held.matrix
        operand = SparseOperand(dense, sparse, total)
    task = _task(held, operand, settings, gained, kept)
    few = planning.exact_is_cheap(
        operand.n_rows, operand.n_features, held.sketch_size, sparse is not None
    )
    with full_precision(rows):
        shrunk = SOLVERS["exact" if few else settings.route](task)
    mass_error = norm_error(rows) * gained
    if sparse is not None:
        mass_error += sparse.squared_norm_error
    step = Ledger(
        squared_norm=gained,
        shrinkage=shrunk.loss_bound,
        kept_loss=shrunk.cut,
        largest_loss=shrunk.loss,
        floor=shrunk.floor,
        allowance=shrunk.allowance,
        # That of the shrink and of all reads before it.
        failure_probability=settings.failure_probability / (2 * task.index**2)
        if shrunk.luck
        else 0.0,
        n_shrinks=1,
        measured=shrunk.measured,
        mass_error=mass_error,
    )
    image = held.image
    if settings.probes:
        images = [probe_image(tile, settings.seed) for tile in tiles]
        image = np.sum(images if image is None else [image, *images], axis=0)
    return ShrinkState(
        shrunk.matrix,
        shrunk.eigenvalues,
        held.ledger + step,
        sketch_size=max(held.sketch_size, shrunk.sketch_size),
        graded=shrunk.graded,
        image=image,
        probe_seed=settings.seed,
        skew=shrunk.skew,
    )
