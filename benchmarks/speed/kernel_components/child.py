"""One fit of kernel PCA or kernel CCA in a fork: time, peak of memory, quality."""

from __future__ import annotations

import multiprocessing
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse.linalg

from benchmarks.lib.resident import memory_mb
from benchmarks.speed.kernel_components.methods import (
    CCA_COLUMNS,
    CCA_COMPONENTS,
    DENSE,
    METHODS,
    N_COLUMNS,
    N_COMPONENTS,
    PCA_METHODS,
    STREAMED,
)
from sksketch.kernel_methods.kernels import Kernel

BLOCK_ROWS = 50_000
HELD_OUT = 2000
# Hidden numbers of each row, and noise of each column.
N_HIDDEN, NOISE = 3, 0.1
# About the median distance between rows, the same for all methods.
PCA_BANDWIDTH, CCA_BANDWIDTH = 6.8, 3.0


def block(number: int, n_rows: int, n_columns: int) -> np.ndarray:
    """Return rows in float32 whose columns are waves of a few hidden numbers, and noise."""
    fixed = np.random.default_rng(7)
    W = fixed.standard_normal((N_HIDDEN, n_columns))
    phases = fixed.uniform(0.0, 2.0 * np.pi, n_columns)
    rng = np.random.default_rng([1, number])
    hidden = rng.standard_normal((n_rows, N_HIDDEN)) * [1.2, 0.8, 0.5]
    X = np.cos(hidden @ W + phases)
    X += NOISE * rng.standard_normal(X.shape)
    return X.astype(np.float32)


def blocks(n_rows: int, n_columns: int) -> Any:
    for number, first in enumerate(range(0, n_rows, BLOCK_ROWS)):
        yield block(number, min(BLOCK_ROWS, n_rows - first), n_columns)


def made(n_rows: int, n_columns: int, out: np.ndarray) -> np.ndarray:
    """Fill an array with rows, a block at a time."""
    first = 0
    for part in blocks(n_rows, n_columns):
        out[first : first + len(part)] = part
        first += len(part)
    return out


def kept(H: np.ndarray, X: np.ndarray) -> float:
    """Return the variance that functions capture of held-out rows, over the most possible.

    With P = E[hh'] and Q = E[h(x) k(x, x') h(x')'] it is the trace of P^-1 Q; the most is
    that of the leading eigenvectors of these rows' own kernel matrix, which know the rows.
    """
    K = np.asarray(Kernel("gaussian", PCA_BANDWIDTH)(X, X), np.float64)
    means = K.mean(axis=0)
    K = K - means - means[:, None] + means.mean()
    V = np.linalg.qr(H - H.mean(axis=0))[0]
    most = scipy.sparse.linalg.eigsh(K, N_COMPONENTS, v0=K[0], return_eigenvectors=False)
    return float(np.trace(V.T @ K @ V) / most.sum())


def total(H: np.ndarray) -> float:
    """Return the sum of correlations of paired columns on held-out rows."""
    U, V = H[:, :CCA_COMPONENTS], H[:, CCA_COMPONENTS:]
    pairs = (np.corrcoef(U[:, j], V[:, j])[0, 1] for j in range(CCA_COMPONENTS))
    return float(sum(pairs))


def measure(name: str, n_rows: int, folder: Path, with_reference: bool) -> dict[str, Any]:
    pca = name in PCA_METHODS
    n_columns, bandwidth = (N_COLUMNS, PCA_BANDWIDTH) if pca else (2 * CCA_COLUMNS, CCA_BANDWIDTH)
    held = block(10**6, HELD_OUT, n_columns).astype(np.float64)
    rows: Any
    if name == STREAMED:
        rows = str(folder / "rows.npy")
        out = np.lib.format.open_memmap(rows, "w+", np.float32, (n_rows, n_columns))
        made(n_rows, n_columns, out)
        # The pages of the file do not count as ours once it is closed.
        del out
    else:
        rows = made(n_rows, n_columns, np.empty((n_rows, n_columns), np.float32))
    before, begun = memory_mb("VmRSS"), time.process_time()
    score = METHODS[name].fit(rows, bandwidth)
    # The answer is part of the time, where a method computes it at the first use.
    score(held[:2])
    seconds = time.process_time() - begun
    peak = memory_mb("VmHWM")
    H = np.asarray(score(held), np.float64)
    facts: dict[str, Any] = {"seconds": seconds, "before_mb": before, "peak_mb": peak}
    if not pca:
        return facts | {"total": total(H)}
    facts["kept"] = kept(H, held)
    if with_reference and isinstance(rows, np.ndarray):
        exact = np.asarray(METHODS[DENSE].fit(rows, bandwidth)(held), np.float64)
        mine, truth = (np.linalg.qr(Z - Z.mean(axis=0))[0] for Z in (H, exact))
        facts["sine_squared"] = float(np.linalg.norm(mine - truth @ (truth.T @ mine), 2) ** 2)
    return facts


def warm_up(names: list[str]) -> None:
    """Fit to few rows: the first use of a method also loads or compiles its loops."""
    for name in names:
        if name != STREAMED:
            METHODS[name].fit(block(0, 300, N_COLUMNS), PCA_BANDWIDTH)


def alone(name: str, n_rows: int, with_reference: bool) -> dict[str, Any]:
    """Measure one fit in a fork of this process, which has little in memory but its modules."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def work() -> None:
        with tempfile.TemporaryDirectory() as folder:
            sender.send(measure(name, n_rows, Path(folder), with_reference))

    process = context.Process(target=work)
    process.start()
    # Then an end of the process without an answer is seen as the end of the pipe.
    sender.close()
    try:
        found: dict[str, Any] = receiver.recv()
    except EOFError:
        process.join()
        raise RuntimeError(f"{name} with {n_rows} rows ended with {process.exitcode}") from None
    process.join()
    return found
