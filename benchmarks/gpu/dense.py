"""Dense Frequent Directions on a GPU: speed, error, certificate, and copies from the host.

Everything is measured in one run on the same rows: the products and the copies that bound the
speed, the sketch from device memory with and without the verified certificate, the exact route,
the sketch from pinned host memory, and IncrementalPCA on the processors of the same machine.

    python -m benchmarks.gpu.dense [--quick] [--device cuda] [--tf32] [--out FILE]
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.decomposition import IncrementalPCA

import sksketch
from sksketch import FrequentDirections, StreamingPCA, fit_stream

LATENT = 512
PARQUET_ENTRIES = 1 << 27


def rows_of(n_rows: int, n_features: int, device: str, seed: int = 0) -> torch.Tensor:
    """Return rows with a decaying spectrum of 512 directions and noise in all others."""
    generator = torch.Generator(device).manual_seed(seed)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, device=device)

    directions = normal(LATENT, n_features) / n_features**0.5
    scale = 10.0 * torch.arange(1, LATENT + 1, device=device) ** -0.75
    X = torch.empty(n_rows, n_features, device=device)
    for start in range(0, n_rows, 8192):
        stop = min(start + 8192, n_rows)
        X[start:stop] = (normal(stop - start, LATENT) * scale) @ directions
        X[start:stop] += 0.3 / n_features**0.5 * normal(stop - start, n_features)
    return X


def wait(device: str) -> None:
    """Wait until the device has done what it was given."""
    if device.startswith("cuda"):
        torch.cuda.synchronize()


def seconds(work: Callable[[], Any], device: str, repeats: int) -> list[float]:
    """Return the times of so many runs after one that is not counted."""
    times = []
    for number in range(repeats + 1):
        wait(device)
        start = time.perf_counter()
        work()
        wait(device)
        if number:
            times.append(time.perf_counter() - start)
    return times


def spread(times: list[float], amount: float) -> dict[str, float]:
    """Return amount per second: median, slowest and fastest."""
    rates = sorted(amount / t for t in times)
    return {"median": statistics.median(rates), "slowest": rates[0], "fastest": rates[-1]}


def error_of(sketch: FrequentDirections, covariance: torch.Tensor, steps: int = 60) -> float:
    """Return ``||A'A - summary||_2``, by a block power method that is far from any bound."""
    summary = sketch.summary()
    V = torch.asarray(summary.components, device=covariance.device, dtype=torch.float64)
    values = torch.asarray(summary.eigenvalues, device=covariance.device)

    def apply(W: torch.Tensor) -> torch.Tensor:
        return covariance @ W - V.T @ (values[:, None] * (V @ W)) - summary.ridge * W

    generator = torch.Generator(covariance.device).manual_seed(1)
    shape = len(covariance), 16
    W = torch.randn(*shape, generator=generator, device=covariance.device, dtype=torch.float64)
    for _ in range(steps):
        W = torch.linalg.qr(apply(W)).Q
    return float(torch.linalg.matrix_norm(W.T @ apply(W), 2))


def covariance_of(X: torch.Tensor) -> torch.Tensor:
    """Return A'A in float64."""
    total = torch.zeros(X.shape[1], X.shape[1], device=X.device, dtype=torch.float64)
    for part in X.split(4096):
        double = part.double()
        total += double.T @ double
    return total


def limits(X: torch.Tensor, size: int, device: str, repeats: int) -> dict[str, Any]:
    """Measure what bounds a sketch here: products with as many directions, and copies."""
    block = X[:12288]
    W = torch.randn(size + 8, X.shape[1], device=device)
    flops = 2.0 * block.shape[0] * block.shape[1] * len(W)
    found: dict[str, Any] = {
        "product_tflops": spread(seconds(lambda: block @ W.T, device, repeats), flops / 1e12)
    }
    host = torch.empty(block.shape, pin_memory=device.startswith("cuda"))
    there = torch.empty_like(block)
    found["copy_gb_per_second"] = spread(
        seconds(lambda: there.copy_(host, non_blocking=True), device, repeats),
        host.numel() * 4 / 1e9,
    )
    return found


def from_device(X: torch.Tensor, size: int, repeats: int, device: str) -> list[dict[str, Any]]:
    """Time the routes from device memory, and say what each answer is worth."""
    covariance = covariance_of(X)
    total = float(covariance.trace())
    found = []
    routes: dict[str, dict[str, Any]] = {
        "block": {"solver": "block", "certify": False},
        "block, verified": {"solver": "block"},
        "exact": {"solver": "exact"},
    }
    for name, options in routes.items():
        sketches: list[FrequentDirections] = []

        def work(options: dict[str, Any] = options, kept: list[Any] = sketches) -> None:
            kept[:] = [FrequentDirections(size, correction="none", **options).update(X)]

        times = seconds(work, device, repeats if name != "exact" else 1)
        error = error_of(sketches[0], covariance) / total
        bound = sketches[0].error_bound() / total
        rate = spread(times, len(X))
        found.append({"route": name, "rows_per_second": rate, "error": error, "bound": bound})
        print(
            f"{name:<16} {rate['median']:>11,.0f} rows/s ({rate['slowest']:,.0f} to "
            f"{rate['fastest']:,.0f})  error {error:.3e}  bound {bound:.3e}  "
            f"bound / error {bound / error:.2f}",
            flush=True,
        )
    return found


def from_host(X: torch.Tensor, size: int, repeats: int, device: str) -> dict[str, Any]:
    """Time sketches whose rows come from pinned and from plain host memory."""
    plain = X.cpu()
    pinned = plain.pin_memory() if device.startswith("cuda") else plain
    found = {}
    for name, rows in (("pinned", pinned), ("plain", plain)):
        source = rows.numpy()

        def work(source: np.ndarray = source) -> None:
            sketch = FrequentDirections(size, solver="block", certify=False)
            fit_stream(sketch, source, device=device, progress=False)

        rate = spread(seconds(work, device, repeats), len(X))
        rate["gb_per_second"] = rate["median"] * X.shape[1] * 4 / 1e9
        found[name] = rate
        print(
            f"from {name} host memory: {rate['median']:,.0f} rows/s, "
            f"{rate['gb_per_second']:.1f} GB/s",
            flush=True,
        )
    return found


def from_parquet(X: torch.Tensor, size: int, device: str) -> dict[str, float] | None:
    """Time a sketch of rows in a Parquet file, and the reading of that file alone."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        print("pyarrow is not installed: nothing is read from Parquet")
        return None
    n_rows = min(len(X), PARQUET_ENTRIES // X.shape[1])
    host = X[:n_rows].cpu().numpy()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        # Columns of numbers that are noise do not compress.
        names = [f"x{i}" for i in range(host.shape[1])]
        table = pa.table(dict(zip(names, np.ascontiguousarray(host.T), strict=True)))
        pq.write_table(table, path, compression="none", use_dictionary=False)
        del table, host
        reading = seconds(lambda: pq.read_table(path), device, 2)

        def work() -> None:
            sketch = FrequentDirections(size, solver="block", certify=False)
            fit_stream(sketch, path, device=device, progress=False)

        found = {
            "rows_per_second": n_rows / statistics.median(seconds(work, device, 2)),
            "read_alone_rows_per_second": n_rows / statistics.median(reading),
        }
    print(
        f"from Parquet: {found['rows_per_second']:,.0f} rows/s; reading it alone with pyarrow "
        f"{found['read_alone_rows_per_second']:,.0f}",
        flush=True,
    )
    return found


def peers(X: torch.Tensor, size: int, device: str) -> dict[str, float]:
    """Time IncrementalPCA on the host and StreamingPCA on the device, on the same rows."""
    batch = 5 * size
    host = X[: 2 * batch].cpu().numpy()
    model = IncrementalPCA(size, batch_size=batch).partial_fit(host[:batch])
    start = time.perf_counter()
    model.partial_fit(host[batch:])
    theirs = batch / (time.perf_counter() - start)
    times = seconds(lambda: StreamingPCA(size, sketch_size=size).partial_fit(X), device, 2)
    ours = len(X) / statistics.median(times)
    print(f"IncrementalPCA, host   {theirs:>11,.0f} rows/s")
    print(f"StreamingPCA, device   {ours:>11,.0f} rows/s: {ours / theirs:,.0f} times", flush=True)
    return {"incremental_pca": theirs, "streaming_pca": ours, "ratio": ours / theirs}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--cases", nargs="+", default=["16384,256", "4096,128"])
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--tf32", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    if args.quick:
        args.cases, args.rows, args.repeats = ["256,16"], 4000, 1
    torch.backends.cuda.matmul.allow_tf32 = args.tf32
    name = torch.cuda.get_device_name() if args.device.startswith("cuda") else platform.machine()
    print(f"{name}, torch {torch.__version__}, sksketch {sksketch.__version__}, tf32 {args.tf32}")
    results = []
    for case in args.cases:
        n_features, size = map(int, case.split(","))
        X = rows_of(args.rows, n_features, args.device)
        print(f"\n{len(X):,} rows of {n_features:,} float32 columns, sketch {size}")
        bounds = limits(X, size, args.device, args.repeats)
        print(
            f"products {bounds['product_tflops']['median']:.1f} TFLOP/s, "
            f"copies {bounds['copy_gb_per_second']['median']:.1f} GB/s"
        )
        found: dict[str, Any] = {"n_features": n_features, "sketch_size": size, "limits": bounds}
        found["routes"] = from_device(X, size, args.repeats, args.device)
        found["host"] = from_host(X, size, args.repeats, args.device)
        share = found["host"]["pinned"]["gb_per_second"] / bounds["copy_gb_per_second"]["median"]
        print(f"pinned rows come at {share:.0%} of the copy rate")
        found["parquet"] = from_parquet(X, size, args.device)
        found["peers"] = peers(X, size, args.device)
        results.append(found)
        del X
    facts = {"device": name, "torch": torch.__version__, "sksketch": sksketch.__version__}
    facts |= {"rows": args.rows, "tf32": args.tf32}
    if args.out is not None:
        args.out.write_text(json.dumps(facts | {"results": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
