"""Sketches with options drawn at random, and ways in which rows come to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

import sksketch
from _support.oracle import Rows

RULES = ("uniform", "half", "parameterized", "truncate")
CORRECTIONS = ("half", "none", "full", "trace", "energy")
LINEAR = ("gaussian", "sign", "countsketch", "srht", "sample")


class Configuration(NamedTuple):
    """How to build an empty sketch, and what its rows are to be."""

    make: Callable[[], Any]
    name: str
    centered: bool
    initial_ridge: float = 0.0


def frequent_directions(rng, d, scale, solver=None):
    size = int(rng.integers(1, 12))
    solver = solver or str(rng.choice(["auto", "exact", "exact", "block", "covariance"]))
    if solver == "block":
        # Fewer rows than four sketch sizes would go to the exact solver.
        size = int(rng.integers(1, 6))
    correction: Any = str(rng.choice([*CORRECTIONS, "half", "half", "own"]))
    options = {
        "correction": float(rng.uniform(0, 3)) * scale**2 if correction == "own" else correction,
        "rule": str(rng.choice([*RULES, "uniform", "half"])),
        "fraction": float(rng.choice([0.2, 0.5, 1.0])),
        "solver": solver,
        "seed": int(rng.integers(1, 1 << 30)),
        "initial_ridge": float(scale**2 * 0.5) if rng.random() < 0.05 else 0.0,
    }
    if rng.random() < 0.2:
        options["decay"] = float(rng.choice([0.999, 0.99, 0.9, 0.3]))
    elif rng.random() < 0.05:
        options["half_life"] = float(rng.uniform(1.0, 50.0))
    if rng.random() < 0.6:
        least = 5 * size if solver == "block" else 1
        options["buffer_rows"] = size + least + int(rng.integers(0, 25))
    if rng.random() < 0.1:
        options["tol"] = float(10.0 ** rng.uniform(-4, -0.5))
    if rng.random() < 0.1:
        options["certify"] = False
    return sksketch.FrequentDirections, (size,), options


def sparse_directions(rng, d, scale):
    options = {
        "boosted": bool(rng.random() < 0.8),
        "n_power_iter": int(rng.integers(0, 3)),
        "correction": str(rng.choice(CORRECTIONS)),
        "max_tries": int(rng.integers(1, 5)),
        "seed": int(rng.integers(1, 1 << 30)),
    }
    if rng.random() < 0.7:
        options["buffer_rows"] = int(rng.integers(5, 80))
    return sksketch.SparseFrequentDirections, (int(rng.integers(1, 8)),), options


def two_level(rng, d, scale):
    rank = int(rng.integers(1, 4))
    options = {"rank": rank, "sample": bool(rng.random() < 0.4), "seed": int(rng.integers(1 << 30))}
    if rng.random() < 0.6:
        options["buffer_rows"] = 3 * rank + int(rng.integers(1, 30))
    return sksketch.TwoLevelFrequentDirections, (3 * rank + int(rng.integers(1, 8)),), options


def exact(rng, d, scale):
    options = {"decay": float(rng.choice([0.999, 0.95, 0.5]))} if rng.random() < 0.2 else {}
    if rng.random() < 0.1:
        options["initial_ridge"] = float(scale**2 * 0.5)
    return sksketch.ExactCovariance, (), options


KINDS = {frequent_directions: 0.58, exact: 0.2, two_level: 0.14, sparse_directions: 0.08}


def draw(rng, d, scale=1.0, *, centered=None, ages=True, solver=None):
    """Return a random configuration for rows of that width and size."""
    kinds = list(KINDS)
    made = kinds[int(rng.choice(len(kinds), p=list(KINDS.values())))]
    if solver is None:
        kind, arguments, options = made(rng, d, scale)
    else:
        kind, arguments, options = frequent_directions(rng, d, scale, solver)
    if not ages:
        options = {key: options[key] for key in options if key not in ("decay", "half_life")}
    centered = bool(rng.random() < 0.4) if centered is None else centered
    text = ", ".join([*map(repr, arguments), *(f"{key}={options[key]!r}" for key in options)])
    name = f"{kind.__name__}({text})"

    def make():
        sketch = kind(*arguments, **options)
        return sksketch.Centered(sketch) if centered else sketch

    name = f"Centered({name})" if centered else name
    return Configuration(make, name, centered, options.get("initial_ridge", 0.0))


def block(rng, rows, style):
    """Return rows as a dense array or a sparse one."""
    if style == "sparse" or (style == "mixed" and rng.random() < 0.5):
        return sp.csr_array(rows)
    if rng.random() < 0.05:
        return np.asfortranarray(rows)
    return rows


def after_reading(rng, sketch, n, d, dtype):
    """Return rows that are chosen to hurt whoever has just been read.

    They lie where the sketch remembers nothing, and are as long as what it is sure of, or along
    its weakest component.
    """
    summary = sketch.summary()
    # What is not finite is found by the checks, and no reason to stop here.
    V = np.nan_to_num(summary.components.astype(np.float64))
    rows = rng.standard_normal((n, d))
    if rng.random() < 0.3 and len(V):
        rows = rng.standard_normal((n, 1)) * V[-1]
    else:
        rows -= (rows @ V.T) @ V
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    energy = rng.choice([summary.error_bound, *summary.eigenvalues[-1:], summary.squared_norm / d])
    energy = energy if 0 < energy < 1e280 else 1.0
    return (rows / np.where(lengths > 0, lengths, 1.0) * np.sqrt(energy / n)).astype(dtype)


class Feed:
    """Rows that come to shards in random pieces, with merges, saves and looks in between."""

    def __init__(self, rng, configuration, d, *, weighted=False, style="dense", shards=1):
        self.rng, self.configuration, self.d = rng, configuration, d
        self.weighted, self.style = weighted, style
        self.shards = [(configuration.make(), Rows(d)) for _ in range(shards)]

    def take(self, rows):
        """Give rows to one of the shards."""
        rng = self.rng
        sketch, seen = self.shards[rng.integers(len(self.shards))]
        weights = rng.choice([0.0, 0.3, 1.0, 2.0, 7.0], len(rows)) if self.weighted else None
        # The first rows fix the precision, and later ones are meant in it.
        rows = rows if sketch.dtype is None else rows.astype(sketch.dtype)
        sketch.update(block(rng, rows, self.style), weights)
        seen.update(rows, weights, sketch.decay)

    def between(self):
        """Save, read or merge, now and then."""
        rng, shards = self.rng, self.shards
        i = int(rng.integers(len(shards)))
        sketch, seen = shards[i]
        if rng.random() < 0.15:
            shards[i] = (type(sketch).from_state(sketch.state()), seen)
        if rng.random() < 0.15 and sketch.n_features is not None:
            sketch.certificate()
        if rng.random() < 0.05:
            sketch.compact()
        if len(shards) > 1 and rng.random() < 0.2:
            self.merge()

    def merge(self):
        """Merge two shards."""
        i, j = self.rng.choice(len(self.shards), 2, replace=False)
        self.shards[i][0].merge(self.shards[j][0])
        self.shards[i][1].merge(self.shards[j][1])
        del self.shards[j]

    def finished(self):
        """Merge what is left; return the sketch and the rows that it has seen."""
        while len(self.shards) > 1:
            self.merge()
        return self.shards[0]


def pieces(rng, rows):
    """Cut rows at a few random places, or now and then one by one."""
    n = len(rows)
    if n <= 12 and rng.random() < 0.2:
        return np.split(rows, range(1, n))
    cuts = np.unique(rng.integers(1, max(n, 2), int(rng.integers(0, 5))))
    return [piece for piece in np.split(rows, cuts[cuts < n]) if len(piece)]
