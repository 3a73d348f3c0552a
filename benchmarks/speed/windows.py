"""Sliding windows at equal memory: SlidingWindow beside LM-FD, DI-FD and DS-FD.

``python -m benchmarks.speed.windows [--quick]``

The peers are written here as their papers describe them: the logarithmic method and dyadic
intervals of Wei et al. (2016), "Matrix Sketching Over Sliding Windows", SIGMOD, and the dumped
snapshots of Yin et al. (2024), "Optimal Matrix Sketching over Sliding Windows", PVLDB 17(9). Each
method has several sizes; of those whose largest memory over the stream is within the limit, the one
with the least error is shown. Errors are ||A'A - summary||_2 / ||A||_F^2 for the rows A of the
window, at many moments; rows per second are of the same size. ``--memory`` streams ten million rows
of 1,000 columns through a window of 100,000 instead.
"""

from __future__ import annotations

from benchmarks.lib.threads import one_thread  # isort: skip

import argparse
import json
import time
from collections import deque
from pathlib import Path

import numpy as np

from benchmarks.lib.resident import memory_mb
from sksketch import FrequentDirections, SlidingWindow, datasets
from sksketch.sketches.windows import templates

QUERIES = 12
OURS, PEERS = "SlidingWindow", ("LM-FD", "DI-FD", "DS-FD")
# What is asked of the figures.
LEAST_SPEED, MOST_MEGABYTES = 20.0, 50.0


def eigen_rows(rows, size):
    """Return the right singular vectors of rows, times singular values, and the squared values."""
    if len(rows) > rows.shape[1]:
        values, vectors = np.linalg.eigh(rows.T @ rows)
        values = np.maximum(values[::-1], 0.0)
        return np.sqrt(values)[:, None] * vectors.T[::-1], values
    values, vectors = np.linalg.eigh(rows @ rows.T)
    values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
    keep = values > 1e-12 * max(values[0], 1e-300)
    return (vectors[:, keep].T @ rows)[:size], values[keep][:size]


def shrink(rows, size):
    """Return FD's rows: at most ``size - 1``, each cut by the squared value of number ``size``."""
    if len(rows) < size:
        return rows
    found, values = eigen_rows(rows, size)
    if len(values) < size:
        return found
    left = np.sqrt(np.maximum(1.0 - values[size - 1] / np.maximum(values, 1e-300), 0.0))
    return (left[:, None] * found)[: size - 1]


class FD:
    """Frequent Directions with a buffer of twice its rows."""

    def __init__(self, size, d):
        self.size, self.rows, self.n = size, np.zeros((2 * size, d)), 0

    def add(self, row):
        if self.n == len(self.rows):
            kept = shrink(self.rows, self.size)
            self.n = len(kept)
            self.rows[: self.n] = kept
        self.rows[self.n] = row
        self.n += 1

    @property
    def kept(self):
        return shrink(self.rows[: self.n], self.size)


class LMFD:
    """The logarithmic method: blocks at levels, the two oldest merged when there are too many."""

    def __init__(self, size, d, window, per_level=8):
        self.size, self.d, self.window, self.per_level = size, d, window, per_level
        self.levels = []
        self.active, self.energy, self.t = [], 0.0, 0

    def add(self, row):
        self.t += 1
        self.active.append(row)
        if len(self.active) >= self.size:
            self._push(0, (np.array(self.active), self.t - len(self.active) + 1, self.t))
            self.active = []
        for blocks in self.levels:
            while blocks and blocks[0][2] <= self.t - self.window:
                blocks.popleft()

    def _push(self, level, block):
        if level == len(self.levels):
            self.levels.append(deque())
        self.levels[level].append(block)
        if len(self.levels[level]) > self.per_level:
            one, two = self.levels[level].popleft(), self.levels[level].popleft()
            rows = shrink(np.concatenate([one[0], two[0]]), self.size)
            self._push(level + 1, (rows, one[1], two[2]))

    def query(self):
        parts = [block[0] for blocks in self.levels[::-1] for block in blocks]
        parts += [np.array(self.active).reshape(-1, self.d)]
        return shrink(np.concatenate(parts), self.size)

    @property
    def held(self):
        return len(self.active) + sum(len(b[0]) for blocks in self.levels for b in blocks)


class DIFD:
    """Dyadic intervals: at each level the window is cut into sketched intervals of one length."""

    def __init__(self, size, d, window, n_levels=5):
        self.d, self.window, self.t = d, window, 0
        self.lengths = [max(window >> (n_levels - i), 1) for i in range(1, n_levels + 1)]
        # The longer an interval, the larger its sketch.
        self.sizes = [max(size >> (n_levels - i), 2) for i in range(1, n_levels + 1)]
        self.open = [FD(s, d) for s in self.sizes]
        self.closed = [deque() for _ in self.sizes]

    def add(self, row):
        self.t += 1
        for i, sketch in enumerate(self.open):
            sketch.add(row)
            if self.t % self.lengths[i] == 0:
                self.closed[i].append((sketch.kept, self.t - self.lengths[i], self.t))
                self.open[i] = FD(self.sizes[i], self.d)
            while self.closed[i] and self.closed[i][0][1] < self.t - self.window:
                self.closed[i].popleft()

    def query(self):
        start, parts = self.t - self.window, []
        at = start - start % -self.lengths[0]
        while at < self.t:
            for i in reversed(range(len(self.lengths))):
                found = [b for b in self.closed[i] if b[1] == at]
                if found:
                    parts.append(found[0][0])
                    at = found[0][2]
                    break
            else:
                parts.append(self.open[0].kept)
                break
        return shrink(np.concatenate(parts), self.sizes[-1])

    @property
    def held(self):
        return sum(len(o.rows) for o in self.open) + sum(
            len(b[0]) for closed in self.closed for b in closed
        )


class DSFD:
    """Dumped snapshots: directions leave the sketch with a time once they are heavy enough."""

    def __init__(self, size, d, window, scale=1.0):
        self.size, self.d, self.window, self.scale, self.t = size, d, window, scale, 0
        self.main, self.next = self._new(), self._new()
        self.energies, self.total = deque(), 0.0

    def _new(self):
        return [np.zeros((0, self.d)), deque(), []]

    def add(self, row):
        self.t += 1
        energy = float(row @ row)
        self.energies.append(energy)
        self.total += energy
        if len(self.energies) > self.window:
            self.total -= self.energies.popleft()
        for part in (self.main, self.next):
            part[2].append(row)
            while part[1] and part[1][0][1] <= self.t - self.window:
                part[1].popleft()
        if len(self.main[2]) >= self.size:
            self._shrink(self.main)
            self._shrink(self.next)
        if self.t % self.window == 0:
            self._shrink(self.main)
            self._shrink(self.next)
            self.main, self.next = self.next, self._new()

    def _shrink(self, part):
        rows = np.concatenate([part[0], np.array(part[2]).reshape(-1, self.d)])
        part[2] = []
        if not len(rows):
            return
        found, values = eigen_rows(rows, self.size)
        threshold = self.scale * self.total / self.size
        heavy = int(np.count_nonzero(values > threshold))
        for i in range(heavy):
            part[1].append((found[i], self.t))
        part[0] = shrink(found[heavy:], self.size) if heavy < len(found) else found[:0]

    def query(self):
        rows, snapshots, waiting = self.main
        parts = [rows, np.array(waiting).reshape(-1, self.d)]
        parts += [np.array([s for s, _ in snapshots]).reshape(-1, self.d)]
        return np.concatenate(parts)

    @property
    def held(self):
        return sum(len(p[0]) + len(p[1]) + len(p[2]) for p in (self.main, self.next))


def streams(n, d):
    """Return four streams of rows."""
    rng = np.random.default_rng(0)
    drift = np.concatenate([b.X for b in datasets.drifting(n, d, seed=0).blocks()])
    power = rng.standard_normal((n, d)) * np.arange(1, d + 1) ** -0.6
    basis = np.linalg.qr(rng.standard_normal((d, 10)))[0]
    low = rng.standard_normal((n, 10)) * np.linspace(3, 1, 10) @ basis.T
    low += 0.1 * rng.standard_normal((n, d))
    bursts = rng.standard_normal((n, d)) / np.sqrt(d)
    for start in rng.integers(0, n, n // 1500):
        v = rng.standard_normal(d)
        bursts[start : start + 60] += 3.0 * rng.standard_normal((60, 1)) * v / np.linalg.norm(v)
    return {"drift": drift, "power law": power, "low rank": low, "bursts": bursts}


def exact_errors(X, window, moments):
    """Yield moments with A'A and the squared norm of the window."""
    for t in moments:
        A = X[max(t - window, 0) : t]
        yield t, A.T @ A, float((A**2).sum())


def ours(size, tol):
    def run(X, window, truths):
        sketch = SlidingWindow(
            FrequentDirections(size, solver="exact", rule="half"), rows=window, tol=tol
        )
        return _run_ours(sketch, X, truths)

    return run


def _run_ours(sketch, X, truths):
    errors, seconds, held, done = [], 0.0, 0, 0
    for t, G, total in truths:
        start = time.perf_counter()
        sketch.update(X[done:t])
        seconds += time.perf_counter() - start
        done = t
        held = max(held, sum(a.nbytes for a in sketch.state().arrays.values()) / 8)
        summary = sketch.summary()
        error = np.linalg.norm(G - summary.to_dense(), 2)
        assert error <= summary.error_bound * (1 + 1e-9), "the certificate is broken"
        errors.append(error / total)
    return max(errors), float(np.mean(errors)), held / X.shape[1], done / seconds


def peer(kind, size, **options):
    def run(X, window, truths):
        sketch = kind(size, X.shape[1], window, **options)
        errors, seconds, held, done = [], 0.0, 0, 0
        for t, G, total in truths:
            start = time.perf_counter()
            for row in X[done:t]:
                sketch.add(row)
            seconds += time.perf_counter() - start
            done = t
            held = max(held, sketch.held)
            B = sketch.query()
            errors.append(np.linalg.norm(G - B.T @ B, 2) / total)
        return max(errors), float(np.mean(errors)), held, done / seconds

    return run


def candidates(rows):
    """Return sizes to try for each method, for about so many rows of memory."""
    sizes = [max(rows // k, 4) for k in (3, 4, 6, 8, 12, 20, 30)]
    return {
        OURS: [
            ours(size, tol) for size in (3, 4, 6, 8, 12, 16, 24) for tol in (0.1, 0.2, 0.4, 0.8)
        ],
        "LM-FD": [peer(LMFD, s, per_level=b) for s in sizes for b in (2, 4, 8)],
        "DI-FD": [peer(DIFD, s, n_levels=k) for s in sizes for k in (3, 5)],
        "DS-FD": [peer(DSFD, s, scale=c) for s in sizes for c in (0.5, 1.0, 2.0)],
    }


def long_stream(n_rows, d, window, size=20):
    """Return memory and rows per second of one long stream, in megabytes above the start."""
    rng = np.random.default_rng(0)
    block = rng.standard_normal((1_000, d), dtype=np.float32) / np.arange(1, d + 1, dtype="f4")
    # Code and libraries that are loaded at first use are not counted.
    small = SlidingWindow(FrequentDirections(size), rows=4_000)
    for _ in range(8):
        small.update(block)
    small.error_bound()
    del small
    sketch = SlidingWindow(FrequentDirections(size), rows=window)
    sketch.update(block[:2])
    rows = block.copy()
    before = memory_mb("VmRSS")
    start = time.perf_counter()
    for number in range(n_rows // len(block)):
        # Rows that differ: the same block at another scale.
        np.multiply(block, np.float32(1.0 + 0.5 * np.sin(number)), out=rows)
        sketch.update(rows)
    seconds = time.perf_counter() - start
    bound = sketch.error_bound()
    peak = memory_mb("VmHWM") - before
    held = sum(a.nbytes for a in sketch.state().arrays.values()) / 1e6
    return {
        "held MB": held,
        "peak MB": peak,
        "rows/s": n_rows / seconds,
        "buckets": sketch.n_buckets,
        "bound": bound,
    }


def verdicts(figures):
    """Yield whether what is asked is met, and the figures, of the peer that comes closest."""
    for stream, lines in figures.items():
        mine = lines[OURS]
        nearest = min(PEERS, key=lambda peer: lines[peer]["mean error"])
        ratio = mine["mean error"] / lines[nearest]["mean error"]
        yield ratio <= 1.0, f"{stream}: {ratio:.2f} x the mean error of {nearest}"
        nearest = min(PEERS, key=lambda peer: lines[peer]["worst error"])
        ratio = mine["worst error"] / lines[nearest]["worst error"]
        yield ratio <= 1.0, f"{stream}: {ratio:.2f} x the worst error of {nearest}"
        nearest = max(PEERS, key=lambda peer: lines[peer]["rows/s"])
        times = mine["rows/s"] / lines[nearest]["rows/s"]
        yield times >= LEAST_SPEED, f"{stream}: {times:.1f} x the rows/s of {nearest}"


def say(checked):
    """Print what is asked and whether it is met."""
    print()
    for passed, text in checked:
        print(f"{'ok  ' if passed else 'FAIL'}  {text}")


def beside(quick):
    """Return the figures of every method on every stream, and print them."""
    n, d, window, budget = (3000, 60, 800, 120) if quick else (12_000, 300, 4000, 400)
    print(f"{n:,} rows of {d} columns, window of {window:,} rows, memory of {budget} rows")
    print(f"{'stream':<10}  {'method':<14}  {'worst error':>11}  {'mean':>8}  {'rows':>5}  rows/s")
    # Here memory is counted in rows, however cheap some would be.
    templates.FEWEST_BYTES = 0
    moments = np.linspace(window, n, QUERIES).astype(int).tolist()
    figures = {}
    for name, X in streams(n, d).items():
        truths = list(exact_errors(X, window, moments))
        figures[name] = {}
        for method, runs in candidates(budget).items():
            found = [run(X, window, truths) for run in (runs[::3] if quick else runs)]
            fitting = [f for f in found if f[2] <= budget] or [min(found, key=lambda f: f[2])]
            line = min(fitting, key=lambda f: f[1])
            named = dict(zip(("worst error", "mean error", "rows", "rows/s"), line, strict=True))
            figures[name][method] = {key: float(value) for key, value in named.items()}
            worst, mean, held, speed = line
            text = f"{name:<10}  {method:<14}  {worst:>11.4%}  {mean:>8.4%}  {held:>5.0f}"
            print(f"{text}  {speed:,.0f}", flush=True)
    return figures


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--memory", action="store_true", help="of ten million rows, and no more")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    given = parser.parse_args(arguments)
    if given.memory:
        size = (200_000, 1000, 20_000) if given.quick else (10_000_000, 1000, 100_000)
        figures = long_stream(*size)
        print(f"{size[0]:,} rows of {size[1]:,} columns, window of {size[2]:,} rows")
        print("  ".join(f"{name} {value:,.4g}" for name, value in figures.items()))
        peak = figures["peak MB"]
        say([(peak < MOST_MEGABYTES, f"peak memory {peak:.0f} MB, under {MOST_MEGABYTES:.0f}")])
    else:
        figures = beside(given.quick)
        say(verdicts(figures))
    if given.json:
        given.json.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    with one_thread():
        main()
