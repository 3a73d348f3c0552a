"""Wall time on 1, 2, 4, 8, ... threads beside the peers, with the error of each answer.

``python -m benchmarks.speed.threads`` prints a table for each job: seconds (the median of
interleaved repeats) with the same number of threads for all, how much faster many threads are than
one, and how good each answer is beside the best one. ``--quick`` takes small data, ``--json FILE``
keeps the figures.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import scipy.sparse as sp
import sklearn
from sklearn.decomposition import PCA, IncrementalPCA, TruncatedSVD
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KernelCenterer
from threadpoolctl import threadpool_info, threadpool_limits

import sksketch
from sksketch.arrays.parallel import VARIABLE

COUNTS = (1, 2, 4, 8, 16)


@dataclass(frozen=True)
class Job:
    """Work of ours and of peers on the same data, and how good an answer is: more is better."""

    name: str
    methods: dict[str, Callable[[], Any]]
    quality: Callable[[Any], float]
    # Methods that are too slow to be repeated on every number of threads.
    once: tuple[str, ...] = ()


def table_rows(n: int, d: int, rng: np.random.Generator, dtype: Any = np.float32) -> np.ndarray:
    """Return rows with a decaying spectrum, noise, and a mean away from zero."""
    rank = 200
    U = rng.standard_normal((n, rank), dtype=np.float32) / np.arange(1, rank + 1, dtype=np.float32)
    X = U @ rng.standard_normal((rank, d), dtype=np.float32)
    X += 0.05 * rng.standard_normal((n, d), dtype=np.float32) + 1.0
    return X.astype(dtype)


def text_rows(n: int, d: int, per_row: int, rng: np.random.Generator) -> sp.csr_array:
    """Return sparse rows whose columns are the rarer the later they come."""
    columns = np.minimum((d * rng.random((n, per_row)) ** 3).astype(np.int32), d - 1)
    topics = rng.integers(0, 40, n)
    columns[:, : per_row // 2] = (columns[:, : per_row // 2] // 40 * 40 + topics[:, None]) % d
    starts = np.arange(0, n * per_row + 1, per_row)
    X = sp.csr_array((rng.random(n * per_row), columns.ravel(), starts), shape=(n, d))
    X.sum_duplicates()
    return X


def dense_job(n: int, d: int, k: int, rng: np.random.Generator, slow: bool) -> Job:
    X = table_rows(n, d, rng)
    mean = X.mean(axis=0, dtype=np.float64).astype(np.float32)

    def caught(model: Any) -> float:
        V = np.asarray(model.components_, dtype=np.float32)
        parts = ((part - mean) @ V.T for part in np.array_split(X, 8))
        return sum(float(np.linalg.norm(part)) ** 2 for part in parts)

    methods: dict[str, Callable[[], Any]] = {
        "sksketch": lambda: sksketch.StreamingPCA(k).fit(X),
        "covariance_eigh": lambda: PCA(k, svd_solver="covariance_eigh").fit(X),
        "randomized": lambda: PCA(k, svd_solver="randomized", random_state=0).fit(X),
    }
    if d <= 1000:
        methods["sksketch exact"] = lambda: sksketch.StreamingPCA(k, sketch="exact").fit(X)
    if slow:
        methods["IncrementalPCA"] = lambda: IncrementalPCA(k).fit(X)
    return Job(f"PCA {n:,} x {d:,}, k={k}", methods, caught, ("IncrementalPCA",))


def sparse_job(n: int, d: int, k: int, rng: np.random.Generator) -> Job:
    X = text_rows(n, d, 60, rng)
    methods: dict[str, Callable[[], Any]] = {
        "sksketch": lambda: sksketch.StreamingSVD(k).fit(X),
        "TruncatedSVD": lambda: TruncatedSVD(k, random_state=0).fit(X),
    }

    def caught(model: Any) -> float:
        return float(np.linalg.norm(X @ np.asarray(model.components_).T)) ** 2

    return Job(f"SVD of {n:,} sparse rows, k={k}", methods, caught)


def ridge_job(n: int, d: int, rng: np.random.Generator) -> Job:
    X = table_rows(n, d, rng, np.float64)
    y = X @ rng.standard_normal(d) + rng.standard_normal(n)
    methods: dict[str, Callable[[], Any]] = {
        "sksketch": lambda: sksketch.StreamingRidge(1.0).fit(X, y),
        "Ridge(cholesky)": lambda: Ridge(1.0, solver="cholesky").fit(X, y),
    }
    return Job(f"ridge {n:,} x {d}", methods, lambda model: float(model.score(X[:5000], y[:5000])))


def kernel_job(n: int, d: int, k: int, rng: np.random.Generator) -> Job:
    X = table_rows(n, d, rng, np.float64)
    gamma = 0.5 / sksketch.StreamingKernelPCA(2).fit(X[:2000]).bandwidth_ ** 2
    methods: dict[str, Callable[[], Any]] = {
        "sksketch": lambda: sksketch.StreamingKernelPCA(k).fit(X),
        "Nystroem + PCA": lambda: make_pipeline(
            Nystroem(gamma=gamma, n_components=1000, random_state=0), PCA(k)
        ).fit(X),
    }
    rows = X[-2000:]
    K = rbf_kernel(rows, gamma=gamma)
    K = KernelCenterer().fit_transform(K)

    def caught(model: Any) -> float:
        scores = np.asarray(model.transform(rows))
        Q = np.linalg.qr(scores - scores.mean(axis=0))[0]
        return float(np.trace(Q.T @ K @ Q))

    return Job(f"kernel PCA {n:,} x {d}", methods, caught)


def jobs(quick: bool) -> list[Callable[[], Job]]:
    """Return what is measured, each with data of its own."""
    s = 20 if quick else 1
    rng = np.random.default_rng(0)
    return [
        lambda: dense_job(
            24_000 // s, 4096 // (8 if quick else 1), 100 // (4 if quick else 1), rng, False
        ),
        lambda: dense_job(60_000 // s, 1000, 50, rng, not quick),
        lambda: sparse_job(100_000 // s, 20_000, 50, rng),
        lambda: ridge_job(400_000 // s, 300, rng),
        lambda: kernel_job(20_000 // s, 50, 20, rng),
    ]


def seconds(work: Callable[[], Any], n_threads: int) -> tuple[float, Any]:
    """Return the wall time of a call on that many threads, and what it returned."""
    os.environ[VARIABLE] = str(n_threads)
    with threadpool_limits(n_threads), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.perf_counter()
        model = work()
        # Ours are computed when they are looked at.
        for name in ("components_", "coef_", "eigenvalues_"):
            getattr(model, name, None)
        return time.perf_counter() - start, model


def measured(job: Job, counts: list[int], repeats: int) -> dict[str, Any]:
    """Return medians by method and number of threads, and what each answer catches."""
    times: dict[tuple[str, int], list[float]] = {}
    caught = {}
    for name, work in job.methods.items():
        # Compiled loops, and pages of memory.
        caught[name] = job.quality(seconds(work, counts[-1])[1])
    for _ in range(repeats):
        for n in counts:
            for name, work in job.methods.items():
                if name not in job.once or (n in (counts[0], counts[-1]) and _ == 0):
                    times.setdefault((name, n), []).append(seconds(work, n)[0])
    found = {
        name: {str(n): statistics.median(times[name, n]) for n in counts if (name, n) in times}
        for name in job.methods
    }
    return {"job": job.name, "seconds": found, "quality": caught}


def show(found: dict[str, Any], counts: list[int]) -> None:
    """Print one table."""
    print(f"\n{found['job']}: seconds on {', '.join(map(str, counts))} threads")
    best = max(found["quality"].values())
    for name, by_count in found["seconds"].items():
        cells = [f"{by_count[str(n)]:8.3f}" if str(n) in by_count else " " * 8 for n in counts]
        first, last = by_count[str(counts[0])], by_count[str(counts[-1])]
        share = found["quality"][name] / best
        print(f"  {name:18}{''.join(cells)}   x{first / last:5.2f}   quality {share:.6f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    n_cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    counts = [n for n in COUNTS if n <= (n_cores or 1)]
    blas = {
        f"{i['internal_api']} {i['version']} {i.get('architecture')}" for i in threadpool_info()
    }
    machine = {
        "cores": n_cores,
        "processor": platform.processor() or platform.machine(),
        "BLAS": sorted(blas),
        "versions": f"numpy {np.__version__}, scipy {scipy.__version__}, "
        f"scikit-learn {sklearn.__version__}, sksketch {sksketch.__version__}",
    }
    print(machine)
    kept = []
    for make in jobs(options.quick):
        found = measured(make(), counts, options.repeats)
        show(found, counts)
        kept.append(found)
        if options.json:
            options.json.write_text(json.dumps({"machine": machine, "jobs": kept}, indent=1))


if __name__ == "__main__":
    main()
