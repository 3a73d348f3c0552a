"""A table nobody prepared: encode, standardize and PCA beside a bare scan of its columns.

Every measurement is a process of its own: a scan of all columns with pyarrow, and the pipeline,
which reads the table twice, or once if a pilot of the first rows decides how columns are encoded.
Medians of interleaved repeats of the wall time, and the largest peak
of resident memory. Then the states of all files, learned one by one and merged, beside one run.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.lib.runs import RESULTS
from sksketch import StreamingPCA, TableEncoder, fit_stream, open_rows

try:
    import pyarrow as pa
    import pyarrow.parquet
except ImportError as error:
    sys.exit(f'tables are read with {error.name}: pip install "scikit-sketch[io]"')

N_FILES, N_COMPONENTS = 40, 5
# Multiples of the scan, and megabytes, that the project asks for.
ASKED_RATIO, ASKED_MB = 3.0, 600.0
SCAN = """
import pyarrow.parquet as pq
for file in sorted(Path(sys.argv[1]).iterdir()):
    for batch in pq.ParquetFile(file).iter_batches():
        pass
"""
PIPELINE = f"""
pipeline = make_pipeline(TableEncoder(), StreamingPCA({N_COMPONENTS}))
fit_stream(pipeline, sys.argv[1], progress=False, pilot=PILOT)
"""
TWO_PASSES, ONE_PASS = (PIPELINE.replace("PILOT", pilot) for pilot in ("None", "100_000"))
# Names are imported before the clock starts, and compiled loops are on disk; loading them counts.
TIMED = """
import json, resource, sys, time
from pathlib import Path
import pyarrow.parquet
from sklearn.pipeline import make_pipeline
from sksketch import StreamingPCA, TableEncoder, fit_stream
begun = time.perf_counter()
{work}
took = time.perf_counter() - begun
print(json.dumps([took, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3]))
"""


def write_table(folder: Path, n_rows: int) -> None:
    """Write files of 71 columns: 60 numbers in units over 10^6, names, dates, ids, constants."""
    shared = np.random.default_rng(0)
    mixing = shared.standard_normal((6, 60))
    units = 10.0 ** shared.integers(-3, 4, 60)
    rows = max(1, n_rows // N_FILES)
    for number in range(N_FILES):
        rng = np.random.default_rng(number + 1)
        numbers = rng.standard_normal((rows, 6)) @ mixing + 0.5 * rng.standard_normal((rows, 60))
        columns: dict[str, Any] = {}
        for j in range(60):
            values = (numbers[:, j] * units[j]).astype(np.float32 if j % 3 == 0 else np.float64)
            holes = rng.random(rows) < 0.05 if j % 4 == 0 else None
            columns[f"reg_{j:02d}"] = pa.array(values, mask=holes)
        columns |= _other_columns(rng, number, rows, numbers)
        pa.parquet.write_table(pa.table(columns), folder / f"part-{number:02d}.parquet")


def _other_columns(rng: Any, number: int, rows: int, numbers: Any) -> dict[str, Any]:
    start = np.datetime64("2024-01-01T00:00", "us") + np.timedelta64(number, "D")
    minutes = start + np.arange(rows) * np.timedelta64(300, "s")
    days = np.datetime64("2000-01-01") + np.arange(rows) % 9000
    return {
        "meter_id": pa.array([f"M{number:02d}-{i:06d}" for i in range(rows)]),
        "city": pa.array(rng.choice(["Bern", "Basel", "Lugano", "Zug", "Chur"], rows)),
        "tariff": pa.array(rng.choice(["low", "high", "night"], rows)).dictionary_encode(),
        "zip": pa.array(rng.integers(1000, 9999, rows).astype(str)),
        "read_at": pa.array(minutes.astype("datetime64[us]")),
        "installed": pa.array(days.astype("datetime64[D]")),
        "is_smart": pa.array(rng.random(rows) < 0.8),
        "household": pa.array(rng.integers(1, 7, rows), mask=rng.random(rows) < 0.05),
        "vendor": pa.array(["acme"] * rows),
        "kwh": pa.array(numbers[:, :5].sum(axis=1)),
        "churn": pa.array(np.where(numbers[:, 0] > 1, "yes", "no")),
    }


def measured(work: str, folder: Path) -> tuple[float, float]:
    """Return seconds and peak megabytes of a process of its own."""
    code = TIMED.format(work=work)
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder)], check=True, capture_output=True, text=True
    )
    seconds, peak = json.loads(done.stdout.splitlines()[-1])
    return seconds, peak


def merged_states(folder: Path) -> dict[str, float]:
    """Learn encoders and components file by file, merge them, and compare with one run."""
    files = sorted(folder.iterdir())
    encoder = TableEncoder()
    for i, file in enumerate(files):
        one = fit_stream(TableEncoder(), open_rows(file, raw=True), progress=False)
        encoder = one if i == 0 else encoder.merge(one)
    whole = fit_stream(TableEncoder(), open_rows(folder, raw=True), progress=False)
    pca, alone = StreamingPCA(N_COMPONENTS), StreamingPCA(N_COMPONENTS)
    for file in files:
        part = StreamingPCA(N_COMPONENTS)
        for X, _ in open_rows(file, raw=True).blocks():
            rows = encoder.transform(X)
            part.partial_fit(rows)
            alone.partial_fit(rows)
        pca = part if file == files[0] else pca.merge(part)
    ours, theirs = encoder.columns_, whole.columns_
    exact = [n for n in ours if "counts within" not in ours[n].text + theirs[n].text]
    names = {n for name in exact for n in ours[name].features}
    shares = [set(ours[n].features) == set(theirs[n].features) for n in exact]
    scale = alone.explained_variance_[0]
    return {
        "columns": float(len(ours)),
        "columns counted exactly": float(len(exact)),
        "of these with the same features": float(sum(shares)),
        "features of these": float(len(names)),
        "largest difference of variances": float(
            np.abs(pca.explained_variance_ - alone.explained_variance_).max() / scale
        ),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a small table")
    parser.add_argument("--rows", type=int, default=3_400_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", type=Path, default=RESULTS / "tables.json")
    options = parser.parse_args()
    n_rows, repeats = (20_000, 1) if options.quick else (options.rows, options.repeats)
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_table(folder, n_rows)
        size = sum(file.stat().st_size for file in folder.iterdir())
        print(f"{n_rows:,} rows, 71 columns, {N_FILES} files, {size / 1e9:.2f} GB")
        measured(TWO_PASSES, folder)
        works = {"scan": SCAN, "two passes": TWO_PASSES, "pilot": ONE_PASS}
        runs = [{n: measured(w, folder) for n, w in works.items()} for _ in range(repeats)]
        merged = merged_states(folder)
    scan = statistics.median(run["scan"][0] for run in runs)
    print(f"{'scan of all columns':34}{scan:8.2f} s")
    results: dict[str, dict[str, float]] = {}
    for name, what in (("two passes", "by all rows"), ("pilot", "by 100,000 rows")):
        seconds = statistics.median(run[name][0] for run in runs)
        ratio = statistics.median(run[name][0] / run["scan"][0] for run in runs)
        peak = max(run[name][1] for run in runs)
        results[name] = {"seconds": seconds, "ratio": ratio, "peak_mb": peak}
        print(f"{f'encoded {what}, PCA':34}{seconds:8.2f} s  {ratio:.2f} x the scan", end="")
        print(f" (asked {ASKED_RATIO:g}), peak {peak:.0f} MB (asked {ASKED_MB:g})")
    for fact, number in merged.items():
        print(f"merged: {fact:34}{number:.3g}")
    figures = {"rows": n_rows, "bytes": size, "scan": scan, "results": results}
    figures |= {"merged": merged, "quick": options.quick, "repeats": repeats}
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(figures, indent=1))
    print(f"{time.perf_counter() - begun:.0f} s")


if __name__ == "__main__":
    main()
