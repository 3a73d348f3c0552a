"""Windows, archives, comparisons and anomalies from the command line."""

import json

import numpy as np
import pandas as pd
import pytest

from sksketch import StreamingPCA, StreamingRidge, load
from sksketch.cli import main


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    n = 1200
    frame = pd.DataFrame(rng.standard_normal((n, 4)) * [3, 1, 1, 0.5], columns=list("abcd"))
    frame["y"] = frame.a - frame.b + 0.1 * rng.standard_normal(n)
    frame["when"] = pd.date_range("2026-03-01", periods=n, freq="h")
    frame["name"] = [f"r{i}" for i in range(n)]
    frame.loc[77, "c"] = 15.0
    frame.to_csv("rows.csv", index=False)
    frame.to_parquet("rows.parquet")
    frame[list("abcd")].to_csv("numbers.csv", index=False)
    return frame


def test_windows_and_half_lives(table, capsys):
    X = table[list("abcd")].to_numpy()
    assert main(["pca", "numbers.csv", "-k", "2", "--window", "300", "-o", "w.sks", "-q"]) == 0
    found = load("w.sks")
    np.testing.assert_allclose(found.mean_, X[-300:].mean(0), atol=1e-9)
    for source in ("rows.csv", "rows.parquet"):
        command = ["svd", source, "--columns", "a,b,c,d", "--window", "7d", "--time", "when"]
        assert main([*command, "-k", "2", "-o", "w.sks", "-q"]) == 0
        found = load("w.sks")
        assert found.n_samples_seen_ == 7 * 24
        exact = np.linalg.svd(X[-168:], compute_uv=False)[:2]
        np.testing.assert_allclose(found.singular_values_, exact, rtol=1e-9)
    command = ["ridge", "rows.csv", "--target", "y", "--exclude", "name", "--window", "10d"]
    assert main([*command, "--time", "when", "-o", "r.sks", "-q"]) == 0
    exact = StreamingRidge(1.0).fit(X[-240:], table.y[-240:])
    np.testing.assert_allclose(load("r.sks").coef_, exact.coef_, rtol=1e-9)
    assert main(["pca", "numbers.csv", "--half-life", "50", "-o", "h.sks", "-q"]) == 0
    exact = StreamingPCA(half_life=50.0).fit(X)
    np.testing.assert_allclose(load("h.sks").mean_, exact.mean_)
    capsys.readouterr()
    assert main(["info", "w.sks"]) == 0
    assert "SlidingWindow" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--window", "7d"], "name the column of times with --time"),
        (["--time", "when"], "--time is for --window"),
        (["--window", "7d", "--time", "nothing"], "no column 'nothing'"),
        (["--window", "week", "--time", "when"], "window is 'week'"),
        (["--window", "0"], "window is 0"),
        (["--window", "9", "--half-life", "3"], "at most one of them"),
        (["--from", "2026-01-01"], "--from and --to are for an archive"),
        (["--window", "1d", "--time", "when", "--workers", "2"], "rows in their order"),
        (["--window", "1d", "--time", "name"], "could not read times"),
    ],
)
def test_mistakes_are_one_line(words, message, table, capsys):
    command = ["pca", "rows.csv", "--columns", "a,b,c,d", *words, "-o", "x.sks", "-q"]
    assert main(command) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_times_out_of_order_are_refused(table, capsys):
    table.iloc[::-1].to_csv("back.csv", index=False)
    command = ["pca", "back.csv", "--columns", "a,b,c,d", "--window", "1d", "--time", "when"]
    assert main([*command, "-o", "x.sks", "-q"]) == 2
    assert "give rows in order of time" in capsys.readouterr().err


def test_an_archive_from_the_first_to_the_last_command(table, capsys):
    for i in range(4):
        table[list("abcd")][i * 300 : i * 300 + 300].to_csv("part.csv", index=False)
        assert main(["pca", "part.csv", "-o", "part.sks", "-q"]) == 0
        period = ["--from", f"2026-0{i + 1}-01", "--to", f"2026-0{i + 2}-01"]
        assert main(["archive", "add", "months", "part.sks", *period]) == 0
    assert "months has 4 periods" in capsys.readouterr().err
    assert main(["archive", "list", "months", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert listed[1] == {"from": "2026-02-01", "to": "2026-03-01"}
    some = ["--from", "2026-02-01", "--to", "2026-04-01"]
    assert main(["archive", "query", "months", *some, "-o", "some.sks"]) == 0
    assert load("some.sks").n_samples_seen_ == 600
    assert main(["pca", "months", *some, "-k", "1", "-o", "model.sks", "-q"]) == 0
    X = table[list("abcd")].to_numpy()[300:900]
    np.testing.assert_allclose(load("model.sks").mean_, X.mean(0), atol=1e-12)
    assert list(load("model.sks").feature_names_in_) == list("abcd")
    capsys.readouterr()
    for words, message in (
        (["archive", "list", "years"], "no archive here; check the path: years"),
        (["archive", "add", "months", "part.sks", *period], "--replace"),
        (["archive", "query", "months", "--from", "2026-02-15", "-o", "x.sks"], "cuts the period"),
        (["pca", "months", "--to", "2026-09-01", "-o", "x.sks"], "no state from"),
        (["pca", "months", "--window", "5", "-o", "x.sks"], "are for rows"),
        (["archive", "add", "rows.csv", "part.sks", *period], "is a directory"),
    ):
        assert main(words) == 2
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1
    assert main(["archive", "add", "months", "part.sks", *period, "--replace"]) == 0


def test_compare(table, capsys):
    table[list("abcd")].mul([1, 1, 1, 9]).to_csv("other.csv", index=False)
    for name in ("numbers", "other"):
        assert main(["pca", f"{name}.csv", "-o", f"{name}.sks", "-q"]) == 0
    capsys.readouterr()
    assert main(["compare", "numbers.sks", "other.sks"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "certainly changed: 1,200 and 1,200 rows, at confidence 0.99"
    assert any(line.split()[:1] == ["d"] for line in lines)
    assert main(["compare", "numbers.sks", "numbers.sks", "--json"]) == 0
    plain = json.loads(capsys.readouterr().out)
    assert not plain["distinguishable"]
    assert plain["n_changed"] == 0
    assert main(["sketch", "numbers.csv", "--for", "pca", "-o", "s.sks", "-q"]) == 0
    assert main(["compare", "s.sks", "other.sks", "--confidence", "0"]) == 0
    assert "as the rows are" in capsys.readouterr().out


def test_anomalies(table, capsys):
    command = ["anomalies", "rows.csv", "--columns", "a,b,c,d", "--id", "name", "--top", "3"]
    assert main([*command, "--save", "detector.sks"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith(f"with scores below {load('detector.sks').offset_:.4g}")
    assert lines[1].startswith("  row 77 name=r77: ")
    assert " by c " in lines[1]
    assert main(["anomalies", "numbers.csv", "--model", "detector.sks", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["rows"] == 1200
    assert found["top"][0]["row"] == 77
    assert next(iter(found["top"][0]["columns"])) == "c"
    assert main(["info", "detector.sks"]) == 0
    assert main(["pca", "numbers.csv", "-o", "pca.sks", "-q"]) == 0
    capsys.readouterr()
    assert main(["anomalies", "numbers.csv", "--model", "pca.sks"]) == 2
    assert "a detector is needed" in capsys.readouterr().err


def test_a_report_says_what_changed(table):
    table[list("abcd")].mul([1, 1, 1, 9]).to_csv("other.csv", index=False)
    for name in ("numbers", "other"):
        assert main(["pca", f"{name}.csv", "-o", f"{name}.sks", "-q"]) == 0
    command = ["report", "other.sks", "--before", "numbers.sks", "-o", "report.html", "-q"]
    assert main(command) == 0
    with open("report.html", encoding="utf-8") as file:
        page = file.read()
    assert "What changed" in page
    assert "Certainly changed: 1,200 and 1,200 rows" in page
    assert main(["pca", "numbers.csv", "--window", "300", "-o", "window.sks", "-q"]) == 0
    for name in ("numbers", "window"):
        assert main(["report", f"{name}.sks", "-o", "other.html", "-q"]) == 0


def test_the_report_of_an_archive_shows_drift(table, capsys):
    rng = np.random.default_rng(0)
    for i in (0, 1, 2, 4, 5):
        rows = pd.DataFrame(rng.standard_normal((300, 4)), columns=["a", "b", "<c>", "d"])
        rows["<c>"] *= 3.0 if i == 4 else 1.0
        rows.to_csv("part.csv", index=False)
        assert main(["pca", "part.csv", "-o", "part.sks", "-q"]) == 0
        period = ["--from", f"2026-0{i + 1}-01", "--to", f"2026-0{i + 2}-01"]
        assert main(["archive", "add", "months", "part.sks", *period]) == 0
    assert main(["report", "months", "-o", "drift.html", "-q"]) == 0
    with open("drift.html", encoding="utf-8") as file:
        page = file.read()
    assert "Period by period" in page
    assert "1 of 4 periods certainly changed" in page
    assert "2026-05-01" in page
    assert "&lt;c&gt;, " in page
    # Of both periods since the one that is missing.
    assert "600 rows of 4 columns" in page
    assert main(["report", "months", "--before", "part.sks", "-o", "drift.html", "-q"]) == 0
    capsys.readouterr()
    assert main(["report", "months", "-o", "months", "-q"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def months(folder):
    """Write two months of a table that nobody prepared, the second in larger numbers."""
    rng = np.random.default_rng(0)
    for name, factor in (("jan", 1.0), ("feb", 3.0)):
        frame = pd.DataFrame(
            {
                "meter": rng.integers(0, 300, 900),
                "city": rng.choice(["Oslo", "Bergen", None], 900),
                "load": factor * rng.standard_normal(900) + 50.0,
                "always": 1,
            }
        )
        frame.to_csv(folder / f"{name}.csv", index=False)


def test_months_of_a_raw_table_compare_merge_and_are_archived(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    months(tmp_path)
    learn = ["-k", "2", "--quiet", "-o"]
    assert main(["pca", "jan.csv", *learn, "jan.sks"]) == 0
    assert main(["pca", "feb.csv", *learn, "alone.sks"]) == 0
    january, february = ["--from", "0", "--to", "1"], ["--from", "1", "--to", "2"]
    assert main(["archive", "add", "year", "jan.sks", *january]) == 0
    capsys.readouterr()
    # Each in units of its own rows: not to be mixed, and the way out is named.
    for line, remedy in (
        (["compare", "jan.sks", "alone.sks"], "--like jan.sks"),
        (["merge", "jan.sks", "alone.sks", "-o", "no.sks"], "--like"),
        (["report", "alone.sks", "--before", "jan.sks", "-o", "no.html"], "--like jan.sks"),
        (["archive", "add", "year", "alone.sks", *february], "--like year"),
        (["pca", "feb.csv", "--like", "jan.sks", "--columns", "load", *learn, "no.sks"], "leave"),
    ):
        assert main(line) == 2
        assert remedy in capsys.readouterr().err
    for like in ("jan.sks", "year"):
        assert main(["pca", "feb.csv", "--like", like, *learn, "feb.sks"]) == 0
    capsys.readouterr()
    assert main(["compare", "jan.sks", "feb.sks", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["distinguishable"]
    assert found["columns"][0]["name"] == "load"
    # In the units of January the variance is nine times as large.
    assert found["columns"][0]["variances"] == pytest.approx([1.0, 9.0], rel=0.15)
    assert main(["archive", "add", "year", "feb.sks", *february]) == 0
    assert main(["archive", "query", "year", "-o", "both.sks"]) == 0
    assert main(["merge", "jan.sks", "feb.sks", "-o", "merged.sks"]) == 0
    capsys.readouterr()
    assert main(["info", "both.sks", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows_seen"] == 1800
    one, other = (load(name).steps[1][1].certificate_ for name in ("both.sks", "merged.sks"))
    assert str(one) == str(other)
    assert main(["apply", "both.sks", "feb.csv", "-o", "scores.npy"]) == 0
    assert np.load("scores.npy").shape == (900, 2)


def test_the_last_week_of_a_raw_table(table, capsys):
    frame = pd.read_csv("rows.csv")
    frame["city"] = np.where(np.arange(len(frame)) % 3, "Oslo", "Bergen")
    frame.loc[5, "a"] = np.nan
    frame.to_csv("raw.csv", index=False)
    window = ["--window", "7d", "--time", "when", "--exclude", "name", "-k", "2", "-o"]
    assert main(["pca", "raw.csv", *window, "week.sks"]) == 0
    encoder, model = (step for _, step in load("week.sks").steps)
    assert "when" not in encoder.feature_names_in_
    assert model.n_samples_seen_ == 7 * 24
    last = encoder.transform(frame.drop(columns=["when", "name"]).tail(7 * 24))
    np.testing.assert_allclose(model.mean_, last.mean(axis=0), atol=1e-9)
    # The units of another table, and rows with holes left out.
    assert main(["pca", "raw.csv", *window[:4], "--like", "week.sks", "-o", "same.sks"]) == 0
    again = load("same.sks").steps[1][1]
    np.testing.assert_array_equal(again.mean_, model.mean_)
    assert main(["pca", "raw.csv", *window, "dropped.sks", "--missing", "drop"]) == 0
    assert "1 rows left out" in capsys.readouterr().out
