"""Parts of files: together they are all rows, once, as the whole was opened."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import dump_svmlight_file

from sksketch import SourceError, open_rows
from sksketch.streams import divide, parts

X = np.random.default_rng(0).standard_normal((900, 4))


@pytest.fixture
def small(monkeypatch):
    """Make parts of a hundred rows."""
    monkeypatch.setattr(parts, "PART_BYTES", 100 * 8 * 4)


def all_rows(source, options=None):
    """Read all parts, as another process would."""
    found = pickle.loads(pickle.dumps(divide(source, options or {})))
    blocks = [block for part in found for block in part.blocks()]
    X = np.concatenate([block.X for block in blocks])
    return len(found), X, None if blocks[0].y is None else np.concatenate([b.y for b in blocks])


def test_row_groups_and_files_of_parquet(tmp_path, small, monkeypatch):
    for name in ("TABLE_BYTES", "WIDE_BYTES"):
        monkeypatch.setattr(f"sksketch.streams.columns.{name}", 1)
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame[:600].to_parquet(tmp_path / "0.parquet", row_group_size=50)
    # Other files may have their columns in another order.
    frame[600:][list("dcba")].to_parquet(tmp_path / "1.parquet", row_group_size=70)
    source = open_rows(str(tmp_path / "*.parquet"), target="d")
    n_parts, rows, y = all_rows(source, {"target": "d"})
    assert n_parts == 6 + 4
    np.testing.assert_array_equal(rows, X[:, :3])
    np.testing.assert_array_equal(y, X[:, 3])


def test_rows_of_npy_files(tmp_path, small, monkeypatch):
    monkeypatch.setattr("sksketch.streams.formats.arrays.BLOCK_BYTES", 30 * 8 * 4)
    np.save(tmp_path / "x.npy", X)
    n_parts, rows, _ = all_rows(open_rows(tmp_path / "x.npy"))
    assert n_parts == 10
    np.testing.assert_array_equal(rows, X)
    dropped = X.copy()
    dropped[::7, 1] = np.nan
    np.save(tmp_path / "x.npy", dropped)
    source = open_rows(tmp_path / "x.npy", missing="drop")
    _, rows, _ = all_rows(source, {"missing": "drop"})
    np.testing.assert_array_equal(rows, dropped[~np.isnan(dropped[:, 1])])


def test_chunks_of_zarr(tmp_path, small, monkeypatch):
    zarr = pytest.importorskip("zarr")
    monkeypatch.setattr("sksketch.streams.formats.zarr.BLOCK_BYTES", 1)
    zarr.create_array(tmp_path / "x.zarr", data=X, chunks=(64, 4))
    n_parts, rows, _ = all_rows(open_rows(tmp_path / "x.zarr"))
    assert n_parts == 14
    np.testing.assert_array_equal(rows, X)


def test_files_of_text_are_read_as_the_first_was(tmp_path):
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame[:450].to_csv(tmp_path / "0.csv", index=False)
    frame[450:].to_csv(tmp_path / "1.csv", index=False)
    n_parts, rows, _ = all_rows(open_rows(str(tmp_path / "*.csv")))
    assert n_parts == 2
    np.testing.assert_allclose(rows, X)
    # The indices of the second file would look as if they began at one.
    for number, part in enumerate((X[:450], X[450:] * [0, 1, 1, 1])):
        path = str(tmp_path / f"{number}.svm")
        dump_svmlight_file(part, np.zeros(len(part)), path, zero_based=True)
    source = open_rows(str(tmp_path / "*.svm"), target=[])
    found = divide(source, {"target": []})
    last = next(found[1].blocks()).X.toarray()
    np.testing.assert_allclose(last, (X[450:] * [0, 1, 1, 1])[: len(last)])


def test_categories_are_those_of_the_whole(tmp_path):
    for number, letters in enumerate(("ab", "b")):
        pd.DataFrame({"x": 1.0, "k": list(letters)}).to_csv(tmp_path / f"{number}.csv", index=False)
    options = {"categories": {"k": ["a", "b"]}}
    _, rows, _ = all_rows(open_rows(str(tmp_path / "*.csv"), **options), options)
    np.testing.assert_array_equal(rows, [[1, 1, 0], [1, 0, 1], [1, 0, 1]])


def test_what_has_no_parts_says_what_has(tmp_path):
    (tmp_path / "rows.csv").write_text("a,b\n1,2\n")
    with pytest.raises(SourceError, match="give several files, or Parquet"):
        divide(open_rows(tmp_path / "rows.csv"), {})
    with pytest.raises(SourceError, match="cannot be cut"):
        divide(open_rows(X), {})
    np.save(tmp_path / "x.npy", X)
    with pytest.raises(SourceError, match="mean of all rows above"):
        divide(open_rows(tmp_path / "x.npy", missing="mean"), {"missing": "mean"})
