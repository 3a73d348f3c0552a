"""The commands that learn, on files as users have them: every example of the help runs."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

from sksketch import StreamingPCA, StreamingRidge, StreamingSVD, cli, load
from sksketch.cli.help import EXAMPLES
from sksketch.cli.memory import largest_sketch, parse_size
from sksketch.state.persistence import read_state

README = Path(__file__).parents[2] / "README.md"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A directory with the files that the examples name."""
    place = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(600, 4)) * [5, 3, 1, 1], columns=list("abcd"))
    frame["y"] = 2 * frame.a - frame.b + 1
    frame.to_parquet(place / "rows.parquet")
    frame.to_csv(place / "rows.csv", index=False)
    frame[:350].to_parquet(place / "part1.parquet")
    frame[350:].to_parquet(place / "part2.parquet")
    frame.round(3).to_csv(place / "export.csv", index=False, sep=";", decimal=",", na_rep="-")
    (place / "days").mkdir()
    for day in range(3):
        frame[day * 200 : (day + 1) * 200].to_csv(place / "days" / f"{day}.csv", index=False)
    np.save(place / "rows.npy", frame.to_numpy())
    counts = sp.random(200, 40, 0.1, format="csr", random_state=0)
    dump_svmlight_file(counts, np.zeros(200), str(place / "counts.svm"), zero_based=False)
    labels = np.sign(counts.sum(axis=1).A1 - 2.0)
    dump_svmlight_file(counts, labels, str(place / "labels.svm"), zero_based=False)
    lines = [f"{y:g} |user u{i % 7} |page p{i % 3}" for i, y in enumerate(labels)]
    (place / "clicks.vw").write_text("\n".join(lines))
    return place


@pytest.fixture
def here(folder, monkeypatch):
    """Run in that directory."""
    monkeypatch.chdir(folder)
    return pd.read_csv(folder / "rows.csv")


def run(*arguments):
    return cli.main([str(argument) for argument in arguments])


def start(*arguments, **options):
    command = [sys.executable, "-m", "sksketch", *map(str, arguments)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, **(pipes | options))


def run_line(line, capfd):
    """Run one line of an example, with the pipes of a shell replaced by what they would do."""
    words = line.replace("days/*.csv", "days/0.csv days/1.csv days/2.csv").split()
    if "|" not in words:
        return run(*words[1:])
    if words[0] != "cat":
        return run(*words[1 : words.index("|")])
    with open(words[1], "rb") as file:
        process = start(*words[words.index("|") + 2 :], stdin=file)
        process.communicate(timeout=60)
    return process.returncode


@pytest.mark.parametrize("command", [name for name in EXAMPLES if name != "tour"])
def test_every_example_of_the_help_runs(command, here, capfd):
    if command in ("apply", "info", "merge", "report", "compare") or " " in command:
        # They take what others have saved.
        for line in (*EXAMPLES["sketch"][:2], *EXAMPLES["ridge"][:2]):
            assert run_line(line, capfd) == 0
    if command in ("archive query", "archive list") and not Path("kept").exists():
        assert run_line(EXAMPLES["archive add"][0], capfd) == 0
    capfd.readouterr()
    assert run(*command.split(), "--help") == 0
    shown = capfd.readouterr().out
    for line in EXAMPLES[command]:
        assert line in shown
        assert run_line(line, capfd) == 0, line
    assert not list(Path().glob("*.checkpoint"))


def test_the_commands_of_the_readme_run(here, capfd):
    lines = re.findall(r"^(?:sksketch|cat) [^#\n]*", README.read_text(), re.M)
    assert len(lines) >= 6
    for line in lines:
        if "tour" not in line:
            assert run_line(line.strip(), capfd) == 0, line


def test_pca_of_any_format_is_that_of_the_library(here, tmp_path, capsys):
    expected = StreamingPCA(2).fit(here.to_numpy())
    for source in ("rows.csv", "rows.parquet", "rows.npy", "days"):
        assert run("pca", source, "-k", 2, "-o", tmp_path / "m.sks", "--json") == 0
        record = json.loads(capsys.readouterr().out)
        np.testing.assert_allclose(record["explained_variance"], expected.explained_variance_)
        model = load(tmp_path / "m.sks")
        assert model.n_samples_seen_ == record["rows_seen"] == 600
        if source != "rows.npy":
            assert list(model.feature_names_in_) == list("abcdy") == record["feature_names"]


def test_ridge_and_its_predictions(here, tmp_path, capsys):
    model, out = tmp_path / "m.sks", tmp_path / "p.npy"
    assert run("ridge", "rows.csv", "-t", "y", "--alpha", 0.5, "-o", model, "--quiet") == 0
    assert capsys.readouterr() == ("", "")
    expected = StreamingRidge(0.5).fit(here[list("abcd")].to_numpy(), here.y.to_numpy())
    np.testing.assert_allclose(load(model).coef_, expected.coef_)
    # The columns are found by name, whatever their order is.
    here[list("ydcba")].to_csv(tmp_path / "other.csv", index=False)
    assert run("apply", model, tmp_path / "other.csv", "-o", out, "-q") == 0
    np.testing.assert_allclose(
        np.load(out), expected.predict(here[list("abcd")].to_numpy()), rtol=1e-10
    )
    assert run("ridge", "rows.npy", "-t", 4, "-o", model, "-q") == 0
    assert run("apply", model, "rows.npy", "--columns", "0,1,2,3", "-o", out, "-q") == 0
    np.testing.assert_allclose(np.load(out), here.y, atol=0.05)
    assert run("ridge", "rows.csv", "-o", model) == 2
    assert "--target" in capsys.readouterr().err


def test_apply_writes_the_same_numbers_everywhere(here, tmp_path, capfd):
    model = tmp_path / "m.sks"
    assert run("svd", "rows.csv", "-k", 2, "--dtype", "float32", "-o", model, "-q") == 0
    capfd.readouterr()
    for output in ("s.npy", "s.csv"):
        assert run("apply", model, "rows.csv", "-o", tmp_path / output, "-q") == 0
    assert run("apply", model, "rows.csv", "-o", "-", "-q") == 0
    text = capfd.readouterr().out
    assert text == (tmp_path / "s.csv").read_text()
    table = pd.read_csv(tmp_path / "s.csv")
    assert list(table) == ["streamingsvd0", "streamingsvd1"]
    np.testing.assert_array_equal(np.load(tmp_path / "s.npy"), table.to_numpy())
    fitted = StreamingSVD(2).fit(here.to_numpy().astype(np.float32))
    np.testing.assert_allclose(
        table, fitted.transform(here.to_numpy().astype(np.float32)), atol=1e-4
    )
    sketch = tmp_path / "a.sks"
    assert run("sketch", "rows.csv", "-o", sketch, "-q") == 0
    assert run("apply", sketch, "rows.csv", "-o", tmp_path / "s.npy") == 2
    assert run("apply", model, "rows.csv", "-o", tmp_path / "s.xls") == 2
    assert run("apply", model, "counts.svm", "-o", tmp_path / "s.npy") == 2


@pytest.mark.parametrize(
    ("purpose", "options"),
    [("pca", []), ("svd", []), ("ridge", ["-t", "y"]), ("ridge", ["-t", "y", "--sketch", "sign"])],
)
def test_parts_sketched_apart_give_the_model_of_all_rows(purpose, options, here, tmp_path, capsys):
    parts = [tmp_path / "a.sks", tmp_path / "b.sks"]
    for shard, part in enumerate(parts):
        extra = ["--for", purpose, *options, "--shard", shard]
        assert run("sketch", f"part{shard + 1}.parquet", *extra, "-o", part, "-q") == 0
    assert run("merge", *parts, "-o", tmp_path / "all.sks") == 0
    for sources in ([tmp_path / "all.sks"], parts):
        assert run(purpose, *sources, "-o", tmp_path / "m.sks", "-q") == 0
        model = load(tmp_path / "m.sks")
        assert model.n_samples_seen_ == 600
        assert list(model.feature_names_in_)[:4] == list("abcd")
    if "sign" not in options:
        assert run(purpose, "rows.parquet", *options, "-o", tmp_path / "w.sks", "-q") == 0
        name = "coef_" if purpose == "ridge" else "singular_values_"
        whole = getattr(load(tmp_path / "w.sks"), name)
        np.testing.assert_allclose(getattr(model, name), whole, atol=1e-6)
    others = {"pca": "svd", "svd": "pca", "ridge": "svd"}
    capsys.readouterr()
    if "sign" not in options:
        assert run(others[purpose], tmp_path / "all.sks", "-o", tmp_path / "x.sks") == 2
        assert f"--for {others[purpose]}" in capsys.readouterr().err


def test_parts_of_other_columns_are_not_merged(here, tmp_path, capsys):
    for name, columns in (("a", "a,b"), ("b", "b,a")):
        assert run("sketch", "rows.csv", "--columns", columns, "-o", tmp_path / f"{name}.sks") == 0
    assert run("merge", tmp_path / "a.sks", tmp_path / "b.sks", "-o", tmp_path / "c.sks") == 2
    assert "b.sks: its columns have other names" in capsys.readouterr().err


def test_a_model_can_go_through_stdout(here, tmp_path):
    process = start("sketch", "rows.csv", "-o", "-")
    out, err = process.communicate(timeout=60)
    (tmp_path / "a.sks").write_bytes(out)
    assert load(tmp_path / "a.sks").n_rows_seen == 600
    assert b"rows" in err


def broken_line(place):
    lines = (place / "rows.csv").read_text().splitlines()
    lines[40] = "1,2,oops,4,5"
    (place / "broken.csv").write_text("\n".join(lines))
    return "broken.csv", r"broken\.csv, line 41: column 'c' holds 'oops'"


def short_line(place):
    lines = (place / "rows.csv").read_text().splitlines()
    lines[7] = "1,2,3"
    (place / "short.csv").write_text("\n".join(lines))
    return "short.csv", r"short\.csv, line 8: 3 values where 5 columns are expected"


def cut_short(place):
    whole = (place / "rows.parquet").read_bytes()
    (place / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    return "cut.parquet", r"cut\.parquet"


def text_in_the_third(place):
    (place / "five").mkdir(exist_ok=True)
    frame = pd.read_csv(place / "rows.csv")
    for number in range(5):
        part = frame.assign(c="x") if number == 2 else frame
        part.to_parquet(place / "five" / f"{number}.parquet")
    return "five", r"2\.parquet: column 'c' is"


def nothing(place):
    (place / "empty").mkdir(exist_ok=True)
    return "empty", "the directory empty holds no data file"


def holes(place):
    (place / "holes.csv").write_text("a,b\n1,2\n3,\n5,6\n")
    return "holes.csv", r"line 3: missing value in column 'b'; pass --missing mean or drop"


@pytest.mark.parametrize("mistake", [broken_line, short_line, cut_short, text_in_the_third])
@pytest.mark.parametrize("command", ["pca", "sketch"])
def test_bad_data_is_one_line_that_names_the_place(mistake, command, here, folder, capsys):
    check_mistake(mistake, command, folder, capsys)


@pytest.mark.parametrize("mistake", [nothing, holes])
def test_no_data_is_one_line_that_says_so(mistake, here, folder, capsys):
    check_mistake(mistake, "pca", folder, capsys)


def check_mistake(mistake, command, folder, capsys):
    source, words = mistake(folder)
    assert run(command, source, "-o", "bad.sks", "-q") == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert re.search(words, err), err
    assert not Path("bad.sks").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["pca", "rows.csv", "-k", "many", "-o", "x.sks"], "-k many"),
        (["pca", "rows.csv", "-k", "0", "-o", "x.sks"], "n_components"),
        (["pca", "rows.csv", "--sketch", "magic", "-o", "x.sks"], "sketch is 'magic'; give one of"),
        (["pca", "rows.csv", "--sketch", "sign", "-o", "x.sks"], "expected a sketch to wrap"),
        (["pca", "rows.csv", "--memory", "lots", "-o", "x.sks"], "'lots' is no amount of memory"),
        (["pca", "rows.csv", "--memory", "1MB", "-o", "x.sks"], "give at least"),
        (["pca", "rows.csv", "--memory", "1GB", "--sketch-size", "3", "-o", "x.sks"], "either"),
        (["pca", "rows.csv", "a.sks", "-o", "x.sks"], "saved sketch among files of rows"),
        (["pca", "rows.csv", "-o", "rows.csv"], "refusing to overwrite the input rows.csv"),
        (["pca", "absent.csv", "-o", "x.sks"], "absent.csv"),
        (["pca", "rows.csv", "-o", "no/such/x.sks"], "there is no directory"),
        (["ridge", "rows.csv", "-t", "z", "-o", "x.sks"], "no target 'z'"),
        (["pca", "rows.csv"], "--output"),
    ],
)
def test_a_wrong_option_is_one_line(arguments, words, here, capsys):
    assert run(*arguments, *(["-q"] if len(arguments) > 2 else [])) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert words in err
    assert not Path("x.sks").exists()


def test_categories_become_columns(tmp_path, capsys):
    (tmp_path / "c.csv").write_text("city,v\nrome,1\noslo,2\nrome,4\n")
    arguments = ["--one-hot", "city=rome,oslo", "-o", tmp_path / "m.sks", "--json"]
    assert run("pca", tmp_path / "c.csv", *arguments) == 0
    assert json.loads(capsys.readouterr().out)["feature_names"] == ["city=rome", "city=oslo", "v"]


def test_a_failure_half_way_keeps_the_checkpoint_and_a_good_end_removes_it(tmp_path, capsys):
    file, model = tmp_path / "rows.csv", tmp_path / "m.sks"
    # More than one block, so that rows were done before the mistake is met.
    rows = "\n".join(f"{i % 7}.5,{i % 11}.25,{i % 13}.125" for i in range(600_000))
    file.write_text(f"a,b,c\n{rows}\n1,2\n")
    assert run("pca", file, "-o", model, "--every", 50_000, "-q") == 2
    assert re.search(r"rows\.csv, line 600002: 2 values", capsys.readouterr().err)
    checkpoint = tmp_path / "m.sks.checkpoint"
    n_done = read_state(checkpoint).meta["rows_done"]
    assert n_done > 100_000
    assert run("info", checkpoint, "--json") == 0
    assert json.loads(capsys.readouterr().out)["rows_done"] == n_done
    file.write_text(f"a,b,c\n{rows}\n")
    assert run("pca", file, "-o", model, "-q") == 2
    assert "rows.csv is not the same file as before" in (err := capsys.readouterr().err)
    assert "--restart" in err
    assert run("pca", file, "-o", model, "-q", "--restart") == 0
    assert load(model).n_samples_seen_ == 600_000
    assert not checkpoint.exists()


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_ctrl_c_leaves_a_checkpoint_and_says_how_to_go_on(tmp_path):
    model = tmp_path / "m.sks"
    arguments = ["pca", "-", "-k", 2, "-o", model]
    rng = np.random.default_rng(0)
    text = "\n".join(f"{a:.6f},{b:.6f}" for a, b in rng.normal(size=(300_000, 2))).encode()
    process = start(*arguments, "--every", 1000, stdin=subprocess.PIPE)
    process.stdin.write(b"a,b\n" + text)
    process.stdin.flush()
    checkpoint = tmp_path / "m.sks.checkpoint"
    # The input stays open: the command waits for more.
    deadline = time.monotonic() + 60
    while not checkpoint.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"Run the same command again to resume" in err.replace(b"\n", b" ")
    n_done = read_state(checkpoint).meta["rows_done"]
    assert 0 < n_done < 300_000

    again = start(*arguments, stdin=subprocess.PIPE)
    _, err = again.communicate(b"a,b\n" + text, timeout=60)
    assert again.returncode == 0
    assert b"resuming from" in err
    assert not checkpoint.exists()
    (tmp_path / "rows.csv").write_bytes(b"a,b\n" + text)
    assert run("pca", tmp_path / "rows.csv", "-k", 2, "-o", tmp_path / "w.sks", "-q") == 0
    assert model.read_bytes() == (tmp_path / "w.sks").read_bytes()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_picks_the_size_and_is_kept(tmp_path):
    rows = np.random.default_rng(0).normal(size=(3_000, 4_000)).astype(np.float32)
    np.save(tmp_path / "rows.npy", rows)
    code = (
        "import sys; from sksketch import cli; code = cli.main(sys.argv[1:]); "
        "print(open('/proc/self/status').read()); sys.exit(code)"
    )
    model = tmp_path / "m.sks"
    arguments = ["pca", tmp_path / "rows.npy", "--memory", "600MB", "-o", model, "-q"]
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=True,
    )
    peak = re.search(r"VmHWM:\s*(\d+) kB", done.stdout)[1]
    assert 1024 * int(peak) <= parse_size("600MB")
    assert load(model).sketch_size > 10


@pytest.mark.parametrize("sparse", [False, True])
def test_more_memory_is_a_larger_sketch(sparse):
    sizes = [largest_sketch(parse_size(f"{n}GB"), 50_000, sparse=sparse) for n in (2, 4, 8)]
    assert sizes == sorted(set(sizes))


def test_completion_is_offered(capsys, monkeypatch):
    assert run("--help") == 0
    assert "--install-completion" in capsys.readouterr().out
    assert run() == 0
    capsys.readouterr()
    monkeypatch.setenv("_SKSKETCH_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "sksketch pca --sketch r")
    monkeypatch.setenv("COMP_CWORD", "3")
    with pytest.raises(SystemExit):
        run("pca")
    assert capsys.readouterr().out.split() == ["rfd"]
