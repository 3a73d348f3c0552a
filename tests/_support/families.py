"""Families of rows that were built to break a certificate.

Each is a function of a random generator, a number of rows and a number of columns. Rows are float64
and within what a sketch takes: squared lengths below 1e300.
"""

from __future__ import annotations

import numpy as np

# Entries that a row may have, so that its square is a number of that precision. In float32 kept
# rows are stored, so what is squared has to be far from its smallest numbers as well.
LARGEST = {"float64": 1e148, "float32": 1e15}
SMALLEST = {"float64": 1e-140, "float32": 1e-15}
LARGEST_OFFSET = 1e12


def geometric(rng, n, d):
    """Columns that fall by a factor: with 0.5 every digit of float64 is in use."""
    return rng.standard_normal((n, d)) * rng.choice([0.3, 0.5, 0.7, 0.9, 1.0]) ** np.arange(d)


def low_rank(rng, n, d):
    rank = int(rng.integers(1, 4))
    return rng.standard_normal((n, rank)) @ rng.standard_normal((rank, d))


def axes(rng, n, d):
    """Unit vectors in turn, the worst case of the uniform rule."""
    return np.eye(d)[np.arange(n) % d] * (1.0 + 0.01 * rng.random((n, 1)))


def constant(rng, n, d):
    """One row again and again: no scatter, and no number that binary fractions have."""
    return np.tile(rng.choice([0.1, 0.2, 0.3, 0.7, 1 / 3, 1e3 / 7, 1e8 / 3], d), (n, 1))


def duplicates(rng, n, d):
    return rng.standard_normal((min(n, 3), d))[rng.integers(0, min(n, 3), n)]


def offset(rng, n, d):
    """Far from the origin, by up to 1e12 times the spread."""
    far = 10.0 ** rng.uniform(0, 12) * rng.choice([-1.0, 1.0], d)
    return far + rng.standard_normal((n, d)) * rng.uniform(0.3, 1.0) ** np.arange(d)


def seconds(rng, n, d):
    """A column of times since 1970 beside columns of small numbers."""
    rows = rng.standard_normal((n, d))
    rows[:, 0] = 1.7e9 + np.cumsum(rng.random(n))
    return rows


def graded_columns(rng, n, d):
    return rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-300, 0, d)


def units(rng, n, d):
    """Columns that depend on each other, each in a unit and from a zero of its own."""
    rows = rng.standard_normal((n, d)) @ (np.eye(d) + 0.3 * rng.standard_normal((d, d)))
    rows += rng.choice([0.0, 0.0, 3.0, 1e4], d)
    return rows * 10.0 ** rng.uniform(-3, 3, d)


def graded_rows(rng, n, d):
    span = rng.choice([2.0, 8.0, 60.0, 280.0])
    return rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-span, 0, (n, 1))


def heavy_tails(rng, n, d):
    return np.clip(rng.standard_t(1.2, (n, d)), -1e8, 1e8)


def sparse(rng, n, d):
    return rng.standard_normal((n, d)) * (rng.random((n, d)) < rng.choice([0.05, 0.2]))


def counts(rng, n, d):
    """Small whole numbers, of which float64 makes no errors."""
    return rng.poisson(0.7, (n, d)).astype(np.float64)


def breaker(rng, n, d):
    """A few strong directions, then one weaker one again and again: it defeats truncation."""
    strong = min(int(rng.integers(1, 5)), d)
    rows = np.zeros((n, d))
    rows[np.arange(n), np.minimum(np.arange(n), strong) % d] = 1.0
    rows[strong:] *= 0.99
    return rows


def drifting(rng, n, d):
    parts = [rng.standard_normal((25, 2)) @ rng.standard_normal((2, d)) for _ in range(n // 25 + 1)]
    return np.concatenate([part * (1 + i) for i, part in enumerate(parts)])[:n]


def near_rank(rng, n, d):
    """Directions just above what a Gram matrix resolves, and just below."""
    rank = min(n, d)
    s = np.concatenate([[1.0], 10.0 ** rng.uniform(-8.5, -6.5, rank - 1)])
    U = np.linalg.qr(rng.standard_normal((n, rank)))[0]
    V = (
        np.eye(d)[:rank]
        if rng.random() < 0.5
        else np.linalg.qr(rng.standard_normal((d, rank)))[0].T
    )
    return (U * s) @ V


def tiny_gains(rng, n, d):
    """One long row, then very short ones, each less than a rounding of it."""
    rows = np.zeros((n, d))
    eps = rng.choice([2.0**-23, 2.0**-52])
    rows[:, 0] = np.sqrt(eps * rng.uniform(0.2, 2.0) / rng.choice([1.0, 8.0, 64.0]))
    if d > 1 and rng.random() < 0.5:
        rows[1:, 1:] = rows[1:, :1] * rng.standard_normal((n - 1, d - 1))
    rows[0, 0] = 1.0
    return rows


def collinear(rng, n, d):
    base = rng.standard_normal((n, 1))
    return base + 10.0 ** rng.uniform(-9, -1) * rng.standard_normal((n, d))


def opposite(rng, n, d):
    """Rows and their negatives: a mean of zero that is only there in the end."""
    rows = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(0, 6)
    rows[1::2] = -rows[: 2 * (n // 2) : 2]
    return rows


def growing(rng, n, d):
    """Each row longer than all before it."""
    return rng.standard_normal((n, d)) * np.exp(rng.uniform(0.01, 0.2) * np.arange(n))[:, None]


def zeros(rng, n, d):
    rows = np.zeros((n, d))
    if rng.random() < 0.5:
        rows[rng.integers(n)] = rng.standard_normal(d)
    return rows


FAMILIES = {
    made.__name__.replace("_", " "): made
    for made in (
        *(geometric, low_rank, axes, constant, duplicates, offset, seconds, graded_columns),
        *(graded_rows, heavy_tails, sparse, counts, breaker, drifting, near_rank, tiny_gains),
        *(collinear, opposite, growing, zeros, units),
    )
}


def draw(rng, n, d, name=None):
    """Return the name of a family and rows of it, perhaps rescaled, sorted or partly zero."""
    name = name or list(FAMILIES)[rng.integers(len(FAMILIES))]
    rows = FAMILIES[name](rng, n, d)
    if rng.random() < 0.15:
        rows = rows * 10.0 ** rng.uniform(-130, 130)
    if rng.random() < 0.08:
        rows = rows[np.argsort(np.linalg.norm(rows / max(np.abs(rows).max(), 1e-300), axis=1))]
    if rng.random() < 0.08:
        rows = rows * (rng.random((n, 1)) < 0.7)
    return name, rows


def fitted(rows, dtype):
    """Return rows of a precision, brought into its range by a power of two if they are not."""
    largest = float(np.abs(rows).max(initial=0.0))
    low, high = SMALLEST[np.dtype(dtype).name], LARGEST[np.dtype(dtype).name]
    if 0 < largest < low or largest > high:
        rows = rows * 2.0 ** np.round(np.log2((1.0 if largest < low else high) / largest))
    return rows.astype(dtype)
