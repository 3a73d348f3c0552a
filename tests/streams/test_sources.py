"""Objects of other libraries that hold rows: queries, data sets, pairs, dicts."""

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as pds
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
import torch
from torch.utils.data import DataLoader, TensorDataset

from sksketch import (
    OnlineNewtonClassifier,
    SourceError,
    StreamExhaustedError,
    StreamingRidge,
    fit_stream,
    open_rows,
)

NAMES = ["a", "b", "c"]
ROWS = np.random.default_rng(0).standard_normal((47, 3)).round(3)
LABELS = (np.arange(47) % 5).astype(np.float64)
FRAME = pd.DataFrame(ROWS, columns=NAMES).assign(label=LABELS)
TABLE = pa.Table.from_pandas(FRAME, preserve_index=False)


def gather(blocks):
    X, y = zip(*blocks, strict=True)
    dense = [part.toarray() if sp.issparse(part) else np.asarray(part) for part in X]
    return np.concatenate(dense), None if y[0] is None else np.concatenate(y)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("tables")
    for start in range(0, 47, 20):
        pq.write_table(TABLE.slice(start, 20), place / f"{start:02}.parquet", row_group_size=6)
    return place


def parquet_file(folder):
    path = folder.parent / "whole.parquet"
    pq.write_table(TABLE, path, row_group_size=6)
    return pq.ParquetFile(path)


REPEATABLE = {
    "lazy frame": lambda folder: pl.scan_parquet(folder / "*.parquet"),
    "lazy frame in memory": lambda folder: pl.from_pandas(FRAME).lazy(),
    "relation": lambda folder: duckdb.sql(f"from '{folder}/*.parquet'"),
    "relation of a frame": lambda folder: duckdb.connect().from_arrow(TABLE),
    "dataset": lambda folder: pds.dataset(folder),
    "dataset in memory": lambda folder: pds.dataset(TABLE),
    "scanner": lambda folder: pds.dataset(folder).scanner(batch_size=9),
    "parquet file": parquet_file,
    "dicts": lambda folder: FRAME.to_dict("records"),
}


class Stream:
    """Only what the Arrow C stream asks for."""

    def __arrow_c_stream__(self, requested_schema=None):
        return TABLE.__arrow_c_stream__(requested_schema)


ONCE = {
    "C stream": lambda folder: Stream(),
    "scanner of batches": lambda folder: pds.Scanner.from_batches(
        iter(TABLE.to_batches(10)), schema=TABLE.schema
    ),
    "generator of dicts": lambda folder: (row for row in FRAME.to_dict("records")),
}


@pytest.mark.parametrize("batch_rows", [None, 7])
@pytest.mark.parametrize("name", REPEATABLE)
def test_all_rows_come_in_order_again_and_from_any_row_on(folder, name, batch_rows):
    given = REPEATABLE[name](folder)
    source = open_rows(given, target="label", batch_rows=batch_rows)
    assert (source.n_features, source.n_targets) == (3, 1)
    assert source.n_rows in (47, None)
    assert source.feature_names == NAMES
    for start in (0, 0, 1, 13, 46):
        X, y = gather(source.blocks(start))
        np.testing.assert_array_equal(X, ROWS[start:])
        np.testing.assert_array_equal(y, LABELS[start:])
    X, y = gather(open_rows(given, columns=["c", "a"]).blocks())
    assert y is None
    np.testing.assert_array_equal(X, ROWS[:, [2, 0]])
    assert source.fingerprint() == open_rows(given, target="label").fingerprint()
    assert repr(source).startswith("<RowSource of")
    model = fit_stream(StreamingRidge(), source, progress=False)
    assert model.n_samples_seen_ == 47


@pytest.mark.parametrize("name", ONCE)
def test_what_can_be_read_once(folder, name):
    source = open_rows(ONCE[name](folder), target="label")
    X, y = gather(source.blocks(5))
    np.testing.assert_array_equal(X, ROWS[5:])
    np.testing.assert_array_equal(y, LABELS[5:])
    with pytest.raises(StreamExhaustedError, match="only once"):
        list(source.blocks())


def test_a_query_that_fails_is_one_line():
    relation = duckdb.sql("select 1.5 as a, cast(s as integer) as b from (values ('x')) t(s)")
    with pytest.raises(SourceError, match="the relation: the rows cannot be read") as caught:
        list(open_rows(relation).blocks())
    assert "\n" not in str(caught.value)
    with pytest.raises(SourceError, match="column 's' is not numeric"):
        open_rows(pl.LazyFrame({"a": [1.0], "s": ["x"]}))


@pytest.mark.parametrize("given", [pa.array([1.0]), pa.chunked_array([[1.0]]), TABLE.schema])
def test_what_is_no_table_of_arrow(given):
    with pytest.raises(TypeError, match="of pyarrow is no table; pass a Table"):
        open_rows(given)


# Pairs


@pytest.mark.parametrize(
    "pair",
    [
        (ROWS, LABELS),
        (ROWS.tolist(), LABELS.tolist()),
        (sp.csr_array(ROWS), LABELS),
        (FRAME[NAMES], FRAME["label"]),
        (pl.from_pandas(FRAME[NAMES]), pl.Series("label", LABELS)),
        (TABLE.select(NAMES), LABELS),
        (FRAME[NAMES], FRAME[["label"]]),
        (torch.from_numpy(ROWS), torch.from_numpy(LABELS)),
    ],
    ids=["arrays", "lists", "sparse", "pandas", "polars", "arrow", "frames", "torch"],
)
def test_a_pair_is_one_labelled_source(pair):
    source = open_rows(pair, batch_rows=10)
    assert (source.n_features, source.n_targets, source.n_rows) == (3, 1, 47)
    assert source.target_names in (["label"], None)
    for start in (0, 13):
        X, y = gather(source.blocks(start))
        np.testing.assert_array_equal(X, ROWS[start:])
        np.testing.assert_array_equal(np.ravel(y), LABELS[start:])
    assert open_rows(pair).fingerprint() != open_rows((pair[0], LABELS + 1.0)).fingerprint() or (
        isinstance(pair[0], torch.Tensor)
    )


def test_pairs_learn_and_other_tuples_are_blocks():
    model = fit_stream(StreamingRidge(), (ROWS, LABELS), progress=False)
    np.testing.assert_allclose(model.coef_, StreamingRidge().fit(ROWS, LABELS).coef_)
    assert sum(len(block.X) for block in open_rows((ROWS, ROWS[:9])).blocks()) == 56
    assert open_rows([ROWS, ROWS]).n_targets == 0
    assert open_rows((ROWS, ROWS[:, :2])).n_targets == 2
    for bad, message in (
        ((ROWS, LABELS[:5]), "47 rows came with 5 targets"),
        ((FRAME, LABELS), "leave one of them out"),
    ):
        with pytest.raises(ValueError, match=message):
            open_rows(bad, target="label" if "leave" in message else None)
    words = np.where(LABELS > 2, "yes", "no")
    _, y = gather(open_rows((ROWS, words)).blocks())
    np.testing.assert_array_equal(y, words)


# Batches of torch, dicts


def test_lists_of_a_loader_are_pairs():
    tensors = torch.from_numpy(ROWS), torch.from_numpy(LABELS > 2)
    loader = DataLoader(TensorDataset(*tensors), batch_size=10)
    X, y = gather(open_rows(loader).blocks())
    np.testing.assert_array_equal(X, ROWS)
    np.testing.assert_array_equal(y, LABELS > 2)
    model = fit_stream(OnlineNewtonClassifier(), loader, classes=[False, True], progress=False)
    assert model.n_features_in_ == 3
    alone = DataLoader(TensorDataset(tensors[0]), batch_size=10)
    np.testing.assert_array_equal(gather(open_rows(alone).blocks())[0], ROWS)


def test_dicts_with_holes_and_strange_names():
    rows = [{"a": 1, "b": 2.5}, {"a": 2}, {"b": 3, "a": None}]
    X, _ = gather(open_rows(rows, missing="drop").blocks())
    np.testing.assert_array_equal(X, [[1, 2.5]])
    with pytest.raises(SourceError, match="dict 1: missing value in column 'b'"):
        list(open_rows(rows).blocks())
    many = [{"a": 1}] * 1024 + [{"a": 1, "z": 2}]
    with pytest.raises(SourceError, match="dict 1024: the name 'z' is new"):
        list(open_rows(many).blocks())
    with pytest.raises(SourceError, match="dicts 1024 to 1024: a value has another type"):
        list(open_rows([*many[:1024], {"a": "x"}]).blocks())
    with pytest.raises(SourceError, match="row 1 is a list and the first was a dict"):
        open_rows(iter([{"a": 1}, [2]]))
