"""The benchmarks run, and their tables have every method on every stream."""

from __future__ import annotations

import json

import pytest

from _support.programs import needs_benchmarks, quick

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

SPARSE_METHODS = {
    "FD, LAPACK SVD",
    "FD, Gram matrix",
    *(f"SFD paper q={q} {kind}" for q in ("4ln", "2", "1") for kind in ("boosted", "plain")),
    "TruncatedSVD randomized",
    "TruncatedSVD arpack",
    "IncrementalPCA batch 40",
    "gensim LsiModel",
    "FrequentDirections",
    "SparseFrequentDirections",
    "  boosted=False",
}

pytestmark = [needs_benchmarks, pytest.mark.slow]


def test_dense_times_and_measures_every_method(tmp_path):
    printed = quick("speed.dense", "--json", str(tmp_path / "figures.json"))
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


def test_moments_times_and_measures_two_views_and_standard_errors(tmp_path):
    printed = quick("speed.moments", "--json", str(tmp_path / "figures.json"))
    results = json.loads((tmp_path / "figures.json").read_text())
    for line in results["cross products"]:
        assert line["error"] <= line["certified"] <= line["promised"] < line["peer promised"]
    assert set(results["digits"]) == {"linear", "kernel"}
    assert all(speed > 0 for speed in results["rows per second"].values())
    assert "total of 10 correlations" in printed


def test_canonical_correlations_are_inside_their_intervals(tmp_path):
    printed = quick("speed.canonical", "--json", str(tmp_path / "figures.json"))
    found = json.loads((tmp_path / "figures.json").read_text())["one pass"]
    for value, (low, high) in zip(found["correlations"], found["intervals"], strict=True):
        assert 0.0 <= low <= value <= high <= 1.0
    assert found["peak MB"] > found["before MB"] > 0
    assert "pairs of 256 + 256 columns in float32" in printed


def test_archives_answer_as_hour_by_hour(tmp_path):
    quick("speed.archives", "--json", str(tmp_path / "figures.json"))
    found = json.loads((tmp_path / "figures.json").read_text())
    assert found["apart"] <= found["allowed"]
    assert found["files"]["most"] < 25


def test_sparse_times_and_measures_every_method(tmp_path, monkeypatch):
    monkeypatch.delenv("SKSKETCH_DATA", raising=False)
    printed = quick("speed.sparse_rows", "--json", str(tmp_path / "figures.json"))
    results = json.loads((tmp_path / "figures.json").read_text())["results"]
    assert set(results) == {"default", "sparse"}
    for lines in results.values():
        assert set(lines) == SPARSE_METHODS
        ran = {name: line for name, line in lines.items() if not line["skipped"]}
        assert set(lines) - set(ran) <= {"gensim LsiModel"}
        for line in ran.values():
            assert line["time"] > 0
            assert line["peak_mb"] >= 0
            assert 0 <= line["covariance_error"] < 1
            assert line["projection_error"] > 1 - 1e-6
            # NaN where a method knows no bound.
            assert not line["covariance_error"] > line["certificate"] * (1 + 1e-3)
        # Two ways to the same sketch.
        errors = [lines[f"FD, {how}"]["covariance_error"] for how in ("LAPACK SVD", "Gram matrix")]
        assert errors[0] == pytest.approx(errors[1], rel=1e-3)
    assert "the paper: SFD is 10x or more against FD" in printed
    assert printed.count("growth with") == 2
    assert printed.count("largest angle") == 3


def test_memory_measures_each_estimator():
    printed = quick("speed.peak_memory")
    rows = [row for row in printed.splitlines() if row.startswith("StreamingPCA")]
    assert len(rows) == 3
    assert "FAIL" not in printed


def test_hand_written_loops_are_held_against_their_peers():
    printed = quick("speed.hand_written")
    assert "small_eigen.py: median gain" in printed
    assert "simd.py: median gain" in printed


def test_kernels_are_held_against_their_peers():
    printed = quick("speed.compiled_loops")
    for kernel in ("scatter_rows", "walsh_hadamard", "scatter_csr", "outer_csr", "normal_csr"):
        # Once with its peers, once with the time of its first call.
        assert sum(row.startswith(kernel) for row in printed.splitlines()) == 2
    assert "uncached" in printed


def test_reading_is_held_against_the_reader_of_each_format(tmp_path):
    printed = quick("speed.reading", "--json", str(tmp_path / "figures.json"))
    figures = json.loads((tmp_path / "figures.json").read_text())
    formats = {"parquet", "csv", "npy", "zarr", "svmlight", "svmlight.gz", "vw"}
    assert set(figures["results"]) == formats
    for kind, line in figures["results"].items():
        assert line["mb"] > 0
        assert sum(row.startswith(f"{kind} ") for row in printed.splitlines()) == 1
    # Ten times as fast where nothing else runs; a busy machine must not fail the tests.
    line = figures["results"]["svmlight"]
    assert line["ours"] < line["peer"]


def test_ridge_is_timed_beside_its_peers(tmp_path):
    printed = quick("speed.ridge", "--json", str(tmp_path / "figures.json"))
    results = json.loads((tmp_path / "figures.json").read_text())["results"]
    assert set(results) == {"64", "800", "sparse"}
    for result in results.values():
        lines = result["lines"]
        assert len(lines) == 9
        ran = {name: line for name, line in lines.items() if not line["skipped"]}
        assert {"Ridge lsqr", "SGDRegressor, one pass", "StreamingRidge", "  rfd 64"} <= set(ran)
        for line in ran.values():
            assert line["time"] > 0
            assert line["r2"] < 1
            # NaN where a method knows no bound.
            assert not line["coefficient_error"] > line["certificate"] + 1e-8
        assert lines["Ridge cholesky"]["coefficient_error"] < 1e-8
        # Further passes lead to the exact answer.
        assert lines["  rfd 64, refine=3"]["coefficient_error"] <= max(
            0.5 * lines["  rfd 64"]["coefficient_error"], 1e-8
        )
        assert result["paths"]["StreamingRidge.path"] > 0
    assert "where StreamingRidge, as a user gets it, loses" in printed


def test_online_learners_are_timed_beside_their_peers(tmp_path):
    printed = quick("speed.online", "--json", str(tmp_path / "figures.json"))
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert set(figures["results"]) == {"text", "dense"}
    for lines in figures["results"].values():
        ran = {name: line for name, line in lines.items() if not line["skipped"]}
        optional = ("River", "VW")
        assert all(name.startswith(optional) for name in set(lines) - set(ran))
        for name, line in ran.items():
            assert line["time"] > 0
            if name != "SGDClassifier, row by row":
                assert 0 < line["accuracy"] <= line["best_accuracy"] <= 1
    assert len(figures["growth"]) == 2
    assert "acceptance" in printed


def test_streams_are_predicted_before_they_are_learned_from(tmp_path):
    path = tmp_path / "figures.json"
    printed = quick("streams", "--json", str(path))
    results = json.loads(path.read_text())["results"]
    assert set(results["classification"]) == {"words", "breast_cancer", "digits", "Phishing"}
    assert set(results["regression"]) == {"diabetes", "TrumpApproval"}
    for task, streams in results.items():
        for name, stream in streams.items():
            if stream["skipped"]:
                assert stream["skipped"] == "River is not installed", name
                continue
            ran = {n: line for n, line in stream["lines"].items() if not line["skipped"]}
            reasons = {line["skipped"] for line in stream["lines"].values()} - {""}
            assert all("installed" in r or "small" in r for r in reasons), reasons
            kind = "Classifier" if task == "classification" else "Regressor"
            assert f"OnlineNewton{kind}" in ran
            if task == "classification":
                for line in ran.values():
                    assert 0 <= line["figures"][0] < 1
    # Another run of ours alone keeps what the peers had.
    again = quick("streams", "--json", str(path), "--methods", "Online")
    kept = json.loads(path.read_text())["results"]["classification"]["digits"]["lines"]
    assert kept["SGDClassifier"] == results["classification"]["digits"]["lines"]["SGDClassifier"]
    for text in (printed, again):
        assert "error, progressive, at defaults:" in text
        assert "below two of three peers on" in text


def test_reduced_models_are_timed_beside_their_peers(tmp_path):
    printed = quick("speed.reduction", "--json", str(tmp_path / "figures.json"))
    results = json.loads((tmp_path / "figures.json").read_text())["results"]
    assert set(results) == {"text", "wide", "solver"}
    lines = results["text"]["lines"]
    assert len(lines) == 8
    for line in lines.values():
        assert line["seconds"] > 0
        assert 0.5 < line["accuracy"] <= 1
    assert (
        lines["ReducedClassifier nordr"]["accuracy"]
        > lines["SparseRandomProjection + LinearSVC"]["accuracy"]
    )
    assert all(line["peak_gb"] > 0 for line in results["wide"]["lines"])
    assert all(line["gap"] <= 1e-3 for line in results["solver"]["lines"])
    assert "acceptance" in printed


def test_kernel_components_are_timed_beside_their_peers(tmp_path):
    printed = quick("speed.kernel_components", "--json", str(tmp_path / "figures.json"))
    results = json.loads((tmp_path / "figures.json").read_text())["results"]
    assert set(results) == {"pca", "cca"}
    (lines,) = results["pca"].values()
    assert len(lines) == 8
    for line in lines.values():
        assert min(line["seconds"]) > 0
        assert line["peak_mb"] > line["before_mb"] > 0
        assert 0.98 < line["kept"] <= 1
    # Landmarks are as good as the dense problem here.
    assert lines["StreamingKernelPCA"]["sine_squared"] < 1e-4
    (lines,) = results["cca"].values()
    assert {"StreamingKernelCCA", "dense KCCA in numpy"} <= set(lines)
    totals = [line["total"] for line in lines.values()]
    assert max(totals) - min(totals) < 0.05
    assert "acceptance" in printed


def test_clusters_are_timed_beside_their_peers(tmp_path):
    pytest.importorskip("distributed")
    printed = quick("speed.clusters", "--json", str(tmp_path / "figures.json"))
    results = json.loads((tmp_path / "figures.json").read_text())
    assert results["scaling"]["same_bits"]
    assert min(results["scaling"]["seconds"]) > 0
    peers = results["peers"]
    assert {"StreamingSVD", "svd_compressed", "dask-ml TruncatedSVD"} <= set(peers)
    # A peer that is not installed says so.
    assert all("skipped" in line or line["seconds"] > 0 for line in peers.values())
    assert peers["StreamingSVD"]["error"] < peers["svd_compressed"]["error"]
    assert "two workers" in printed


def test_the_plan_for_many_machines_is_simulated(tmp_path):
    printed = quick("scale_sim", "--json", str(tmp_path / "figures.json"))
    figures = json.loads((tmp_path / "figures.json").read_text())
    for line in figures["errors"]:
        assert line["error"] <= line["bound"] <= line["in_advance"]
    assert {line["workers"] for line in figures["table"]} == {20, 60}
    for line in figures["table"]:
        assert line["ideal"] < line["p50"] <= line["p95"]
        assert line["depth"] >= 1
    # Every tree moves each state but one.
    assert len({line["moved"] for line in figures["table"]}) == 2
    assert "the bottleneck is" in printed


def test_a_table_is_encoded_beside_a_scan_of_it(tmp_path):
    printed = quick("speed.tables", "--json", str(tmp_path / "figures.json"))
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert figures["results"]["pilot"]["ratio"] > 0
    merged = figures["merged"]
    assert merged["of these with the same features"] == merged["columns counted exactly"] > 60
    assert merged["largest difference of variances"] < 1e-9
    assert "x the scan" in printed


def test_windows_measure_every_method_on_every_stream(tmp_path):
    printed = quick("speed.windows", "--json", str(tmp_path / "figures.json"))
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert set(figures) == {"drift", "power law", "low rank", "bursts"}
    for lines in figures.values():
        assert set(lines) == {"SlidingWindow", "LM-FD", "DI-FD", "DS-FD"}
        for line in lines.values():
            assert 0.0 < line["mean error"] <= line["worst error"] < 1.0
            assert line["rows/s"] > 0
    assert printed.count("x the rows/s of") == 4


def test_a_window_of_a_long_stream_is_measured(tmp_path):
    quick("speed.windows", "--memory", "--json", str(tmp_path / "figures.json"))
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert figures["peak MB"] < 50


def test_outliers_measure_every_method(tmp_path):
    printed = quick("speed.outliers", "--json", str(tmp_path / "figures.json"))
    rows = printed.splitlines()
    assert all(method in rows[0] for method in ("fitted", "streamed", "IsolationForest"))
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert set(figures["rows/s"]) == {"5", "20", "64", "300"}
    for line in figures["auc"].values():
        assert all(0.0 <= value <= 1.0 for value in line.values())
    assert "ahead of" in printed


def test_comparisons_of_samples_are_counted(tmp_path):
    quick("speed.changes", "--json", str(tmp_path / "figures.json"))
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert figures["null pairs"]["alarms"] == 0
    assert figures["planted"]["found"] >= 0.95 * figures["planted"]["pairs"]
    assert 0.9 < figures["means"]["coverage"] < 1.0
    assert figures["means"]["false"] == 0
