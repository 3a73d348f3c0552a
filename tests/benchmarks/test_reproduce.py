"""The papers' claims are held against figures, and reports can be compared."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from _support.programs import needs_benchmarks, start

VERDICTS = {"holds", "does not hold", "not testable here"}
pytestmark = needs_benchmarks


@pytest.mark.slow
def test_every_claim_has_a_verdict(tmp_path, monkeypatch):
    monkeypatch.delenv("SKSKETCH_DATA", raising=False)
    names = ("embedding", "luo2019")
    done = start("reproduce", "--quick", "--only", *names, "--results", str(tmp_path))
    assert done.returncode == 0, done.stderr
    for name in names:
        figures = json.loads((tmp_path / f"{name}.json").read_text())
        assert {
            "python",
            "numpy",
            "scipy",
            "scikit-learn",
            "numba",
            "sksketch",
            "processor",
        } <= set(figures["versions"])
        assert figures["seeds"]
        assert figures["claims"]
        page = (tmp_path / f"{name}.md").read_text()
        for claim in figures["claims"]:
            assert claim["claim"] in done.stdout
            assert claim["claim"] in page
            assert claim["verdict"] in VERDICTS
            # What can not be decided says why.
            assert bool(claim["why"]) == (claim["verdict"] == "not testable here")
    # Ours come from what the script wrote.
    written = figures["results"]["luo2019"]["claims"]
    claims = {claim["claim"]: claim for claim in figures["claims"]}
    for claim in written:
        mine = claims[claim["claim"].strip()]
        assert mine["ours"] in ("-", claim["verdict"].rpartition(": ")[0])
    assert "Table 2: test accuracy of RFD on a9a" in done.stdout
    assert len(list((tmp_path / "luo2019").glob("*.png"))) == len(figures["pictures"]) > 0


def test_a_script_that_fails_is_shown_and_its_claims_are_not_lost():
    from benchmarks.reproduce.claims import PAPERS, Run, rows_of

    for name in set(PAPERS) - {"xie2015"}:
        rows = rows_of(name, Run(failure="exit code 1: it broke", quick=True))
        assert rows
        assert {row.verdict for row in rows} == {"not testable here"}
        assert any("it broke" in row.why for row in rows)


def report(path: Path, ratio: float) -> str:
    """Write a report with one ratio and one rate."""
    found = {
        "where": "small",
        "ours": "StreamingPCA",
        "peer": "IncrementalPCA",
        "ratio": ratio,
        "low": 0.9 * ratio,
        "high": 1.1 * ratio,
        "runs": 3,
    }
    script = {"failure": "", "ratios": [found], "rates": {"small / rate": 1e3 * ratio}}
    everything = {"versions": {"numpy": "2"}, "quick": False, "scripts": {"dense": script}}
    path.write_text(json.dumps(everything))
    return str(path)


def test_scripts_that_are_not_run_keep_their_tables(tmp_path):
    from benchmarks.lib import runs
    from benchmarks.report.__main__ import ASKED, peers

    facts = {"numpy": "2"}
    path = tmp_path / "peers.json"
    everything = json.loads(Path(report(path, 2.0)).read_text())
    everything["scripts"]["dense"] |= {"command": "python dense.py", "printed": "FAIL  slow"}
    assert runs.tables(tmp_path / "none.json", facts) == {}
    path.write_text(json.dumps(peers(everything, {})))
    first = runs.tables(path, facts)
    assert list(first) == [ASKED, "dense: python dense.py"]
    assert runs.tables(path, {"numpy": "3"}) == {}
    sparse = everything["scripts"]["dense"] | {"command": "python sparse.py", "printed": "ok  fast"}
    both = peers(everything | {"scripts": {"sparse": sparse}}, first)
    assert list(both) == ["facts", ASKED, "dense: python dense.py", "sparse: python sparse.py"]
    assert [line["script"] for line in both[ASKED]] == ["dense", "sparse"]
    # What is run again replaces what it was.
    again = peers(everything, {title: [] for title in both} | {ASKED: both[ASKED]})
    assert again["dense: python dense.py"] == first["dense: python dense.py"]
    assert len(again[ASKED]) == 2


def test_two_reports_are_shown_side_by_side(tmp_path):
    first, second = report(tmp_path / "a.json", 2.0), report(tmp_path / "b.json", 3.0)
    done = start("compare", first, second, "--rates")
    assert done.returncode == 0, done.stderr
    assert "| dense | small: StreamingPCA to IncrementalPCA | 2.00 | 3.00 | 1.50 | apart |" in (
        done.stdout
    )
    assert "| dense | small / rate | 2000 | 3000 | 1.50 |" in done.stdout
    assert "overlap" in start("compare", first, first).stdout


def test_what_is_asked_for_is_gathered_with_reasons():
    from benchmarks.report.asked import REASONS, asked, why_lost

    printed = {
        "parquet": "ok    peak memory 370 MB, under 400\nFAIL  speed over pyarrow alone 0.55",
        "online": "  FAIL  something new\nok, this is no verdict",
    }
    found = asked({name: {"printed": text} for name, text in printed.items()})
    assert [(one.script, one.met) for one in found] == [
        ("parquet", False),
        ("online", False),
        ("parquet", True),
    ]
    assert found[0].why == next(r.why for r in REASONS if r.script == "parquet")
    assert found[1].why == "no reason is known"
    assert why_lost("online", "VW") != why_lost("dask", "VW") == "no reason is known"


def test_ratios_are_found_wherever_methods_are_timed():
    from benchmarks.report.ratios import rates, ratios

    lines = {
        "StreamingPCA": {"seconds": [1.0, 2.0], "rate": 5.0},
        "  solver=exact": {"seconds": [1.0, 1.0]},
        "IncrementalPCA": {"seconds": [3.0, 4.0]},
        "TruncatedSVD": {"seconds": [], "skipped": "slow"},
    }
    (found,) = ratios([{"stream": "drifting", "d": 9, "lines": lines}])
    assert (found.where, found.ours, found.peer) == (
        "drifting d=9",
        "StreamingPCA",
        "IncrementalPCA",
    )
    assert (found.ratio, found.low, found.high, found.runs) == (3.5 / 1.5, 2.0, 3.0, 2)
    assert dict(rates(lines)) == {"StreamingPCA / rate": 5.0}
    (read,) = ratios({"csv": {"ours": 1.0, "peer": 0.5}})
    assert (read.where, read.ratio) == ("csv", 0.5)
    sizes = [("StreamingPCA", 10, 1.0), ("StreamingPCA", 90, 9.0), ("PCA", 10, 2.0)]
    records = [{"method": m, "n_rows": n, "seconds": s} for m, n, s in sizes]
    # Only what had the same rows is compared.
    assert [(r.where, r.ratio) for r in ratios(records)] == [("10 rows", 2.0)]
    # Slow peers get fewer rows, and sketches are compared with those of their size.
    slow = {
        "OnlineNewtonClassifier m=5": {"n_rows": 100, "seconds": [1.0]},
        "paper m=5": {"n_rows": 10, "seconds": [2.0]},
        "paper m=50": {"n_rows": 10, "seconds": [9.0]},
    }
    assert [(r.peer, r.ratio) for r in ratios(slow)] == [("paper m=5", 20.0)]


def test_claims_without_data_say_which_are_missing():
    from benchmarks.reproduce.claims import Run, rows_of

    reason = "set SKSKETCH_DATA to the folder"
    printed = f"news: word counts\n  skipped: {reason}\na9a skipped: {reason}\n3 s in all\n"
    for name, words in (("ghashami2016", "news: speed"), ("luo2019", "RFD on a9a")):
        rows = [row for row in rows_of(name, Run(printed=printed)) if words in row.claim]
        assert rows
        assert all(reason in row.why for row in rows)
