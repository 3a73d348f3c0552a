"""The compiled kernels beside the best that numpy and scipy do, and what their first call costs.

Times are CPU time, medians of interleaved repeats. A ratio above one is a gain.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any

from benchmarks.lib.threads import one_thread

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from benchmarks.lib.timing import aligned, cpu_seconds
from sksketch.arrays.kernels import kernels
from sksketch.arrays.random import stream

Work = Callable[[], Any]
# Rows, columns and sketch size; entries per row of the sparse ones.
DENSE = [(4096, 100, 64), (4096, 1000, 64), (4096, 1000, 512), (1024, 10_000, 128)]
SPARSE = [(4096, 10_000, 64, 50), (4096, 10_000, 512, 50), (4096, 100_000, 64, 100)]
QUICK_DENSE, QUICK_SPARSE = [(512, 100, 64)], [(512, 1000, 64, 20)]
TILE = 256

# Run in a fresh process: seconds of the imports, and of the first call of each kernel.
FIRST_CALLS = """
import json, time
clock = time.perf_counter
def timed(work):
    start = clock(); result = work(); return clock() - start, result
import numpy as np, scipy.sparse as sp
found = {}
found["import sksketch"], _ = timed(lambda: __import__("sksketch"))
from sksketch.arrays.kernels import kernels
found["load numba"], k = timed(kernels)
rows, csr = np.ones((4, 3)), sp.csr_array(np.ones((4, 3)))
parts = csr.indptr, csr.indices, csr.data
place, sign = np.zeros(4, dtype=np.int64), np.ones(4)
calls = {
    "normal_csr": lambda: k.normal_csr_inplace(
        np.zeros((3, 2)), np.zeros(2), np.ones((3, 2)), *parts, np.zeros(0), np.zeros(2)
    ),
    "outer_csr": lambda: k.outer_csr_inplace(np.zeros((3, 2)), np.ones((4, 2)), *parts),
    "scatter_csr": lambda: k.scatter_csr_inplace(np.zeros((2, 3)), place, sign, *parts),
    "scatter_rows": lambda: k.scatter_rows_inplace(np.zeros((2, 3)), place, sign, rows),
    "walsh_hadamard": lambda: k.walsh_hadamard_inplace(rows),
}
for name, call in calls.items():
    found[name], _ = timed(call)
print(json.dumps(found))
"""


def medians(works: dict[str, Work], repeats: int) -> dict[str, float]:
    """Return the median CPU time of each, one repeat of all of them after the other."""
    times: dict[str, list[float]] = {name: [] for name in works}
    for work in works.values():
        work()
    for _ in range(repeats):
        for name, work in works.items():
            times[name].append(cpu_seconds(work)[0])
    return {name: statistics.median(values) for name, values in times.items()}


def scatter_matrix(positions: np.ndarray, signs: np.ndarray, size: int) -> Any:
    """Return CountSketch's S as a sparse matrix of shape (size, n_rows)."""
    n_rows = len(positions)
    return sp.csc_array((signs, positions, np.arange(n_rows + 1)), shape=(size, n_rows)).tocsr()


def dense_cases(n_rows: int, d: int, size: int, dtype: Any) -> dict[str, dict[str, Work]]:
    rng, k = np.random.default_rng(0), kernels()
    X = aligned(rng.standard_normal((n_rows, d)).astype(dtype))
    positions = rng.integers(0, size, n_rows)
    signs = rng.choice([-1.0, 1.0], n_rows).astype(dtype)
    total = aligned(np.zeros((size, d), dtype))
    S = scatter_matrix(positions, signs, size)
    n_tile = max(TILE, 1 << (2 * size - 1).bit_length())
    tile = aligned(X[:n_tile] if n_rows >= n_tile else np.resize(X, (n_tile, d)))
    chosen = rng.permutation(n_tile)[:size]
    H = scipy.linalg.hadamard(n_tile)[chosen].astype(dtype)

    def add(product: np.ndarray) -> None:
        nonlocal total
        total += product

    def numpy_transform() -> None:
        half = 1
        while half < n_tile:
            pairs = tile.reshape(-1, 2, half, d)
            sums = pairs[:, 0] + pairs[:, 1]
            np.subtract(pairs[:, 0], pairs[:, 1], out=pairs[:, 1])
            pairs[:, 0] = sums
            half *= 2

    def transform() -> None:
        # Scaled back, so that repeats do not overflow; numpy's, too. The product need not be.
        k.walsh_hadamard_inplace(tile)
        np.multiply(tile, 1.0 / n_tile, out=tile)

    def numpy_scaled() -> None:
        numpy_transform()
        np.multiply(tile, 1.0 / n_tile, out=tile)

    return {
        "scatter_rows": {
            "kernel": lambda: k.scatter_rows_inplace(total, positions, signs, X),
            "scipy S @ X": lambda: add(S @ X),
            "np.add.at": lambda: np.add.at(total, positions, signs[:, None] * X),
        },
        "walsh_hadamard": {
            "kernel": transform,
            "numpy": numpy_scaled,
            "product H[rows] @ X": lambda: H @ tile,
        },
    }


def sparse_cases(
    n_rows: int, d: int, size: int, per_row: int, dtype: Any
) -> dict[str, dict[str, Work]]:
    rng, k = np.random.default_rng(0), kernels()
    X = sp.random_array((n_rows, d), density=per_row / d, format="csr", rng=rng, dtype=dtype)
    parts = X.indptr, X.indices, X.data
    positions = rng.integers(0, size, n_rows)
    signs = rng.choice([-1.0, 1.0], n_rows).astype(dtype)
    total, transposed = np.zeros((size, d), dtype), np.zeros((d, size), dtype)
    columns = rng.standard_normal((n_rows, size)).astype(dtype)
    S = scatter_matrix(positions, signs, size)
    W = aligned(rng.standard_normal((d, size)).astype(dtype))
    image, pull, none = aligned(np.zeros_like(W)), np.zeros(size, dtype), np.zeros(0)

    def add_image() -> None:
        nonlocal image
        image += X.T @ (X @ W)

    def add_transposed(product: Any) -> None:
        nonlocal transposed
        transposed += product

    def add_sparse() -> None:
        P = (S @ X).tocoo()
        total[P.row, P.col] += P.data

    return {
        "scatter_csr": {
            "kernel": lambda: k.scatter_csr_inplace(total, positions, signs, *parts),
            "scipy S @ X": add_sparse,
        },
        "normal_csr": {
            "kernel": lambda: k.normal_csr_inplace(image, pull, W, *parts, none, pull),
            "scipy X' @ (X @ W)": add_image,
        },
        "outer_csr": {
            "kernel": lambda: k.outer_csr_inplace(transposed, columns, *parts),
            "scipy X' @ S'": lambda: add_transposed(X.T @ columns),
        },
    }


def report(label: str, cases: dict[str, dict[str, Work]], repeats: int) -> None:
    for name, works in cases.items():
        times = medians(works, repeats)
        ours = times.pop("kernel")
        peers = ", ".join(f"{peer} {t / ours:.2f}x" for peer, t in times.items())
        print(f"{name:16}{label:36}{1e6 * ours:10.0f} us   {peers}", flush=True)


def report_draws(repeats: int) -> None:
    """Print what the random numbers of CountSketch cost, beside the rows they are for."""
    draws = {"draw": lambda: stream(0, "positions", 1).integers(0, 64, 4096)}
    seconds = medians(draws, repeats)["draw"]
    print(f"\nrandom positions, drawn in tiles of 4,096 rows: {1e9 * seconds / 4096:.1f} ns a row")


def first_calls() -> None:
    """Print the time to the first result in a fresh process, before and after it was cached."""
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"NUMBA_CACHE_DIR": folder}
        runs = [
            json.loads(
                subprocess.run(
                    [sys.executable, "-c", FIRST_CALLS],
                    capture_output=True,
                    text=True,
                    check=True,
                    env=environment,
                ).stdout
            )
            for _ in range(2)
        ]
    print(f"\n{'first call in a process':28}{'uncached':>12}{'cached':>12}")
    for name in runs[0]:
        print(f"{name:28}{1e3 * runs[0][name]:9.0f} ms{1e3 * runs[1][name]:9.0f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, few repeats")
    parser.add_argument("--repeats", type=int)
    options = parser.parse_args()
    repeats = options.repeats or (3 if options.quick else 15)
    with one_thread():
        for dtype in (np.float64,) if options.quick else (np.float64, np.float32):
            for n, d, size in QUICK_DENSE if options.quick else DENSE:
                label = f"{n} x {d} to {size}, {dtype.__name__}"
                report(label, dense_cases(n, d, size, dtype), repeats)
            for n, d, size, per_row in QUICK_SPARSE if options.quick else SPARSE:
                label = f"{n} x {d} ({per_row}) to {size}, {dtype.__name__}"
                report(label, sparse_cases(n, d, size, per_row, dtype), repeats)
        report_draws(repeats)
        first_calls()


if __name__ == "__main__":
    main()
