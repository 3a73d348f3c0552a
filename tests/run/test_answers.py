"""`transform_stream`, `predict_stream` and `score_stream`: what the methods give in memory."""

from __future__ import annotations

import os

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.metrics import r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from _support import messy
from sksketch import (
    OnlineNewtonClassifier,
    StreamingPCA,
    StreamingRidge,
    TableEncoder,
    fit_stream,
    load,
    open_rows,
    predict_stream,
    save,
    score_stream,
    transform_stream,
)

N_ROWS = 500
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N_ROWS, 5)) * [3.0, 2.0, 1.0, 1.0, 1.0] + 4.0
Y = X @ np.arange(5.0) + RNG.standard_normal(N_ROWS)
TABLE = messy.messy_table(N_ROWS, seed=6)
QUIET = {"progress": False}


def rows_of(table, target=None):
    columns = [name for name in table.column_names if name != target]
    return open_rows(table, columns=columns, target=target, raw=True, batch_rows=70)


@pytest.fixture(scope="module")
def table_model():
    pipeline = make_pipeline(TableEncoder(text="drop"), StreamingRidge())
    return fit_stream(pipeline, rows_of(TABLE, "price"), **QUIET)


def test_coordinates_are_those_of_memory():
    pca = StreamingPCA(3).fit(X)
    source = open_rows(X, batch_rows=64)
    np.testing.assert_array_equal(transform_stream(pca, X, **QUIET), pca.transform(X))
    # Products of other numbers of rows round in another way.
    np.testing.assert_allclose(transform_stream(pca, source, **QUIET), pca.transform(X), atol=1e-12)
    sparse = transform_stream(StandardScaler(with_mean=False).fit(X), sp.csr_array(X), **QUIET)
    assert sp.issparse(sparse)
    np.testing.assert_allclose(sparse.toarray(), X / X.std(axis=0), rtol=1e-12)


def test_predictions_are_those_of_memory(table_model):
    found = predict_stream(table_model, rows_of(TABLE.drop(["price"])), **QUIET)
    np.testing.assert_allclose(found, table_model.predict(TABLE.drop(["price"])), rtol=1e-12)
    labels = np.where(Y.mean() < Y, "high", "low")
    classifier = OnlineNewtonClassifier().fit(X, labels)
    found = predict_stream(classifier, open_rows(X, batch_rows=33), **QUIET)
    assert found.tolist() == classifier.predict(X).tolist()


def test_columns_of_a_file_are_chosen_by_name(tmp_path, table_model):
    TABLE.to_pandas().iloc[:, ::-1].to_parquet(tmp_path / "x.parquet", index=False)
    found = predict_stream(table_model, tmp_path / "x.parquet", **QUIET)
    np.testing.assert_allclose(found, table_model.predict(TABLE), rtol=1e-12)
    frame = pd.DataFrame(X, columns=list("abcde"))
    pca = StreamingPCA(2).fit(frame)
    frame.assign(more="text").iloc[:, ::-1].to_csv(tmp_path / "x.csv", index=False)
    found = transform_stream(pca, tmp_path / "x.csv", **QUIET)
    np.testing.assert_allclose(found, pca.transform(frame), atol=1e-12)


def test_a_saved_pipeline_answers_the_same(tmp_path, table_model):
    save(table_model, tmp_path / "model.sks")
    rows = rows_of(TABLE.drop(["price"]))
    np.testing.assert_array_equal(
        predict_stream(load(tmp_path / "model.sks"), rows, **QUIET),
        predict_stream(table_model, rows, **QUIET),
    )


def test_scores_are_those_of_memory(table_model):
    y = TABLE["price"].to_numpy()
    found = score_stream(table_model, rows_of(TABLE, "price"), **QUIET)
    np.testing.assert_allclose(found, table_model.score(TABLE.drop(["price"]), y), rtol=1e-12)
    two = np.column_stack([Y, 1e6 + X[:, 0]])
    ridge = StreamingRidge().fit(X, two)
    found = score_stream(ridge, open_rows(X, target=two, batch_rows=41), **QUIET)
    np.testing.assert_allclose(found, ridge.score(X, two), rtol=1e-9)
    labels = np.where(Y.mean() < Y, "high", "low")
    classifier = OnlineNewtonClassifier().fit(X, labels)
    found = score_stream(classifier, (X, labels), **QUIET)
    np.testing.assert_allclose(found, classifier.score(X, labels), rtol=1e-12)
    pca = StreamingPCA(2).fit(X)
    if hasattr(pca, "score_samples"):
        np.testing.assert_allclose(score_stream(pca, X, **QUIET), pca.score(X), rtol=1e-9)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_targets_that_are_all_the_same_have_the_score_of_scikit_learn():
    ridge = StreamingRidge().fit(X, Y)
    for model, y in ((ridge, np.full(N_ROWS, 3.0)), (StreamingRidge().fit(X, 0 * Y), 0 * Y)):
        found = score_stream(model, (X, y), **QUIET)
        assert found == r2_score(y, model.predict(X))


READERS = {
    "npy": np.load,
    "npz": lambda path: np.load(path)["X"],
    "parquet": lambda path: pd.read_parquet(path).to_numpy(),
    "csv": lambda path: pd.read_csv(path).to_numpy(),
}


@pytest.mark.parametrize("form", READERS)
def test_files_hold_the_same(form, tmp_path):
    path = tmp_path / f"out.{form}"
    pca, source = StreamingPCA(3).fit(X), open_rows(X, batch_rows=64)
    assert transform_stream(pca, source, path, **QUIET) is None
    wanted = transform_stream(pca, source, **QUIET)
    np.testing.assert_allclose(READERS[form](path), wanted, rtol=1e-15)
    if form in ("parquet", "csv"):
        frame = pd.read_parquet(path) if form == "parquet" else pd.read_csv(path)
        assert list(frame) == pca.get_feature_names_out().tolist()
    ridge = StreamingRidge().fit(X, Y)
    predict_stream(ridge, source, os.fspath(path), **QUIET)
    np.testing.assert_allclose(READERS[form](path).ravel(), predict_stream(ridge, source, **QUIET))
    score_stream(ridge, (X, Y), path, **QUIET)
    np.testing.assert_allclose(READERS[form](path).ravel(), ridge.predict(X), rtol=1e-12)
    assert os.listdir(tmp_path) == [path.name]


def test_labels_go_to_files_of_text(tmp_path):
    labels = np.where(Y.mean() < Y, "high", "low")
    classifier = OnlineNewtonClassifier().fit(X, labels)
    for name, read in (("p.csv", pd.read_csv), ("p.parquet", pd.read_parquet)):
        predict_stream(classifier, X, tmp_path / name, **QUIET)
        found = read(tmp_path / name)["prediction"].tolist()
        assert found == classifier.predict(X).tolist()
    with pytest.raises(ValueError, match="holds numbers, and a column is text"):
        predict_stream(classifier, X, tmp_path / "p.npy", **QUIET)
    assert sorted(os.listdir(tmp_path)) == ["p.csv", "p.parquet"]


@pytest.mark.parametrize("form", READERS)
def test_a_failing_run_leaves_no_file(form, tmp_path):
    def blocks():
        yield X[:100]
        yield X[100:200, :3]

    pca, path = StreamingPCA(2).fit(X), tmp_path / f"out.{form}"
    with pytest.raises(ValueError, match="3"):
        transform_stream(pca, blocks(), path, **QUIET)
    assert os.listdir(tmp_path) == []
    path.write_bytes(b"as it was")
    with pytest.raises(ValueError, match="3"):
        transform_stream(pca, blocks(), path, **QUIET)
    assert path.read_bytes() == b"as it was"
    assert os.listdir(tmp_path) == [path.name]


def test_mistakes(tmp_path):
    pca, ridge = StreamingPCA(2).fit(X), StreamingRidge().fit(X, Y)
    with pytest.raises(TypeError, match="StreamingPCA has no predict"):
        predict_stream(pca, X, **QUIET)
    with pytest.raises(ValueError, match=r"ends in \.npy"):
        transform_stream(pca, X, tmp_path / "out.txt", **QUIET)
    with pytest.raises(ValueError, match="no targets"):
        score_stream(ridge, X, **QUIET)
    with pytest.raises(ValueError, match="no rows"):
        transform_stream(pca, X[:0], **QUIET)
    assert os.listdir(tmp_path) == []


def test_progress_reaches_all_rows():
    seen = []
    transform_stream(
        StreamingPCA(2).fit(X), open_rows(X, batch_rows=64), progress=lambda *n: seen.append(n)
    )
    assert seen[0] == (0, N_ROWS)
    assert seen[-1] == (N_ROWS, N_ROWS)
    assert seen == sorted(seen)
