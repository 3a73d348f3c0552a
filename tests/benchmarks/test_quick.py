"""The benchmarks run, and their tables have every method on every stream."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SPEED = Path(__file__).resolve().parents[2] / "benchmarks" / "speed"
PAPERS = SPEED.parent / "papers"
METHODS = {
    "textbook FD",
    "IncrementalPCA default",
    "IncrementalPCA good",
    "TruncatedSVD",
    "PCA covariance_eigh",
    "StreamingPCA",
    "  solver=exact",
    "  solver=block",
    "  solver=covariance",
}

# The sdist carries the tests, and its users may have taken them alone.
pytestmark = pytest.mark.skipif(not SPEED.exists(), reason="needs the benchmarks of a clone")


def run(script: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, str(SPEED / script), "--quick", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_dense_times_and_measures_every_method(tmp_path):
    printed = run("dense.py", "--json", str(tmp_path / "figures.json"))
    results = json.loads((tmp_path / "figures.json").read_text())["results"]
    streams = {result["stream"] for result in results}
    assert streams == {"stationary", "drifting", "low_rank_plus_noise"}
    assert {result["dtype"] for result in results} == {"float64", "float32"}
    for result in results:
        assert set(result["lines"]) == METHODS
        for line in result["lines"].values():
            assert line["rate"] > 0
            # Errors to be shown beside a speed: measured, and possible.
            assert 0 <= line["covariance_error"] < 1
            assert all(error > 1 - 1e-6 for error in line["projection_errors"])
        for solver in ("exact", "block"):
            line = result["lines"][f"  solver={solver}"]
            assert line["covariance_error"] <= line["certificate"]
    rows = printed.splitlines()
    for method in METHODS:
        assert sum(row.startswith(f"{method} ") for row in rows) >= len(results)


def test_memory_measures_each_estimator():
    printed = run("memory.py")
    rows = [row for row in printed.splitlines() if row.startswith("StreamingPCA")]
    assert len(rows) == 3
    assert "FAIL" not in printed


def test_kernels_are_held_against_their_peers():
    printed = run("kernels.py")
    for kernel in ("scatter_rows", "walsh_hadamard", "scatter_csr", "outer_csr"):
        # Once with its peers, once with the time of its first call.
        assert sum(row.startswith(kernel) for row in printed.splitlines()) == 2
    assert "uncached" in printed


def test_embedding_errors_are_held_against_theory():
    printed = run(str(PAPERS / "embedding.py"))
    rows = [row.split() for row in printed.splitlines()[3:]]
    assert len(rows) == 20
    for row in rows:
        # Over 20 seeds the measured norm is near the exact one, and the median below its bound.
        assert float(row[5]) < 1
        assert 0.6 < float(row[8]) < 1.5
