"""Tables with what real ones have: text, categories, missing values, damage."""

import gzip

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sksketch import SourceError, open_rows

COLORS = ["red", "green", "blue"]


def gather(source, start_row=0):
    X, y = zip(*source.blocks(start_row), strict=True)
    return np.concatenate(X), None if y[0] is None else np.concatenate(y)


def refuses(source, message, **options):
    with pytest.raises(SourceError, match=message) as caught:
        list(open_rows(source, **options).blocks())
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def write(folder, text, name="rows.csv"):
    (folder / name).write_text(text)
    return folder / name


# CSV


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n3\n5,6\n", "rows.csv, line 3: 1 values where 2 columns are expected"),
        ("a,b\n1,2\n\n3,4,5\n", "rows.csv, line 4: 3 values where 2"),
        ("a,b\n1,2\n3,4\n5,x\n", "rows.csv, line 4: column 'b' holds 'x', which is not a number"),
        ("a,b\n1,2\n3,1.2.3\n3,4\n3,4\n", "line 3: column 'b' holds '1.2.3'"),
        ('a,"b\nc"\n1,2\n3,4\n5,6\n7,x\n', r"line 6: column 'b\\nc' holds 'x'"),
        ("a,b\n1,red\n2,blue\n", "rows.csv: column 'b' is not numeric .*columns=.*one_hot"),
        ("a,b\n1,2020-01-01\n2,2020-01-01\n", "column 'b' is not numeric"),
        ("a,a\n1,2\n", "line 1: two columns have the same name"),
        ("0,1,2\n1,2,3\n", "pass header=True or False"),
        ("", "the file is empty"),
        ("a,b\n1,2\n3,\n", "rows.csv, line 3: missing value in column 'b'; pass missing="),
        ("1,2\n3,NA\n", "rows.csv, line 2: missing value in column 1"),
    ],
)
def test_a_bad_csv_is_named_with_its_line(tmp_path, text, message):
    refuses(write(tmp_path, text), message)


@pytest.mark.parametrize("rows", [10, 300_000])
def test_lines_are_counted_through_all_blocks(tmp_path, rows):
    lines = ["a,b", *(f"{i},{i / 8}" for i in range(rows)), "7,oops", "1,2"]
    path = write(tmp_path, "\n".join(lines))
    refuses(path, f"line {rows + 2}: column 'b' holds 'oops'")
    packed = tmp_path / "packed.csv.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    refuses(packed, f"packed.csv.gz, line {rows + 2}: column 'b' holds 'oops'")
    packed.write_bytes(packed.read_bytes()[:-60])
    refuses(packed, "packed.csv.gz: the gzip data are cut short", columns=["a"])


def test_csv_dialects(tmp_path):
    for text, options in (
        ("x\ty\n1\t2\n3\t4\n", {"delimiter": "\t"}),
        ("\ufeffx,y\r\n1,2\r\n\r\n3,4", {}),
        ('"x","y"\n"1",2\n3,"4"\n', {}),
        ("\nx;y\n1;2\n3;4\n", {"delimiter": ";"}),
        ("1,2\n3,4\n", {}),
        ("0,1\n1,2\n3,4\n", {"header": True}),
        ('t,x,y\na b,1,2\n"c\nd",3,4\n', {"columns": ["x", "y"]}),
        ("x,y,z\n1,2,true\n3,4,false\n", {"columns": ["x", "y"], "target": "z"}),
    ):
        source = open_rows(write(tmp_path, text), **options)
        X, y = gather(source)
        np.testing.assert_array_equal(X, [[1, 2], [3, 4]])
        assert y is None or y.tolist() == [1, 0]
    assert open_rows(write(tmp_path, "1,2\n")).feature_names is None
    np.testing.assert_array_equal(gather(open_rows(write(tmp_path, "5\n6\n")))[0], [[5], [6]])
    # A column that is whole numbers for long may go on with fractions.
    text = "a,b\n" + "1,2\n" * 500_000 + "0.5,\n"
    source = open_rows(write(tmp_path, text), columns=["a"])
    assert gather(source, 499_999)[0].tolist() == [[1.0], [0.5]]


def test_csv_files_are_read_in_order_and_by_name(tmp_path):
    for part, text in enumerate(["a,b\n1,2\n", "b,a\n4,3\n", "a,b,c\n5,6,x\n"]):
        write(tmp_path, text, f"{part}.csv")
    np.testing.assert_array_equal(gather(open_rows(tmp_path))[0], [[1, 2], [3, 4], [5, 6]])
    write(tmp_path, "a,c\n1,2\n", "3.csv")
    refuses(tmp_path, "3.csv, line 1: there is no column 'b', which .*0.csv has")
    write(tmp_path, "a,b\n1,2\n3,four\n", "2.csv")
    refuses(tmp_path, "2.csv, line 3: column 'b' holds 'four'")


# Parquet


def parquet(path, table, **options):
    pq.write_table(table if isinstance(table, pa.Table) else pa.table(table), path, **options)
    return path


def test_a_damaged_parquet_file_is_named(tmp_path):
    path = parquet(tmp_path / "a.parquet", {"x": np.arange(1e5)}, row_group_size=1000)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    refuses(path, "a.parquet: cut short, damaged or not Parquet")
    path.write_bytes(b"")
    refuses(path, "a.parquet: cut short, damaged or not Parquet")
    checked = {"write_page_checksum": True, "compression": "none", "use_dictionary": False}
    parquet(path, {"x": np.arange(3e6)}, row_group_size=1_500_000, **checked)
    damaged = bytearray(path.read_bytes())
    damaged[int(len(damaged) * 0.9)] ^= 0xFF
    path.write_bytes(damaged)
    source = open_rows(path)
    blocks = source.blocks()
    assert next(blocks).X[0, 0] == 0
    with pytest.raises(SourceError, match=r"a.parquet, row group 1: cut short, damaged"):
        list(blocks)


def test_a_column_that_turns_to_text_is_named_with_its_file(tmp_path):
    for part in range(5):
        values = ["1", "2"] if part == 2 else [1.0, 2.0]
        parquet(tmp_path / f"part-{part}.parquet", {"x": [1, 2], "y": values})
    refuses(tmp_path, "part-2.parquet: column 'y' is string, not a number as in .*part-0.parquet")
    assert gather(open_rows(tmp_path, columns=["x"]))[0].shape == (10, 1)
    parquet(tmp_path / "part-3.parquet", {"y": [1, 2]})
    refuses(tmp_path, "part-3.parquet: there is no column 'x'", columns=["x"])


def test_parquet_types(tmp_path):
    table = pa.table(
        {
            "whole": pa.array([1, 2, 3], pa.int16()),
            "truth": pa.array([True, False, True]),
            "money": pa.array([1, 2, 3], pa.decimal128(5, 2)),
            "half": pa.array(np.array([1, 2, 3], np.float16)),
        }
    )
    X, _ = gather(open_rows(parquet(tmp_path / "t.parquet", table)))
    np.testing.assert_array_equal(X, [[1, 1, 1, 1], [2, 0, 2, 2], [3, 1, 3, 3]])
    parquet(tmp_path / "t.parquet", {"x": [1.0], "when": pa.array([0], pa.timestamp("us"))})
    refuses(tmp_path / "t.parquet", r"column 'when' is not numeric \(timestamp\[us\]\)")
    parquet(tmp_path / "t.parquet", {"x": [1.0, None, 3.0] * 9}, row_group_size=4)
    refuses(tmp_path / "t.parquet", "t.parquet, row groups 0 to 6, row 1 of it: missing value")


# Missing values and categories, in every kind of table

TABLES = {
    "csv": lambda frame, folder: frame.to_csv(folder / "t.csv", index=False) or folder / "t.csv",
    "parquet": lambda frame, folder: parquet(
        folder / "t.parquet", pa.Table.from_pandas(frame), row_group_size=2
    ),
    "arrow": lambda frame, folder: pa.Table.from_pandas(frame),
    "pandas": lambda frame, folder: frame,
    "pandas nullable": lambda frame, folder: frame.convert_dtypes(),
    "polars": lambda frame, folder: pl.from_pandas(frame),
    "frames": lambda frame, folder: iter([frame[:3], frame[3:]]),
}


@pytest.mark.parametrize("kind", TABLES)
def test_missing_values_are_refused_filled_or_dropped(tmp_path, kind):
    frame = pd.DataFrame(
        {
            "a": [np.nan, 2.0, 4.0, np.nan, 9.0, np.nan],
            "b": [1.0, 2.0, 3.0, 4.0, np.nan, 6.0],
            "y": [0.0, 1.0, 0.0, 1.0, 0.0, 1.0],
        }
    )

    def opened(missing, table=frame):
        source = TABLES[kind](table, tmp_path)
        return open_rows(source, target="y", missing=missing)

    with pytest.raises(SourceError, match="missing value in column 'a'; pass missing='mean'"):
        list(opened("error").blocks())
    source = opened("mean")
    X, y = gather(source)
    np.testing.assert_array_equal(X[:, 0], [2, 2, 4, 3, 9, 5])
    np.testing.assert_array_equal(X[:, 1], [1, 2, 3, 4, 2.5, 6])
    assert y.tolist() == [0, 1, 0, 1, 0, 1]
    assert (source.n_missing, source.n_dropped) == (4, 0)
    source = opened("drop")
    X, y = gather(source)
    np.testing.assert_array_equal(X, [[2, 2], [4, 3]])
    assert y.tolist() == [1, 0]
    assert (source.n_missing, source.n_dropped, source.n_rows) == (4, 4, None)
    holey = frame.assign(a=1.0, b=2.0, y=[0.0, np.nan, 0.0, 1.0, 0.0, 1.0])
    for missing in ("error", "mean"):
        with pytest.raises(SourceError, match="missing value in target 'y'; pass missing='drop'"):
            list(opened(missing, holey).blocks())
    assert len(gather(opened("drop", holey))[1]) == 5


def test_a_column_without_a_value_has_no_mean():
    rows = np.array([[1.0, np.nan], [2.0, np.nan]])
    with pytest.raises(SourceError, match="column 1 has no value in the first 2 rows"):
        list(open_rows(rows, missing="mean").blocks())


@given(st.data())
def test_going_on_with_missing_values_changes_nothing(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 100)))
    X = rng.standard_normal((40, 3))
    X[rng.random((40, 3)) < 0.2] = np.nan
    X[0] = 1.0
    cuts = sorted(data.draw(st.lists(st.integers(1, 39), min_size=1, max_size=4, unique=True)))
    for missing in ("mean", "drop"):
        whole, _ = gather(open_rows(X, missing=missing))
        # The cuts between blocks leave no trace, and neither does a second start.
        parts = np.split(X, cuts)
        np.testing.assert_array_equal(gather(open_rows(iter(parts), missing=missing))[0], whole)
        start = data.draw(st.integers(0, len(whole) - 1))
        source = open_rows(X, missing=missing)
        np.testing.assert_array_equal(gather(source, start)[0], whole[start:])
        assert source.n_missing == np.isnan(X).sum()


@pytest.mark.parametrize("kind", TABLES)
def test_categories_become_columns_on_request(tmp_path, kind):
    frame = pd.DataFrame({"x": [1.0, 2, 3, 4], "color": ["red", "blue", "red", "green"]})

    def opened(table=frame, **options):
        return open_rows(TABLES[kind](table, tmp_path), **options)

    with pytest.raises(SourceError, match="column 'color' is not numeric.*one_hot"):
        opened()
    with pytest.raises(SourceError, match="categories of column 'color' are not known"):
        opened(one_hot=True)
    for options in ({"one_hot": True}, {"one_hot": ["color"]}, {}):
        source = opened(categories={"color": COLORS}, **options)
        assert source.feature_names == ["x", "color=red", "color=green", "color=blue"]
        X, _ = gather(source)
        np.testing.assert_array_equal(X, [[1, 1, 0, 0], [2, 0, 0, 1], [3, 1, 0, 0], [4, 0, 1, 0]])
    with pytest.raises(SourceError, match=r"column 'color' has the value 'green', which is not"):
        list(opened(categories={"color": ["red", "blue"]}).blocks())
    with pytest.raises(SourceError, match="repeat or are none"):
        opened(categories={"color": ["red", "red"]})
    with pytest.raises(SourceError, match="column 'color' is not numeric"):
        opened(target=["color", "x"])
    holey = frame.assign(color=["red", None, "red", "green"])
    source = opened(holey, categories={"color": COLORS}, missing="drop")
    assert gather(source)[0].shape == (3, 4)
    source = opened(holey, categories={"color": COLORS}, missing="mean")
    np.testing.assert_array_equal(gather(source)[0][1], [2, 1, 0, 0])


@pytest.mark.parametrize("kind", ["arrow", "pandas", "polars"])
def test_declared_categories_need_not_be_given(tmp_path, kind):
    colors = pd.Categorical(["red", "blue", "red"], categories=COLORS)
    frame = pd.DataFrame({"x": [1.0, 2, 3], "color": colors})
    table = TABLES[kind](frame, tmp_path)
    if kind == "polars":
        table = table.with_columns(pl.col("color").cast(pl.Enum(COLORS)))
    X, _ = gather(open_rows(table, one_hot=True))
    np.testing.assert_array_equal(X, [[1, 1, 0, 0], [2, 0, 0, 1], [3, 1, 0, 0]])


def test_numbers_can_be_categories(tmp_path):
    frame = pd.DataFrame({"x": [1.0, 2.0], "zone": [7, 3]})
    for kind in ("csv", "parquet", "pandas", "polars", "arrow"):
        X, _ = gather(open_rows(TABLES[kind](frame, tmp_path), categories={"zone": [3, 7]}))
        np.testing.assert_array_equal(X, [[1, 0, 1], [2, 1, 0]])


def test_frames_of_an_iterable_keep_their_columns():
    good = pd.DataFrame({"a": [1.0], "b": [2.0]})
    for bad, error, message in (
        (good.rename(columns={"b": "c"}), SourceError, "frame 1 has no column 'b'"),
        (good.assign(b="x"), SourceError, "frame 1, row 0: column 'b' is String here"),
        (np.ones((2, 2)), TypeError, "item 1 of the iterable is a ndarray"),
    ):
        with pytest.raises(error, match=message):
            list(open_rows(iter([good, bad])).blocks())
