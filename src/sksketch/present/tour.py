"""The tour: sketch a matrix that is never in memory, then check the answer with a second pass."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.linalg import subspace_angles

from sksketch import metrics
from sksketch._typing import FloatArray
from sksketch.datasets import low_rank_plus_noise
from sksketch.decomposition import StreamingPCA
from sksketch.sketches import Centered, ExactCovariance
from sksketch.streams import BlockSource

#: Called with the stage ("sketching", "checking") and the number of rows just done.
Progress = Callable[[str, int], None]


@dataclass(frozen=True)
class Pass:
    """One reading of all rows: seconds spent making them and seconds spent using them."""

    n_rows: int
    reading: float
    using: float


@dataclass(frozen=True)
class TourReport:
    """The findings of one tour, what it cost and how far from the truth it was.

    Variances are per row (divided by ``n_rows - 1``); errors are relative
    to the total variance; memory is in bytes.
    """

    n_rows: int
    n_features: int
    plan: str
    certificate: str
    variances: FloatArray  # (n_components,)
    variance_bounds: FloatArray  # (n_components, 2)
    true_variances: FloatArray  # (n_components,)
    largest_angle: float  # degrees between the planes found and true
    error_bound: float
    true_error: float
    confidence: float
    sketching: Pass
    checking: Pass
    extra_memory: float  # nan where the system does not tell
    matrix_memory: int


def run_tour(
    n_rows: int = 200_000,
    n_features: int = 1_000,
    *,
    n_components: int = 10,
    seed: int = 0,
    progress: Progress = lambda _stage, _n_rows: None,
) -> TourReport:
    """Stream a low-rank-plus-noise matrix through `StreamingPCA` and measure what came out.

    The first pass is what a user would run, and memory is read when it
    ends. The second regenerates the same rows and accumulates their exact
    covariance, at O(n_features ** 2) memory, only to know the true error.

    Examples
    --------
    >>> report = run_tour(n_rows=2_000, n_features=40, n_components=3)
    >>> report.true_error <= report.error_bound + 1e-12
    True
    """
    source = low_rank_plus_noise(n_rows, n_features, rank=n_components, noise=0.05, seed=seed)
    model = StreamingPCA(n_components=n_components)
    memory_before, _ = _memory()
    sketching = _run_pass(source, model.partial_fit, lambda n: progress("sketching", n))
    certificate = model.certificate_
    summary = model.sketch_.summary()
    _, peak_memory = _memory()

    exact = Centered(ExactCovariance())
    checking = _run_pass(source, exact.update, lambda n: progress("checking", n))
    truth = exact.summary()
    # A square root of the exact scatter matrix stands for all rows: their error is the same.
    root = np.sqrt(truth.eigenvalues)[:, None] * truth.components
    total = truth.squared_norm
    return TourReport(
        n_rows=n_rows,
        n_features=n_features,
        plan=str(model.plan_),
        certificate=str(certificate),
        variances=model.explained_variance_,
        variance_bounds=np.asarray(certificate.eigenvalues)[:n_components] / (n_rows - 1),
        true_variances=truth.eigenvalues[:n_components] / (n_rows - 1),
        largest_angle=_largest_angle(model.components_, truth.components[:n_components]),
        error_bound=summary.error_bound / total,
        true_error=metrics.spectral_error(root, summary) / total,
        confidence=summary.confidence,
        sketching=sketching,
        checking=checking,
        extra_memory=peak_memory - memory_before,
        matrix_memory=n_rows * n_features * 8,
    )


def _run_pass(
    source: BlockSource, use: Callable[[FloatArray], object], progress: Callable[[int], None]
) -> Pass:
    """Feed every block to ``use`` and keep apart the time that making it took."""
    n_rows, reading, using = 0, 0.0, 0.0
    asked = time.perf_counter()
    for block in source.blocks():
        received = time.perf_counter()
        use(block.X)
        done = time.perf_counter()
        reading += received - asked
        using += done - received
        n_rows += block.X.shape[0]
        progress(block.X.shape[0])
        asked = time.perf_counter()
    return Pass(n_rows, reading, using)


def _largest_angle(found: FloatArray, true: FloatArray) -> float:
    """Return the largest principal angle, in degrees, between two row spaces."""
    return math.degrees(float(subspace_angles(found.T, true.T)[0]))


def _memory() -> tuple[float, float]:
    """Return the bytes this process holds and the most it ever held."""
    status = Path("/proc/self/status")
    if status.exists():
        fields = dict(line.split(":", 1) for line in status.read_text().splitlines())
        now, peak = (1024.0 * int(fields[name].split()[0]) for name in ("VmRSS", "VmHWM"))
        return now, peak
    if sys.platform == "win32":
        return math.nan, math.nan
    import resource

    # Only the peak is known here; macOS counts bytes, the others kilobytes.
    unit = 1 if sys.platform == "darwin" else 1024
    most = float(unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    return most, most
