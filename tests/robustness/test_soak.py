"""Millions of rows through a generator: memory stays flat."""

from __future__ import annotations

import sys

import pytest

from robustness import children

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc")

# What the allocator may keep from block to block; rows of the full form take 1.6 GB.
GROWTH = 24 * 2**20
WIDTH = 20

SOAK = """
import sys, resource, numpy as np, sksketch
from pathlib import Path

n_rows, width, block = int(sys.argv[1]), int(sys.argv[2]), 10_000
models = {
    "FrequentDirections": lambda: sksketch.FrequentDirections(8),
    "StreamingPCA": lambda: sksketch.StreamingPCA(3, sketch="rfd", sketch_size=8),
    "StreamingRidge": lambda: sksketch.StreamingRidge(sketch="rfd", sketch_size=8),
    "OnlineNewtonRegressor": lambda: sksketch.OnlineNewtonRegressor(sketch_size=5),
}

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

def blocks(held):
    for i in range(n_rows // block):
        rng = np.random.default_rng(i)
        X = rng.standard_normal((block, width)) * 0.9 ** np.arange(width)
        yield X, X[:, 0] - X[:, 1]
        held["rows"] += block
        part = "warm" if held["rows"] <= n_rows // 10 else "most"
        held[part] = max(held[part], resident())

for name, make in models.items():
    model, held = make(), {"warm": 0, "most": 0, "rows": 0}
    if isinstance(model, sksketch.Sketch):
        for X, _ in blocks(held):
            model.update(X)
        seen, answer = model.n_rows_seen, model.summary().eigenvalues
    else:
        sksketch.fit_stream(model, blocks(held), progress=False)
        seen = model.n_samples_seen_
        answer = model.predict(np.eye(width)) if hasattr(model, "predict") else model.components_
    assert np.isfinite(answer).all()
    assert seen == held["rows"] == n_rows, (name, seen, held)
    print(name, held["most"] - held["warm"])
"""


@pytest.mark.slow
def test_memory_is_flat_over_a_long_stream(full, tally):
    n_rows = 10_000_000 if full else 300_000
    done = children.python(SOAK, str(n_rows), str(WIDTH), timeout=3000)
    assert done.returncode == 0, done.stderr[-2000:]
    lines = [line.split() for line in done.stdout.splitlines()]
    assert len(lines) == 4
    for name, growth in lines:
        assert int(growth) < GROWTH, f"{name}: {growth} bytes more after {n_rows:,} rows"
        more = max(0, int(growth) // 1024)
        tally(f"soak of {name}", {"rows": n_rows, "KiB more at the most": more})
