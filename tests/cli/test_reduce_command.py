"""The command reduce: a subspace, its coordinates, and models learned on them."""

import json

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import sksketch
from sksketch.cli import main

RNG = np.random.default_rng(0)
X = RNG.standard_normal((400, 6)) / np.arange(1, 7)
Y = (X[:, 0] + X[:, 1] > 0).astype(int)
NAMES = list("abcdef")
FRAME = pd.DataFrame(X, columns=NAMES)


@pytest.fixture
def rows(tmp_path):
    path = tmp_path / "rows.csv"
    table = np.column_stack([X, Y])
    np.savetxt(path, table, delimiter=",", header=",".join([*NAMES, "y"]), comments="", fmt="%.17g")
    return path


def test_a_subspace_and_its_coordinates(rows, tmp_path, capsys):
    model, table = tmp_path / "model.sks", tmp_path / "z.parquet"
    options = ["--columns", ",".join(NAMES), "-k", "3", "--power-passes", "1"]
    command = ["reduce", str(rows), *options, "-o", str(model), "--coordinates", str(table)]
    assert main(command) == 0
    printed = capsys.readouterr().out
    assert "subspace-reduction" in printed
    fitted = sksketch.load(model)
    expected = sksketch.SubspaceReduction(3, n_power_iter=1).fit(X)
    np.testing.assert_allclose(
        fitted.transform(FRAME) @ fitted.transform(FRAME).T,
        expected.transform(X) @ expected.transform(X).T,
        atol=1e-9,
    )
    lower, upper = fitted.spectral_error_
    assert 0 < lower <= upper < (X**2).sum()
    found = np.column_stack(pq.read_table(table).columns)
    np.testing.assert_allclose(found, fitted.transform(FRAME), atol=1e-12)
    for name in ("z.npy", "z.npz"):
        assert main(["apply", str(model), str(rows), "-q", "-o", str(tmp_path / name)]) == 0
        loaded = np.load(tmp_path / name)
        loaded = loaded["X"] if name == "z.npz" else loaded
        np.testing.assert_allclose(loaded, fitted.transform(FRAME), atol=1e-12)


def test_a_model_is_learned_saved_and_applied(rows, tmp_path, capsys):
    model, scores = tmp_path / "model.sks", tmp_path / "scores.npy"
    command = ["reduce", str(rows), "--target", "y", "-k", "10", "--json", "-q", "-o", str(model)]
    assert main(command) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["kind"] == "reduced-classifier"
    assert facts["objective_gap_bound"] <= 2e-3
    assert set(facts["largest"]["1"]) == set(NAMES)
    fitted = sksketch.load(model)
    assert fitted.score(FRAME, Y) > 0.9
    assert list(fitted.feature_names_in_) == NAMES
    assert main(["apply", str(model), str(rows), "-q", "-o", str(scores)]) == 0
    found = np.load(scores)
    np.testing.assert_array_equal(found[:, 0], fitted.predict(FRAME))
    np.testing.assert_allclose(found[:, 1], fitted.decision_function(FRAME))
    assert main(["info", str(model)]) == 0
    assert "objective gap bound" in capsys.readouterr().out


def test_regression_and_random_projections(rows, tmp_path, capsys):
    model = tmp_path / "model.sks"
    command = ["reduce", str(rows), "--target", "a", "--task", "regress", "-o", str(model)]
    assert main([*command, "--loss", "absolute"]) == 0
    assert sksketch.load(model).loss == "absolute"
    assert main(["reduce", str(rows), "--method", "rp", "-k", "2", "-o", str(model)]) == 0
    assert sksketch.load(model).n_components_ == 2
    assert "random-reduction" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--method", "rpdr"], "name what to predict with --target"),
        (["--target", "y", "--alpha", "0"], "; give a positive number"),
        (["--target", "y", "--loss", "huber"], "loss is 'huber'; give one of"),
        (["--coordinates", "z.txt"], "give a name that ends in"),
    ],
)
def test_mistakes_get_one_line(rows, tmp_path, capsys, options, complaint):
    assert main(["reduce", str(rows), *options, "-o", str(tmp_path / "m.sks"), "-q"]) == 2
    assert complaint in capsys.readouterr().err


@pytest.mark.parametrize("method", ["nor", "rpdr"])
def test_a_model_goes_on_from_the_checkpoint_of_its_reduction(rows, tmp_path, capsys, method):
    whole, cut = tmp_path / "whole.sks", tmp_path / "cut.sks"
    options = ["--target", "y", "-k", "3", "--method", method, "--power-passes", "1", "-q"]
    options += ["--every", "100"]
    assert main(["reduce", str(rows), *options, "-o", str(whole)]) == 0
    classifier = sksketch.ReducedClassifier(3, method=method, n_power_iter=1)
    source = sksketch.open_rows(str(rows), target="y")

    def stop(done, _):
        if done >= 200:
            raise RuntimeError("stopped")

    checkpoint = tmp_path / "cut.sks.checkpoint"
    with pytest.raises(RuntimeError, match="stopped"):
        sksketch.fit_stream(
            classifier.new_reduction(), source, checkpoint=checkpoint, every=100, progress=stop
        )
    assert main(["reduce", str(rows), *options, "-o", str(cut)]) == 0
    assert not checkpoint.exists()
    assert cut.read_bytes() == whole.read_bytes()


def test_a_reduction_that_has_not_seen_the_class_weights_is_refused(rows):
    source = sksketch.open_rows(str(rows), target="y")
    model = sksketch.ReducedClassifier(3, class_weight="balanced")
    reduction = sksketch.fit_stream(model.new_reduction(), source, progress=False)
    with pytest.raises(ValueError, match="learned without class_weight"):
        model.fit_rows(source, reduction=reduction)


@pytest.mark.parametrize(
    ("more", "n_reads"),
    [
        ([], 3),
        (["--target", "y", "--task", "regress"], 3),
        (["--target", "y", "--task", "regress", "--standardize"], 4),
        (["--target", "y", "--task", "regress", "--method", "nordr"], 4),
    ],
)
def test_rows_are_read_few_times(tmp_path, monkeypatch, more, n_reads):
    from sksketch.streams.source import RowSource

    rng = np.random.default_rng(0)
    table = np.column_stack([rng.standard_normal((500, 6)), rng.standard_normal(500)])
    np.savetxt(
        tmp_path / "t.csv", table, delimiter=",", header="a,b,c,d,e,f,y", comments="", fmt="%.8g"
    )
    read, plain = [], RowSource.blocks

    def counted(self, start_row=0):
        yield from plain(self, start_row)
        # Only now: a look at the first rows is no pass.
        read.append(start_row)

    monkeypatch.setattr(RowSource, "blocks", counted)
    files = [str(tmp_path / "t.csv"), "-o", str(tmp_path / "m.sks")]
    assert main(["reduce", *files, "-k", "4", *more, "-q"]) == 0
    assert len(read) == n_reads
