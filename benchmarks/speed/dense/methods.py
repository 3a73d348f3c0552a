"""What the benchmark compares: how each method is fed, and how its answer is read.

A method takes centered or raw rows that are all in memory and returns a fitted object. The
clock runs from there until its components have been read. Its answer, outside the clock, is
the operator it stands for (low rank plus ridge), its components and its certificate.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.decomposition import PCA, IncrementalPCA, TruncatedSVD

from sksketch import FrequentDirections, LowRankPlusRidge, StreamingPCA

BLOCK_ROWS = 1000
BATCH_MULTIPLES = (1, 2, 4)

# Rates of the two kinds of work as fractions of the matrix product's, for estimates only.
SVD_RATE, EIGH_RATE = 0.4, 0.3

Rows = np.ndarray


class Answer(NamedTuple):
    """What a fitted method says about the scatter matrix of the rows."""

    summary: LowRankPlusRidge
    components: Rows
    certificate: float


@dataclass(frozen=True)
class Method:
    """A name for the table, a fit, a way to read it, and an estimate of its cost in flops.

    ``flops`` is counted in flops of a matrix product and used only to skip what would take
    absurdly long. Methods without a mean of their own (``centered``) get centered rows.
    """

    name: str
    fit: Callable[[Rows], Any]
    read: Callable[[Any], Answer]
    flops: float = 0.0
    centered: bool = False


class TextbookFD:
    """Frequent Directions as printed: numpy's SVD of a buffer of twice the rows kept."""

    def __init__(self, sketch_size: int) -> None:
        self.sketch_size = sketch_size

    def fit(self, X: Rows) -> TextbookFD:
        size = self.sketch_size
        buffer = np.zeros((2 * size, X.shape[1]), dtype=X.dtype)
        used = start = 0
        while start < len(X):
            taken = min(2 * size - used, len(X) - start)
            buffer[used : used + taken] = X[start : start + taken]
            used, start = used + taken, start + taken
            if used == 2 * size or start == len(X):
                _, s, V = np.linalg.svd(buffer[:used], full_matrices=False)
                cut = s[size] ** 2 if len(s) > size else 0.0
                s = np.sqrt(np.maximum(s[:size] ** 2 - cut, 0.0))
                used = len(s)
                buffer[:used] = s[:, None] * V[:used]
        self.components_, self.singular_values_ = V[:size], s
        return self


def methods(n_rows: int, d: int, k: int, good_batch: int) -> list[Method]:
    """Return all methods for rows of width ``d`` and ``k`` components."""
    default_batch = min(5 * d, n_rows)
    n_default = math.ceil(n_rows / default_batch)
    size = sketch_size(k)
    covariance = 2.0 * n_rows * d * d + 9.0 * d**3 / EIGH_RATE
    return [
        Method("textbook FD", lambda X: TextbookFD(k).fit(X), _read_peer, centered=True),
        Method(
            "IncrementalPCA default",
            lambda X: IncrementalPCA(k).fit(X),
            _read_peer,
            flops=n_default * _svd_flops(default_batch + k + 1, d),
        ),
        Method(
            "IncrementalPCA good",
            lambda X: IncrementalPCA(k, batch_size=good_batch).fit(X),
            _read_peer,
        ),
        Method(
            "TruncatedSVD",
            lambda X: TruncatedSVD(k, random_state=0).fit(X),
            _read_peer,
            centered=True,
        ),
        Method(
            "PCA covariance_eigh",
            lambda X: PCA(k, svd_solver="covariance_eigh").fit(X),
            _read_peer,
            flops=covariance,
        ),
        Method("StreamingPCA", lambda X: stream(StreamingPCA(k), X), _read_ours),
        *(
            Method(
                f"  solver={solver}",
                lambda X, solver=solver: stream(
                    StreamingPCA(k, sketch=FrequentDirections(size, solver=solver)), X
                ),
                _read_ours,
                flops=covariance if solver == "covariance" else 0.0,
            )
            for solver in ("exact", "block", "covariance")
        ),
    ]


def sketch_size(k: int) -> int:
    """Return the sketch size that StreamingPCA takes for ``k`` components by default."""
    return StreamingPCA(k)._sketch_size(1 << 30)


def stream(pca: StreamingPCA, X: Rows) -> StreamingPCA:
    """Feed the rows in blocks, as if they came from a file."""
    for start in range(0, len(X), BLOCK_ROWS):
        pca.partial_fit(X[start : start + BLOCK_ROWS])
    return pca


def best_batch(X: Rows, k: int) -> tuple[int, str]:
    """Try a few batch sizes of IncrementalPCA on the first rows; return the fastest."""
    trials = {}
    for batch in (multiple * k for multiple in BATCH_MULTIPLES):
        ipca = IncrementalPCA(k).partial_fit(X[:batch])
        start = time.process_time()
        ipca.partial_fit(X[batch : 2 * batch])
        trials[batch] = (time.process_time() - start) / batch
    best = min(trials, key=trials.__getitem__)
    tried = ", ".join(f"{batch}: {1e6 * seconds:.0f} us" for batch, seconds in trials.items())
    return best, f"batch {best}, the best in a trial ({tried} a row)"


def _svd_flops(rows: int, columns: int) -> float:
    """Cost of a thin SVD with both factors, by way of a triangular one."""
    long, short = max(rows, columns), min(rows, columns)
    return (6.0 * long * short**2 + 20.0 * short**3) / SVD_RATE


def _read_peer(fitted: Any) -> Answer:
    V = fitted.components_
    eigenvalues = np.asarray(fitted.singular_values_, dtype=np.float64) ** 2
    order = np.argsort(-eigenvalues)
    return Answer(LowRankPlusRidge(V[order], eigenvalues[order]), V[order], math.nan)


def _read_ours(fitted: StreamingPCA) -> Answer:
    certificate = fitted.certificate_.relative_error
    return Answer(fitted.sketch_.summary(), fitted.components_, certificate)
