"""Themes of the torture that are about sketches: each draws one stream and returns its checks."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

import sksketch
from _support import checks, configurations, families
from _support.configurations import Configuration, Feed
from _support.oracle import Rows
from sksketch.arrays.random import stream

STYLES = ("dense", "dense", "sparse", "mixed")
# Products of the oracle for one stream, at most: a few milliseconds.
LARGEST_WORK = 2e6


class Result(NamedTuple):
    """What became of one stream: its checks, and how two rules compare on it."""

    name: str
    checks: list
    comparisons: list = []


def shape(rng, *, large=0.02):
    """Return rows and columns: mostly few, now and then many."""
    if rng.random() < large:
        d = int(rng.integers(25, 121))
        return int(rng.integers(100, max(101, min(3000, int(LARGEST_WORK / d**2))))), d
    return int(math.exp(rng.uniform(0, math.log(200)))) + int(rng.random() < 0.9), int(
        rng.integers(1, 25)
    )


def precision(rng):
    return np.float32 if rng.random() < 0.35 else np.float64


def size_of(rows):
    """Return the largest entry, or one."""
    return float(np.abs(rows).max(initial=0.0)) or 1.0


def any_sketch(rng):
    """Any sketch, any rows, in any pieces, merged in a random tree."""
    n, d = shape(rng)
    family, rows = families.draw(rng, n, d)
    rows = families.fitted(rows, precision(rng))
    return _torn(rng, family, rows, configurations.draw(rng, d, size_of(rows)))


def block_solver(rng):
    """The solver whose bounds are probabilistic, on enough rows and columns that it is used."""
    n, d = int(rng.integers(100, 400)), int(rng.integers(20, 61))
    family, rows = families.draw(rng, n, d)
    rows = families.fitted(rows, precision(rng))
    made = configurations.draw(rng, d, size_of(rows), solver="block")
    return _torn(rng, family, rows, made)


def _torn(rng, family, rows, made):
    """Give rows to shards in pieces, and check what they are merged to."""
    n, d = rows.shape
    dtype = rows.dtype
    shards = int(rng.choice([1, 1, 2, 3, 4]))
    style = STYLES[rng.integers(len(STYLES))]
    weighted = bool(rng.random() < 0.25)
    adaptive = bool(rng.random() < 0.15)
    feed = Feed(rng, made, d, weighted=weighted, style=style, shards=shards)
    for piece in configurations.pieces(rng, rows):
        # Shards of both precisions may meet.
        other = dtype == np.float64 and size_of(rows) < 1e14 and rng.random() < 0.02
        feed.take(piece.astype(np.float32) if other else piece)
        feed.between()
        sketch = feed.shards[0][0]
        if adaptive and sketch.n_features is not None:
            more = configurations.after_reading(rng, sketch, int(rng.integers(1, 8)), d, dtype)
            feed.take(more)
    sketch, seen = feed.finished()
    name = f"{family} {n} x {d} {dtype} {style}, {shards} shards: {made.name}"
    name += " weighted" * weighted + " after reading" * adaptive
    return Result(name, checks.of_sketch(sketch, seen, made))


def linear_sketch(rng):
    """Random projections: they certify nothing of the error, and should not."""
    n, d = shape(rng, large=0.0)
    family, rows = families.draw(rng, n, d)
    rows = families.fitted(rows, np.float64)
    kind = str(rng.choice(configurations.LINEAR))
    size, seed = int(rng.integers(1, 30)), int(rng.integers(1 << 30))
    made = Configuration(lambda: sksketch.make_sketch(kind, size, seed=seed), kind, False)
    sketch = made.make()
    for piece in configurations.pieces(rng, rows):
        sketch.update(piece)
    seen = Rows(d).update(rows)
    return Result(f"{family} {n} x {d}: {kind} {size}", checks.of_sketch(sketch, seen, made))


def fixed(rng, kind, *arguments, **options):
    """Return a configuration that is written down instead of drawn."""
    centered = bool(rng.random() < 0.2)
    text = ", ".join([*map(repr, arguments), *(f"{key}={options[key]!r}" for key in options)])
    name = f"{kind.__name__}({text})"

    def make():
        sketch = kind(*arguments, **options)
        return sksketch.Centered(sketch) if centered else sketch

    return Configuration(make, f"Centered({name})" if centered else name, centered)


def many_shrinks(rng, n=None):
    """So many shrinks that roundings show."""
    style = 0 if n is not None else int(rng.integers(4))
    dtype = np.dtype(np.float64)
    if style == 0:
        dtype = np.dtype(np.float32) if rng.random() < 0.7 else dtype
        rows, made = _tiny_gains(rng, n or int(rng.integers(5_000, 12_000)), dtype)
    elif style == 1:
        rows, made = _last_digits(rng)
    elif style == 2:
        rows = np.tile(rng.choice([0.1, 1 / 3, 0.7], int(rng.integers(1, 4))), (20_000, 1))
        rows = rows[: int(rng.integers(5_000, 20_000))]
        made = fixed(rng, sksketch.ExactCovariance)
    else:
        rows = _halving(rng, int(rng.integers(800, 1500)), int(rng.integers(30, 41)))
        made = fixed(rng, sksketch.TwoLevelFrequentDirections, 25, rank=2, buffer_rows=10)
        if rng.random() < 0.3:
            made = fixed(rng, sksketch.SparseFrequentDirections, 22, buffer_rows=30, seed=1)
    n, d = rows.shape
    sketch, seen = made.make(), Rows(d)
    rows = rows.astype(dtype)
    sketch.update(rows)
    seen.update(rows, decay=sketch.decay)
    name = f"many shrinks {n} x {d} {dtype.name}: {made.name}"
    return Result(name, checks.of_sketch(sketch, seen, made))


def _rounded_options(rng):
    return {
        "solver": "exact",
        "rule": str(rng.choice(["uniform", "half"])),
        "correction": str(rng.choice(["none", "half"])),
    }


def _tiny_gains(rng, n, dtype):
    """Return a long row and very many short ones, which together add less than its rounding."""
    d = int(rng.integers(1, 5))
    together = int(rng.choice([1, 2, 4])) if n < 100_000 else 64
    made = fixed(
        rng, sksketch.FrequentDirections, 1, **_rounded_options(rng), buffer_rows=1 + together
    )
    rows = np.zeros((n, d))
    rows[:, 0] = math.sqrt(rng.uniform(0.5, 0.99) * np.finfo(dtype).eps / together)
    rows[0, 0] = 1.0
    return rows, made


def _halving(rng, n, d):
    return rng.random((n, d)) * (rng.random((n, d)) < 0.2) * 0.5 ** np.arange(d)


def _last_digits(rng):
    """Return columns that use every digit, for a sketch that cuts where the digits end."""
    size = int(rng.integers(18, 25))
    options = _rounded_options(rng) | {"buffer_rows": size + int(rng.integers(2, 7))}
    if rng.random() < 0.2:
        options["decay"] = float(rng.choice([0.999, 0.9]))
    made = fixed(rng, sksketch.FrequentDirections, size, **options)
    return _halving(rng, int(rng.integers(800, 2000)), int(rng.integers(30, 41))), made


def very_many_rows(rng):
    """A hundred thousand to a million tiny gains."""
    return many_shrinks(rng, int(10 ** rng.uniform(5, 6)))


def against_the_seed(rng):
    """Rows that know the random numbers of the default seed and hide from them.

    The statement of a probabilistic bound is about any rows, so about these as well.
    """
    d, size = int(rng.integers(80, 121)), int(rng.integers(2, 5))
    n = int(rng.integers(150, 250))
    hidden_from = [stream(0, "directions", 1).standard_normal((24, d), dtype=np.float32)]
    hidden_from += [stream(0, f"verification {i}", 1).standard_normal((8, d)) for i in range(1, 5)]
    Q = np.linalg.qr(np.vstack(hidden_from).astype(np.float64).T)[0]
    v = rng.standard_normal(d)
    for _ in range(2):
        v -= Q @ (Q.T @ v)
    v /= np.linalg.norm(v)
    strong = np.linalg.qr(rng.standard_normal((d, size)))[0].T
    noise = 0.05
    X = 3 * rng.standard_normal((n, size)) @ strong + noise * rng.standard_normal((n, d))
    for _ in range(2):
        X -= np.outer(X @ v, v)
    bulk = noise**2 * (math.sqrt(n) + math.sqrt(d)) ** 2
    rows = np.vstack([X, math.sqrt(rng.uniform(1, 10) * bulk) * v])
    options = {"rule": str(rng.choice(["uniform", "half"])), "buffer_rows": 2 * n}
    made = Configuration(
        lambda: sksketch.FrequentDirections(size, solver="block", **options),
        f"FrequentDirections({size}, solver='block', {options})",
        False,
    )
    result = checks.of_sketch(made.make().update(rows), Rows(d).update(rows), made, ", hidden rows")
    return Result(f"against the seed {n} x {d}: {made.name}", result)


def two_rules(rng):
    """The same rows by rule="uniform" and rule="half": which certificate is better?"""
    d, size = int(rng.integers(12, 41)), int(rng.integers(2, 7))
    n = int(rng.integers(80, 250))
    solver = str(rng.choice(["exact", "block"]))
    family, rows = families.draw(rng, n, d)
    rows = families.fitted(rows, np.float64)
    buffer_rows = size + (6 * size + 5 if solver == "block" else int(rng.integers(1, 30)))
    found, bounds, shares = [], [], []
    for rule in ("half", "uniform"):
        made = Configuration(
            lambda rule=rule: sksketch.FrequentDirections(
                size, solver=solver, rule=rule, buffer_rows=buffer_rows, seed=1
            ),
            f"FrequentDirections({size}, solver={solver!r}, rule={rule!r}, {buffer_rows=})",
            False,
        )
        sketch = made.make().update(rows)
        certificate = sketch.certificate()
        bounds.append(certificate.spectral_error[1])
        energy = certificate.captured_energy
        shares.append(float(energy[min(size, len(energy)) // 2, 0]) if len(energy) else 0.0)
        if rng.random() < 0.3:
            found += checks.of_sketch(sketch, Rows(d).update(rows), made)
    comparisons = []
    # Where nothing but roundings is lost, the rules are one.
    if min(bounds) > 1e-9 * sketch.squared_norm:
        comparisons = [(family, solver, bounds[0] / bounds[1], shares[0] - shares[1])]
    return Result(f"{family} {n} x {d}: {solver} {size}, {buffer_rows=}", found, comparisons)
