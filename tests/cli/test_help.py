"""The help of the commands, the version, and what info and report say of early checkpoints."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import sksketch
from sksketch import StreamingPCA, TableEncoder, _keys
from sksketch.cli import main
from sksketch.cli.commands.online import known_methods
from sksketch.cli.help import EXAMPLES, SHORT
from sksketch.cli.kernel_options import known_kernels
from sksketch.cli.options import PANELS, InputFormat, known_sketches
from sksketch.online import catalog as online
from sksketch.online import losses
from sksketch.reduction import reduced_problem
from sksketch.run.checkpoints import Checkpoint
from sksketch.sketches.catalog import KEYS

READ_OUT = {"pca", "svd", "ridge"}
FROM_ROWS = {*READ_OUT, "online", "kpca", "kcca", "reduce", "sketch", "apply", "anomalies"}


@pytest.fixture
def help_of(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")

    def text(*words: str) -> str:
        assert main([*words, "--help"]) == 0
        out, err = capsys.readouterr()
        assert err == ""
        return out

    return text


def headings(text: str) -> list[str]:
    return [line[:-1] for line in text.splitlines() if line.endswith(":") and line[0] != " "]


def test_the_version_is_that_of_the_package(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr() == (f"sksketch {sksketch.__version__}\n", "")


@pytest.mark.parametrize("command", EXAMPLES)
def test_help_fits_80_columns_and_ends_with_the_examples(command, help_of):
    text = help_of(*command.split())
    before, _, after = text.partition("  Examples:\n")
    assert max(map(len, before.splitlines())) <= 80
    assert [line.strip() for line in after.splitlines()] == EXAMPLES[command]


@pytest.mark.parametrize("command", sorted(FROM_ROWS))
def test_options_stand_under_headings_in_one_order(command, help_of):
    text = help_of(*command.split())
    found = headings(text)
    assert found == [h for h in ("Arguments", *PANELS, "Options") if h in found]
    assert {"Columns", "Source", "CSV", "Run"} <= set(found)
    # All that is left for the last one.
    assert text.partition("\nOptions:\n")[2].split("\n\n")[0].split() == [
        *("-h,", "--help", "Show", "this", "message", "and", "exit.")
    ]


@pytest.mark.parametrize("command", sorted(set(EXAMPLES) - FROM_ROWS))
def test_few_options_have_one_heading(command, help_of):
    assert [h for h in headings(help_of(*command.split())) if h != "Arguments"] == ["Options"]


def test_parts_and_kernels_have_headings_where_there_are_any(help_of):
    assert {"Sketch", "Parallel", "Model"} <= set(headings(help_of("ridge")))
    assert {"Kernel", "Parallel", "Model"} <= set(headings(help_of("kpca")))
    assert not {"Sketch", "Kernel", "Parallel"} & set(headings(help_of("online")))


@pytest.mark.parametrize("command", sorted(FROM_ROWS))
def test_saved_sketches_are_promised_where_they_are_read(command, help_of):
    arguments = help_of(*command.split()).partition("Arguments:")[2].partition("\n\n")[0]
    assert (".sks" in arguments) == (command in READ_OUT)


@pytest.mark.parametrize("command", sorted(FROM_ROWS - READ_OUT))
def test_saved_sketches_are_refused_elsewhere(command, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    StreamingPCA(1).fit(np.eye(3)).save("m.sks")
    more = {"apply": ["m.sks"], "kcca": ["--other", "a"]}.get(command, [])
    output = ["-o", "out.csv" if command == "apply" else "out.sks"]
    output = [] if command == "anomalies" else output
    assert main([command, *more, "m.sks", *output]) == 2
    assert "m.sks" in capsys.readouterr().err


def test_the_help_lists_the_formats(help_of):
    words = help_of("pca").replace(",", " ").split()
    assert {str(name) for name in InputFormat} <= set(words)


def test_keys_are_those_that_can_be_made():
    assert tuple(KEYS) == _keys.SKETCHES
    assert set(online.BY_LOSS) <= set(_keys.ONLINE_METHODS)
    named = {*_keys.ONLINE_CLASSIFICATION, *_keys.ONLINE_REGRESSION}
    assert named == set(losses.CODES)
    methods = {*reduced_problem.SUBSPACE, *reduced_problem.RECOVERED}
    assert methods <= set(_keys.REDUCED_METHODS)


def test_keys_are_completed():
    assert known_sketches("f") == ["fd"]
    assert known_sketches("") == ["auto", *_keys.SKETCHES]
    assert known_methods("r") == ["rfd", "rp"]
    assert known_kernels("m") == ["matern"]


def early_checkpoints(folder):
    """Write checkpoints of runs that have not come to their model."""
    scaled, X = folder / "scaled.checkpoint", np.arange(12.0).reshape(4, 3)
    run = Checkpoint(scaled, make_pipeline(StandardScaler(), StreamingPCA(2)), {})
    run.write(StreamingPCA(2), 1_200, StandardScaler().fit(X))
    columns = folder / "m.sks.checkpoint.columns"
    table = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": ["x", "y", "x"]})
    Checkpoint(columns, TableEncoder(), {}).write(TableEncoder().fit(table), 3)
    return {
        scaled: "checkpoint of Pipeline after 1,200 rows, before its model learns from any",
        columns: "checkpoint of a first look at the columns of a table, after 3 rows",
    }


def test_info_and_report_of_a_run_before_its_model(tmp_path, capsys):
    for path, words in early_checkpoints(tmp_path).items():
        assert main(["info", str(path)]) == 0
        assert capsys.readouterr() == (f"{path}: {words}\n", "")
        assert main(["info", str(path), "--json"]) == 0
        facts = json.loads(capsys.readouterr().out)
        assert facts["kind"] == "checkpoint"
        assert facts["of"] in (None, "table-encoder")
        page = tmp_path / "page.html"
        assert main(["report", str(path), "-o", str(page)]) == 2
        line = capsys.readouterr().err
        assert line == f"sksketch: Invalid value: {path} has nothing to report yet: {words}\n"
        assert not page.exists()


def test_info_of_a_later_checkpoint_names_the_model(tmp_path, capsys):
    path = tmp_path / "later.checkpoint"
    model = StreamingPCA(1).fit(np.eye(3))
    Checkpoint(path, model, {}).write(model, 3)
    assert main(["info", str(path)]) == 0
    out = capsys.readouterr().out
    assert "streaming-pca" in out
    assert "rows done" in out
    assert main(["report", str(path), "-o", str(tmp_path / "page.html"), "-q"]) == 0


def test_without_a_command_ten_lines_say_what_there_is(capsys):
    assert main([]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line]
    assert len(lines) == 10
    assert all(len(line) <= 80 for line in lines)
    # Every one of these commands is there.
    named = [line.split()[1] for line in lines if line.startswith("  sksketch")]
    assert set(named) <= set(SHORT)


def test_the_list_of_commands_is_not_cut(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["--help"]) == 0
    listed = capsys.readouterr().out.partition("Commands:")[2]
    assert "..." not in listed
    assert len(listed.split("\n")) == len(SHORT) + 3
