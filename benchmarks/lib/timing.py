"""The machine, the clock and the table."""

from __future__ import annotations

import math
import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.lib.threads import blas_names

import numpy as np
import scipy
import sklearn

import sksketch
from sksketch.arrays.linalg import aligned_empty

GEMM_SIZE = 1024
COPY_BYTES = 128 << 20


def cpu_seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the CPU time of a call, and what it returned."""
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def gemm_seconds(dtype: np.dtype[Any]) -> float:
    """Return the CPU time of one product of square matrices of `GEMM_SIZE`."""
    A = np.ones((GEMM_SIZE, GEMM_SIZE), dtype=dtype)
    A @ A
    return min(cpu_seconds(lambda: A @ A)[0] for _ in range(3))


def gemm_rate(seconds: list[float]) -> float:
    """Return flops per second from times of `gemm_seconds`."""
    return 2.0 * GEMM_SIZE**3 / statistics.median(seconds)


def copy_rate() -> float:
    """Return bytes copied per second of CPU time, counting reads and writes."""
    source = np.ones(COPY_BYTES // 8)
    target = np.ones_like(source)
    best = min(cpu_seconds(lambda: np.copyto(target, source))[0] for _ in range(5))
    return 2.0 * COPY_BYTES / best


def machine() -> dict[str, str]:
    """Return what the figures depend on: processor, limits and versions."""
    limits = [
        f"{name} {gemm_rate([gemm_seconds(np.dtype(name)) for _ in range(3)]) / 1e9:.1f} GF/s"
        for name in ("float64", "float32")
    ]
    return {
        "processor": _processor(),
        "matrix product": ", ".join(limits),
        "copy": f"{copy_rate() / 1e9:.1f} GB/s",
        "BLAS": blas_names() + ", one thread",
        "versions": f"python {platform.python_version()}, numpy {np.__version__}, "
        f"scipy {scipy.__version__}, scikit-learn {sklearn.__version__}, "
        f"sksketch {sksketch.__version__}",
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def aligned(X: np.ndarray) -> np.ndarray:
    """Return a copy that starts on a cache line; malloc's 16 bytes can cost a third."""
    out = aligned_empty(X.shape, X.dtype)
    out[...] = X
    return out


@dataclass
class Line:
    """One method on one data set: its times and its errors, or why it was skipped."""

    method: str
    n_rows: int
    seconds: list[float] = field(default_factory=list)
    covariance_error: float = math.nan
    certificate: float = math.nan
    projection_errors: tuple[float, float] = (math.nan, math.nan)
    skipped: str = ""

    @property
    def rate(self) -> float:
        """Rows per second of CPU time, the median over the repeats."""
        return self.n_rows / statistics.median(self.seconds) if self.seconds else math.nan


def table(lines: list[Line], k: int, reference: float, peak_rows: float) -> str:
    """Return the lines as text; ``peak_rows`` is the rate that the matrix product would allow."""
    head = (
        f"{'method':24}{'rows/s':>9}{'x IPCA':>8}{'of GEMM':>9}{'cov error':>11}"
        f"{'certificate':>13}{f'proj {k // 2}':>10}{f'proj {k}':>10}{'runs':>6}"
    )
    return "\n".join([head, "-" * len(head), *(_row(x, reference, peak_rows) for x in lines)])


def _row(line: Line, reference: float, peak_rows: float) -> str:
    if line.skipped:
        return f"{line.method:24}  skipped: {line.skipped}"
    certificate = "-" if math.isnan(line.certificate) else f"{line.certificate:.2e}"
    half, full = line.projection_errors
    return (
        f"{line.method:24}{line.rate:9.0f}{line.rate / reference:8.2f}"
        f"{line.rate / peak_rows:9.1%}{line.covariance_error:11.2e}{certificate:>13}"
        f"{half:10.5f}{full:10.5f}{len(line.seconds):6d}"
    )
