"""The online command beside a constant, and labels that it has to guess."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from sksketch import OnlineNewtonClassifier, cli
from sksketch.cli.progressive import Progressive


def run(*arguments):
    return cli.main([str(argument) for argument in arguments])


@pytest.mark.parametrize("task", ["classify", "regress"])
def test_who_predicts_worse_than_a_constant_is_told(task, tmp_path, capsys):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 9)), columns=list("abcdefghi"))
    # Columns that say nothing of a target that hardly changes.
    frame["y"] = (np.arange(60) % 20 == 0).astype(float)
    rows, path, page = tmp_path / "rows.csv", tmp_path / "m.sks", tmp_path / "page.html"
    frame.to_csv(rows, index=False)
    options = ["--target", "y", "--task", task, "--initial-ridge", "0.001", "-o", path]
    assert run("online", rows, *options, "--json") == 0
    out, err = capsys.readouterr()
    record = json.loads(out)
    assert record["baseline_error"] < record["online_error"]
    (warning,) = re.findall(r"(?m)^sksketch: warning: .*$", err)
    what = "the commonest label" if task == "classify" else "the mean"
    assert warning.startswith(f"sksketch: warning: {what} so far would have predicted better")
    assert run("report", path, "-o", page, "-q") == 0
    assert "Warning: " + warning.removeprefix("sksketch: warning: ") in page.read_text()
    assert run("online", rows, *options, "--restart", "-q") == 0
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("other", [-1.0, 0.0])
@pytest.mark.parametrize("rows", [1, 3, 100])
def test_labels_are_guessed_whatever_the_blocks(other, rows):
    # The first rows have only the label 1.
    y = np.array([1.0] * 5 + [other, 1.0] * 10)
    X = np.column_stack([y == 1, y != 1]).astype(np.float64)
    model = Progressive(OnlineNewtonClassifier())
    for start_row in range(0, len(y), rows):
        model.partial_fit(X[start_row : start_row + rows], y[start_row : start_row + rows])
        model = Progressive.from_state(model.state())
    assert model.fitted.classes_.tolist() == [other, 1]
    named = Progressive(OnlineNewtonClassifier()).partial_fit(X, y, classes=[other, 1])
    assert model.table() == named.table()
    assert model.table()[0].prediction == other
    with pytest.raises(ValueError, match="row 26: the label 2 is none of"):
        model.partial_fit(X[:1], np.array([2.0]))
    with pytest.raises(ValueError, match="the run began with the labels .*--restart"):
        model.partial_fit(X[:1], y[:1], classes=[1, 2])
