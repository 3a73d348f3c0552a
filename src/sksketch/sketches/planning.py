"""The one policy behind every "auto": exact or sketched, by which solver, and the reason.

A'A itself has no error but roundings, and takes memory and time that grow with the square of
the columns. `exact_or_sketch` decides between the two for all estimators, `choose` for a sketch
of its own, and nothing else in the package has a threshold for it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from sksketch.sketches.base import megabytes

SOLVERS = ("auto", "exact", "block", "covariance")

# Rows between shrinks: of the exact solver, as multiples of sketch_size, and at least ...
EXACT_MULTIPLE, EXACT_ROWS = 2, 64
# ... and of the block solver, where more rows mean fewer shrinks and less error.
BLOCK_MULTIPLES, BLOCK_BYTES = (20, 80), 28 << 20
# On a device the small eigenproblem of a shrink is the wall, so as many rows share it as fit.
DEVICE_MULTIPLE, DEVICE_BYTES = 128, 2 << 30
# Where even the fewest rows would fill this, the exact solver's smaller buffer is used.
LARGEST_BUFFER = 1 << 30

# Below this many sketch sizes of dense rows the exact solver is as cheap as the block one.
EXACT_BELOW = 4
# Sparse rows between shrinks: stored entries for each entry of the sketch and at least; rows for
# each column and at least.
SPARSE_ENTRIES, FEWEST_ENTRIES = 1, 1 << 20
SPARSE_ROWS, FEWEST_ROWS = 16, 1 << 17

# Up to this many columns A'A is as fast as any sketch, whatever the size of that.
FEW_COLUMNS = 512
# Up to this many columns per kept row it costs at most twice the time of a sketch.
COVARIANCE_COLUMNS = 12


class Policy(NamedTuple):
    """The worth of exactness: limits up to which A'A is kept instead of a sketch."""

    # Columns for each row that a sketch would keep, beside `FEW_COLUMNS`.
    columns_per_row: float
    # Memory of the exact matrices.
    largest_bytes: int


# Leading directions are known well from a sketch, so that A'A must not cost more than twice its
# time. Coefficients and components of kernels depend on small eigenvalues, which a sketch loses:
# A'A is taken wherever it fits. For pairs of views the other way is many passes of small steps.
POLICIES = {
    "directions": Policy(COVARIANCE_COLUMNS, LARGEST_BUFFER),
    "coefficients": Policy(math.inf, 64 << 20),
    "kernel components": Policy(math.inf, 32 << 20),
    "kernel pairs": Policy(math.inf, 512 << 20),
}


class Decision(NamedTuple):
    """Whether A'A is accumulated as it is, and why."""

    exact: bool
    reason: str


def exact_or_sketch(
    purpose: str,
    n_features: int,
    sketch_size: int | None = None,
    *,
    n_bytes: int | None = None,
    budget: float = math.inf,
) -> Decision:
    """Decide between A'A itself and a sketch of it.

    Parameters
    ----------
    purpose : {"directions", "coefficients", "kernel components", "kernel pairs"}
        What is read from it.
    n_features : int
        Columns.
    sketch_size : int, default=None
        Rows that a sketch would keep; without a number only memory counts.
    n_bytes : int, default=None
        Memory of the exact matrices; None for one square matrix of the columns.
    budget : float, default=inf
        Memory that may be taken at most, beside the limit of the purpose.

    Returns
    -------
    Decision
        The route and its reason.

    Examples
    --------
    >>> exact_or_sketch("directions", 1_000, 32)
    Decision(exact=False, reason='1,000 columns are more than 12 for each of the 32 rows kept')
    >>> exact_or_sketch("coefficients", 1_000, 32)
    Decision(exact=True, reason="A'A of 1,000 columns takes 8 MB")
    """
    policy = POLICIES[purpose]
    n_bytes = 8 * n_features**2 if n_bytes is None else n_bytes
    takes = f"A'A of {n_features:,} columns takes {megabytes(n_bytes)}"
    limit = min(policy.largest_bytes, budget)
    if n_bytes > limit:
        return Decision(False, f"{takes}, more than {megabytes(limit)}")
    per_row = policy.columns_per_row
    if sketch_size is None or n_features <= max(FEW_COLUMNS, per_row * sketch_size):
        return Decision(True, takes)
    kept = f"for each of the {sketch_size:,} rows kept"
    return Decision(False, f"{n_features:,} columns are more than {per_row:g} {kept}")


def choose(solver: str, n_features: int, sketch_size: int) -> str:
    """Return the route for rows of that width: "covariance", "exact" or "block".

    >>> choose("auto", 500, 64), choose("auto", 4096, 128), choose("auto", 10_000, 4)
    ('covariance', 'block', 'exact')
    """
    if solver != "auto":
        return solver
    # A sketch that was asked for is one, unless it would keep nearly as much as A'A.
    if n_features <= COVARIANCE_COLUMNS * sketch_size:
        return "covariance"
    if 8 * n_features * BLOCK_MULTIPLES[0] * sketch_size > LARGEST_BUFFER:
        return "exact"
    costs = operations_per_row(n_features, sketch_size)
    return min(costs, key=costs.__getitem__)


def operations_per_row(n_features: int, sketch_size: int) -> dict[str, float]:
    """Return the cost of one row by either solver, in flops of a matrix product.

    The exact solver spends 7 sketch_size * n_features on products, and on each
    eigendecomposition of 3 sketch_size columns the time of 20 times its cube. The block solver
    makes two products with sketch_size + 8 directions, and half as many again to verify.
    """
    return {
        "exact": 7.0 * sketch_size * n_features + 270.0 * sketch_size**2,
        "block": 6.0 * (sketch_size + 8) * n_features,
    }


def rows_between_shrinks(route: str, sketch_size: int, row_bytes: int, device: bool = False) -> int:
    """Return how many new rows the buffer takes before it shrinks."""
    if route == "block":
        fewest, most = (multiple * sketch_size for multiple in BLOCK_MULTIPLES)
        if device:
            return max(fewest, min(DEVICE_MULTIPLE * sketch_size, DEVICE_BYTES // row_bytes))
        return max(fewest, min(most, BLOCK_BYTES // row_bytes))
    return max(EXACT_MULTIPLE * sketch_size, min(EXACT_ROWS, BLOCK_BYTES // row_bytes))


def sparse_route(solver: str) -> str:
    """Return the route of blocks with sparse rows; only columns by the thousand cost much."""
    return "exact" if solver == "exact" else "block"


def sparse_limits(route: str, sketch_size: int, n_features: int) -> tuple[int, int]:
    """Return how many sparse rows, and stored entries in them, wait before a shrink."""
    entries = max(SPARSE_ENTRIES * sketch_size * n_features, FEWEST_ENTRIES)
    if route == "exact":
        affordable = int(_affordable_gram(n_features, sketch_size))
        return max(EXACT_MULTIPLE * sketch_size, EXACT_ROWS, affordable), entries
    return max(SPARSE_ROWS * n_features, FEWEST_ROWS), entries


def exact_is_cheap(n_rows: int, n_features: int, sketch_size: int, sparse: bool) -> bool:
    """Return whether the exact solver costs no more, since a buffer has few rows.

    Sparse rows by the hundred and columns by the million: their Gram matrix is small, while
    the block solver would orthonormalize vectors as long as a row.

    >>> exact_is_cheap(300, 10**6, 32, sparse=True), exact_is_cheap(300, 10**3, 32, sparse=True)
    (True, False)
    """
    if sparse:
        return n_rows <= _affordable_gram(n_features, sketch_size)
    return n_rows <= EXACT_BELOW * sketch_size


def _affordable_gram(n_features: int, sketch_size: int) -> float:
    """Return the rows whose eigenproblem costs what the block solver spends on columns.

    The time of 20 times the cube of the rows, against six products of that many directions
    with each other.
    """
    return float((0.6 * n_features * (sketch_size + 8) ** 2) ** (1 / 3))


def acceptable_loss(tol: float | None, route: str, correction: str | float) -> float | None:
    """Return how much loss an error bound allows, for the growth of a sketch."""
    if tol is None or correction != "half":
        return tol
    # The block solver's half read-out is not quite in the middle; see readout.py.
    return tol * (2.0 if route == "exact" else 1.5)


def describe_sparse(solver: str, n_features: int, sketch_size: int, max_entries: int) -> str:
    """Return one sentence on blocks of sparse rows: the solver, the time and the memory.

    >>> describe_sparse("auto", 1000, 10, 1 << 20)[:69]
    'FrequentDirections(10) on 1000 columns: shrinks blocks of sparse rows'
    """
    exact = sparse_route(solver) == "exact"
    how = "exactly (deterministic bound)" if exact else "by verified subspace iteration "
    how += "" if exact else "(probabilistic bound)"
    # Entries with their columns, the kept rows, and three sets of directions.
    n_bytes = 12 * max_entries + 8 * n_features * (sketch_size + 3 * (sketch_size + 16))
    return (
        f"FrequentDirections({sketch_size}) on {n_features} columns: shrinks blocks of sparse rows "
        f"{how}, in time proportional to their non-zeros and in about {megabytes(n_bytes)}."
    )


def describe(
    route: str, solver: str, n_features: int, sketch_size: int, grown: int, buffer_bytes: int
) -> str:
    """Return one sentence: what was picked, why, and the memory it will use."""
    name = f"FrequentDirections({sketch_size}) on {n_features} columns"
    if grown > sketch_size:
        name += f", grown to {grown} rows"
    why = f"as asked (solver={solver!r})"
    if route == "covariance":
        if solver == "auto":
            why = f"since {n_features} columns are few for {sketch_size} rows"
        memory = megabytes(8.0 * n_features * (n_features + 512))
        return f"{name}: does not sketch but accumulates A'A itself, {why}, in {memory}."
    if solver == "auto":
        costs = operations_per_row(n_features, sketch_size)
        other = "block" if route == "exact" else "exact"
        why = f"an estimated {costs[other] / costs[route]:.2g} times the speed of {other!r}"
        if costs[other] < costs[route]:
            why = f"because the buffer of {other!r} would be too large"
    how = (
        "shrinks exactly (deterministic bound)"
        if route == "exact"
        else "shrinks large blocks by verified subspace iteration (probabilistic bound)"
    )
    # Beside the buffer: a copy of it, or one in single precision and the projections.
    working = (2.0 if route == "exact" else 1.7) * buffer_bytes
    return f"{name}: {how}, {why}, in about {megabytes(working)}."
