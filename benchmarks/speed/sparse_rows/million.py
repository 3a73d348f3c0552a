"""PCA of a stream with a million columns: its peak of memory, and its components.

The stream runs in a fresh process that never holds more than a block of rows, so that the peak
is its own. Another process holds the whole matrix and asks scipy for the same components.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.lib.threads import one_thread

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, svds

from benchmarks.lib.resident import memory_mb
from benchmarks.speed.sparse_rows.data import N_TOPICS, SPREAD, topic_rows
from sksketch import StreamingPCA

SIZE, BLOCK_ROWS = 32, 2000
ROWS, COLUMNS = 200_000, 1_000_000
QUICK_ROWS, QUICK_COLUMNS = 6000, 20_000
# Ranks at which subspaces are compared; the gap comes after the first.
RANKS = (N_TOPICS, 12, 16)
# A clear gap, and a smaller one.
SPREADS = (SPREAD, 10 / 3)
LIMIT_GB, LARGEST_ANGLE = 3.0, 1e-2
# A block of rows is multiplied so often by A'A before its directions are taken.
PRODUCTS = 4


def million(quick: bool) -> None:
    """Run both processes for every gap and print what they found."""
    n, d = (QUICK_ROWS, QUICK_COLUMNS) if quick else (ROWS, COLUMNS)
    for spread in SPREADS[:1] if quick else SPREADS:
        print(
            f"\nmillion: {n} rows x {d} columns, 50 non-zeros a row, centered, sketch {SIZE}; "
            f"{N_TOPICS} topics, strongest {spread:.1f} times the weakest"
        )
        with tempfile.TemporaryDirectory() as folder:
            file = str(Path(folder) / "components.npy")
            ours = _child("stream", n, d, spread, file)
            theirs = _child("svds", n, d, spread, file)
        report(ours, theirs)


def report(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    peak = 1e-3 * ours["peak_mb"]
    verdict = "ok" if peak < LIMIT_GB else f"FAIL (limit {LIMIT_GB:g} GB)"
    print(
        f"StreamingPCA  {ours['seconds']:8.1f} s CPU {peak:8.2f} GB peak of the whole process "
        f"({1e-3 * ours['before_mb']:.2f} GB after imports)  {verdict}\n"
        f"svds          {theirs['seconds']:8.1f} s CPU {1e-3 * theirs['peak_mb']:8.2f} GB peak, "
        f"rows in memory, {max(RANKS) + 1} components\n"
        f"certificate   {ours['certificate']:.2e} of the total variance"
    )
    for rank, (gap, angle) in zip(RANKS, theirs["angles"], strict=True):
        allowed = gap**-PRODUCTS
        verdict = "ok" if angle < LARGEST_ANGLE else f"FAIL (limit {LARGEST_ANGLE:g})"
        if allowed > LARGEST_ANGLE:
            verdict = "gap too small for a promise"
        print(
            f"first {rank:2d} components: eigenvalue {rank} is {gap:.2f} times the next, "
            f"which allows about {allowed:.1e}; largest angle {angle:.2e}  {verdict}"
        )
    pairs = " ".join(f"{cosine:.4f}" for cosine in theirs["cosines"])
    print(f"|cosine| of each component with its own: {pairs}", flush=True)


def _child(job: str, n: int, d: int, spread: float, file: str) -> dict[str, Any]:
    command = [sys.executable, "-m", __name__, job, str(n), str(d), str(spread), file]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def stream(n: int, d: int, spread: float, file: str) -> dict[str, Any]:
    """Fit the stream, block by block, and save its components."""
    before = memory_mb("VmRSS")
    pca = StreamingPCA(n_components=max(RANKS), sketch_size=SIZE)
    seconds = 0.0
    for first in range(0, n, BLOCK_ROWS):
        rows = topic_rows(first, min(first + BLOCK_ROWS, n), d, spread)
        start = time.process_time()
        pca.partial_fit(rows)
        seconds += time.process_time() - start
    start = time.process_time()
    components = pca.components_
    seconds += time.process_time() - start
    peak = memory_mb("VmHWM")
    np.save(file, components)
    return {
        "seconds": seconds,
        "before_mb": before,
        "peak_mb": peak,
        "certificate": pca.certificate_.relative_error,
    }


def reference(n: int, d: int, spread: float, file: str) -> dict[str, Any]:
    """Compute the components from the stored matrix and compare."""
    starts = range(0, n, BLOCK_ROWS)
    blocks = [topic_rows(first, min(first + BLOCK_ROWS, n), d, spread) for first in starts]
    X = sp.vstack(blocks, format="csr")
    del blocks
    start = time.process_time()
    mean = np.asarray(X.mean(axis=0)).ravel()

    def matvec(v: np.ndarray) -> np.ndarray:
        v = v.ravel()
        return X @ v - mean @ v

    def rmatvec(u: np.ndarray) -> np.ndarray:
        u = u.ravel()
        return X.T @ u - mean * u.sum()

    operator = LinearOperator(X.shape, matvec=matvec, rmatvec=rmatvec, dtype=np.float64)
    v0 = np.random.default_rng(0).standard_normal(min(X.shape))
    _, s, V = svds(operator, k=max(RANKS) + 1, v0=v0, tol=1e-6)
    order = np.argsort(-s)
    s, V = s[order], V[order]
    seconds = time.process_time() - start
    ours = np.load(file)
    angles = [
        (float((s[rank - 1] / s[rank]) ** 2), subspace_angle(ours[:rank], V[:rank]))
        for rank in RANKS
    ]
    return {
        "seconds": seconds,
        "peak_mb": memory_mb("VmHWM"),
        "angles": angles,
        "cosines": np.abs(np.vecdot(ours, V[:-1])).tolist(),
    }


def subspace_angle(U: np.ndarray, V: np.ndarray) -> float:
    """Return the largest angle between the row spaces, in radians."""
    U, V = np.linalg.qr(U.T)[0], np.linalg.qr(V.T)[0]
    # Its sine: the arc cosine of numbers near one has no digits.
    return float(np.arcsin(min(np.linalg.norm(U - V @ (V.T @ U), 2), 1.0)))


JOBS = {"stream": stream, "svds": reference}

if __name__ == "__main__":
    name, n_rows, n_columns, ratio, path = sys.argv[1:]
    with one_thread():
        print(json.dumps(JOBS[name](int(n_rows), int(n_columns), float(ratio), path)))
