"""The commands on a table nobody prepared: without an option, and with those that choose."""

from __future__ import annotations

import json
from html import escape

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.decomposition import PCA
from sklearn.linear_model import Ridge

from _support import messy
from sksketch import StreamingPCA, cli, load, predict_stream, transform_stream

N_ROWS = 400
WHOLE = messy.messy_table(N_ROWS, seed=5)
# Few enough columns for the exact route.
TABLE = WHOLE.drop(["note"])


def run(*arguments):
    return cli.main([str(argument) for argument in arguments])


def expected(target=None, table=TABLE):
    """Return what scikit-learn makes of the features in memory."""
    kept = table if target is None else table.drop([target])
    if "note" in kept.column_names:
        return messy.expected(kept)
    noted = kept.append_column("note", pa.nulls(len(kept), pa.string()))
    return messy.expected(noted).loc[:, lambda frame: ~frame.columns.str.startswith("note#")]


@pytest.fixture(scope="module")
def meters(tmp_path_factory):
    return messy.write_parquet(tmp_path_factory.mktemp("parquet") / "meters", TABLE)


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    return messy.write_csv(tmp_path_factory.mktemp("csv") / "meters", TABLE)


@pytest.fixture
def model(tmp_path):
    return tmp_path / "m.sks"


def assert_columns_are_told(text):
    for name in TABLE.column_names:
        assert f"\n{name} " in text
    for why in messy.DROPPED.values():
        assert why in text


@pytest.mark.parametrize("form", ["meters", "texts"])
def test_pca_without_an_option(form, model, request, capsys):
    assert run("pca", request.getfixturevalue(form), "-k", 5, "-o", model) == 0
    out, err = capsys.readouterr()
    assert_columns_are_told(out)
    assert "columns are not numbers" in err
    assert "the table is encoded" in err
    pipeline = load(model)
    rows = expected()
    theirs = PCA(5, svd_solver="full").fit(rows)
    np.testing.assert_allclose(
        pipeline[-1].explained_variance_, theirs.explained_variance_, rtol=1e-8
    )
    found = transform_stream(pipeline, request.getfixturevalue(form), progress=False)
    np.testing.assert_allclose(np.abs(found), np.abs(theirs.transform(rows)), atol=1e-8)


def test_ridge_without_an_option(meters, model, capsys):
    assert run("ridge", meters, "--target", "price", "-o", model) == 0
    assert "churn" in capsys.readouterr().out
    pipeline, rows, y = load(model), expected("price"), TABLE["price"].to_numpy()
    theirs = Ridge(pipeline[-1].alpha).fit(rows, y)
    features = TABLE.drop(["price"])
    np.testing.assert_allclose(pipeline.predict(features), theirs.predict(rows), rtol=1e-8)


def test_online_without_an_option(meters, model, capsys):
    assert run("online", meters, "--target", "churn", "-o", model) == 0
    assert "2 categories" in capsys.readouterr().out
    pipeline = load(model)
    assert pipeline.classes_.tolist() == ["no", "yes"]
    assert pipeline.score(TABLE.drop(["churn"]), TABLE["churn"].to_numpy()) > 0.8


def test_free_text_is_hashed_and_the_exact_route_agrees(tmp_path, model, capsys):
    folder = messy.write_parquet(tmp_path / "notes", WHOLE)
    assert run("ridge", folder, "--target", "price", "--sketch", "exact", "-o", model) == 0
    assert "free text of about 7 words, hashed to 1024" in capsys.readouterr().out
    pipeline, rows = load(model), expected("price", WHOLE)
    theirs = Ridge(pipeline[-1].alpha).fit(rows, WHOLE["price"].to_numpy())
    np.testing.assert_allclose(
        pipeline.predict(WHOLE.drop(["price"])), theirs.predict(rows), rtol=1e-8
    )


def test_what_became_of_columns_and_holes_is_in_every_output(meters, model, capsys):
    n_missing = sum(column.null_count for column in TABLE.columns)
    assert run("pca", meters, "-k", 2, "--json", "-o", model) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found["table"]) == set(TABLE.column_names)
    assert found["table"]["city"]["kind"] == "categories"
    assert (found["missing_values"], found["dropped_rows"]) == (n_missing, 0)
    assert run("info", model, "--json") == 0
    again = json.loads(capsys.readouterr().out)
    assert again["table"] == found["table"]
    assert again["missing_values"] == n_missing
    assert run("info", model) == 0
    out = capsys.readouterr().out
    assert_columns_are_told(out)
    assert f"{n_missing:,} values filled, 0 rows left out" in out


def test_rows_with_holes_can_be_left_out(meters, model, capsys):
    columns = ["power", "city", "seen_at", "small"]
    kept = TABLE.select(columns).to_pandas().dropna()
    options = ["--columns", ",".join(columns), "--missing", "drop"]
    assert run("pca", meters, "-k", 2, "--json", "-o", model, *options) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["rows_seen"] == len(kept)
    assert found["dropped_rows"] == N_ROWS - len(kept)
    out = model.with_suffix(".csv")
    assert run("apply", model, meters, "--missing", "drop", "--id", "row", "-o", out) == 0
    assert f"{N_ROWS - len(kept)} rows with missing values left out" in capsys.readouterr().err
    written = pd.read_csv(out)
    assert written["row"].tolist() == (kept.index + 1000).tolist()
    assert run("pca", meters, "-k", 2, "-o", model, "--missing", "error") == 2
    assert "has no value" in capsys.readouterr().err


def test_numeric_leaves_the_rest_out_and_lists_it(meters, model, capsys):
    options = ["--numeric", "--missing", "mean", "--exclude", "nothing"]
    assert run("pca", meters, "-k", 2, "-o", model, *options) == 0
    err = capsys.readouterr().err
    assert "left out as no numbers: customer, city, product, tier, signed_up" in err
    pca = load(model)
    kinds = [*messy.NUMBERS, "rating", "active", "row", "release", "price"]
    assert sorted(pca.feature_names_in_) == sorted(kinds)


CHOICES = {
    "names": (["--columns", "power,small"], ["power", "small"]),
    "pattern": (["--columns", "r*", "--exclude", "row,release"], ["ratio", "rating"]),
    "range": (["--columns", "power:single"], ["power", "voltage", "ratio", "single"]),
    "numbers": (["--columns", "2,4"], ["power", "ratio"]),
    "range of numbers": (["--columns", "2:4"], ["power", "voltage", "ratio"]),
    "last": (["--columns", "-2,2"], ["price", "power"]),
    "open range": (["--columns", "price:", "--exclude", "churn"], ["price"]),
    "several": (["--columns", "power", "--columns", "ratio"], ["power", "ratio"]),
}


@pytest.mark.parametrize("choice", CHOICES)
def test_columns_are_chosen(meters, model, choice, capsys):
    options, names = CHOICES[choice]
    assert run("pca", meters, "-k", 1, "-o", model, "--missing", "mean", *options) == 0
    assert load(model).feature_names_in_.tolist() == names


def test_names_with_commas_and_columns_that_are_not_there(tmp_path, model, capsys):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(50, 3)), columns=["a", "b, c", "3"])
    frame.to_parquet(tmp_path / "x.parquet")
    source = tmp_path / "x.parquet"
    assert run("pca", source, "-k", 1, "-o", model, "--columns", "b, c", "--columns", "a") == 0
    assert load(model).feature_names_in_.tolist() == ["b, c", "a"]
    assert run("pca", source, "-k", 1, "-o", model, "--columns", "3") == 0
    # A name comes before a number.
    assert load(model).feature_names_in_.tolist() == ["3"]
    capsys.readouterr()
    for options, message in (
        (["--columns", "z*"], "no column matches 'z*'"),
        (["--columns", "a:zz"], "there is no column 'zz'"),
        (["--columns", "3:a"], "turn the range around"),
        (["--columns", "7"], "'7'"),
        (["--exclude", "nope"], "there is no column 'nope'"),
        (["--exclude", "*"], "no column is left"),
    ):
        assert run("pca", source, "-k", 1, "-o", model, *options) == 2, options
        err = capsys.readouterr().err
        assert message in err, err
        assert err.count("\n") == 1


def test_numbered_files_know_the_same_choices(tmp_path, model, capsys):
    rows = np.random.default_rng(0).normal(size=(50, 4))
    np.save(tmp_path / "x.npy", rows)
    for options, places in (
        (["--columns", "0,2"], [0, 2]),
        (["--columns", "1:2"], [1, 2]),
        (["--exclude", "0"], [1, 2, 3]),
        (["--columns", "1:", "--exclude", "-1"], [1, 2]),
    ):
        assert run("pca", tmp_path / "x.npy", "-k", 1, "-o", model, *options) == 0, options
        found = load(model).explained_variance_
        wanted = StreamingPCA(1).fit(rows[:, places]).explained_variance_
        np.testing.assert_allclose(found, wanted, err_msg=str(options))


def test_fill(meters, model, tmp_path, capsys):
    columns = ["power", "ratio", "small"]
    options = ["--columns", ",".join(columns), "--fill", "-1.5"]
    assert run("ridge", meters, "--target", "price", "--json", "-o", model, *options) == 0
    n_missing = sum(TABLE[name].null_count for name in columns)
    assert json.loads(capsys.readouterr().out)["missing_values"] == n_missing
    filled = TABLE.select(columns).to_pandas().fillna(-1.5)
    theirs = Ridge().fit(filled, TABLE["price"].to_numpy())
    out = tmp_path / "p.npy"
    assert run("apply", model, meters, "--fill", "-1.5", "-o", out) == 0
    np.testing.assert_allclose(np.load(out), theirs.predict(filled), rtol=1e-6)
    for extra in (["--missing", "mean"], ["--columns", "city"]):
        assert run("ridge", meters, "--target", "price", "-o", model, *options, *extra) == 2


def test_ids_and_other_columns_are_written_beside(meters, model, tmp_path, capsys):
    assert run("ridge", meters, "--target", "price", "-o", model) == 0
    for name, read in (("p.csv", pd.read_csv), ("p.parquet", pd.read_parquet)):
        out = tmp_path / name
        options = ["--id", "customer", "--keep", "row,city", "--keep", "price"]
        assert run("apply", model, meters, "-o", out, *options) == 0
        found = read(out)
        assert list(found) == ["customer", "row", "city", "price", "prediction"]
        assert found["customer"].tolist() == TABLE["customer"].to_pylist()
        cities = found["city"].astype(object).where(found["city"].notna(), None)
        assert cities.tolist() == TABLE["city"].to_pylist()
        wanted = predict_stream(load(model), TABLE.drop(["price"]), progress=False)
        np.testing.assert_allclose(found["prediction"], wanted, rtol=1e-12)
    capsys.readouterr()
    assert run("apply", model, meters, "-o", tmp_path / "p.npy", "--id", "row") == 2
    assert run("apply", model, meters, "-o", tmp_path / "p.csv", "--id", "nope") == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 2
    assert "nope" in err


def test_the_same_row_is_predicted_the_same_whatever_is_beside_it(tmp_path, model):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=300) + 7.0, "b": rng.normal(size=300)})
    frame["y"] = 10.0 * frame.a + frame.b
    frame.loc[::10, "a"] = np.nan
    frame.to_csv(tmp_path / "train.csv", index=False)
    for more in ([], ["--encode"]):
        options = ["--target", "y", "--alpha", "1e-9", "--missing", "mean", *more]
        assert run("ridge", tmp_path / "train.csv", "-o", model, *options) == 0
        found = []
        for beside in (-1e3, 0.0, 1e3):
            rows = pd.DataFrame({"a": [beside, np.nan, beside], "b": [0.0, 0.5, 0.0]})
            rows.to_csv(tmp_path / "new.csv", index=False)
            out = tmp_path / "p.npy"
            assert run("apply", model, tmp_path / "new.csv", "--missing", "mean", "-o", out) == 0
            found.append(np.load(out)[1])
        assert len(set(found)) == 1
        mean = frame.a.mean()
        saved = load(model)
        known = pd.DataFrame({"a": [mean], "b": [0.5]})
        wanted = saved.predict(known)
        np.testing.assert_allclose(found[0], wanted[0], rtol=1e-9)


def test_holes_can_be_refused_when_a_model_of_a_table_is_applied(meters, model, tmp_path, capsys):
    assert run("ridge", meters, "--target", "price", "-o", model) == 0
    out = tmp_path / "p.csv"
    assert run("apply", model, meters, "--missing", "error", "-o", out) == 2
    assert "has no value" in capsys.readouterr().err
    assert not out.exists()


def test_an_output_in_no_directory_is_refused_before_reading(meters, tmp_path, model, capsys):
    nowhere = tmp_path / "none" / "m.sks"
    for command in (
        ["pca", meters, "-k", 2],
        ["ridge", meters, "--target", "price"],
        ["online", "no such file", "--target", "churn"],
        ["sketch", "no such file"],
    ):
        assert run(*command, "-o", nowhere) == 2
        out, err = capsys.readouterr()
        assert "there is no directory" in err
        assert (out, err.count("\n")) == ("", 1)


def test_workers_give_the_same_model(meters, model, tmp_path):
    other = tmp_path / "other.sks"
    command = ["ridge", meters, "--target", "price", "-q"]
    assert run(*command, "-o", model) == 0
    assert run(*command, "--workers", 2, "-o", other) == 0
    one, two = load(model), load(other)
    assert one[0].columns_ == two[0].columns_
    np.testing.assert_allclose(one[-1].coef_, two[-1].coef_, rtol=1e-8, atol=1e-10)


def test_sketches_of_tables_encoded_apart_are_not_mixed(tmp_path, capsys):
    few = TABLE.select(["power", "tier"])
    halves = {"a": few[:200], "b": few[200:]}
    for name, half in halves.items():
        pq.write_table(half, tmp_path / f"{name}.parquet")
        source, out = tmp_path / f"{name}.parquet", tmp_path / f"{name}.sks"
        assert run("sketch", source, "-o", out) == 0
    capsys.readouterr()
    # Each was encoded in units of its own.
    both = [tmp_path / "a.sks", tmp_path / "b.sks"]
    assert run("merge", *both, "-o", tmp_path / "all.sks") == 2
    assert run("pca", *both, "-k", 1, "-o", tmp_path / "all.sks") == 2
    assert capsys.readouterr().err.count("\n") == 2
    # One alone is read out with its encoder.
    assert run("pca", both[0], "-k", 1, "-o", tmp_path / "one.sks") == 0
    assert load(tmp_path / "one.sks")[0].n_samples_seen_ == 200


def test_a_text_for_a_number_to_predict(meters, model, capsys):
    assert run("ridge", meters, "--target", "churn", "-o", model) == 2
    assert "'churn' is text" in capsys.readouterr().err
    assert run("reduce", meters, "--target", "churn", "--task", "regress", "-o", model) == 2
    assert "'churn' is text" in capsys.readouterr().err
    assert not list(model.parent.iterdir())
    assert run("pca", meters, "-k", 2, "--no-encode", "-o", model) == 2
    assert "--encode" in capsys.readouterr().err
    assert not model.exists()


def test_the_report_says_what_became_of_the_columns(meters, model, tmp_path):
    assert run("pca", meters, "-k", 2, "-o", model) == 0
    assert run("report", model, "-o", tmp_path / "page.html") == 0
    page = (tmp_path / "page.html").read_text()
    assert "The columns of the table" in page
    assert all(name in page for name in TABLE.column_names)
    assert all(escape(why) in page for why in messy.DROPPED.values())


def test_numbers_of_any_type_are_doubles():
    from sksketch.cli.tables.applying import numbers_of

    numbers = pa.array([1, None], pa.int16())
    columns = [numbers.cast(pa.float32()), numbers, pa.array([True, None]), pa.nulls(2)]
    for column in columns:
        found = numbers_of(pa.chunked_array([column]), "x")
        assert found.dtype == np.float64
        assert np.isnan(found[1])
