"""Matrices with known spectra, the tolerance of all comparisons, and strategies that draw both."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
from hypothesis import strategies as st

from sksketch.datasets import truncation_breaker

# Rounding moves an eigenvalue of A'A by a few units of the last place of the largest, in each of
# some hundred operations, and the dense oracle rounds as well: 1e-9 of the trace is far above both
# and far below any error that a sketch makes on purpose.
FLOAT64_RTOL = 1e-9

# In single precision the rows themselves are exact, but kept rows and components are rounded to
# 24 bits (6e-8 of the largest eigenvalue), once for every shrink.
FLOAT32_RTOL = 1e-6

# What the dense oracle itself rounds; for bounds that already allow for rounding.
ORACLE_RTOL = 1e-12


def rtol(X) -> float:
    """Return the tolerance relative to the trace of X'X."""
    return FLOAT32_RTOL if np.asarray(X).dtype == np.float32 else FLOAT64_RTOL


def atol(X) -> float:
    """Return the tolerance for eigenvalues of X'X: relative to its trace."""
    return rtol(X) * energy(X)


def energy(X) -> float:
    """Return the trace of X'X, in float64."""
    X = np.asarray(X, dtype=np.float64)
    return float(np.vdot(X, X))


def gram(X):
    """Return X'X in float64, whatever the precision of X."""
    X = np.asarray(X, dtype=np.float64)
    return X.T @ X


def tail(X, rank: int) -> float:
    """Return the squared distance of X from the nearest matrix of that rank."""
    s = np.linalg.svd(np.asarray(X, dtype=np.float64), compute_uv=False)
    return float((s[rank:] ** 2).sum())


def with_spectrum(singular_values, n_rows: int, n_features: int, seed: int = 0):
    """Return random rows with exactly these singular values (as many as fit)."""
    rng = np.random.default_rng(seed)
    s = np.asarray(singular_values, dtype=np.float64)[: min(n_rows, n_features)]
    U = np.linalg.qr(rng.standard_normal((n_rows, len(s))))[0]
    V = np.linalg.qr(rng.standard_normal((n_features, len(s))))[0]
    return (U * s) @ V.T


# Singular values, largest first, for a matrix with ``size`` of them.
SPECTRA: dict[str, Callable[[int], np.ndarray]] = {
    "flat": np.ones,
    "power law": lambda size: np.arange(1.0, size + 1) ** -0.75,
    "spiked": lambda size: np.where(np.arange(size) < 3, [10.0] * size, 1.0),
    "low rank": lambda size: np.where(np.arange(size) < 3, 1.0, 0.0),
    "geometric": lambda size: 0.7 ** np.arange(size),
    "graded": lambda size: np.geomspace(1.0, 1e-12, max(size, 2))[:size],
    "zero": np.zeros,
}


def _heavy_tails(n_rows: int, n_features: int, seed: int = 0):
    return np.random.default_rng(seed).standard_t(1.5, (n_rows, n_features))


def _duplicates(n_rows: int, n_features: int, seed: int = 0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((5, n_features))[rng.integers(0, 5, n_rows)]


def _with_zero_rows(n_rows: int, n_features: int, seed: int = 0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n_rows, n_features)) * (rng.random((n_rows, 1)) < 0.5)


def _large_mean(n_rows: int, n_features: int, seed: int = 0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_features)) + 1e4
    X[:, : n_features // 3] = 7e3
    return X


def _drifting(n_rows: int, n_features: int, seed: int = 0):
    # Every stretch of 40 rows lies along new directions, the later the stronger.
    rng = np.random.default_rng(seed)
    pieces = [
        (1 + k) * rng.standard_normal((40, 3)) @ rng.standard_normal((3, n_features))
        for k in range(-(-n_rows // 40))
    ]
    return np.concatenate(pieces)[:n_rows]


def _breaker(n_rows: int, n_features: int, seed: int = 0):
    size = max(min(4, n_features - 1), 1)
    rows = truncation_breaker(size, max(n_rows - size, 1), n_features=max(n_features, size + 1))
    return rows[:n_rows, :n_features]


SHAPES: dict[str, Callable[..., np.ndarray]] = {
    **{
        name: lambda n, d, seed=0, spectrum=spectrum: with_spectrum(spectrum(min(n, d)), n, d, seed)
        for name, spectrum in SPECTRA.items()
    },
    "heavy tails": _heavy_tails,
    "duplicate rows": _duplicates,
    "zero rows between": _with_zero_rows,
    "large mean": _large_mean,
    "drifting": _drifting,
    "truncation breaker": _breaker,
}

SCALES = (1.0, 1e60, 1e-60, 1e3)


@functools.cache
def named(n_features: int = 30) -> dict[str, np.ndarray]:
    """Return every named matrix, all of the same width."""
    animals = {name: make(150, n_features) for name, make in SHAPES.items()}
    rng = np.random.default_rng(5)
    return animals | {
        "one row": rng.standard_normal((1, n_features)),
        "few rows": rng.standard_normal((3, n_features)),
        "huge": 1e60 * rng.standard_normal((150, n_features)),
        "tiny": 1e-60 * rng.standard_normal((150, n_features)),
        "breaker of eight": truncation_breaker(8, 120, n_features=n_features),
    }


def draw(rng: np.random.Generator, n_features: int | None = None, max_rows: int = 200):
    """Return a random matrix of a random kind, for tests that count over many streams."""
    n = int(rng.integers(1, max_rows + 1))
    d = int(rng.integers(1, 41)) if n_features is None else n_features
    name = list(SHAPES)[rng.integers(len(SHAPES))]
    return SCALES[rng.integers(len(SCALES))] * SHAPES[name](n, d, int(rng.integers(2**31)))


@st.composite
def matrices(draw, max_rows: int = 200, max_features: int = 40, scales=SCALES):
    """Draw seed, shape, kind of spectrum and scale."""
    n = draw(st.integers(1, max_rows))
    d = draw(st.integers(1, max_features))
    make = SHAPES[draw(st.sampled_from(sorted(SHAPES)))]
    return draw(st.sampled_from(scales)) * make(n, d, draw(st.integers(0, 2**16)))


@st.composite
def splits(draw, n_rows: int):
    """Draw increasing cut points of a stream, single rows included; empty pieces are not made."""
    style = draw(st.sampled_from(["whole", "rows", "few", "many"]))
    if style == "whole" or n_rows == 1:
        return []
    if style == "rows":
        return list(range(1, n_rows))
    count = draw(st.integers(1, 3 if style == "few" else 20))
    cuts = draw(st.lists(st.integers(1, n_rows - 1), min_size=1, max_size=count))
    return sorted(set(cuts))


def pieces(X, cuts):
    """Cut the rows at the given places."""
    return np.split(X, cuts)
