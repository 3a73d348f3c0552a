"""The commands: what they print, what they leave behind and how they refuse."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from sksketch import FrequentDirections, StreamingPCA, cli, load
from sksketch.cli import app


@pytest.fixture
def saved(tmp_path):
    """Two files of sketches of the same six columns, and the rows they saw."""
    rng = np.random.default_rng(7)
    halves = [rng.normal(size=(50, 6)), rng.normal(size=(30, 6))]
    paths = [tmp_path / "a.sks", tmp_path / "b.sks"]
    for path, rows in zip(paths, halves, strict=True):
        FrequentDirections(4, solver="exact").update(rows).save(path)
    return paths, halves


def assert_one_line(text):
    assert text.startswith("sksketch: ")
    assert text.count("\n") == 1
    assert text.endswith("\n")


def test_info_prints_what_the_sketch_saw_and_certifies(saved, capsys):
    (path, _), _ = saved
    assert cli.main(["info", str(path)]) == 0
    out, err = capsys.readouterr()
    assert "rows seen    50" in out
    assert str(load(path).certificate()) in out
    assert err == ""


def test_info_as_json_agrees_with_the_sketch(saved, capsys):
    (path, _), _ = saved
    assert cli.main(["info", str(path), "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    certificate = load(path).certificate()
    assert record["rows_seen"] == 50
    assert record["columns"] == 6
    assert record["certificate"]["n_certain"] == certificate.n_certain
    np.testing.assert_array_equal(record["certificate"]["eigenvalues"], certificate.eigenvalues)


def test_info_on_a_sketch_without_rows_says_so(tmp_path, capsys):
    path = tmp_path / "empty.sks"
    FrequentDirections(4).save(path)
    assert cli.main(["info", str(path)]) == 0
    assert "no rows yet" in capsys.readouterr().out
    assert cli.main(["info", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["certificate"] is None


def test_info_and_merge_take_saved_estimators(tmp_path, capsys):
    rows = np.random.default_rng(1).normal(size=(60, 5))
    paths = [str(tmp_path / name) for name in ("a.sks", "b.sks", "c.sks")]
    StreamingPCA(2).fit(rows[:40]).save(paths[0])
    StreamingPCA(2).fit(rows[40:]).save(paths[1])
    assert cli.main(["merge", *paths[:2], "-o", paths[2]]) == 0
    assert "streaming-pca" in capsys.readouterr().out
    whole = StreamingPCA(2).fit(rows)
    np.testing.assert_allclose(load(paths[2]).explained_variance_, whole.explained_variance_)


def test_merge_saves_what_merging_by_hand_gives(saved, tmp_path, capsys):
    (a, b), _ = saved
    merged = tmp_path / "c.sks"
    assert cli.main(["merge", str(a), str(b), "-o", str(merged)]) == 0
    expected = load(a).merge(load(b)).summary()
    found = load(merged)
    assert found.n_rows_seen == 80
    np.testing.assert_array_equal(found.summary().eigenvalues, expected.eigenvalues)
    out, err = capsys.readouterr()
    assert "rows seen    80" in out
    assert "merged 2 files" in err


def test_a_missing_file_is_one_line_and_code_2(tmp_path, capsys):
    assert cli.main(["info", str(tmp_path / "absent.sks")]) == 2
    out, err = capsys.readouterr()
    assert_one_line(err)
    assert "absent.sks" in err
    assert out == ""


def test_a_foreign_file_is_one_line_and_code_2(tmp_path, capsys):
    path = tmp_path / "notes.sks"
    path.write_text("not a sketch\n" * 20)
    assert cli.main(["info", str(path)]) == 2
    assert_one_line(capsys.readouterr().err)


def test_sketches_of_different_columns_are_refused_and_nothing_is_written(saved, tmp_path, capsys):
    (a, _), _ = saved
    other = tmp_path / "wide.sks"
    FrequentDirections(4, solver="exact").update(np.ones((5, 9))).save(other)
    assert cli.main(["merge", str(a), str(other), "-o", str(tmp_path / "c.sks")]) == 2
    assert_one_line(capsys.readouterr().err)
    assert not (tmp_path / "c.sks").exists()


@pytest.mark.parametrize(
    "arguments", [["fly"], ["info"], ["merge", "a.sks", "-o", "c.sks"], ["info", "--colour", "x"]]
)
def test_a_wrong_call_is_one_line_and_code_2(arguments, capsys):
    assert cli.main(arguments) == 2
    assert_one_line(capsys.readouterr().err)


def test_help_is_not_a_mistake(capsys):
    assert cli.main(["--help"]) == 0
    assert "tour" in capsys.readouterr().out


def test_what_nobody_expected_is_a_traceback_and_code_1(tmp_path):
    # A command that breaks, run as a program of its own: main has no answer to this.
    program = (
        "import sys\n"
        "from sksketch import cli\n"
        "from sksketch.cli.commands import tour as touring\n"
        "def tour() -> None:\n"
        "    raise RuntimeError('a mistake of ours')\n"
        "touring.tour = tour\n"
        "sys.exit(cli.main(['tour']))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("Traceback (most recent call last):")
    assert done.stderr.endswith("RuntimeError: a mistake of ours\n")
    assert done.stdout == ""


@pytest.mark.parametrize(("arguments", "code"), [(["--help"], 0), (["info", "absent.sks"], 2)])
def test_the_program_ends_with_the_code_of_main(arguments, code, tmp_path):
    command = [sys.executable, "-m", "sksketch", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == code
    assert bool(done.stdout) == (code == 0)
    assert "Traceback" not in done.stderr


def test_a_missing_extra_is_named(monkeypatch, capsys):
    monkeypatch.setattr(app, "_MISSING", "typer")
    assert cli.main(["tour"]) == 2
    assert_one_line(err := capsys.readouterr().err)
    assert "pip install 'scikit-sketch[cli]'" in err


def test_tour_prints_its_findings_and_writes_the_picture(tmp_path, capsys):
    picture = tmp_path / "tour.png"
    arguments = ["tour", "--rows", "4000", "--columns", "60", "--picture", str(picture)]
    assert cli.main(arguments) == 0
    out, err = capsys.readouterr()
    for words in ("plan:", "certified error", "true error", "rows sketched per second", "memory"):
        assert words in out
    assert "sketching" in err
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_tour_as_json_is_one_object_whose_bound_holds(tmp_path, capsys):
    picture = tmp_path / "tour.png"
    arguments = ["tour", "--json", "--rows", "4000", "--columns", "60", "--picture", str(picture)]
    assert cli.main(arguments) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["n_rows"] == 4000
    assert report["true_error"] <= report["error_bound"] + 1e-10
    for (low, high), true in zip(report["variance_bounds"], report["true_variances"], strict=True):
        assert low * (1 - 1e-9) <= true <= high * (1 + 1e-9)


def test_the_module_runs_as_a_program(saved):
    (path, _), _ = saved
    done = subprocess.run(
        [sys.executable, "-m", "sksketch", "info", str(path)], capture_output=True, text=True
    )
    assert done.returncode == 0
    assert "rows seen" in done.stdout
