"""Files behind a URL; the file system in memory stands for any remote one."""

import gzip

import fsspec
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from sksketch import SourceError, StreamingPCA, fit_stream, open_rows
from sksketch.streams import divide

ROWS = np.random.default_rng(0).standard_normal((47, 3)).round(3)
FRAME = pd.DataFrame(ROWS, columns=["a", "b", "c"])
TABLE = pa.Table.from_pandas(FRAME, preserve_index=False)


@pytest.fixture
def memory():
    system = fsspec.filesystem("memory")
    system.store.clear()
    system.pseudo_dirs[:] = [""]
    yield system
    system.store.clear()
    system.pseudo_dirs[:] = [""]


def put(system, name, data):
    with system.open(name, "wb") as file:
        if callable(data):
            data(file)
        else:
            file.write(data)


def gather(source, start=0):
    return np.concatenate([np.asarray(block.X) for block in source.blocks(start)])


def hdf5(file):
    h5py = pytest.importorskip("h5py")
    with h5py.File(file, "w") as opened:
        opened["X"] = ROWS


FILES = {
    "rows.parquet": lambda file: pq.write_table(TABLE, file, row_group_size=10),
    "rows.feather": lambda file: pyarrow.feather.write_feather(TABLE, file, chunksize=10),
    "rows.csv": FRAME.to_csv(index=False).encode(),
    "rows.csv.gz": gzip.compress(FRAME.to_csv(index=False).encode()),
    "rows.jsonl": FRAME.to_json(orient="records", lines=True).encode(),
    "rows.h5": hdf5,
    "rows.npz": lambda file: np.savez(file, X=ROWS),
}


@pytest.mark.parametrize("name", FILES)
def test_files_are_read_and_known_again(memory, name):
    url = f"memory://data/{name}"
    put(memory, f"/data/{name}", FILES[name])
    source = open_rows(url)
    np.testing.assert_array_equal(gather(source), ROWS)
    np.testing.assert_array_equal(gather(source, 23), ROWS[23:])
    before = source.fingerprint()
    assert open_rows(url).fingerprint() == before
    assert url.removeprefix("memory:/") in str(before) or name.endswith("npz")


def test_directories_patterns_and_partitions(memory):
    for month in (1, 2):
        put(memory, f"/t/month={month}/x.parquet", lambda file: pq.write_table(TABLE, file))
    put(memory, "/t/_SUCCESS", b"")
    for url in ("memory://t", "memory://t/*/x.parquet"):
        source = open_rows(url)
        assert source.feature_names == ["a", "b", "c", "month"]
        X = gather(source)
        np.testing.assert_array_equal(X[:47, :3], ROWS)
        np.testing.assert_array_equal(X[:, 3], np.repeat([1, 2], 47))
    several = open_rows(["memory://t/month=1/x.parquet", "memory://t/month=2/x.parquet"])
    assert several.n_rows == 94
    parts = divide(several, {})
    rows = np.concatenate([block.X for part in parts for block in part.blocks()])
    np.testing.assert_array_equal(rows[:47], ROWS)
    model = fit_stream(StreamingPCA(2), "memory://t", progress=False)
    assert model.n_samples_seen_ == 94


def test_a_changed_file_is_not_the_same(memory):
    put(memory, "/x.csv", b"a,b\n1,2\n3,4\n")
    before = open_rows("memory://x.csv").fingerprint()
    put(memory, "/x.csv", b"a,b\n1,2\n3,5\n")
    assert open_rows("memory://x.csv").fingerprint() != before


def test_only_ranges_are_read(memory, monkeypatch):
    rng = np.random.default_rng(0)
    table = pa.table({f"c{i}": rng.standard_normal(5000) for i in range(20)})
    put(memory, "/x.parquet", lambda file: pq.write_table(table, file))
    size, seen = memory.size("/x.parquet"), []
    kind = type(memory.open("/x.parquet"))
    read = kind.read
    monkeypatch.setattr(kind, "read", lambda self, n=-1: (seen.append(n), read(self, n))[1])
    X = gather(open_rows("memory://x.parquet", columns=["c3"]))
    np.testing.assert_array_equal(X[:, 0], table["c3"].to_numpy())
    assert 0 < sum(seen) < size / 4


def test_mistakes(memory, tmp_path):
    with pytest.raises(FileNotFoundError, match="memory://nowhere.csv"):
        open_rows("memory://nowhere.csv")
    with pytest.raises(SourceError, match="no file matches 'memory://none/"):
        open_rows("memory://none/*.csv")
    with pytest.raises(SourceError, match=r"gopher9://x.csv: .*check the beginning of the URL"):
        open_rows("gopher9://x.csv")
    put(memory, "/x.npy", b"")
    with pytest.raises(SourceError, match=r"memory://.*x.npy: npy is read from a disk; copy it"):
        open_rows("memory://x.npy")
    put(memory, "/x.parquet", b"PAR1 not really")
    with pytest.raises(SourceError, match=r"memory://.*x.parquet: cut short, damaged or"):
        open_rows("memory://x.parquet")
    put(memory, "/x.csv", b"a,b\n1,2\n3,x\n5,6\n")
    with pytest.raises(SourceError, match=r"memory://.*x.csv, line 3: column 'b' holds 'x'"):
        list(open_rows("memory://x.csv").blocks())
    FRAME.to_csv(tmp_path / "x.csv", index=False)
    np.testing.assert_array_equal(gather(open_rows((tmp_path / "x.csv").as_uri())), ROWS)


def test_without_fsspec(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "fsspec", None)
    with pytest.raises(ImportError, match=r"s3://bucket/x.csv needs fsspec: .*\[remote\]"):
        open_rows("s3://bucket/x.csv")
