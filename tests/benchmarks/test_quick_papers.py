"""The papers' benchmarks run in their quick forms, and their tables are whole."""

from __future__ import annotations

import json

import pytest

from _support.programs import needs_benchmarks, quick

pytestmark = needs_benchmarks
slow = pytest.mark.slow


def test_embedding_errors_are_held_against_theory():
    printed = quick("papers.embedding")
    rows = [row.split() for row in printed.splitlines()[3:]]
    assert len(rows) == 20
    for row in rows:
        # Over 20 seeds the measured norm is near the exact one, and the median below its bound.
        assert float(row[5]) < 1
        assert 0.6 < float(row[8]) < 1.5


@slow
def test_the_ridge_paper_is_repeated_with_every_method(tmp_path, monkeypatch):
    monkeypatch.delenv("SKSKETCH_DATA", raising=False)
    printed = quick("papers.shi2021", "--output", str(tmp_path))
    figures = json.loads((tmp_path / "shi2021.json").read_text())
    records = figures["records"]
    family = {"FDRR", "RFDRR", "iSVDRR", "energy", "RPRR", "CSRR"}
    expected = {"RR", "RR numpy", "2LFDRR", *family, *(f"{name} printed" for name in family)}
    assert {record["method"] for record in records} == expected
    assert {record["data"] for record in records} == {"LR", "LR sd 4", "HR", "HR sd 4"}
    for record in records:
        assert record["train"] >= 0
        assert 0 <= record["coefficient_error"] <= record["certificate"] + 1e-8
        if record["method"] == "RR":
            assert record["coefficient_error"] < 1e-8
    assert figures["seeds"] == [0, 1]
    assert len(list(tmp_path.glob("*.png"))) == 4
    assert "0 of them are wrong" in printed
    for claim in figures["claims"]:
        assert claim["claim"] in printed
        assert any(word in str(claim) for word in ("holds", "does not hold", "not testable"))
    theorems = [claim for claim in figures["claims"] if claim["claim"].startswith("Theorem")]
    assert len(theorems) == 2
    assert all(claim["printed"].endswith(": holds") for claim in theorems)


@slow
def test_hidden_classes_are_found_from_three_views(tmp_path):
    printed = quick("papers.xie2015.latent", "--output", str(tmp_path))
    figures = json.loads((tmp_path / "xie2015_latent.json").read_text())
    records = figures["records"]
    assert {r["method"] for r in records} == {"RFF 64", "RFF 512", "Nystrom 16", "Nystrom 64"}
    assert {r["bandwidth"] for r in records} == {2.239, 0.3}
    for record in records:
        assert record["weight_error"] < 0.02
        assert max(record["lifted"]) < 0.03
    for claim in figures["claims"]:
        assert claim["claim"] in printed
        assert claim["verdict"].endswith(("holds", "does not hold"))


@slow
def test_the_paper_of_the_online_learners_is_repeated(tmp_path, monkeypatch):
    monkeypatch.delenv("SKSKETCH_DATA", raising=False)
    printed = quick("papers.luo2019", "--output", str(tmp_path))
    figures = json.loads((tmp_path / "luo2019.json").read_text())
    records = figures["records"]
    tuned = {"AdaGrad", "OGD", "FULL-ON", "FD", "PFD", "RP", "Oja", "RFD"}
    assert {record["method"] for record in records} == tuned | {"RFD0", "default"}
    for record in records:
        assert 0 < record["accuracy"] <= 100
        assert record["curve"][-1][1] == pytest.approx(record["online_error"])
    assert "stand in for a9a" in printed
    for claim in figures["claims"]:
        assert claim["claim"] in printed
        assert claim["verdict"].endswith(("holds", "does not hold", "not testable"))
    assert len(list(tmp_path.glob("*.png"))) == 2


@slow
def test_the_paper_of_the_reductions_is_repeated(tmp_path, monkeypatch):
    monkeypatch.delenv("SKSKETCH_DATA", raising=False)
    printed = quick("papers.xu2017", "--output", str(tmp_path))
    figures = json.loads((tmp_path / "xu2017.json").read_text())
    records = figures["synthetic"]
    operators = ("rs", "rg", "srht", "rh")
    kinds = ("nor", "rp", "rpdr", "dsrr0.5", "dsrr0.9")
    methods = {f"{kind} {operator}" for kind in kinds for operator in operators}
    assert {r["method"] for r in records} == methods | {"full", "nor rh +1", "nordr rh"}
    assert {(r["data"], r["alpha"]) for r in records} == {
        (data, alpha) for data in ("exp-1", "poly-1", "poly-0.5") for alpha in (1e-3, 1e-4)
    }
    for record in records:
        assert 0 <= record["error"] < 0.7
        assert record["duality_gap"] <= 1e-3
        assert record["true_gap"] <= record["certificate"] + 1e-9
    for claim in figures["claims"]:
        assert claim["claim"] in printed
        assert claim["verdict"].endswith(("holds", "does not hold", "not testable"))
    assert len(list(tmp_path.glob("*.png"))) == 1


@slow
def test_the_paper_of_the_kernel_components_is_repeated(tmp_path, monkeypatch):
    monkeypatch.delenv("SKSKETCH_DATA", raising=False)
    printed = quick("papers.xie2015", "--output", str(tmp_path))
    parts = {
        name: json.loads((tmp_path / f"xie2015_{name}.json").read_text())
        for name in ("hermite", "optimisers", "table3")
    }
    hermite = parts["hermite"]["run"]
    assert hermite["errors"][-1] < 1e-3
    assert hermite["eigenvalues"] == pytest.approx([0.61803, 0.23607, 0.09017], rel=0.05)
    assert len(list(tmp_path.glob("*.png"))) == 2
    efforts = parts["optimisers"]["efforts"]
    assert {e["method"] for e in efforts} == {
        "Oja, scalar step",
        "Oja, matrix step",
        "block Krylov",
    }
    assert all(e["sine_squared"] < 1e-4 for e in efforts if e["effort"] == 4)
    records = parts["table3"]["records"]
    assert {r["data"] for r in records} == {"8 x 8 digits", "deformed"}
    assert {r["method"] for r in records} == {
        "linear",
        "RFF",
        "Nystrom",
        "DSGD plain",
        "DSGD preconditioned",
    }
    assert all(5 < r["paired"] < 10 and 5 < r["canonical"] < 10 for r in records)
    for part in parts.values():
        for claim in part["claims"]:
            assert claim["claim"] in printed
            assert claim["verdict"].endswith(("holds", "does not hold", "not testable"))
