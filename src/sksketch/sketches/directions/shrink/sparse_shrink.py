"""The verified shrink of a sparse buffer: Algorithms 1 and 3 to 6 of Ghashami et al. (2016).

The paper's l is ``sketch_size + 1``: it computes l directions and zeroes the last. With A the
rows of the buffer, Z orthonormal and P = Z'A, a shrink of the few dense rows P is a shrink of A
that never overshoots, B'B <= P'P <= A'A, whatever Z is. How much it lost is another matter, and
that is what the power method on A'A - B'B verifies.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from sksketch._typing import Array
from sksketch.arrays.linalg import nystrom, orthonormal_columns
from sksketch.arrays.namespace import like, namespace
from sksketch.arrays.products import squared_norm
from sksketch.arrays.random import stream
from sksketch.arrays.rounding import gamma
from sksketch.arrays.sparse import SparseRows, whole_lines
from sksketch.sketches.directions.shrink.compression import (
    Settings,
    ShrinkState,
    compress,
    probe_image,
    shared_chance,
)
from sksketch.sketches.directions.shrink.sparse_operand import DIGEST, rows_digest

# A verified shrink has a loss of at most mass / (SPARSE_SHRINK_LOSS * l) in any direction, where
# mass is all that it lost: Ghashami et al. (2016), section 4.1, where it is alpha.
SPARSE_SHRINK_LOSS = 6 / 41

# A loss below this part of all energy is rounding, and its test would divide noise by noise.
NEGLIGIBLE = 1e-11

# Where no try was accepted, at most this many rows are shrunk through their Gram matrix.
EXACT_ROWS = 1024

# Rows are divided by their squared norm; of a smaller one the inverse would overflow.
SMALLEST_TOTAL = 1e-300

# Relative rounding of a product, with a wide margin.
ROUNDING = 1e-12


class Verdict(NamedTuple):
    """Verdict of the power method on the largest eigenvalue of a matrix."""

    accepted: bool
    estimate: float
    upper: float


@dataclass(frozen=True)
class SparseTask:
    """One flush: the rows, how many to keep, how hard to try.

    ``n_tries`` is the number of tries before this flush, over the whole stream: it addresses
    the random numbers and divides the failure probability. ``n_reads`` is as in `Settings`.
    """

    rows: SparseRows
    sketch_size: int
    n_power_iter: int
    boosted: bool
    max_tries: int
    failure_probability: float
    seed: int
    n_tries: int
    probes: bool = False
    n_reads: int = 0


def simultaneous_iteration(
    rows: SparseRows, n_directions: int, n_power_iter: int, rng: np.random.Generator
) -> tuple[Array, float]:
    """Return P = Z'A, where the columns of Z are an orthonormal basis of A (A'A)^q G.

    Beside it comes how far rounding can have taken P'P above A'A.

    Algorithm 1 with G standard normal and q = ``n_power_iter``. Orthonormalized in every
    round, since the printed power would leave nothing of all but the leading directions. Z has
    a row for each row of A and is never formed: with V an orthonormal basis of (A'A)^q G and
    W = A'A V, the basis Z = A V (V'W)^(-1/2) has Z'A = (V'W)^(-1/2) W'.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> rows = SparseRows.plain(sp.csr_array(np.diag([3.0, 2.0, 0.0])))
    >>> P, excess = simultaneous_iteration(rows, 2, 1, np.random.default_rng(0))
    >>> (P.T @ P).round(9) + 0.0
    array([[9., 0., 0.],
           [0., 4., 0.],
           [0., 0., 0.]])
    """
    total, n_features = max(rows.squared_norm, SMALLEST_TOTAL), rows.shape[1]
    width = min(whole_lines(n_directions), n_features)
    V = rng.standard_normal((n_features, width))
    V = like(V, rows.sparse.data)
    for _ in range(n_power_iter):
        # Divided by its trace A'A has norm at most one: squares neither overflow nor vanish.
        V = orthonormal_columns(rows.normal(V / total))
    V = orthonormal_columns(V) if n_power_iter == 0 else V
    W = rows.normal(V / total)
    P, excess = nystrom(V, W, math.sqrt(width) * product_error(rows) / total)
    return math.sqrt(total) * P, excess * total


def product_error(rows: SparseRows) -> float:
    """Bound the error of a product of A'A, or of A'A - B'B, with a vector of length one."""
    return 4.0 * gamma(sum(rows.shape) + rows.shape[1]) * rows.all_energy


def sparse_shrink(
    rows: SparseRows, sketch_size: int, n_power_iter: int, rng: np.random.Generator
) -> ShrinkState:
    """Return ``sketch_size`` rows B with B'B <= A'A: Algorithm 3.

    The ledger is about P, so its shrinkage is the cut and says nothing of what P missed.
    """
    P, excess = simultaneous_iteration(rows, sketch_size + 1, n_power_iter, rng)
    return dense_shrink(ShrinkState.empty(P.shape[1], sketch_size), P).allowing(excess)


def dense_shrink(held: ShrinkState, rows: Array, probe_seed: int | None = None) -> ShrinkState:
    """Return the state after dense rows as well, shrunk exactly: Algorithm 5."""
    return compress(held, rows, None, _exact(probe_seed), _no_scratch)


def verify_spectral(
    apply: Callable[[Array], Array],
    n_features: int,
    failure_probability: float,
    rng: np.random.Generator,
) -> Verdict:
    """Test by the power method whether a positive semidefinite matrix C has norm at most one.

    Algorithm 6. Surely accepts if the norm is at most 1, and rejects with probability at least
    ``1 - failure_probability`` if it is at least 2 (Lemma 4.1). The start x is uniform on the
    sphere and v the leading eigenvector; then |<v, x>| is below ::

        t = failure_probability * sqrt(pi / (2 * n_features))

    with at most that probability, and ceil(log2(1 / t)) steps are enough. The same event gives
    the bound ``(|C^p x| / t) ** (1 / p)`` on the norm after p steps, accepted or not.

    Parameters
    ----------
    apply : callable
        Maps a vector to its product with C.
    n_features : int
        Its length.
    failure_probability : float
        For the rejection and for ``upper``, which fail together.
    rng : Generator
        Independent of C.

    Examples
    --------
    >>> C = np.diag([2.0, 0.5, 0.5])
    >>> verdict = verify_spectral(lambda x: C @ x, 3, 0.01, np.random.default_rng(0))
    >>> verdict.accepted, bool(1.99 < verdict.estimate <= 2.0 <= verdict.upper < 4.0)
    (False, True)
    """
    least = failure_probability * math.sqrt(math.pi / (2 * n_features))
    n_steps = max(1, math.ceil(-math.log2(least)))
    x = rng.standard_normal(n_features)
    x /= np.linalg.norm(x)
    log_norm = length = 0.0
    for _ in range(n_steps):
        x = apply(x)
        length = float(namespace(x).linalg.vector_norm(x))
        if length == 0.0:
            return Verdict(True, 0.0, math.inf)
        log_norm += math.log(length)
        x /= length
    upper = math.exp((log_norm - math.log(least)) / n_steps)
    # A norm of one must pass, whichever way its products round.
    return Verdict(log_norm <= ROUNDING * n_steps, length, upper)


def boosted_sparse_shrink(task: SparseTask) -> tuple[ShrinkState, int]:
    """Shrink until a try is verified; return the rows, their ledger and the tries so far.

    Algorithm 4. A rejected try is repeated with fresh directions and twice the iterations. If
    none of ``max_tries`` is accepted, few rows are shrunk exactly; of many the last try is
    kept, with the bound that its own test gives.
    """
    rows, total = task.rows, task.rows.squared_norm
    n_power_iter, spent, number = task.n_power_iter, 0.0, task.n_tries
    # Whoever made the rows could not know what verifies them.
    directions = stream(task.seed, "digest", number).standard_normal((DIGEST, rows.shape[1]))
    found = rows_digest(rows, directions)
    noise = product_error(rows)
    for number in range(task.n_tries + 1, task.n_tries + task.max_tries + 1):
        rng = stream(task.seed, "sparse directions", number)
        shrunk = sparse_shrink(rows, task.sketch_size, n_power_iter, rng)
        lost = max(total - squared_norm(shrunk.matrix), 0.0) + 2.0 * rows.squared_norm_error
        if not task.boosted or lost <= max(NEGLIGIBLE * total, SMALLEST_TOTAL):
            return _flushed(task, shrunk, lost, shrunk.ledger.kept_loss, 0.0), number
        # The loss that the lemma allows; C is what was lost, over half of that.
        allowed = lost / (SPARSE_SHRINK_LOSS * (task.sketch_size + 1))
        # Over all tries, and all reads between them, these sum to less than the whole.
        verdict = verify_spectral(
            _loss_products(rows, shrunk.matrix, allowed / 2),
            rows.shape[1],
            shared_chance(task.failure_probability, number, task.n_reads),
            stream(task.seed, f"sparse verification of {found.hex()}", number),
        )
        spent += task.failure_probability / (2 * number**2)
        if verdict.accepted:
            break
        n_power_iter = 2 * n_power_iter + 1
    else:
        if len(rows) <= EXACT_ROWS:
            return _shrunk_exactly(task), number
    bound = min(verdict.upper * allowed / 2 + noise, lost)
    estimate = min(max(verdict.estimate * allowed / 2, shrunk.ledger.kept_loss), bound)
    # The lost mass is a bound without any luck.
    return _flushed(task, shrunk, bound, estimate, spent if bound < lost else 0.0), number


def _flushed(
    task: SparseTask, shrunk: ShrinkState, bound: float, estimate: float, spent: float
) -> ShrinkState:
    """Return what a flush kept, with a ledger that is about all rows of the buffer."""
    rows = task.rows
    ledger = replace(
        shrunk.ledger,
        squared_norm=rows.squared_norm,
        shrinkage=bound,
        largest_loss=estimate,
        failure_probability=spent,
        n_shrinks=0,
        mass_error=rows.squared_norm_error,
    )
    return replace(
        shrunk,
        ledger=ledger,
        image=probe_image(rows, task.seed) if task.probes else None,
        probe_seed=task.seed,
    )


def _shrunk_exactly(task: SparseTask) -> ShrinkState:
    """Return the shrink through the Gram matrix of the rows, which needs no verification."""
    rows = task.rows
    empty = ShrinkState.empty(rows.shape[1], task.sketch_size)
    empty = empty.beside(like(empty.eigenvalues, rows.sparse.data))
    shrunk = compress(empty, empty.matrix, rows, _exact(None), _no_scratch)
    return _flushed(task, shrunk, shrunk.ledger.shrinkage, shrunk.ledger.kept_loss, 0.0)


def _loss_products(rows: SparseRows, matrix: Array, scale: float) -> Callable[[Array], Any]:
    """Return x -> (A'A - B'B) x / scale."""

    def apply(x: Array) -> Any:
        x = like((x / scale)[None], matrix)
        image: Any = rows.combined(rows.products(x)) - (x @ matrix.T) @ matrix
        return image[0]

    return apply


def _exact(probe_seed: int | None) -> Settings:
    return Settings(
        route="exact",
        rule="uniform",
        fraction=1.0,
        max_sketch_size=0,
        tol=None,
        certify=False,
        failure_probability=1.0,
        seed=0 if probe_seed is None else probe_seed,
        probes=probe_seed is not None,
    )


def _no_scratch(n_rows: int) -> Array:
    """Refuse to lend room in single precision: exact shrinks need none."""
    raise AssertionError
