"""Small files of every format, and what may come of reading a damaged one.

Allowed are an error that names the file, or rows of numbers in the shape that was promised. Where
every byte of the rows is covered by a checksum, rows that come must be the original ones.
"""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import shutil
from functools import partial
from pathlib import Path
from unittest import mock

import numpy as np
import scipy.io
import scipy.sparse as sp

from robustness import damage
from sksketch import SourceError, open_rows
from sksketch.streams.formats import parquet

N_ROWS, WIDTH = 40, 6
# Formats whose data are protected to the last byte.
CHECKED = ("csv.gz", "csv.bz2", "csv.xz", "svm.gz", "npz", "compressed.npz")


def table() -> np.ndarray:
    return np.random.default_rng(0).standard_normal((N_ROWS, WIDTH)).round(3)


def csv_text() -> bytes:
    lines = [",".join("abcdef"), *(",".join(map(str, row)) for row in table().tolist())]
    return "\n".join(lines).encode() + b"\n"


def svmlight_text() -> bytes:
    lines = [
        f"{row[0]} " + " ".join(f"{j + 1}:{x}" for j, x in enumerate(row) if x > 0)
        for row in table().tolist()
    ]
    return "\n".join(lines).encode() + b"\n"


def vw_text() -> bytes:
    lines = [
        f"{row[0]} 'row{i} |first a:{row[1]} b |second 0:{row[2]} 7:{row[3]} c"
        for i, row in enumerate(table().tolist())
    ]
    return "\n".join(lines).encode() + b"\n"


def write_all(folder: Path) -> list[Path]:
    """Write one file of every format; a Zarr store is a folder of files."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    import zarr

    X = table()
    frame = pa.table({name: X[:, j] for j, name in enumerate("abcdef")})
    words = pa.array(["red", "green"] * (N_ROWS // 2)).dictionary_encode()
    mixed = frame.append_column("word", words).append_column("n", pa.array(range(N_ROWS)))
    (folder / "a.csv").write_bytes(csv_text())
    (folder / "a.csv.gz").write_bytes(gzip.compress(csv_text()))
    (folder / "a.csv.bz2").write_bytes(bz2.compress(csv_text()))
    (folder / "a.csv.xz").write_bytes(lzma.compress(csv_text()))
    (folder / "a.svm").write_bytes(svmlight_text())
    (folder / "a.svm.gz").write_bytes(gzip.compress(svmlight_text()))
    (folder / "a.vw").write_bytes(vw_text())
    np.save(folder / "a.npy", X)
    np.savez(folder / "a.npz", X=X)
    np.savez_compressed(folder / "a.compressed.npz", X=X)
    sp.save_npz(folder / "a.sparse.npz", sp.csr_array(np.maximum(X, 0)))
    pq.write_table(frame, folder / "a.parquet", write_page_checksum=True)
    pq.write_table(mixed, folder / "a.mixed.parquet", row_group_size=15, compression="gzip")
    pq.write_table(frame, folder / "a.plain.parquet", use_dictionary=False, compression="none")
    # Read as if its row groups were too large to be decoded whole.
    pq.write_table(mixed, folder / "a.large.mixed.parquet", row_group_size=15)
    _write_others(folder, mixed)
    store = zarr.create_array(folder / "a.zarr", shape=X.shape, chunks=(16, WIDTH), dtype="f8")
    store[:] = X
    group = zarr.create_group(folder / "a.sparse.zarr", attributes={"shape": X.shape})
    rows = sp.csr_array(np.maximum(X, 0))
    for name in ("data", "indices", "indptr"):
        group.create_array(name, data=getattr(rows, name))
    return sorted(folder.iterdir())


def _write_others(folder: Path, mixed) -> None:
    import h5py
    import pyarrow as pa
    import pyarrow.feather
    import pyarrow.orc

    plain = mixed.set_column(WIDTH, "word", mixed["word"].cast(pa.string()))
    pyarrow.feather.write_feather(plain, folder / "a.mixed.feather", chunksize=15)
    pyarrow.orc.write_table(plain, folder / "a.mixed.orc")
    with pa.ipc.new_stream(folder / "a.mixed.arrows", plain.schema) as stream:
        stream.write_table(plain, max_chunksize=15)
    lines = (json.dumps(row) for row in plain.to_pylist())
    (folder / "a.mixed.jsonl").write_text("\n".join(lines))
    S = sp.coo_array(np.maximum(table(), 0).round(3))
    scipy.io.mmwrite(folder / "a.mtx", S)
    with pa.CompressedOutputStream(str(folder / "a.csv.zst"), "zstd") as stream:
        stream.write(csv_text())
    with h5py.File(folder / "a.h5", "w") as opened:
        opened["X"] = table()
    with h5py.File(folder / "a.h5ad", "w") as opened:
        X = opened.create_group("X")
        X.attrs["shape"] = S.shape
        for name in ("data", "indices", "indptr"):
            X[name] = getattr(S.tocsr(), name)
        opened.create_group("var")["_index"] = list("abcdef")


def read(path: Path) -> np.ndarray:
    """Return all rows, after a look at every block."""
    options = (
        {"one_hot": True, "categories": {"word": ["red", "green"]}} if "mixed" in path.name else {}
    )
    whole = 0 if "large" in path.name else parquet.WHOLE_BYTES
    with mock.patch.object(parquet, "WHOLE_BYTES", whole):
        source = open_rows(path, **options)
        blocks = list(source.blocks())
    parts = []
    for X, y in blocks:
        assert X.ndim == 2, X.shape
        assert X.shape[1] == source.n_features, X.shape
        assert X.dtype.kind in "biuf", X.dtype
        assert y is None or len(y) == X.shape[0], y
        if sp.issparse(X):
            X.check_format(full_check=True)
        parts.append(X)
    stack = sp.vstack if parts and sp.issparse(parts[0]) else np.concatenate
    return stack(parts) if parts else np.zeros((0, source.n_features))


def attempt(source: Path, place: Path, seed: int) -> str:
    """Read one damaged copy and say what came of it."""
    target = copy_damaged(source, place, seed)
    kind = source.name.split(".", 1)[1]
    try:
        rows = read(target)
    except SourceError as error:
        message = str(error)
        named = target.name in message and len(message) < 500 and "\n" not in message
        return "refused, naming the file" if named else f"!unclear: {message[:300]}"
    except OSError as error:
        # The folder of a damaged Zarr store, say, may be no file any more.
        return "refused by the system" if error.errno else f"!{type(error).__name__}: {error}"
    except Exception as error:  # noqa: BLE001 (any other is what we look for)
        return f"!{type(error).__name__}: {str(error)[:300]}"
    if kind in CHECKED and not _same(rows, read(source)):
        return "!changed rows passed for the original ones"
    return "read, the rows as they were" if _same(rows, read(source)) else "read, other numbers"


def _same(left, right) -> bool:
    if left.shape != right.shape:
        return False
    return not (left != right).nnz if sp.issparse(left) else bool(np.array_equal(left, right))


def copy_damaged(source: Path, place: Path, seed: int) -> Path:
    """Write a copy with other bytes; of a folder one file is damaged."""
    target = place / source.name
    if target.is_dir():
        shutil.rmtree(target)
    if source.is_dir():
        shutil.copytree(source, target)
        files = sorted(p for p in target.rglob("*") if p.is_file())
        victim = files[seed // len(damage.KINDS) % len(files)]
    else:
        victim = target
        target.write_bytes(source.read_bytes())
    victim.write_bytes(damage.spoil(victim.read_bytes(), seed))
    return target


def trials(folder: str, n_each: str, first: str = "0"):
    """Give every trial of every format by its name."""
    place = Path(folder) / "damaged"
    originals = Path(folder) / "originals"
    originals.mkdir()
    place.mkdir()
    for source in write_all(originals):
        read(source)
        for seed in range(int(first), int(first) + int(n_each)):
            yield f"{source.name} seed {seed}", partial(attempt, source, place, seed)
