"""Every format of files: all rows in order, from any row on, labelled or not, and damaged."""

import bz2
import gzip
import json
import lzma

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.orc
import pyarrow.parquet as pq
import pytest
import scipy.io
import scipy.sparse as sp

from sksketch import SourceError, open_rows

NAMES = ["a", "b", "c"]
ROWS = np.random.default_rng(0).standard_normal((47, 3)).round(3)
LABELS = (np.arange(47) % 5).astype(np.float64)
FRAME = pd.DataFrame(ROWS, columns=NAMES).assign(label=LABELS)
TABLE = pa.Table.from_pandas(FRAME, preserve_index=False)


def gather(blocks):
    X, y = zip(*blocks, strict=True)
    dense = [part.toarray() if sp.issparse(part) else np.asarray(part) for part in X]
    return np.concatenate(dense), None if y[0] is None else np.concatenate(y)


def feather(path, **options):
    pyarrow.feather.write_feather(TABLE, path, chunksize=10, **options)


def ipc_stream(path):
    with pa.ipc.new_stream(path, TABLE.schema) as stream:
        stream.write_table(TABLE, max_chunksize=9)


def orc(path):
    pyarrow.orc.write_table(TABLE, path, stripe_size=1, batch_size=10)


def as_lines():
    return "".join(json.dumps(row) + "\n" for row in FRAME.to_dict("records")).encode()


def zstd(data):
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


def as_csv():
    return FRAME.to_csv(index=False).encode()


def as_svmlight():
    rows = zip(LABELS, ROWS, strict=True)
    lines = (f"{y} " + " ".join(f"{j + 1}:{v}" for j, v in enumerate(x)) for y, x in rows)
    return "\n".join(lines).encode()


def market(path, by_columns=False):
    S = sp.coo_array(np.column_stack([ROWS, LABELS]))
    order = np.lexsort((S.row, S.col) if by_columns else (S.col, S.row))
    scipy.io.mmwrite(path, sp.coo_array((S.data[order], (S.row[order], S.col[order])), S.shape))


BY_NAME = {"target": "label"}
FORMATS = {
    "rows.feather": (feather, BY_NAME),
    "packed.feather": (lambda path: feather(path, compression="zstd"), BY_NAME),
    "rows.arrow": (feather, BY_NAME),
    "rows.ipc": (feather, BY_NAME),
    "rows.arrows": (ipc_stream, BY_NAME),
    "rows.orc": (orc, BY_NAME),
    "rows.jsonl": (lambda path: path.write_bytes(as_lines()), BY_NAME),
    "rows.ndjson": (lambda path: path.write_bytes(b"\n" + as_lines() + b"\n\n"), BY_NAME),
    "rows.json.gz": (lambda path: path.write_bytes(gzip.compress(as_lines())), BY_NAME),
    "rows.csv.bz2": (lambda path: path.write_bytes(bz2.compress(as_csv())), BY_NAME),
    "rows.csv.xz": (lambda path: path.write_bytes(lzma.compress(as_csv())), BY_NAME),
    "rows.csv.zst": (lambda path: path.write_bytes(zstd(as_csv())), BY_NAME),
    "secretly.csv": (lambda path: path.write_bytes(bz2.compress(as_csv())), BY_NAME),
    "rows.svm.zst": (lambda path: path.write_bytes(zstd(as_svmlight())), {}),
    "rows.mtx": (market, {"target": 3}),
    "columns.mtx": (lambda path: market(path, by_columns=True), {"target": 3}),
    "dense.mtx": (
        lambda path: scipy.io.mmwrite(path, np.column_stack([ROWS, LABELS])),
        {"target": 3},
    ),
}


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    folder = tmp_path_factory.mktemp("formats")
    for name, (write, _) in FORMATS.items():
        write(folder / name)
    return folder


@pytest.mark.parametrize("batch_rows", [None, 7])
@pytest.mark.parametrize("name", FORMATS)
def test_all_rows_come_in_order_again_and_from_any_row_on(paths, name, batch_rows):
    options = FORMATS[name][1]
    source = open_rows(paths / name, batch_rows=batch_rows, **options)
    assert (source.n_features, source.n_targets) == (3, 1)
    assert source.n_rows in (47, None)
    assert source.feature_names in (NAMES, None)
    for start in (0, 0, 1, 13, 46):
        X, y = gather(source.blocks(start))
        np.testing.assert_allclose(X, ROWS[start:], atol=1e-12)
        np.testing.assert_array_equal(y, LABELS[start:])
    assert source.fingerprint() == open_rows(paths / name, batch_rows=9, **options).fingerprint()


@pytest.mark.parametrize("name", FORMATS)
def test_rows_without_a_target(paths, name):
    options = {"target": []} if ".svm" in name else {}
    X, y = gather(open_rows(paths / name, **options).blocks())
    assert y is None
    np.testing.assert_allclose(X[:, :3], ROWS, atol=1e-12)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("damage", ["cut", "garbage"])
def test_a_damaged_file_is_one_clear_line(paths, tmp_path, name, damage):
    data = (paths / name).read_bytes()
    cut = data[: len(data) * 2 // 3]
    rest = b"" if damage == "cut" else bytes(i * 37 % 251 for i in range(len(data) - len(cut)))
    (tmp_path / name).write_bytes(cut + rest)
    message = ""
    try:
        X, _ = gather(open_rows(tmp_path / name, **FORMATS[name][1]).blocks())
    except SourceError as error:
        message = str(error)
    if message:
        assert name in message
        assert "\n" not in message
        assert len(message) < 400
    else:
        # Lines that end where the file was cut cannot be told from a shorter file.
        assert damage == "cut"
        assert len(X) < 47


def test_files_of_another_kind_are_named(tmp_path):
    for name in ("x.feather", "x.arrows", "x.orc", "x.mtx", "x.jsonl", "x.h5", "x.nc"):
        (tmp_path / name).write_bytes(b"this is something else\n" * 9)
        with pytest.raises(SourceError, match=name):
            open_rows(tmp_path / name)
    (tmp_path / "old.feather").write_bytes(b"FEA1" + bytes(40))
    with pytest.raises(SourceError, match="Feather of version 1"):
        open_rows(tmp_path / "old.feather")


def test_an_unsupported_ending_lists_what_is_supported(tmp_path):
    (tmp_path / "book.xlsx").touch()
    with pytest.raises(SourceError, match=r"supported: .csv .*\.h5ad.*\.zst.*read_excel") as caught:
        open_rows(tmp_path / "book.xlsx")
    assert "\n" not in str(caught.value)
    (tmp_path / "rows.parquet.gz").touch()
    with pytest.raises(SourceError, match="unpack it"):
        open_rows(tmp_path / "rows.parquet.gz")


def test_several_files_are_one_table(tmp_path):
    for part, start in enumerate(range(0, 47, 20)):
        pyarrow.feather.write_feather(TABLE.slice(start, 20), tmp_path / f"{part}.feather")
    source = open_rows(tmp_path, target="label", columns=["c", "a"])
    X, y = gather(source.blocks(25))
    np.testing.assert_array_equal(X, ROWS[25:, [2, 0]])
    np.testing.assert_array_equal(y, LABELS[25:])
    pyarrow.feather.write_feather(TABLE.drop(["c"]), tmp_path / "9.feather")
    with pytest.raises(SourceError, match="9.feather: there is no column 'c'"):
        open_rows(tmp_path)


# JSON lines


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1}\n{"a": \n', "x.jsonl, line 2: not a JSON object"),
        ('{"a": 1}\n\n[1]\n', "x.jsonl, line 3: a list where an object is expected"),
        ('{"a": 1}\n{"a": "x"}\n', "x.jsonl, line 2: 'a' is \"x\", unlike in the lines above"),
        ('[{"a": 1},\n {"a": 2}]', "holds one JSON array; write an object in each line"),
        ('{"a": 1, "b": 2}\n{"a": 3}\n', "x.jsonl, line 2: missing value in column 'b'"),
        ('{"a": {"b": 2}}\n', "column 'a' is not numeric"),
        ("", "the file is empty"),
    ],
)
def test_a_bad_line_of_json_is_named(tmp_path, text, message):
    (tmp_path / "x.jsonl").write_text(text)
    with pytest.raises(SourceError, match=message):
        list(open_rows(tmp_path / "x.jsonl").blocks())


def test_integers_of_json_may_become_fractions(tmp_path, monkeypatch):
    monkeypatch.setattr("sksketch.streams.files.TEXT_BYTES", 64)
    lines = [{"v": [i, 2 * i], "a": i if i < 20 else i + 0.5, "t": "x"} for i in range(60)]
    path = tmp_path / "x.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    source = open_rows(path, columns=["v", "a"])
    assert source.feature_names == ["v[0]", "v[1]", "a"]
    X, _ = gather(source.blocks())
    np.testing.assert_array_equal(X, [[*row["v"], row["a"]] for row in lines])


# Matrix Market


def test_matrix_market_in_flat_memory_and_not(tmp_path, monkeypatch):
    monkeypatch.setattr("sksketch.streams.files.TEXT_BYTES", 100)
    monkeypatch.setattr("sksketch.streams.formats.matrices.matrix_market.MOST_ROWS", 5)
    S = sp.random_array((60, 9), density=0.08, rng=np.random.default_rng(1), format="csr")
    path = tmp_path / "x.mtx"
    scipy.io.mmwrite(path, S.tocoo())
    text = path.read_text()
    header, body = text.splitlines()[:3], text.splitlines()[3:]
    body.sort(key=lambda line: int(line.split()[0]))
    path.write_text("\n".join([*header, "% more", *body]) + "\n")
    source = open_rows(path)
    assert source.fingerprint()["kind"] == "mtx"
    for start in (0, 17):
        blocks = list(source.blocks(start))
        assert len(blocks) > 5
        np.testing.assert_allclose(gather(blocks)[0], S.toarray()[start:])
    path.write_text("\n".join([*header, *reversed(body)]))
    np.testing.assert_allclose(gather(open_rows(path).blocks())[0], S.toarray())


def test_symmetric_and_pattern_matrices(tmp_path):
    S = sp.random_array((9, 9), density=0.3, rng=np.random.default_rng(1))
    for symmetry, A in (("symmetric", S + S.T), ("skew-symmetric", S - S.T)):
        scipy.io.mmwrite(tmp_path / "x.mtx", A.tocoo(), symmetry=symmetry)
        np.testing.assert_allclose(gather(open_rows(tmp_path / "x.mtx").blocks())[0], A.toarray())
    (tmp_path / "x.mtx").write_text(
        "%%MatrixMarket matrix coordinate pattern general\n2 2 1\n2 1\n"
    )
    X, _ = gather(open_rows(tmp_path / "x.mtx").blocks())
    np.testing.assert_array_equal(X, [[0, 0], [1, 0]])


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("2 2 1\n1 3 5\n", "entry 1: column 3 is not between 1 and 2"),
        ("2 2 2\n1 1 5\n", "1 entries were found where 2 are declared"),
        ("2 2 2\n1 1 5\n1 x 5\n", "line 4: expected 3 numbers, found '1 x 5'"),
        ("2 2 1\n1 1\n", "line 3: expected 3 numbers"),
        ("2 2\n", "line 2: expected 3 sizes"),
        ("", "the line with the sizes is missing"),
    ],
)
def test_a_bad_matrix_is_named(tmp_path, body, message):
    path = tmp_path / "x.mtx"
    path.write_text("%%MatrixMarket matrix coordinate real general\n" + body)
    with pytest.raises(SourceError, match=message):
        list(open_rows(path).blocks())


# Vectors


@pytest.mark.parametrize("kind", [pa.list_(pa.float32(), 4), pa.list_(pa.float32())])
@pytest.mark.parametrize("ending", ["parquet", "feather", "table", "stream"])
def test_lists_of_numbers_are_vectors_without_a_copy(tmp_path, kind, ending):
    V = np.random.default_rng(2).standard_normal((30, 4)).astype(np.float32)
    table = pa.table({"v": pa.array(V.tolist(), kind), "y": np.arange(30.0)})
    source = table
    if ending == "parquet":
        pq.write_table(table, source := tmp_path / "x.parquet", row_group_size=8)
    elif ending == "feather":
        pyarrow.feather.write_feather(table, source := tmp_path / "x.feather")
    elif ending == "stream":
        source = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(7))
    rows = open_rows(source, target="y")
    assert rows.feature_names == [f"v[{i}]" for i in range(4)]
    blocks = list(rows.blocks())
    X, y = gather(blocks)
    assert X.dtype == np.float32
    np.testing.assert_array_equal(X, V)
    np.testing.assert_array_equal(y, np.arange(30.0))
    # In Arrow's own memory, which is not ours to write to.
    assert not blocks[0].X.flags.owndata
    assert not blocks[0].X.flags.writeable
    if ending != "stream":
        again = open_rows(source, columns=[f"v[{i}]" for i in range(4)])
        np.testing.assert_array_equal(gather(again.blocks(3))[0], V[3:])
        both = open_rows(source, columns=["y", "v"])
        np.testing.assert_allclose(gather(both.blocks())[0], np.column_stack([y, V]))


def test_ragged_lists_are_refused_with_the_row(tmp_path):
    table = pa.table({"v": [[1.0, 2.0], None, [3.0]]})
    pq.write_table(table, tmp_path / "x.parquet")
    with pytest.raises(SourceError, match="row group 0, row 2 of it: column 'v' has a list of 1"):
        list(open_rows(tmp_path / "x.parquet").blocks())
    pq.write_table(table.slice(0, 2), tmp_path / "x.parquet")
    with pytest.raises(SourceError, match=r"row 1 of it: missing value in column 'v\[0\]'"):
        list(open_rows(tmp_path / "x.parquet").blocks())


# Hive partitions


@pytest.mark.parametrize("ending", ["parquet", "csv", "feather", "jsonl"])
def test_folders_are_columns(tmp_path, ending):
    write = {
        "parquet": lambda frame, path: frame.to_parquet(path),
        "csv": lambda frame, path: frame.to_csv(path, index=False),
        "feather": lambda frame, path: frame.to_feather(path),
        "jsonl": lambda frame, path: frame.to_json(path, orient="records", lines=True),
    }[ending]
    expected = []
    for year in (2023, 2024):
        for place in ("north", "south"):
            folder = tmp_path / f"year={year}" / f"place={place}"
            folder.mkdir(parents=True)
            write(pd.DataFrame({"a": [float(year % 5), 1.5]}), folder / f"x.{ending}")
            expected += [[year % 5, year, place == "north"], [1.5, year, place == "north"]]
    options = {"columns": ["a", "year", "place"], "one_hot": "place"}
    source = open_rows(tmp_path, **options)
    assert source.feature_names == ["a", "year", "place=north", "place=south"]
    X, _ = gather(source.blocks())
    np.testing.assert_array_equal(X[:, :3], expected)
    pattern = open_rows(f"{tmp_path}/year=*/place=*/*.{ending}", target="year", columns=["a"])
    np.testing.assert_array_equal(gather(pattern.blocks(2))[1], [2023] * 2 + [2024] * 4)
    alone = open_rows(tmp_path, columns=["year"])
    np.testing.assert_array_equal(gather(alone.blocks())[0].ravel(), np.repeat([2023, 2024], 4))
    # One file has the columns of its folders if they are asked for.
    one = tmp_path / "year=2024" / "place=north" / f"x.{ending}"
    assert open_rows(one).feature_names == ["a"]
    assert open_rows(one, target="year").target_names == ["year"]
    with pytest.raises(SourceError, match="column 'place' is not numeric"):
        open_rows(tmp_path)


def test_parts_of_partitioned_files_know_their_folders(tmp_path):
    for month in (1, 2):
        (tmp_path / f"month={month}").mkdir()
        FRAME.to_parquet(tmp_path / f"month={month}" / "x.parquet")
    from sksketch.streams import divide

    source = open_rows(tmp_path)
    parts = divide(source, {})
    X = np.concatenate([block.X for part in parts for block in part.blocks()])
    np.testing.assert_array_equal(X, gather(source.blocks())[0])
    assert set(X[:, -1]) == {1.0, 2.0}
