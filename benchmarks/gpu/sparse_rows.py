"""Sparse rows on a GPU: the same sketch of the same CSR rows on the device and on the host.

Entries are on the device before the clock starts; the host runs on the processors of the same
machine. Prints rows per second, the certified bound of either, and the time of the bare products
with the rows that a shrink needs.

    python -m benchmarks.gpu.sparse_rows [--quick] [--device cuda] [--out FILE]
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

import sksketch
from sksketch import FrequentDirections, SparseFrequentDirections

ENTRIES = 50


def rows_of(n_rows: int, n_features: int, seed: int = 0) -> sp.csr_array:
    """Return rows with 50 entries each, in columns drawn by a power law, with random sizes."""
    rng = np.random.default_rng(seed)
    columns = (n_features * rng.random((n_rows, ENTRIES)) ** 3).astype(np.int64)
    starts = np.arange(0, n_rows * ENTRIES + 1, ENTRIES)
    data = rng.exponential(size=n_rows * ENTRIES).astype(np.float32)
    X = sp.csr_array((data, columns.ravel(), starts), shape=(n_rows, n_features))
    X.sum_duplicates()
    return X


def on_device(X: sp.csr_array, device: str) -> torch.Tensor:
    """Return the rows as a sparse tensor."""
    parts = (torch.asarray(part, device=device) for part in (X.indptr, X.indices, X.data))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return torch.sparse_csr_tensor(*parts, size=X.shape)


def wait(device: str) -> None:
    """Wait until the device has done what it was given."""
    if device.startswith("cuda"):
        torch.cuda.synchronize()


def timed(make: Any, rows: Any, device: str, repeats: int) -> tuple[float, Any]:
    """Return the median time of a sketch of all rows, and the last one."""
    times = []
    for number in range(repeats + 1):
        wait(device)
        start = time.perf_counter()
        sketch = make().update(rows)
        bound = sketch.error_bound()
        wait(device)
        if number:
            times.append(time.perf_counter() - start)
    assert np.isfinite(bound)
    return statistics.median(times), sketch


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--features", type=int, default=20_000)
    parser.add_argument("--sizes", type=int, nargs="+", default=[32, 128])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    if args.quick:
        args.rows, args.features, args.sizes, args.repeats = 3000, 400, [8], 1
    name = torch.cuda.get_device_name() if args.device.startswith("cuda") else platform.machine()
    print(f"{name}, torch {torch.__version__}, sksketch {sksketch.__version__}")
    X = rows_of(args.rows, args.features)
    Y = on_device(X, args.device)
    print(f"{X.shape[0]:,} rows of {X.shape[1]:,} columns, {X.nnz:,} entries in float32")
    total = float((X.data.astype(np.float64) ** 2).sum())
    results = []
    for size in args.sizes:
        makers: dict[str, Any] = {
            "FrequentDirections": lambda size=size: FrequentDirections(size, solver="block"),
            "SparseFrequentDirections": lambda size=size: SparseFrequentDirections(size),
        }
        for kind, make in makers.items():
            found: dict[str, Any] = {"sketch": kind, "size": size}
            for where, rows in (("device", Y), ("host", X)):
                # One run on the host is enough to see how far it is.
                repeats = args.repeats if where == "device" else 1
                seconds, sketch = timed(make, rows, args.device, repeats)
                rate, bound = args.rows / seconds, sketch.error_bound() / total
                found[where] = {"rows_per_second": rate, "bound": bound}
            ratio = found["device"]["rows_per_second"] / found["host"]["rows_per_second"]
            results.append(found | {"ratio": ratio})
            print(
                f"{kind:<25} size {size:>4}: device {found['device']['rows_per_second']:>11,.0f} "
                f"rows/s, host {found['host']['rows_per_second']:>9,.0f}, ratio {ratio:5.1f}; "
                f"bounds {found['device']['bound']:.3e} and {found['host']['bound']:.3e}",
                flush=True,
            )
    if args.out is not None:
        facts = {"device": name, "torch": torch.__version__, "sksketch": sksketch.__version__}
        facts |= {"rows": args.rows, "features": args.features, "entries": int(X.nnz)}
        args.out.write_text(json.dumps(facts | {"results": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
