"""Every kind of source gives the same rows, again and from any row on."""

import gzip
import io
import subprocess
import sys
import threading

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
import zarr
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file

import sksketch
from sksketch import SourceError, StreamExhaustedError, open_rows

NAMES = ["a", "b", "c"]
ROWS = np.random.default_rng(0).standard_normal((47, 3)).round(3)
LABELS = (np.arange(47) % 5).astype(np.float64)


def gather(blocks):
    """Return all rows and targets of blocks as dense arrays."""
    X, y = zip(*blocks, strict=True)
    dense = [part.toarray() if sp.issparse(part) else np.asarray(part) for part in X]
    return np.concatenate(dense), None if y[0] is None else np.concatenate(y)


def as_frame():
    return pd.DataFrame(ROWS, columns=NAMES).assign(label=LABELS)


def csv_file(folder, name="rows.csv"):
    path = folder / name
    as_frame().to_csv(path, index=False)
    return path


def gzip_file(folder):
    path = folder / "rows.csv.gz"
    path.write_bytes(gzip.compress(csv_file(folder, "plain.csv").read_bytes()))
    return path


def parquet_file(folder, name="rows.parquet", rows=10):
    path = folder / name
    pq.write_table(pa.Table.from_pandas(as_frame()), path, row_group_size=rows)
    return path


def parquet_folder(folder):
    place = folder / "parts"
    place.mkdir()
    for part, start in enumerate(range(0, 47, 20)):
        piece = as_frame()[start : start + 20]
        pq.write_table(pa.Table.from_pandas(piece, preserve_index=False), place / f"{part}.parquet")
    (place / "_SUCCESS").touch()
    return place


def svmlight_file(folder, name="rows.svm", pack=bytes):
    text = io.BytesIO()
    dump_svmlight_file(ROWS, LABELS, text, zero_based=False)
    (folder / name).write_bytes(pack(text.getvalue()))
    return folder / name


def npy_file(folder, order="C"):
    np.save(folder / "rows.npy", np.asarray(np.column_stack([ROWS, LABELS]), order=order))
    return folder / "rows.npy"


def npz_file(folder):
    S = sp.csr_array(ROWS)
    parts = {"data": S.data, "indices": S.indices, "indptr": S.indptr, "shape": S.shape}
    np.savez(folder / "rows.npz", y=LABELS, n_train=30, **parts)
    return folder / "rows.npz"


def dense_zarr(folder):
    both = np.column_stack([ROWS, LABELS])
    zarr.create_array(folder / "rows.zarr", data=both, chunks=(8, 4))
    return folder / "rows.zarr"


SOURCES = {
    "array": lambda folder: (np.column_stack([ROWS, LABELS]), {"target": 3}),
    "array and targets": lambda folder: (ROWS, {"target": LABELS}),
    "memory map": lambda folder: (np.load(npy_file(folder), mmap_mode="r"), {"target": -1}),
    "list": lambda folder: (ROWS.tolist(), {"target": LABELS.tolist()}),
    "csr": lambda folder: (sp.csr_array(ROWS), {"target": LABELS}),
    "csc with its target": lambda folder: (
        sp.csc_array(np.column_stack([ROWS, LABELS])),
        {"target": 3},
    ),
    "npy": lambda folder: (npy_file(folder), {"target": 3}),
    "npy by columns": lambda folder: (
        str(npy_file(folder, "F")),
        {"target": LABELS, "columns": [0, 1, 2]},
    ),
    "npz": lambda folder: (npz_file(folder), {"target": "y"}),
    "csv": lambda folder: (csv_file(folder), {"target": "label"}),
    "csv.gz": lambda folder: (gzip_file(folder), {"target": "label"}),
    "parquet": lambda folder: (parquet_file(folder), {"target": "label"}),
    "parquet folder": lambda folder: (parquet_folder(folder), {"target": "label"}),
    "parquet pattern": lambda folder: (
        f"{parquet_folder(folder)}/*.parquet",
        {"target": "label"},
    ),
    "svmlight": lambda folder: (svmlight_file(folder), {}),
    "svmlight.gz": lambda folder: (
        svmlight_file(folder, "rows.libsvm.gz", gzip.compress),
        {"n_features": 3},
    ),
    "pandas": lambda folder: (as_frame(), {"target": "label"}),
    "polars": lambda folder: (pl.from_pandas(as_frame()), {"target": "label"}),
    "arrow": lambda folder: (pa.Table.from_pandas(as_frame()), {"target": "label"}),
    "zarr": lambda folder: (dense_zarr(folder), {"target": 3}),
    "open zarr": lambda folder: (zarr.open(dense_zarr(folder), mode="r"), {"target": 3}),
}


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    made = {}
    for name, build in SOURCES.items():
        source, options = build(tmp_path_factory.mktemp("source"))
        made[name] = (source, options)
    return made


@pytest.mark.parametrize("batch_rows", [None, 1, 7, 100])
@pytest.mark.parametrize("name", SOURCES)
def test_every_source_gives_all_rows_in_order_and_again(sources, name, batch_rows):
    place, options = sources[name]
    source = open_rows(place, batch_rows=batch_rows, **options)
    assert source.n_features == 3
    assert source.n_targets == 1
    assert source.n_rows in (47, None)
    assert source.feature_names in (NAMES, None)
    assert source.target_names in (["label"], ["y"], None)
    for _ in range(2):
        blocks = list(source.blocks())
        X, y = gather(blocks)
        np.testing.assert_array_equal(X, ROWS)
        np.testing.assert_array_equal(y, LABELS)
        if batch_rows:
            sizes = [block.X.shape[0] for block in blocks]
            assert sizes[:-1] == [batch_rows] * (len(sizes) - 1)
    assert source.n_missing == source.n_dropped == 0
    assert "RowSource" in repr(source)


@given(st.sampled_from(sorted(SOURCES)), st.integers(0, 47), st.sampled_from([None, 1, 5, 30]))
def test_reading_goes_on_after_any_row(sources, name, start_row, batch_rows):
    place, options = sources[name]
    source = open_rows(place, batch_rows=batch_rows, **options)
    blocks = list(source.blocks(start_row))
    if start_row == 47:
        assert not blocks
        return
    X, y = gather(blocks)
    np.testing.assert_array_equal(X, ROWS[start_row:])
    np.testing.assert_array_equal(y, LABELS[start_row:])


@pytest.mark.parametrize("name", SOURCES)
def test_a_row_beyond_the_end_is_refused(sources, name):
    place, options = sources[name]
    with pytest.raises(ValueError, match="cannot resume after row 48|ended 1 rows before"):
        list(open_rows(place, **options).blocks(48))
    with pytest.raises(ValueError, match="cannot resume after row -1"):
        open_rows(place, **options).blocks(-1)


@pytest.mark.parametrize("name", SOURCES)
def test_a_fingerprint_is_plain_and_repeats(sources, name):
    import json

    place, options = sources[name]
    facts = open_rows(place, **options).fingerprint()
    assert json.loads(json.dumps(facts)) == facts
    source = open_rows(place, **options)
    list(source.blocks())
    assert source.fingerprint() == facts
    assert open_rows(place, missing="drop", **options).fingerprint() != facts


def test_a_fingerprint_changes_with_the_rows(tmp_path):
    other = ROWS.copy()
    other[20, 1] += 1e-9
    assert open_rows(ROWS).fingerprint() != open_rows(other).fingerprint()
    assert open_rows(ROWS).fingerprint() != open_rows(ROWS[:-1]).fingerprint()
    path = csv_file(tmp_path)
    before = open_rows(path).fingerprint()
    path.write_text(path.read_text().replace("1", "2", 1))
    assert open_rows(path).fingerprint() != before


@pytest.mark.parametrize("name", ["csv", "parquet", "pandas", "polars", "arrow"])
def test_columns_are_chosen_by_name_and_order(sources, name):
    place, _ = sources[name]
    source = open_rows(place, columns=["c", "a"], target=["b", "label"])
    assert source.feature_names == ["c", "a"]
    assert source.target_names == ["b", "label"]
    X, y = gather(source.blocks())
    np.testing.assert_array_equal(X, ROWS[:, [2, 0]])
    np.testing.assert_array_equal(y, np.column_stack([ROWS[:, 1], LABELS]))
    np.testing.assert_array_equal(gather(open_rows(place, columns=[1]).blocks())[0], ROWS[:, [1]])
    with pytest.raises(SourceError, match="no column 'd'; it has 'a', 'b', 'c', 'label'"):
        open_rows(place, columns=["d"])
    with pytest.raises(SourceError, match="no target 'd'"):
        open_rows(place, target="d")
    with pytest.raises(SourceError, match="chosen twice"):
        open_rows(place, columns=["a", "label"], target="label")


@pytest.mark.parametrize("name", ["array", "memory map", "npy", "zarr", "csc with its target"])
def test_columns_without_names_are_chosen_by_number(sources, name):
    place, _ = sources[name]
    X, y = gather(open_rows(place, columns=[2, 0], target=1).blocks())
    np.testing.assert_array_equal(X, ROWS[:, [2, 0]])
    np.testing.assert_array_equal(y, ROWS[:, 1])
    with pytest.raises(ValueError, match="columns have no names, give numbers from 0 to 3"):
        open_rows(place, columns=["a"])
    with pytest.raises(ValueError, match="no target 4"):
        open_rows(place, target=4)
    with pytest.raises(ValueError, match="none of the targets"):
        open_rows(place, columns=[1, 2], target=1)


@pytest.mark.parametrize("name", ["csv", "parquet", "svmlight", "pandas", "array"])
def test_float32_is_given_on_request(sources, name):
    place, options = sources[name]
    blocks = list(open_rows(place, dtype="float32", **options).blocks())
    assert all(block.X.dtype == np.float32 for block in blocks)
    np.testing.assert_array_equal(gather(blocks)[0], ROWS.astype(np.float32))
    with pytest.raises(ValueError, match="float32, float64 or None"):
        open_rows(place, dtype="int32", **options)


def test_iterables_are_read_once():
    pairs = [(ROWS[:20], LABELS[:20]), (ROWS[20:], LABELS[20:])]
    frames = [as_frame()[:20], as_frame()[20:]]
    reader = pa.Table.from_pandas(as_frame()).to_reader(max_chunksize=9)
    for items, options in (
        (iter(pairs), {}),
        (pairs, {}),
        (iter(frames), {"target": "label"}),
        (reader, {"target": "label"}),
        ((row for row in zip(ROWS, LABELS, strict=True)), {}),
        ((frame.to_numpy() for frame in frames), {"target": 3}),
    ):
        source = open_rows(items, **options)
        assert (source.n_features, source.n_targets, source.n_rows) == (3, 1, None)
        X, y = gather(source.blocks(start_row=5))
        np.testing.assert_array_equal(X, ROWS[5:])
        np.testing.assert_array_equal(y, LABELS[5:])
        with pytest.raises(StreamExhaustedError):
            source.blocks()


def test_other_sources_are_sources():
    rows = sksketch.datasets.GaussianRows(100, spectrum=np.ones(4))
    X, _ = gather(open_rows(rows, columns=[1]).blocks(30))
    np.testing.assert_array_equal(X, rows.rows(30, 100)[:, [1]])


def test_a_user_mistake_is_explained(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.txt").write_text("hello")
    for source, options, error, message in (
        (tmp_path / "nowhere.csv", {}, FileNotFoundError, "nowhere.csv"),
        (tmp_path / "empty", {}, SourceError, "empty holds no data file"),
        (f"{tmp_path}/*.parquet", {}, SourceError, "no file matches"),
        (
            tmp_path / "notes.txt",
            {},
            SourceError,
            "notes.txt: unsupported ending '.txt'",
        ),
        (ROWS, {"missing": "zero"}, ValueError, "missing is 'zero'; give one of 'error'"),
        (ROWS, {"batch_rows": 0}, ValueError, "batch_rows is 0"),
        (ROWS, {"one_hot": True}, ValueError, "no columns to encode"),
        (tmp_path, {"format": "excel"}, ValueError, "format is 'excel'"),
        ("-", {"format": "npy"}, ValueError, "the standard input is one of csv, jsonl"),
        ("-", {"format": "svmlight"}, ValueError, "pass n_features"),
        (iter([]), {}, SourceError, "gave no block"),
        (open_rows(ROWS), {}, TypeError, "open already"),
        (pd.DataFrame(ROWS), {}, TypeError, "let all names be strings"),
    ):
        with pytest.raises(error, match=message) as caught:
            open_rows(source, **options)
        assert "\n" not in str(caught.value)
    csv_file(tmp_path / "empty")
    parquet_file(tmp_path / "empty")
    with pytest.raises(SourceError, match=r"rows.csv is csv and .*rows.parquet is parquet"):
        open_rows(tmp_path / "empty")


@pytest.mark.parametrize("kind", ["csv", "svmlight"])
def test_standard_input(tmp_path, kind):
    path = csv_file(tmp_path) if kind == "csv" else svmlight_file(tmp_path)
    options = {"csv": "target='label'", "svmlight": "format='svmlight', n_features=3"}[kind]
    code = (
        f"from sksketch import open_rows, StreamExhaustedError; s = open_rows('-', {options})\n"
        "print(sum(b.X.sum() for b in s.blocks(7)), s.n_features)\n"
        "try: s.blocks()\nexcept StreamExhaustedError as error: print(error)"
    )
    with path.open("rb") as stdin:
        done = subprocess.run(
            [sys.executable, "-c", code], stdin=stdin, capture_output=True, text=True, check=True
        )
    numbers, message = done.stdout.splitlines()
    assert float(numbers.split()[0]) == pytest.approx(ROWS[7:].sum())
    assert numbers.split()[1] == "3"
    assert "standard input can be read only once" in message


def test_blocks_are_sized_by_bytes_and_threads_end(tmp_path):
    wide = pd.DataFrame(np.zeros((3000, 1000), np.float32)).rename(columns=str)
    # More blocks than are read ahead.
    for part in range(4):
        pq.write_table(pa.Table.from_pandas(wide), tmp_path / f"{part}.parquet")
    blocks = open_rows(tmp_path).blocks()
    block = next(blocks)
    assert block.X.dtype == np.float32
    assert block.X.shape == (4 * 2**20 // 4000, 1000)
    assert "sksketch-read-ahead" in {thread.name for thread in threading.enumerate()}
    blocks.close()
    assert "sksketch-read-ahead" not in {thread.name for thread in threading.enumerate()}


def test_the_fingerprint_tells_how_the_rows_are_read(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("1,2,3\n4,5,6\n")
    plain = sksketch.open_rows(path, header=False).fingerprint()
    assert plain == sksketch.open_rows(path, header=False).fingerprint()
    for options in ({"dtype": "float32"}, {"header": True}, {"target": 0}, {"target": 1}):
        assert sksketch.open_rows(path, **({"header": False} | options)).fingerprint() != plain
