"""Svmlight files: what scikit-learn reads from them, and the line of every mistake."""

import gzip
import io

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from sksketch import SourceError, open_rows
from sksketch.streams import files
from sksketch.streams.files import TextBlock
from sksketch.streams.formats.svmlight import parse


def gather(source, start_row=0):
    blocks = list(source.blocks(start_row))
    return sp.vstack([b.X for b in blocks]).tocsr(), np.concatenate([b.y for b in blocks])


def write(folder, text, name="rows.svm"):
    data = text if isinstance(text, bytes) else text.encode()
    (folder / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    return folder / name


@pytest.mark.parametrize("zero_based", [True, False])
@pytest.mark.parametrize("name", ["rows.svm", "rows.svmlight.gz"])
def test_rows_are_those_that_scikit_learn_reads(tmp_path, monkeypatch, name, zero_based):
    # Small blocks, so that rows lie across their ends.
    monkeypatch.setattr(files, "TEXT_BYTES", 1000)
    X = sp.random_array((300, 50), density=0.1, format="csr", rng=1)
    X.data *= 10.0 ** np.random.default_rng(2).integers(-12, 12, X.nnz)
    labels = np.random.default_rng(3).standard_normal(300)
    text = io.BytesIO()
    dump_svmlight_file(X, labels, text, zero_based=zero_based, comment="made here")
    path = write(tmp_path, text.getvalue(), name)
    expected, y = load_svmlight_file(str(path), zero_based=zero_based, n_features=50)
    for options in ({}, {"n_features": 50, "zero_based": zero_based}, {"zero_based": zero_based}):
        source = open_rows(path, **options)
        assert source.n_features == 50
        assert source.n_rows == (None if "n_features" in options else 300)
        found, found_y = gather(source)
        assert found.indices.dtype == np.int32
        np.testing.assert_array_equal(found.toarray(), expected.toarray())
        np.testing.assert_array_equal(found_y, y)
        np.testing.assert_array_equal(gather(source, 123)[0].toarray(), expected[123:].toarray())


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20))
def test_numbers_are_read_to_the_last_bit(values):
    line = " ".join(f"{i}:{x!r}" for i, x in enumerate(values))
    rows = parse(TextBlock(1, f"{values[0]!r} {line}\n{values[-1]!r}".encode()))
    np.testing.assert_array_equal(rows.data, values)
    np.testing.assert_array_equal(rows.labels, [values[0], values[-1]])
    assert rows.indptr.tolist() == [0, len(values), len(values)]


def test_comments_blanks_and_queries_are_skipped(tmp_path):
    text = "# head\n\n1 qid:3 1:2 # 5:6\r\n   \n-1\n+1e0\tqid:9  2:.5  3:-4e-1#x\n2 qid:1"
    X, y = gather(open_rows(write(tmp_path, text)))
    np.testing.assert_array_equal(X.toarray(), [[2, 0, 0], [0, 0, 0], [0, 0.5, -0.4], [0, 0, 0]])
    assert y.tolist() == [1, -1, 1, 2]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("x 1:2", "the label 'x' is not a number"),
        ("1,2 1:2", "the label '1,2' is not a number"),
        ("1 3", "'3' is not of the form index:value"),
        ("1 -3:4", "the index of '-3:4' is not a whole number"),
        ("1 a:4", "the index of 'a:4' is not"),
        ("1 4294967296:1", "the index of '4294967296:1' is not a whole number from 0 to"),
        ("1 2:x", "the value of '2:x' is not a number"),
        ("1 2:", "the value of '2:' is not a number"),
        ("1 2:1 2:3", "the index of '2:3' is not above the one before"),
        ("1 3:nan", "NaN in column 2 of sparse rows"),
        ("nan 3:1", "missing value in target 'label'; pass missing='drop'"),
        ("1 0:1 1:1", "index 0 where counting began at 1; pass zero_based=True"),
        ("1 9:1", "index 9 is beyond the 8 features, counted from 1"),
    ],
)
@pytest.mark.parametrize("before", [3, 4000])
def test_a_bad_line_is_named(tmp_path, monkeypatch, before, line, message):
    monkeypatch.setattr(files, "TEXT_BYTES", 10_000)
    good = ["# a comment", "", *["1 1:2 8:1.5"] * before]
    path = write(tmp_path, "\n".join([*good, line, "1 1:1", ""]))
    options = {"zero_based": False} if before == 3 else {}
    with pytest.raises(SourceError, match="rows.svm, line ") as caught:
        list(open_rows(path, n_features=8, **options).blocks())
    assert f"line {before + 3}: {message}" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_options_are_checked(tmp_path):
    path = write(tmp_path, "1 0:1 4:2\n")
    assert open_rows(path).n_features == 5
    assert open_rows(path, target="label").target_names == ["label"]
    with pytest.raises(SourceError, match="line 1: index 0 where counting began at 1"):
        list(open_rows(path, zero_based=False).blocks())
    for options in ({"columns": [1]}, {"target": "y"}, {"zero_based": "no"}, {"n_features": 0}):
        with pytest.raises(ValueError, match="give|leave|only"):
            open_rows(path, **options)
    cut = write(tmp_path, "1 1:1\n" * 9000, "cut.svm.gz")
    cut.write_bytes(cut.read_bytes()[:-12])
    with pytest.raises(SourceError, match="cut.svm.gz: the gzip data are cut short"):
        open_rows(cut)


def test_several_files_share_their_columns(tmp_path):
    write(tmp_path, "1 1:1\n", "a.svm")
    write(tmp_path, "2 3:1\n", "b.svm")
    X, y = gather(open_rows(tmp_path))
    np.testing.assert_array_equal(X.toarray(), [[1, 0, 0], [0, 0, 1]])
    assert y.tolist() == [1, 2]
