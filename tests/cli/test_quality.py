"""Is it any good: R2, RMSE, accuracy and log loss, on rows learned from and rows kept apart."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge
from sklearn.metrics import accuracy_score, log_loss, r2_score, root_mean_squared_error

from sksketch import load, open_rows
from sksketch.cli import main
from sksketch.streams.holdout import Share, is_held


def run(*words):
    return main([str(word) for word in words])


@pytest.fixture
def here(tmp_path, monkeypatch):
    rng = np.random.default_rng(1)
    Z = rng.standard_normal((2000, 5))
    table = pd.DataFrame(Z * np.geomspace(1, 1e4, 5), columns=list("abcde"))
    score = Z @ [1.0, -2.0, 0.5, 0.0, 1.0] + rng.standard_normal(2000)
    table.assign(y=score).to_csv(tmp_path / "rows.csv", index=False)
    table.assign(y=(score > 0.5).astype(int)).to_csv(tmp_path / "labels.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return table, score


def shares(table, y):
    held = is_held(0, len(table), 0.2)
    X = table.to_numpy()
    return X[~held], y[~held], X[held], y[held]


def test_ridge_tells_r2_on_both_kinds_of_rows(here, capsys):
    table, y = here
    options = ["ridge", "rows.csv", "-t", "y", "--holdout", "0.2", "--alpha", "3", "-o", "m.sks"]
    assert run(*options, "--json", "-q") == 0
    quality = json.loads(capsys.readouterr().out)["quality"]
    X, u, Z, v = shares(table, y)
    model = Ridge(3.0).fit(X, u)
    for rows, targets, found in ((X, u, quality["training"]), (Z, v, quality["holdout"])):
        predicted = model.predict(rows)
        assert found["rows"] == len(rows)
        assert found["r2"] == pytest.approx(r2_score(targets, predicted))
        assert found["rmse"] == pytest.approx(root_mean_squared_error(targets, predicted))
        constant = np.full(len(rows), u.mean())
        assert found["baseline_rmse"] == pytest.approx(root_mean_squared_error(targets, constant))
    low, high = quality["training_r2_interval"]
    assert low <= quality["training"]["r2"] <= high
    assert load("m.sks").holdout_quality_ == quality["holdout"]
    assert run(*options) == 0
    out = capsys.readouterr().out
    assert "training     R2 0." in out
    assert "rows kept apart" in out
    assert run("report", "m.sks", "-o", "m.html") == 0
    assert "On rows kept apart: R2 0." in Path("m.html").read_text()


def test_the_penalty_is_chosen_if_asked_for(here, capsys):
    assert run("ridge", "rows.csv", "-t", "y", "--alpha", "auto", "-o", "m.sks", "--json") == 0
    assert json.loads(capsys.readouterr().out)["alpha"] > 0
    assert load("m.sks").kind == "streaming-ridge-cv"
    assert run("ridge", "rows.csv", "-t", "y", "--alpha", "some", "-o", "m.sks") == 2
    assert "neither auto nor a number" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["online", "reduce"])
def test_labels_have_accuracy_and_log_loss(here, capsys, command):
    table, score = here
    more = ["--loss", "logistic", "-k", "5", "--task", "classify"] if command == "reduce" else []
    words = [command, "labels.csv", "-t", "y", "--holdout", 0.2, *more, "-o", "m.sks"]
    assert run(*words, "--json", "-q") == 0
    captured = capsys.readouterr()
    quality = json.loads(captured.out)["quality"]
    assert captured.err == ""
    _, u, Z, v = shares(table, (score > 0.5).astype(float))
    model = load("m.sks")
    del model.feature_names_in_
    found = quality["holdout"]
    assert found["accuracy"] == pytest.approx(accuracy_score(v, model.predict(Z)))
    assert found["log_loss"] == pytest.approx(log_loss(v, model.predict_proba(Z)))
    assert found["baseline_accuracy"] == pytest.approx(np.mean(v == (u.mean() > 0.5)))
    constant = np.column_stack([np.full(len(v), 1 - u.mean()), np.full(len(v), u.mean())])
    assert found["baseline_log_loss"] == pytest.approx(log_loss(v, constant))
    assert found["rows"] == len(v)
    assert run("report", "m.sks", "-o", "m.html") == 0
    page = Path("m.html").read_text()
    assert "kept apart" in page
    assert ("Online error" in page) == (command == "online")


def test_reduced_numbers_and_standardized_ones_leave_the_same_rows_out(here, capsys):
    words = [
        "reduce",
        "rows.csv",
        "-t",
        "y",
        "--task",
        "regress",
        "-k",
        "5",
        "--holdout",
        "0.2",
        "-o",
        "m.sks",
        "--json",
        "-q",
    ]
    for more in ([], ["--standardize"]):
        assert run(*words, *more) == 0
        quality = json.loads(capsys.readouterr().out)["quality"]
        assert quality["training"]["rows"] + quality["holdout"]["rows"] == 2000
        assert quality["holdout"]["r2"] > 0.5


def test_loadings_are_named(here, capsys):
    assert run("pca", "rows.csv", "-k", 2, "--standardize", "-o", "m.sks", "--json") == 0
    loadings = json.loads(capsys.readouterr().out)["loadings"]
    model = load("m.sks")
    assert len(loadings) == 2
    first = dict(zip("abcdey", (model.components_ * model.scale_)[0], strict=True))
    assert loadings[0] == pytest.approx(first)
    assert run("svd", "rows.csv", "-k", 2, "-o", "m.sks") == 0
    assert "largest loadings of component 1" in capsys.readouterr().out


def test_a_share_resumes_where_it_was(here):
    source = open_rows("rows.csv", target="y")
    for held in (True, False):
        share = Share(source, 0.2, held=held)
        whole = np.concatenate([block.X for block in share.blocks()])
        for start in (0, 1, 100, len(whole) - 1):
            rest = np.concatenate([block.X for block in share.blocks(start)])
            np.testing.assert_array_equal(rest, whole[start:])


@pytest.mark.parametrize("more", [["--workers", 2], []])
def test_what_cannot_be_kept_apart_is_refused(here, capsys, more):
    source = "rows.csv" if more else "-"
    words = ["ridge", source, "-t", "y", "--holdout", 0.1, "-o", "m.sks", *more]
    assert run(*words) == 2
    assert "--holdout" in capsys.readouterr().err


def test_more_components_than_columns_are_refused(here, capsys):
    for command in ("pca", "svd"):
        assert run(command, "rows.csv", "-k", 9, "-o", "m.sks") == 2
        assert "more components than the 6 columns" in capsys.readouterr().err
