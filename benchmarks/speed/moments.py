"""Two views and standard errors: error and time beside what else there is.

Prints three tables. *Cross products*: the spectral error of X'Y over ``|X| |Y|``, and seconds, of
one sketch of both views side by side and of co-occurring directions (Mroueh, Marcheret and Goel
2017) with as many rows each. *Digits*: the total correlation of the left and right halves of
handwritten digits, on rows kept apart, of linear and of kernel CCA. *Standard errors*: rows per
second of least squares with sums that are never rounded, of rounded ones, and of a product with one
BLAS thread; and with ``--parquet`` seconds over a directory of files, the better of two, beside a
bare scan of the directory by pyarrow on all cores, and beside reading its files one after another.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import benchmarks.lib.threads  # noqa: F401

import numpy as np
from sklearn.datasets import load_digits

from sksketch import (
    StreamingCCA,
    StreamingKernelCCA,
    StreamingPLS,
    StreamingRidge,
    fit_stream,
    open_rows,
)
from sksketch.moments.two_views import views_of

BLOCK_ROWS = 2_000
# What is asked of least squares over files, beside a bare scan.
MOST_TIMES = 1.5


class CoOccurringDirections:
    """Two sketches, of l rows each, whose product stands for X'Y: algorithm 2 of the paper."""

    def __init__(self, sketch_size: int, p: int, q: int) -> None:
        self.x, self.y = np.zeros((sketch_size, p)), np.zeros((sketch_size, q))
        self.n_filled = 0

    def update(self, X: np.ndarray, Y: np.ndarray) -> None:
        size = len(self.x)
        start = 0
        while start < len(X):
            end = min(start + size - self.n_filled, len(X))
            rows = slice(self.n_filled, self.n_filled + end - start)
            self.x[rows], self.y[rows] = X[start:end], Y[start:end]
            self.n_filled += end - start
            start = end
            if self.n_filled == size:
                self._shrink()

    def _shrink(self) -> None:
        (qx, rx), (qy, ry) = np.linalg.qr(self.x.T), np.linalg.qr(self.y.T)
        U, s, Vt = np.linalg.svd(rx @ ry.T)
        kept = np.sqrt(np.maximum(s - s[len(s) // 2], 0.0))
        self.x, self.y = (qx @ U * kept).T.copy(), (qy @ Vt.T * kept).T.copy()
        self.n_filled = int(np.count_nonzero(kept))


def cross_products(n_rows: int, sizes: list[int]) -> list[dict[str, Any]]:
    """Return errors and seconds of both ways, in the same memory."""
    rng = np.random.default_rng(0)
    shared = rng.standard_normal((n_rows, 40)) * 0.9 ** np.arange(40)
    X, Y = (
        shared @ rng.standard_normal((40, k)) + 0.5 * rng.standard_normal((n_rows, k))
        for k in (600, 500)
    )
    X, Y = X - X.mean(axis=0), Y - Y.mean(axis=0)
    exact = X.T @ Y
    scale = float(np.linalg.norm(X) * np.linalg.norm(Y))
    found = []
    for size in sizes:
        start = time.perf_counter()
        peer = CoOccurringDirections(size, X.shape[1], Y.shape[1])
        for first in range(0, n_rows, BLOCK_ROWS):
            peer.update(X[first : first + BLOCK_ROWS], Y[first : first + BLOCK_ROWS])
        peer_seconds = time.perf_counter() - start
        start = time.perf_counter()
        model = StreamingPLS(4, scale=False, sketch="rfd", sketch_size=size)
        for first in range(0, n_rows, BLOCK_ROWS):
            model.partial_fit(X[first : first + BLOCK_ROWS], Y[first : first + BLOCK_ROWS])
        views = views_of(model)
        mine = (views.x.rows * views.x.units).T @ (views.y.rows * views.y.units)
        units = float(views.x.units.max() * views.y.units.max())
        seconds = time.perf_counter() - start
        found.append(
            {
                "rows kept": size,
                "error": float(np.linalg.norm(mine - exact, 2)) / scale,
                "certified": views.cross_error * units / scale,
                "promised": 1.0 / (size + 1),
                "seconds": seconds,
                "peer error": float(np.linalg.norm(peer.x.T @ peer.y - exact, 2)) / scale,
                "peer promised": 2.0 / size,
                "peer seconds": peer_seconds,
            }
        )
    return found


def digits(n_components: int = 10) -> dict[str, Any]:
    """Return the total correlation of halves of digits that were kept apart."""
    images = load_digits().images.astype(float)
    left, right = images[:, :, :4].reshape(-1, 32), images[:, :, 4:].reshape(-1, 32)
    order = np.random.default_rng(0).permutation(len(images))
    train, test = order[:1300], order[1300:]
    found: dict[str, Any] = {}
    ridges = {"linear": 1e3, "kernel": 1e-2}
    linear = StreamingCCA(n_components, ridge=ridges["linear"])
    kernel = StreamingKernelCCA(n_components, ridge=ridges["kernel"], n_random_features=1024)
    for name, model in (("linear", linear), ("kernel", kernel)):
        start = time.perf_counter()
        model.fit(left[train], right[train])
        seconds = time.perf_counter() - start
        a, b = model.transform(left[test], right[test])
        found[name] = {
            "total correlation": sum(
                np.corrcoef(u, v)[0, 1] for u, v in zip(a.T, b.T, strict=True)
            ),
            "seconds": seconds,
        }
    return found


def rows_per_second(n_rows: int, n_columns: int) -> dict[str, float]:
    """Return the speed of learning from blocks in memory."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((n_rows, n_columns)), rng.standard_normal(n_rows)

    def learn(model: Any) -> float:
        model.partial_fit(X[:BLOCK_ROWS], y[:BLOCK_ROWS])
        start = time.perf_counter()
        for first in range(0, n_rows, BLOCK_ROWS):
            model.partial_fit(X[first : first + BLOCK_ROWS], y[first : first + BLOCK_ROWS])
        return n_rows / (time.perf_counter() - start)

    start = time.perf_counter()
    for first in range(0, n_rows, BLOCK_ROWS):
        X[first : first + BLOCK_ROWS].T @ X[first : first + BLOCK_ROWS]
    product = n_rows / (time.perf_counter() - start)
    least, rounded = StreamingRidge(alpha=0.0), StreamingRidge(alpha=0.0)
    rounded._keeps_products = lambda n_features: False  # type: ignore[method-assign]
    return {"never rounded": learn(least), "rounded": learn(rounded), "one product": product}


def parquet(megabytes: int) -> dict[str, float]:
    """Return seconds of least squares over files, and of bare reads of them."""
    import pyarrow as pa
    import pyarrow.dataset as ds
    import pyarrow.parquet as pq

    # The scan has all cores as well.
    os.environ["SKSKETCH_NUM_THREADS"] = str(os.cpu_count())
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        n_rows, n_files = 500_000, max(1, megabytes // 84)
        for number in range(n_files):
            X = rng.standard_normal((n_rows, 20))
            columns = {f"c{j}": X[:, j] for j in range(20)}
            table = pa.table(columns | {"y": X.sum(axis=1) + rng.standard_normal(n_rows)})
            # Random numbers do not repeat.
            pq.write_table(table, Path(folder) / f"part{number:03d}.parquet", use_dictionary=False)

        def scan() -> None:
            for _ in ds.dataset(folder).to_batches():
                pass

        def files() -> None:
            for file in sorted(Path(folder).iterdir()):
                for _ in pq.ParquetFile(file).iter_batches(use_threads=True):
                    pass

        def inference() -> None:
            source = open_rows(f"{folder}/*.parquet", target="y")
            fit_stream(StreamingRidge(alpha=0.0), source, progress=False).inference()

        found: dict[str, list[float]] = {"scan": [], "files": [], "inference": []}
        for _ in range(2):
            for name, work in (("scan", scan), ("inference", inference), ("files", files)):
                start = time.perf_counter()
                work()
                found[name].append(time.perf_counter() - start)
        return {"rows": n_files * n_rows} | {name: min(times) for name, times in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument(
        "--parquet", type=int, default=0, help="megabytes of files to write and read"
    )
    parser.add_argument("--json", type=Path, help="also write the figures here")
    options = parser.parse_args()
    sizes = [16, 32] if options.quick else [16, 32, 64, 128]
    figures: dict[str, Any] = {
        "cross products": cross_products(4_000 if options.quick else 40_000, sizes)
    }
    print("cross products: error of X'Y over |X| |Y|")
    names = list(figures["cross products"][0])
    print("  ".join(f"{name:>13}" for name in names))
    for line in figures["cross products"]:
        print("  ".join(f"{line[name]:>13.4g}" for name in names))
    figures["digits"] = digits()
    print("\nhalves of digits: total of 10 correlations on rows kept apart")
    for name, line in figures["digits"].items():
        print(f"{name:<8} {line['total correlation']:.3f} in {line['seconds']:.2f} s")
    n_rows = 40_000 if options.quick else 1_000_000
    figures["rows per second"] = rows_per_second(n_rows, 20)
    print("\nleast squares of 20 columns, rows per second")
    for name, speed in figures["rows per second"].items():
        print(f"{name:<14} {speed:,.0f}")
    if options.parquet:
        figures["parquet"] = found = parquet(options.parquet)
        ratio = found["inference"] / found["scan"]
        print(
            f"\nParquet, {found['rows']:,} rows of 21 columns: scan {found['scan']:.1f} s, ", end=""
        )
        print(
            f"file by file {found['files']:.1f} s, "
            f"with standard errors {found['inference']:.1f} s, "
            f"{ratio:.2f} times as long as the scan\n\n"
            f"{'ok  ' if ratio <= MOST_TIMES else 'FAIL'}  {ratio:.2f} x the seconds of a bare "
            f"scan, at most {MOST_TIMES}"
        )
    if options.json:
        options.json.write_text(json.dumps(figures))


if __name__ == "__main__":
    main()
