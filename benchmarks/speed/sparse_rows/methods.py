"""The methods of the sparse table, what they cost at least, and one run of one of them."""

from __future__ import annotations

import math
import multiprocessing
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from benchmarks.lib.resident import memory_mb
from benchmarks.speed.sparse_rows.peers import (
    GENSIM_CHUNK,
    BufferedFD,
    DenseBatches,
    Lsi,
    PaperSFD,
    Truncated,
    flushes,
    gensim_missing,
)
from sksketch import FrequentDirections, LowRankPlusRidge, SparseFrequentDirections

BLOCK_ROWS = 1000
# Rates as fractions of the matrix product's, for estimates of what would take too long.
SVD_RATE, QR_RATE, SPARSE_RATE = 0.25, 0.1, 0.1

FD_SVD, FD_GRAM = "FD, LAPACK SVD", "FD, Gram matrix"
PRINTED, TUNED = "SFD paper q=4ln boosted", "SFD paper q=1 boosted"
EXPERIMENT = "SFD paper q=4ln plain"
RANDOMIZED = "TruncatedSVD randomized"
OURS, OURS_SPARSE = "FrequentDirections", "SparseFrequentDirections"
OURS_PLAIN = "  boosted=False"


class Method(NamedTuple):
    """A fit, an estimate of its flops at the rate of a matrix product, or why it can not run."""

    fit: Callable[[Any], Any]
    flops: float = 0.0
    missing: str = ""


class Answer(NamedTuple):
    """What a method says about A'A, and the bound on its error that it knows."""

    summary: LowRankPlusRidge
    certificate: float


class Run(NamedTuple):
    seconds: float
    peak_mb: float
    answer: Answer | None


@dataclass
class Line:
    """One method on one matrix: its times, errors and memory, or why it was skipped."""

    seconds: list[float] = field(default_factory=list)
    covariance_error: float = math.nan
    without_ridge: float = math.nan
    certificate: float = math.nan
    projection_error: float = math.nan
    peak_mb: float = math.nan
    skipped: str = ""

    @property
    def time(self) -> float:
        """CPU seconds, the median over the repeats."""
        return median(self.seconds) if self.seconds else math.nan


def methods(X: Any, size: int) -> dict[str, Method]:
    """Return all methods for these rows, by name."""
    n, d = X.shape
    shrinks = n / size
    batch = 4 * size
    chunk = min(GENSIM_CHUNK, n)
    lsi = n / chunk * (_qr(d, size + 100) + _qr(d, 2 * size) + 12 * _qr(d, size) / 4)
    found = {
        FD_SVD: Method(lambda X: BufferedFD(size, gram=False).fit(X), shrinks * _svd(2 * size, d)),
        FD_GRAM: Method(lambda X: BufferedFD(size, gram=True).fit(X), shrinks * 8.0 * size**2 * d),
    }
    for label, rounds in (("4ln", None), ("2", 2), ("1", 1)):
        for kind, boosted in (("boosted", True), ("plain", False)):
            found[f"SFD paper q={label} {kind}"] = Method(
                lambda X, rounds=rounds, boosted=boosted: PaperSFD(size, rounds, boosted).fit(X),
                _sfd(X, size, rounds),
            )
    return found | {
        RANDOMIZED: Method(lambda X: Truncated(size, "randomized").fit(X)),
        "TruncatedSVD arpack": Method(lambda X: Truncated(size, "arpack").fit(X)),
        f"IncrementalPCA batch {batch}": Method(
            lambda X: DenseBatches(size, batch).fit(X), n / batch * _svd(batch + size, d)
        ),
        "gensim LsiModel": Method(lambda X: Lsi(size).fit(X), lsi, gensim_missing()),
        OURS: Method(lambda X: stream(FrequentDirections(size), X)),
        OURS_SPARSE: Method(lambda X: stream(SparseFrequentDirections(size), X)),
        OURS_PLAIN: Method(lambda X: stream(SparseFrequentDirections(size, boosted=False), X)),
    }


def stream(sketch: Any, X: Any) -> Any:
    """Feed the rows in blocks, as if they came from a file, and read the answer."""
    for start in range(0, X.shape[0], BLOCK_ROWS):
        sketch.update(X[start : start + BLOCK_ROWS])
    sketch.summary()
    return sketch


def answer_of(fitted: Any) -> Answer:
    """Return what a fitted method says."""
    if hasattr(fitted, "summary"):
        return Answer(fitted.summary(), fitted.error_bound())
    summary = LowRankPlusRidge(fitted.components_, np.asarray(fitted.singular_values_) ** 2)
    return Answer(summary, fitted.certified)


def forked(method: Method, X: Any, with_answer: bool) -> Run:
    """Fit in a fork of this process, which has the rows and little else in memory.

    So the peak is that of one method, and no method finds the heap of another.
    """
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    child = context.Process(target=_fit_and_send, args=(there, method, X, with_answer))
    child.start()
    there.close()
    run: Run = here.recv()
    child.join()
    return run


def _fit_and_send(there: Any, method: Method, X: Any, with_answer: bool) -> None:
    before = memory_mb("VmRSS")
    start = time.process_time()
    fitted = method.fit(X)
    seconds = time.process_time() - start
    peak = memory_mb("VmHWM") - before
    there.send(Run(seconds, peak, answer_of(fitted) if with_answer else None))


def _svd(rows: int, columns: int) -> float:
    long, short = max(rows, columns), min(rows, columns)
    return (6.0 * long * short**2 + 20.0 * short**3) / SVD_RATE


def _qr(rows: int, columns: int) -> float:
    return 4.0 * rows * min(rows, columns) ** 2 / QR_RATE


def _sfd(X: Any, size: int, rounds: int | None) -> float:
    total = 0.0
    for start, stop in flushes(X, size):
        n, nnz = stop - start, float(X.indptr[stop] - X.indptr[start])
        n_rounds = 4 * math.log(max(n, 2)) if rounds is None else rounds
        total += (n_rounds + 1) * (4.0 * nnz * size / SPARSE_RATE + _qr(n + X.shape[1], size))
    return total
