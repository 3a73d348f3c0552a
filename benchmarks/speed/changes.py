"""What `compare` says of samples: how often it is wrong, and how often it sees a change.

``python -m benchmarks.speed.changes [--quick]``

*Null pairs*: two samples of one distribution, of Gaussian, flat, zero-one, offset and heavy-tailed
columns in any units, of few to many rows, remembered exactly, by a sketch, by a window or in parts
that are merged; none may be called a change. *Planted changes*: the variance in one direction grows
by three times the sum of the bounds of both certificates and of both samples; nearly all must be
found. *Means*: how often intervals of 1.96 standard errors hold the true shift, and those of the
comparison itself.
"""

from __future__ import annotations

from benchmarks.lib.threads import one_thread  # isort: skip

import argparse
import json
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from sksketch import Centered, ExactCovariance, FrequentDirections, SlidingWindow, compare

CONFIDENCE = 0.99
# What is asked of the figures.
LEAST_FOUND, COVERAGE, OFF = 0.95, 0.95, 0.01
# Kurtosis of the columns of each distribution, where it is above that of Gaussian ones.
KURTOSIS = {"laplace": 6.0, "student": 9.0}
KINDS = ("gaussian", "uniform", "zero-one", "offset", *KURTOSIS)
WAYS = ("exact", "sketch", "window", "merged")


def distribution(rng: np.random.Generator, kind: str, d: int) -> Callable[[int], Any]:
    """Return a function that draws rows of one distribution."""
    scale = 10.0 ** rng.uniform(-2, 2, d)
    mix = np.linalg.qr(rng.standard_normal((d, d)))[0] if rng.random() < 0.5 else np.eye(d)

    def draw(n: int) -> Any:
        if kind == "uniform":
            X = rng.uniform(-1, 1, (n, d))
        elif kind == "zero-one":
            X = (rng.random((n, d)) < 0.4).astype(float)
        elif kind == "laplace":
            X = rng.laplace(size=(n, d))
        elif kind == "student":
            # Of five degrees of freedom.
            X = rng.standard_t(5, (n, d))
        else:
            X = rng.standard_normal((n, d)) + (100.0 if kind == "offset" else 0.0)
        return (X * scale) @ mix

    return draw


def remembered(way: str, X: Any, before: Any) -> Any:
    """Return a state of rows, remembered in one of several ways."""
    if way == "sketch":
        return Centered(FrequentDirections(6, solver="exact")).update(X)
    if way == "window":
        window = SlidingWindow(Centered(FrequentDirections(6, solver="exact")), rows=len(X))
        return window.update(before).update(X)
    if way == "merged":
        parts = [part for part in np.array_split(X, 3) if len(part)]
        whole, *others = (Centered(ExactCovariance()).update(part) for part in parts)
        for other in others:
            whole.merge(other)
        return whole
    return Centered(ExactCovariance()).update(X)


def null_pairs(n_pairs: int) -> dict[str, Any]:
    """Return how many pairs of each kind there were, and how many were called a change."""
    pairs, alarms = Counter[str](), Counter[str]()
    seconds = 0.0
    for seed in range(n_pairs):
        rng = np.random.default_rng([0, seed])
        kind, way = KINDS[seed % len(KINDS)], WAYS[seed // len(KINDS) % len(WAYS)]
        draw = distribution(rng, kind, int(rng.integers(1, 40)))
        sizes = np.exp(rng.uniform(np.log(2), np.log(2000), 2)).astype(int)
        a, b = (remembered(way, draw(int(n)), draw(50)) for n in sizes)
        start = time.perf_counter()
        found = compare(a, b, confidence=CONFIDENCE, kurtosis=KURTOSIS.get(kind, 3.0))
        seconds += time.perf_counter() - start
        for name in (kind, way):
            pairs[name] += 1
            alarms[name] += found.distinguishable
    return {
        "pairs": n_pairs,
        "alarms": sum(alarms[kind] for kind in KINDS),
        "of each": {name: (alarms[name], pairs[name]) for name in (*KINDS, *WAYS)},
        "seconds of one": seconds / n_pairs,
    }


def planted(n_pairs: int) -> dict[str, Any]:
    """Return in how many pairs a change of three times the bounds was found, and in which way."""
    found = Counter[str]()
    for seed in range(n_pairs):
        rng = np.random.default_rng([1, seed])
        way = WAYS[seed % len(WAYS)]
        n, d = int(rng.integers(400, 1500)), int(rng.integers(2, 20))
        X, Y = rng.standard_normal((2, n, d))
        earlier = rng.standard_normal((50, d))
        a = remembered(way, X, earlier)
        null = compare(a, remembered(way, Y, earlier), confidence=CONFIDENCE)
        change = 3.0 * (null.error + null.allowance)
        v = rng.standard_normal(d)
        v /= np.linalg.norm(v)
        Y = rng.standard_normal((n, d))
        Y += np.outer(Y @ v, v) * (np.sqrt(1.0 + change) - 1.0)
        b = remembered(way, Y, earlier)
        found[way] += compare(a, b, confidence=CONFIDENCE).n_changed >= 1
    each = {way: len(range(i, n_pairs, len(WAYS))) for i, way in enumerate(WAYS)}
    return {
        "pairs": n_pairs,
        "found": sum(found.values()),
        "of each": {way: (found[way], each[way]) for way in WAYS},
    }


def means(n_pairs: int) -> dict[str, Any]:
    """Return the share of true shifts inside 1.96 standard errors, and inside what is certain."""
    inside = certain = total = 0
    for seed in range(n_pairs):
        rng = np.random.default_rng([2, seed])
        d = int(rng.integers(1, 10))
        draw = distribution(rng, KINDS[seed % 4], d)
        shift = rng.standard_normal(d)
        a, b = (remembered(WAYS[seed // 4 % 2], draw(300) + m, None) for m in (0.0, shift))
        found = compare(a, b, confidence=CONFIDENCE).mean_shift
        assert found is not None
        off = abs(found.difference - shift)
        inside += int((off <= 1.96 * found.standard_error + found.error).sum())
        # A shift that is none must not be certain.
        unmoved = compare(a, remembered(WAYS[seed // 4 % 2], draw(300), None)).mean_shift
        assert unmoved is not None
        certain += int(unmoved.certain.sum())
        total += d
    return {"columns": total, "coverage": inside / total, "false": certain}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a fiftieth of the pairs")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    options = parser.parse_args(arguments)
    share = 50 if options.quick else 1
    figures = {
        "null pairs": null_pairs(10_000 // share),
        "planted": planted(2_000 // share),
        "means": means(2_000 // share),
    }
    null, changed, shift = figures.values()
    print(f"{null['pairs']:,} null pairs: {null['alarms']} called a change")
    print("  " + ", ".join(f"{name} {a} of {n:,}" for name, (a, n) in null["of each"].items()))
    print(f"  {1e3 * null['seconds of one']:.2f} ms a comparison")
    print(f"{changed['pairs']:,} changes of three times the bounds: {changed['found']:,} found")
    print("  " + ", ".join(f"{name} {a} of {n:,}" for name, (a, n) in changed["of each"].items()))
    print(
        f"shifts of {shift['columns']:,} means: {shift['coverage']:.2%} within 1.96 standard "
        f"errors; {shift['false']} that are none called certain\n"
    )
    found = changed["found"] / changed["pairs"]
    for passed, text in (
        (not null["alarms"], f"{null['alarms']} of {null['pairs']:,} null pairs, none allowed"),
        (found >= LEAST_FOUND, f"{found:.1%} of planted changes, at least {LEAST_FOUND:.0%}"),
        (
            options.quick or abs(shift["coverage"] - COVERAGE) <= OFF,
            f"coverage of means {shift['coverage']:.2%}, {COVERAGE:.0%} within {OFF:.0%}",
        ),
    ):
        print(f"{'ok  ' if passed else 'FAIL'}  {text}")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    with one_thread():
        main()
