"""Themes of the torture that are about time: windows of random streams, in random pieces."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

import sksketch
from _support import checks, configurations, families
from _support.oracle import Rows
from _support.sketch_themes import Result, precision, shape, size_of
from sksketch.sketches.windows import templates


def window(rng):
    """A window of rows or of a duration over any sketch, merged, saved and read at random."""
    n, d = shape(rng, large=0.01)
    family, rows = families.draw(rng, n, d)
    rows = families.fitted(rows, precision(rng))
    made = configurations.draw(rng, d, size_of(rows), ages=False)
    if "sample=True" in made.name or "'sample': True" in made.name:
        made = configurations.draw(rng, d, size_of(rows), ages=False, solver="exact")
    by_time = bool(rng.random() < 0.5)
    options = {"tol": float(rng.choice([0.05, 0.2, 0.5, 1.0]))}
    times = np.cumsum(rng.choice([0.0, 0.0, 0.5, 1.0, 40.0], n))
    if by_time:
        options["duration"] = float(rng.choice([1.0, 10.0, 100.0]))
    else:
        options["rows"] = int(rng.integers(1, max(n, 2)))
    # Few rows wait, so that buckets have most of the window.
    before, templates.FEWEST_BYTES = templates.FEWEST_BYTES, 0
    try:
        found, text = _windowed(rng, made, rows, times, options)
    finally:
        templates.FEWEST_BYTES = before
    return Result(f"{family} {n} x {d} {rows.dtype}: window {options} of {made.name}{text}", found)


def _windowed(rng, made, rows, times, options):
    weighted = bool(rng.random() < 0.2)
    weights = rng.choice([0.0, 0.3, 1.0, 7.0], len(rows)) if weighted else np.ones(len(rows))
    by_time = "duration" in options
    shards = int(rng.choice([1, 1, 2, 3]))
    sketches = [sksketch.SlidingWindow(made.make(), **options) for _ in range(shards)]
    owner = rng.integers(0, shards, len(rows)) if by_time else _consecutive(rng, len(rows), shards)
    style = str(rng.choice(["dense", "dense", "sparse", "mixed"]))
    cuts = [0, *sorted(set(rng.integers(1, len(rows) + 1, int(rng.integers(0, 8))).tolist()))]
    found, seen = [], 0
    for start, stop in pairwise([*cuts, len(rows)]):
        for i in range(shards):
            mine = start + np.flatnonzero(owner[start:stop] == i)
            if len(mine):
                block = configurations.block(rng, rows[mine], style)
                given = weights[mine] if weighted else None
                sketches[i].update(block, times[mine] if by_time else None, weights=given)
                if rng.random() < 0.2:
                    sketches[i] = type(sketches[i]).from_state(sketches[i].state())
                if rng.random() < 0.1:
                    sketches[i].compact()
        seen = stop
        if shards == 1 and rng.random() < 0.5 and stop > start:
            found += _checked(sketches[0], made, rows, times, weights, options, seen)
    whole = sketches[0]
    for other in sketches[1:]:
        whole.merge(other)
    found += _checked(whole, made, rows, times, weights, options, len(rows))
    text = f", {shards} shards" + " weighted" * weighted
    return found, text


def _consecutive(rng, n, shards):
    """Return the owner of each row where parts of one table come one after the other."""
    return np.sort(rng.integers(0, shards, n))


def _checked(sketch, made, rows, times, weights, options, seen):
    if "rows" in options:
        inside = slice(max(seen - options["rows"], 0), seen)
    else:
        inside = np.flatnonzero(times[:seen] > times[seen - 1] - options["duration"])
    if not weights[inside].any():
        return []
    truth = Rows(rows.shape[1]).update(rows[inside], weights[inside])
    return checks.of_sketch(sketch, truth, made, ", window")
