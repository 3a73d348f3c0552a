"""The benchmarks for GPUs run, on whatever torch has, and say what they measured."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

GPU = Path(__file__).resolve().parents[2] / "benchmarks" / "gpu"

# The sdist carries the tests, and its users may have taken them alone.
pytestmark = pytest.mark.skipif(not GPU.exists(), reason="needs the benchmarks of a clone")
pytest.importorskip("torch", reason="torch is not installed: no device to test on")


@pytest.mark.parametrize("script", ["dense.py", "sparse_rows.py"])
def test_every_route_is_measured_with_its_bound(script, tmp_path):
    kept = tmp_path / "figures.json"
    done = subprocess.run(
        [sys.executable, str(GPU / script), "--quick", "--out", str(kept)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    results = json.loads(kept.read_text())["results"]
    if script == "dense.py":
        routes = {route["route"]: route for route in results[0]["routes"]}
        assert set(routes) == {"block", "block, verified", "exact"}
        for route in routes.values():
            assert route["error"] <= route["bound"]
        assert results[0]["host"].keys() == {"pinned", "plain"}
    else:
        assert {found["sketch"] for found in results} == {
            "FrequentDirections",
            "SparseFrequentDirections",
        }
        for found in results:
            assert found["device"]["bound"] == pytest.approx(found["host"]["bound"], rel=1e-2)
