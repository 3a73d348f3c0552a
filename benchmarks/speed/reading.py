"""Reading rows with `open_rows` beside the best reader of each format, in MB/s of wall time.

Medians of interleaved repeats; the files are warm in the page cache. MB are those of the file.
A ratio above one means that `open_rows` is faster. *busy* is the time of a pass in which every
block is also used (its Gram matrix), over the time of reading plus the time of using alone.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.lib.threads import one_thread

import numpy as np
import scipy.sparse as sp

from sksketch import open_rows

try:
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet
    import zarr
except ImportError as error:
    sys.exit(f'reading is compared with {error.name}: pip install "scikit-sketch[io]"')
from sklearn.datasets import dump_svmlight_file, load_svmlight_file
from sklearn.feature_extraction import FeatureHasher

Work = Callable[[], Any]
N_COLUMNS, SPARSE_COLUMNS, SPARSE_SHARE = 100, 5000, 0.01
BATCH_ROWS = 5000
# What the library must not fall below, where the project asks for something.
ASKED = {"parquet": 0.7, "svmlight": 1.0}


def write_files(folder: Path, n_rows: int) -> dict[str, Path]:
    """Write the same kind of rows in every format."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, N_COLUMNS))
    names = [f"c{j}" for j in range(N_COLUMNS)]
    table = pa.table(dict(zip(names, X.T, strict=True)))
    parts = folder / "parts"
    parts.mkdir()
    for k, start in enumerate(range(0, n_rows, -(-n_rows // 4))):
        part = table.slice(start, -(-n_rows // 4))
        pa.parquet.write_table(part, parts / f"{k}.parquet", row_group_size=50_000)
    pa.csv.write_csv(table.slice(0, n_rows // 4), folder / "rows.csv")
    np.save(folder / "rows.npy", X)
    zarr.create_array(folder / "rows.zarr", data=X, chunks=(BATCH_ROWS, N_COLUMNS))
    shape = (n_rows // 4, SPARSE_COLUMNS)
    S = sp.random_array(shape, density=SPARSE_SHARE, format="csr", rng=rng)
    dump_svmlight_file(S, rng.standard_normal(shape[0]), str(folder / "rows.svm"), zero_based=False)
    (folder / "rows.svm.gz").write_bytes(gzip.compress((folder / "rows.svm").read_bytes(), 1))
    words = re.sub(rb" (\d+):", rb" w\1:", (folder / "rows.svm").read_bytes())
    (folder / "rows.vw").write_bytes(re.sub(rb"(?m)^(\S+)", rb"\1 |f", words))
    kinds = {"rows.csv": "csv", "rows.npy": "npy", "rows.zarr": "zarr", "rows.svm": "svmlight"}
    found = {kind: folder / name for name, kind in kinds.items()}
    return {
        "parquet": parts,
        **found,
        "svmlight.gz": folder / "rows.svm.gz",
        "vw": folder / "rows.vw",
    }


def ours(path: Path) -> None:
    """Read all blocks, in one pass even where the columns must be counted first."""
    n_features = None if path.suffix == ".vw" else SPARSE_COLUMNS
    for _ in open_rows(path, n_features=n_features).blocks():
        pass


def pyarrow_parquet(path: Path) -> None:
    for file in sorted(path.iterdir()):
        for batch in pa.parquet.ParquetFile(file).iter_batches():
            np.column_stack([column.to_numpy() for column in batch.columns])


def pyarrow_csv(path: Path) -> None:
    for batch in pa.csv.open_csv(path):
        np.column_stack([column.to_numpy() for column in batch.columns])


def numpy_npy(path: Path) -> None:
    rows = np.load(path, mmap_mode="r")
    for start in range(0, len(rows), BATCH_ROWS):
        np.array(rows[start : start + BATCH_ROWS])


def zarr_alone(path: Path) -> None:
    rows = zarr.open(path, mode="r")
    for start in range(0, rows.shape[0], BATCH_ROWS):
        rows[start : start + BATCH_ROWS]


def scikit_learn(path: Path) -> None:
    load_svmlight_file(str(path), n_features=SPARSE_COLUMNS, zero_based=False)


def scikit_learn_hasher(path: Path) -> None:
    """Hash the same names to as many columns; splitting the lines is part of the work."""
    with path.open() as lines:
        entries = (
            (
                (name, float(value))
                for name, _, value in (w.partition(":") for w in line.split()[2:])
            )
            for line in lines
        )
        FeatureHasher(2**18, input_type="pair").transform(entries)


PEERS: dict[str, tuple[str, Callable[[Path], None]]] = {
    "parquet": ("pyarrow iter_batches, column_stack", pyarrow_parquet),
    "csv": ("pyarrow open_csv, column_stack", pyarrow_csv),
    "npy": ("numpy memory map, copy", numpy_npy),
    "zarr": ("zarr slices", zarr_alone),
    "svmlight": ("scikit-learn load_svmlight_file", scikit_learn),
    "svmlight.gz": ("scikit-learn load_svmlight_file", scikit_learn),
    "vw": ("str.split, scikit-learn FeatureHasher", scikit_learn_hasher),
}


def size_of(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


def wall_seconds(work: Work) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def medians(works: dict[str, Work], repeats: int) -> dict[str, float]:
    """Return the median wall time of each, after one call that warms caches and compilers."""
    for work in works.values():
        work()
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(repeats):
        for name, work in works.items():
            times[name].append(wall_seconds(work))
    return {name: statistics.median(found) for name, found in times.items()}


def busy(path: Path, repeats: int) -> float:
    """Return what reading ahead leaves of reading time plus using time."""
    gram = np.zeros((N_COLUMNS, N_COLUMNS))
    kept = [block.X for block in open_rows(path).blocks()]

    def use(X: np.ndarray) -> None:
        for _ in range(20):
            np.dot(X.T, X, out=gram)

    def both() -> None:
        for block in open_rows(path).blocks():
            use(block.X)

    times = medians(
        {"read": lambda: ours(path), "use": lambda: [use(X) for X in kept], "both": both}, repeats
    )
    return times["both"] / (times["read"] + times["use"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small files, few repeats")
    parser.add_argument("--repeats", type=int)
    parser.add_argument("--json", type=Path, help="keep every figure in this file")
    options = parser.parse_args()
    repeats = options.repeats or (3 if options.quick else 7)
    n_rows = 20_000 if options.quick else 400_000
    results = {}
    with tempfile.TemporaryDirectory() as folder, one_thread():
        files = write_files(Path(folder), n_rows)
        print(f"{'format':14}{'MB':>8}{'MB/s':>8}{'peer':>8}{'ratio':>8}   peer")
        for kind, path in files.items():
            peer, read = PEERS[kind]
            works = {"ours": partial(ours, path), "peer": partial(read, path)}
            times, size = medians(works, repeats), size_of(path) / 1e6
            ratio = times["peer"] / times["ours"]
            asked = f" (asked: {ASKED[kind]})" if kind in ASKED else ""
            print(
                f"{kind:14}{size:8.1f}{size / times['ours']:8.0f}{size / times['peer']:8.0f}"
                f"{ratio:8.2f}   {peer}{asked}",
                flush=True,
            )
            results[kind] = {"mb": size, "ours": times["ours"], "peer": times["peer"]}
        share = busy(files["parquet"], repeats)
        print(f"\nbusy, Parquet: {share:.0%} of reading and using one after the other")
    if options.json:
        options.json.write_text(json.dumps({"results": results, "busy": share}, indent=1))


if __name__ == "__main__":
    main()
