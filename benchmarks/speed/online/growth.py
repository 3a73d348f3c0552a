"""Cost of a row and memory as the number of columns grows, the non-zeros of a row fixed."""

from __future__ import annotations

import contextlib
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.lib.threads import one_thread

import numpy as np
import scipy.sparse as sp

from benchmarks.lib.resident import memory_mb
from benchmarks.lib.timing import cpu_seconds
from benchmarks.speed.online.data import Stream, text
from benchmarks.speed.online.methods import begin_ours

REPEATS = 3
# Rarer words than in RCV1, so that wide rows do meet many columns.
FALL = 1.1
WIDEST_GROWTH = 3.0


def growth(quick: bool) -> dict[str, Any]:
    """Print microseconds a row and megabytes for each number of columns and sketch size."""
    widths = (1000, 10_000) if quick else (10_000, 100_000, 1_000_000, 10_000_000)
    sizes = (5,) if quick else (10, 20, 50)
    n_rows, nnz = (1000, 20) if quick else (20_000, 74)
    print(f"\ngrowth with the columns: {n_rows} rows of {nnz} non-zeros; memory is the peak of a")
    print("fresh process that learns the rows, beyond rows and code; bytes for each column met")
    head = f"{'columns':>10}{'met':>9}"
    head += "".join(f"{f'm={m}: us/row':>15}{'range':>18}{'MB':>8}{'bytes':>7}" for m in sizes)
    print(f"{head}\n{'-' * len(head)}")
    found: dict[str, Any] = {}
    # The first pass also loads or compiles kernels.
    begin_ours(sizes[0], text(50, 1000, 10), None).learn()
    for d in widths:
        stream = text(n_rows, d, nnz, fall=FALL)
        met = len(np.unique(stream.X.indices))
        line, figures = f"{d:10d}{met:9d}", {}
        times: dict[int, list[float]] = {size: [] for size in sizes}
        for _ in range(1 if quick else REPEATS):
            for size in sizes:
                times[size].append(
                    1e6 * cpu_seconds(begin_ours(size, stream, None).learn)[0] / n_rows
                )
        with tempfile.TemporaryDirectory() as folder:
            save(stream, Path(folder))
            peaks = {size: peak_mb(size, Path(folder)) for size in sizes}
        for size, mb in peaks.items():
            us = statistics.median(times[size])
            span = f"{min(times[size]):.1f} to {max(times[size]):.1f}"
            line += f"{us:15.1f}{span:>18}{mb:8.0f}{1e6 * mb / met:7.0f}"
            figures[str(size)] = {"microseconds": times[size], "peak_mb": mb}
        print(line, flush=True)
        found[str(d)] = {"met": met, "sizes": figures}
    return found


def peak_mb(size: int, folder: Path) -> float:
    """Return the peak of memory while a fresh process learns the rows."""
    command = [sys.executable, "-m", __name__, str(size), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout)


def save(stream: Stream, folder: Path) -> None:
    X = stream.X
    arrays = {"data": X.data, "indices": X.indices, "indptr": X.indptr, "y": stream.y}
    for name, array in (arrays | {"shape": np.array(X.shape)}).items():
        np.save(folder / f"{name}.npy", array)


def measure(size: int, folder: Path) -> float:
    """Learn the saved rows; return what that added to the peak of this process."""
    # Loads or compiles the kernels, which is not part of the model.
    begin_ours(size, text(50, 1000, 10), None).learn()
    data, indices, indptr, y, shape = (
        np.load(folder / f"{name}.npy") for name in ("data", "indices", "indptr", "y", "shape")
    )
    stream = Stream(sp.csr_matrix((data, indices, indptr), shape=tuple(shape)), y)
    reset_peak()
    before = memory_mb("VmRSS")
    begin_ours(size, stream, None).learn()
    return memory_mb("VmHWM") - before


def reset_peak() -> None:
    """Let Linux forget the peak so far; elsewhere it stays, and hides what is below it."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def held(found: dict[str, Any]) -> list[tuple[str, bool]]:
    """Return how much a row grew from the fewest to the most columns, and whether it may."""
    widths = list(found)
    first, last = found[widths[0]], found[widths[-1]]
    checks = []
    for size, figures in last["sizes"].items():
        ratio = statistics.median(figures["microseconds"])
        ratio /= statistics.median(first["sizes"][size]["microseconds"])
        text = f"growth, m={size}: {ratio:.2f} x from {widths[0]} to {widths[-1]} columns"
        checks.append((f"{text}, less than {WIDEST_GROWTH:g}", ratio < WIDEST_GROWTH))
    return checks


if __name__ == "__main__":
    with one_thread():
        print(measure(int(sys.argv[1]), Path(sys.argv[2])))
