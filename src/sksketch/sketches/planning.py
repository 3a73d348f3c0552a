"""Which route a sketch takes, by what it costs, and the sentence that says so."""

from __future__ import annotations

from sksketch.sketches.base import megabytes

SOLVERS = ("auto", "exact", "block", "covariance")

# Rows between shrinks: of the exact solver, as multiples of sketch_size or at least so many ...
EXACT_MULTIPLE, EXACT_ROWS = 2, 64
# ... and of the block solver, where more rows mean fewer shrinks and less error.
BLOCK_MULTIPLES, BLOCK_BYTES = (20, 48), 24 << 20
# Where even the fewest rows would fill this, the exact solver's smaller buffer is used.
LARGEST_BUFFER = 1 << 30

# Below this many columns per kept row, A'A costs about as much as a sketch and has no error.
COVARIANCE_COLUMNS = 12


def choose(solver: str, n_features: int, sketch_size: int) -> str:
    """Return the route for rows of that width: "covariance", "exact" or "block".

    >>> choose("auto", 500, 64), choose("auto", 4096, 128), choose("auto", 10_000, 4)
    ('covariance', 'block', 'exact')
    """
    if solver != "auto":
        return solver
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


def rows_between_shrinks(route: str, sketch_size: int, row_bytes: int) -> int:
    """Return how many new rows the buffer takes before it shrinks."""
    if route == "block":
        fewest, most = (multiple * sketch_size for multiple in BLOCK_MULTIPLES)
        return max(fewest, min(most, BLOCK_BYTES // row_bytes))
    return max(EXACT_MULTIPLE * sketch_size, min(EXACT_ROWS, BLOCK_BYTES // row_bytes))


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
        return f"{name}: does not sketch but accumulates A'A exactly, {why}, in {memory}."
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
