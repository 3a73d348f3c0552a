"""`sksketch ridge` over a Parquet directory larger than its memory, beside pyarrow alone.

Writes a directory (5 GB by default), then runs in turn, each in a process of its own: the command,
and a loop that reads every batch with pyarrow and converts it to one numpy array. Prints MB/s of
both (MB of the files, page cache warm), their ratio, and the peak resident memory of the command.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

READ_ALONE = """
import sys
from pathlib import Path
import numpy as np
import pyarrow.parquet as pq

for file in sorted(Path(sys.argv[1]).iterdir()):
    for batch in pq.ParquetFile(file).iter_batches():
        np.column_stack([column.to_numpy() for column in batch.columns])
"""
# What the project asks for.
LEAST_SPEED, MOST_MEGABYTES = 0.7, 400


def write_directory(
    folder: Path, megabytes: int, n_columns: int, dtype: str, group_rows: int
) -> float:
    """Write files of about 100 MB until there are enough, and return their megabytes."""
    rng = np.random.default_rng(0)
    coef = rng.standard_normal(n_columns)
    names = [f"c{j}" for j in range(n_columns)]
    n_rows = 100_000_000 // ((n_columns + 1) * np.dtype(dtype).itemsize)
    written, number = 0, 0
    while written < megabytes * 1e6:
        X = rng.standard_normal((n_rows, n_columns)).astype(dtype)
        y = (X @ coef + rng.standard_normal(n_rows)).astype(dtype)
        table = pa.table({**dict(zip(names, X.T, strict=True)), "y": y})
        file = folder / f"part-{number:04d}.parquet"
        pq.write_table(table, file, row_group_size=group_rows)
        written += file.stat().st_size
        number += 1
    return written / 1e6


def run(command: list[str]) -> tuple[float, float]:
    """Run a command to its end; return its seconds and the peak of its memory in MB."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    if status:
        raise SystemExit(f"{command[0]} ended with status {status}")
    return seconds, usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="200 MB and one repeat")
    parser.add_argument("--megabytes", type=int, default=5000)
    parser.add_argument("--columns", type=int, default=100)
    parser.add_argument("--dtype", choices=("float32", "float64"), default="float64")
    parser.add_argument("--row-group", type=int, default=50_000, help="rows of a row group")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="where to write; by default a temporary one")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    options = parser.parse_args()
    if options.quick:
        options.megabytes, options.repeats = 200, 1
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        rows = Path(name) / "rows"
        rows.mkdir()
        # In a process of its own: the peak of a child's memory begins with that of its parent.
        wanted = rows, options.megabytes, options.columns, options.dtype, options.row_group
        with ProcessPoolExecutor(1, get_context("spawn")) as writers:
            size = writers.submit(write_directory, *wanted).result()
        ridge = [sys.executable, "-m", "sksketch", "ridge", str(rows), "--target", "y"]
        ridge += ["--alpha", "1", "--quiet", "-o", f"{name}/ridge.sks"]
        alone = [sys.executable, "-c", READ_ALONE, str(rows)]
        figures: dict[str, list[tuple[float, float]]] = {"sksketch ridge": [], "pyarrow alone": []}
        for _ in range(options.repeats):
            figures["sksketch ridge"].append(run(ridge))
            figures["pyarrow alone"].append(run(alone))
    print(
        f"{size:,.0f} MB of Parquet: {options.columns} {options.dtype} columns and a target, "
        f"row groups of {options.row_group:,} rows; {options.repeats} interleaved repeats\n"
    )
    print(f"{'':<16} {'MB/s':>7} {'spread':>13} {'peak MB':>8}")
    for what, pairs in figures.items():
        speeds = [size / seconds for seconds, _ in pairs]
        print(
            f"{what:<16} {statistics.median(speeds):>7.0f} {min(speeds):>6.0f}-{max(speeds):<6.0f}"
            f" {max(memory for _, memory in pairs):>8.0f}"
        )
    ratios = [read[0] / ours[0] for ours, read in zip(*figures.values(), strict=True)]
    ratio, peak = statistics.median(ratios), max(m for _, m in figures["sksketch ridge"])
    print()
    for passed, text in (
        (ratio >= LEAST_SPEED, f"speed over pyarrow alone {ratio:.2f}, at least {LEAST_SPEED}"),
        (peak < MOST_MEGABYTES, f"peak memory {peak:.0f} MB, under {MOST_MEGABYTES}"),
    ):
        print(f"{'ok  ' if passed else 'FAIL'}  {text}")
    if options.json:
        options.json.write_text(json.dumps({"megabytes": size, "ratio": ratio, "peak_mb": peak}))


if __name__ == "__main__":
    main()
