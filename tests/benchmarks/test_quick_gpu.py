"""The benchmarks for GPUs run, on whatever torch has, and say what they measured."""

from __future__ import annotations

import json

import pytest

from _support.programs import needs_benchmarks, quick

pytestmark = [needs_benchmarks, pytest.mark.slow]
pytest.importorskip("torch", reason="torch is not installed: no device to test on")


@pytest.mark.parametrize("script", ["dense", "sparse_rows"])
def test_every_route_is_measured_with_its_bound(script, tmp_path):
    kept = tmp_path / "figures.json"
    quick(f"gpu.{script}", "--out", str(kept))
    results = json.loads(kept.read_text())["results"]
    if script == "dense":
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
