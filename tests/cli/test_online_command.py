"""The command online: progressive figures, exact resume, and what it says to mistakes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import dump_svmlight_file

from sksketch import OnlineNewtonClassifier, OnlineNewtonRegressor, cli, load, open_rows
from sksketch.state.persistence import read_state

HEADER = ["rows", "since", "last", "loss", "label", "prediction"]


def vw_lines(n_rows, seed=0, labels=(-1, 1)):
    """Return lines whose labels depend on how many small numbers are among their words."""
    rng = np.random.default_rng(seed)
    words = rng.integers(0, 60, (n_rows, 8))
    y = np.array(labels)[((words < 20).sum(axis=1) > 2).astype(int)]
    rows = [" ".join(f"word{j}" for j in row) for row in words]
    return [
        f"{label} 'row{i} |text {row}" for i, (label, row) in enumerate(zip(y, rows, strict=True))
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("online")
    (place / "rows.vw").write_text("\n".join(vw_lines(700)))
    (place / "zero.vw").write_text("\n".join(vw_lines(700, labels=(0, 1))))
    rng = np.random.default_rng(1)
    X = rng.normal(size=(700, 4))
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["y"] = (X @ [0.5, -0.25, 0, 0.1]).clip(-1, 1)
    frame["kind"] = np.digitize(X[:, 0] + X[:, 1], [-1, 1]) * 10
    frame.to_csv(place / "rows.csv", index=False)
    frame.to_parquet(place / "rows.parquet")
    dump_svmlight_file(X, np.sign(X[:, 0]), str(place / "rows.svm"), zero_based=False)
    return place


@pytest.fixture
def here(folder, monkeypatch):
    monkeypatch.chdir(folder)
    return folder


def run(*arguments):
    return cli.main([str(argument) for argument in arguments])


def start(*arguments, **options):
    command = [sys.executable, "-m", "sksketch", *map(str, arguments)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, **(pipes | options))


@contextmanager
def stdin_from(path):
    """Let a file be the standard input of this process."""
    kept = os.dup(0)
    try:
        with open(path, "rb") as file:
            os.dup2(file.fileno(), 0)
        yield
    finally:
        os.dup2(kept, 0)
        os.close(kept)


def columns_of(line):
    return [float(word.replace(",", "")) for word in line.split()]


def progressive(model, X, y, **options):
    """Return the lines of the table, learning one row at a time."""
    lines, last = [], (0, 0.0)
    for i in range(len(y)):
        (found,) = model.partial_fit_predict(X[[i]], y[[i]], **options)
        n, total = i + 1, float(model.cumulative_loss_)
        if n & i == 0 or n == len(y):
            since = (total - last[1]) / (n - last[0])
            lines.append([n, since, total / n, float(y[i]), float(found)])
            last = n, total
    return lines


def rows_of(source, **options):
    (block,) = open_rows(source, batch_rows=10_000, **options).blocks()
    return block.X, block.y


@pytest.mark.parametrize("extra", [[], ["--every", 100], ["--every", 1]])
def test_the_table_is_that_of_a_loop_over_rows(extra, here, tmp_path, capsys):
    assert run("online", "rows.vw", "-o", tmp_path / "m.sks", *extra) == 0
    out, err = capsys.readouterr()
    header, *lines = out.split("\n\n")[0].splitlines()
    assert header.split() == HEADER
    X, y = rows_of("rows.vw")
    model = OnlineNewtonClassifier()
    expected = progressive(model, X, y, classes=[-1.0, 1.0])
    assert [line[0] for line in expected] == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 700]
    np.testing.assert_allclose([columns_of(line) for line in lines], expected, atol=6e-7)
    saved = load(tmp_path / "m.sks")
    np.testing.assert_array_equal(saved.coef_, model.coef_)
    assert saved.online_error_ == model.online_error_
    assert f"online error {model.online_error_:.2%}" in out
    assert f"baseline     {model.baseline_error_:.2%}" in out
    assert err == ""


def test_json_has_the_same_figures(here, tmp_path, capsys):
    path = tmp_path / "m.sks"
    arguments = ["--target", "y", "--columns", "a,b,c,d", "--task", "regress", "-o", path, "--json"]
    assert run("online", "rows.csv", *arguments) == 0
    record = json.loads(capsys.readouterr().out)
    X, y = rows_of("rows.csv", target="y", columns=list("abcd"))
    expected = progressive(model := OnlineNewtonRegressor(), X, y)
    table = [list(line.values()) for line in record["table"]]
    np.testing.assert_allclose(table, expected, rtol=1e-12)
    assert record["rows_seen"] == 700
    assert record["mean_loss"] == expected[-1][2]
    assert record["online_error"] == model.online_error_ < record["baseline_error"]
    assert record["baseline_error"] == model.baseline_error_
    largest = record["largest"]["target"]
    assert set(largest) == set("abcd")
    np.testing.assert_allclose([largest[name] for name in "abcd"], model.coef_)
    assert list(load(path).feature_names_in_) == list("abcd")


def test_models_are_applied_looked_at_and_reported(here, tmp_path, capsys):
    path, page = tmp_path / "m.sks", tmp_path / "page.html"
    for arguments, scores in (
        (["rows.vw"], ["score"]),
        (["rows.svm", "--loss", "squared", "--curvature", "gradient", "--C", 4], ["score"]),
        (["rows.svm", "--loss", "hinge", "--no-normalize"], ["score"]),
        (["rows.parquet", "-t", "kind", "--columns", "a,b"], ["score_0", "score_10", "score_20"]),
    ):
        assert run("online", *arguments, "-o", path, "-q") == 0
        assert capsys.readouterr() == ("", "")
        model = load(path)
        assert run("apply", path, arguments[0], "-o", tmp_path / "p.csv", "-q") == 0
        table = pd.read_csv(tmp_path / "p.csv")
        assert list(table) == ["prediction", *scores]
        assert run("apply", path, arguments[0], "-o", tmp_path / "p.npy", "-q") == 0
        np.testing.assert_array_equal(np.load(tmp_path / "p.npy"), table)
        assert set(table.prediction) <= set(model.classes_)
        chosen = table[scores].to_numpy()
        best = (chosen[:, 0] > 0).astype(int) if len(scores) == 1 else chosen.argmax(axis=1)
        np.testing.assert_array_equal(table.prediction, model.classes_[best])
        assert run("info", path) == 0
        text = capsys.readouterr().out
        for fact in ("method       rfd", "rows seen    700", "online error", "ridge", "intercept"):
            assert fact in text
        assert f"baseline     {model.baseline_error_:.2%}" in text
        assert run("info", path, "--json") == 0
        record = json.loads(capsys.readouterr().out)
        assert record["online_error"] == model.online_error_ < record["baseline_error"]
        assert run("report", path, "-o", page, "-q") == 0
        assert "each before it was" in page.read_text()
        assert "The commonest label so far would have been wrong for" in page.read_text()
        assert page.read_text().count("<h3>") == (4 if len(scores) == 3 else 2)


def test_no_ridge_at_the_start_is_warned_of_in_one_line(here, tmp_path, capsys):
    path = tmp_path / "m.sks"
    options = ["--curvature", "gradient", "--initial-ridge", "0", "-o", path]
    assert run("online", "rows.svm", *options, "--json") == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["rows_seen"] == 700
    (warning,) = re.findall(r"(?m)^sksketch: warning: .*$", err)
    assert "without an initial ridge" in warning


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], OnlineNewtonClassifier()),
        (["--task", "regress"], OnlineNewtonRegressor()),
        (
            ["--loss", "squared", "--curvature", "gradient", "--no-normalize"],
            OnlineNewtonClassifier(loss="squared", curvature="gradient", normalize=False),
        ),
    ],
)
def test_options_are_those_of_the_estimators(options, expected, here, tmp_path):
    assert run("online", "rows.svm", *options, "-o", tmp_path / "m.sks", "-q") == 0
    found = load(tmp_path / "m.sks")
    assert type(found) is type(expected)
    assert found.get_params() == expected.get_params()


def test_rows_without_labels_are_predicted(here, tmp_path):
    assert run("online", "rows.vw", "-o", tmp_path / "m.sks", "-q") == 0
    bare = re.sub(r"(?m)^\S+ '\S+ ", "", (here / "rows.vw").read_text())
    (tmp_path / "bare.vw").write_text(bare)
    for name in (here / "rows.vw", tmp_path / "bare.vw"):
        output = tmp_path / f"{name.stem}.npy"
        assert run("apply", tmp_path / "m.sks", name, "-o", output, "-q") == 0
    np.testing.assert_array_equal(np.load(tmp_path / "rows.npy"), np.load(tmp_path / "bare.npy"))


def test_more_passes_are_the_same_rows_again(here, tmp_path, capsys):
    path = tmp_path / "m.sks"
    assert run("online", "rows.csv", "-t", "kind", "--passes", 3, "-o", path, "--json") == 0
    record = json.loads(capsys.readouterr().out)
    assert [line["rows"] for line in record["table"]][-2:] == [2048, 2100]
    X, y = rows_of("rows.csv", target="kind")
    model = OnlineNewtonClassifier()
    for _ in range(3):
        model.partial_fit(X, y, classes=[0, 10, 20])
    np.testing.assert_array_equal(load(path).coef_, model.coef_)
    assert run("online", "-", "--passes", 2, "-o", path) == 2
    assert "stdin can be read only once" in capsys.readouterr().err


@pytest.mark.parametrize("source", ["rows.vw", "zero.vw", "rows.svm", "rows.csv"])
def test_stdin_gives_the_model_of_the_file(source, here, tmp_path):
    extra = {"svm": ["--format", "svmlight", "--n-features", 4], "vw": ["--format", "vw"]}
    extra["csv"] = ["--target", "kind", "--classes", "0,10,20"]
    options = extra[source.partition(".")[2]]
    paths = [tmp_path / "file.sks", tmp_path / "pipe.sks"]
    # The columns of the file are told by the same options.
    assert run("online", source, *options, "-o", paths[0], "-q") == 0
    with open(source, "rb") as file:
        process = start("online", "-", *options, "-o", "-", stdin=file)
        out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    paths[1].write_bytes(out)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    # The table makes room for the model.
    assert err.decode().splitlines()[0].split() == HEADER


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        ("1 |a b\n-1 |a c\n2 |a b\n", [], "row 3: the label 2 is none of -1, 1; name all labels"),
        ("0 |a b\n1 |a c\n-1 |a b\n", [], "row 3: the label -1 is none of 0, 1; name all labels"),
        ("5 |a b\n7 |a c\n", ["--classes", "5,6"], "row 2: the label 7 is none of 5, 6"),
        ("1 |a b\n-1 a c\n", [], "standard input, line 2: there is no bar"),
        ("1 |a b\n-1 -2 |a c\n", [], "standard input, line 2: the importance '-2' is not a"),
        ("1 |a b\n |a c\n", [], "standard input, line 2: missing value in target 'label'; pass --"),
        ("1 |a b:inf\n", [], "inf"),
    ],
)
def test_bad_lines_of_stdin_are_one_line_and_code_2(text, options, words, tmp_path, capsys):
    path = tmp_path / "m.sks"
    (tmp_path / "input").write_text(text)
    with stdin_from(tmp_path / "input"):
        assert run("online", "-", "--format", "vw", *options, "-o", path, "-q") == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert words in err
    assert not path.exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["rows.csv", "-t", "y"], "pass --task regress"),
        (["rows.csv"], "name the target with --target"),
        (["rows.csv", "-t", "y,kind"], "give one --target"),
        (["rows.csv", "-t", "kind", "--classes", "red,blue"], "none of blue, red"),
        (["rows.csv", "-t", "kind", "--initial-ridge", "big"], "neither auto nor a number"),
        (["rows.csv", "-t", "kind", "--method", "magic"], "magic"),
        (["rows.csv", "-t", "kind", "--loss", "magic"], "magic"),
        (["rows.csv", "-t", "kind", "--C", "-1"], "C"),
        (["rows.vw", "--n-features", "100"], "--n-features is 100; names are hashed to a power"),
        (["one.vw"], "all labels are 1, so there is nothing to tell apart"),
        (["absent.vw"], "absent.vw"),
        (["rows.vw", "rows.csv"], "give files of one kind"),
    ],
)
def test_a_wrong_option_is_one_line(arguments, words, here, tmp_path, capsys):
    many = pd.read_csv("rows.csv")
    if arguments[0] == "one.vw":
        (here / "one.vw").write_text("1 |a b\n1 |a c\n")
    if words == "pass --task regress":
        many = pd.concat([many, many.assign(y=many.y + 5)])
        many.to_csv(tmp_path / "many.csv", index=False)
        arguments = [str(tmp_path / "many.csv"), *arguments[1:]]
    assert run("online", *arguments, "-o", tmp_path / "x.sks", "-q") == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert words in err
    assert not (tmp_path / "x.sks").exists()


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
@pytest.mark.parametrize(
    "stop", [pytest.param(signal.SIGKILL, marks=pytest.mark.slow), signal.SIGINT]
)
def test_a_stopped_run_goes_on_to_the_same_file_and_table(stop, tmp_path):
    model = tmp_path / "m.sks"
    arguments = ["online", "-", "--format", "vw", "-o", model]
    # More than one block of text, so that rows are learned from while the input stays open.
    text = "\n".join(vw_lines(60_000)).encode()
    process = start(*arguments, "--every", 3000, stdin=subprocess.PIPE)
    process.stdin.write(text)
    process.stdin.flush()
    checkpoint = tmp_path / "m.sks.checkpoint"
    deadline = time.monotonic() + 120
    while not checkpoint.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(stop)
    _, err = process.communicate(timeout=120)
    n_done = read_state(checkpoint).meta["rows_done"]
    assert 0 < n_done < 60_000
    if stop == signal.SIGINT:
        assert process.returncode == 130
        assert b"Run the same command again to resume" in err.replace(b"\n", b" ")

    for what in ("info", "report"):
        extra = ["-o", tmp_path / "page.html"] if what == "report" else []
        assert run(what, checkpoint, *extra) == 0
    again = start(*arguments, "--json", stdin=subprocess.PIPE)
    out, err = again.communicate(text, timeout=120)
    assert again.returncode == 0, err
    assert b"resuming from" in err
    assert not checkpoint.exists()
    (tmp_path / "rows.vw").write_bytes(text)
    whole = start("online", tmp_path / "rows.vw", "-o", tmp_path / "w.sks", "--json")
    expected, _ = whole.communicate(timeout=120)
    assert model.read_bytes() == (tmp_path / "w.sks").read_bytes()
    assert json.loads(out)["table"] == json.loads(expected)["table"]


@pytest.mark.slow
def test_a_resumed_table_goes_on_below_the_lines_that_were_printed(here, tmp_path):
    lines, tables = vw_lines(700), []
    checkpoint = tmp_path / "run.checkpoint"
    arguments = ["online", "-", "--format", "vw", "-o", tmp_path / "m.sks"]
    arguments += ["--checkpoint", checkpoint, "--every", 50]
    # The first block of the input, which has to be the same, ends among the empty lines.
    pad = "\n" * (5 << 20)
    for text in (
        "\n".join([*lines[:300], pad, "oops"]),
        "\n".join([*lines[:300], pad, *lines[300:]]),
    ):
        process = start(*arguments, stdin=subprocess.PIPE)
        out, err = process.communicate(text.encode(), timeout=120)
        tables.append(out.decode().split("\n\n")[0].splitlines()[1:])
        if not process.returncode:
            break
        assert process.returncode == 2
        assert b"there is no bar" in err
        assert read_state(checkpoint).meta["rows_done"] == 300
    whole = start("online", here / "rows.vw", "-o", tmp_path / "w.sks")
    expected = whole.communicate(timeout=120)[0].decode().split("\n\n")[0].splitlines()[1:]
    assert tables == [expected[:-2], expected[-2:]]


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="POSIX pipes")
def test_who_reads_only_the_head_gets_the_model_and_code_0(here, tmp_path):
    model = tmp_path / "m.sks"
    with start("online", here / "rows.vw", "-o", model, "--every", 10) as process:
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(timeout=120) == 0
    assert load(model).n_samples_seen_ == 700
    with start("apply", model, here / "rows.vw", "-o", "-", "-q") as process:
        process.stdout.close()
        assert process.wait(timeout=120) == 0
        assert process.stderr.read() == b""
