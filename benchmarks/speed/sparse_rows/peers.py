"""The peers of the sparse sketches, written plainly: FD on dense buffers and the paper's SFD.

Every `fit` takes CSR rows and leaves `components_` (orthonormal rows, strongest first),
`singular_values_` and `certified`, a bound on the spectral error, or NaN where none is known.
All keep ``sketch_size`` rows: l - 1 in the count of the paper, which zeroes the last of l.
"""

from __future__ import annotations

import importlib.util
import math
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import IncrementalPCA, TruncatedSVD

# Ghashami, Liberty and Phillips (2016), Algorithm 4.
ALPHA = 6 / 41
FAILURE_PROBABILITY = 0.01
NEGLIGIBLE = 1e-11
GENSIM_CHUNK = 20_000


class BufferedFD:
    """Frequent Directions on a dense buffer of twice the rows kept.

    ``gram`` takes the singular vectors from the small Gram matrix instead of LAPACK's SVD.
    """

    def __init__(self, sketch_size: int, gram: bool) -> None:
        self.sketch_size, self.gram = sketch_size, gram

    def fit(self, X: Any) -> BufferedFD:
        size, (n_rows, d) = self.sketch_size, X.shape
        buffer = np.zeros((2 * size, d))
        used = start = 0
        self.certified = 0.0
        factors = gram_svd if self.gram else thin_svd
        while start < n_rows:
            taken = min(2 * size - used, n_rows - start)
            buffer[used : used + taken] = X[start : start + taken].toarray()
            used, start = used + taken, start + taken
            if used == 2 * size or start == n_rows:
                s, V = factors(buffer[:used])
                s, cut = shrink(s, size)
                self.certified += cut
                used = len(s)
                buffer[:used] = s[:, None] * V[:used]
        self.components_, self.singular_values_ = V[:size], s
        return self


class PaperSFD:
    """Sparse Frequent Directions as printed, on scipy's products and numpy's QR and SVD.

    ``rounds`` is q, or None for ceil(4 ln rows), the choice of the authors' code. As printed
    but for two things without which it would fail: rows left at the end are flushed, and
    every round is orthonormalised.
    """

    def __init__(self, sketch_size: int, rounds: int | None, boosted: bool) -> None:
        self.size, self.rounds, self.boosted = sketch_size, rounds, boosted
        self._rng = np.random.default_rng(0)
        self._n_verified = 0
        self._certified = 0.0

    def fit(self, X: Any) -> PaperSFD:
        B = np.zeros((0, X.shape[1]))
        for start, stop in flushes(X, self.size):
            A = X[start:stop]
            new = A.toarray() if A.shape[0] <= self.size else self._sparse_shrink_verified(A)
            s, V = thin_svd(np.concatenate([B, new]))
            s, cut = shrink(s, self.size)
            self._certified += cut
            B = s[:, None] * V[: self.size]
        self.components_, self.singular_values_ = V[: self.size], s
        self.certified = self._certified if self.boosted else math.nan
        return self

    def _sparse_shrink_verified(self, A: Any) -> np.ndarray:
        total = float(A.data @ A.data)
        while True:
            B = self._sparse_shrink(A)
            lost = total - float(np.vdot(B, B))
            if not self.boosted or lost <= NEGLIGIBLE * total:
                return B
            delta = lost / (ALPHA * (self.size + 1))
            if self._verify(A, B, delta / 2):
                self._certified += delta
                return B

    def _sparse_shrink(self, A: Any) -> np.ndarray:
        Z = self._simultaneous_iteration(A)
        s, V = thin_svd((A.T @ Z).T)
        s, _ = shrink(s, self.size)
        return np.asarray(s[:, None] * V[: self.size])

    def _simultaneous_iteration(self, A: Any) -> np.ndarray:
        rounds = math.ceil(4 * math.log(A.shape[0])) if self.rounds is None else self.rounds
        width = min(self.size + 1, *A.shape)
        Z = np.linalg.qr(A @ self._rng.standard_normal((A.shape[1], width)))[0]
        for _ in range(rounds):
            Z = np.linalg.qr(A @ np.linalg.qr(A.T @ Z)[0])[0]
        return np.asarray(Z)

    def _verify(self, A: Any, B: np.ndarray, scale: float) -> bool:
        self._n_verified += 1
        chance = FAILURE_PROBABILITY / (2 * self._n_verified**2)
        d = A.shape[1]
        x = self._rng.standard_normal(d)
        x /= np.linalg.norm(x)
        log_norm = 0.0
        for _ in range(math.ceil(-math.log2(chance * math.sqrt(math.pi / (2 * d))))):
            x = (A.T @ (A @ x) - B.T @ (B @ x)) / scale
            length = np.linalg.norm(x)
            log_norm += math.log(length)
            x /= length
        return log_norm <= 0.0


class Lsi:
    """gensim's one-pass LsiModel, fed sparse chunks of its own default size."""

    def __init__(self, n_topics: int) -> None:
        self.n_topics = n_topics

    def fit(self, X: Any) -> Lsi:
        from gensim.models import LsiModel

        words = _Numbers({X.shape[1] - 1: ""})
        model = LsiModel(num_topics=self.n_topics, id2word=words, random_seed=0)
        for start in range(0, X.shape[0], GENSIM_CHUNK):
            # Documents are columns there, products are written *, and the transpose is free.
            model.add_documents(sp.csc_matrix(X[start : start + GENSIM_CHUNK].T))
        self.components_, self.singular_values_ = model.projection.u.T, model.projection.s
        self.certified = math.nan
        return self


class _Numbers(dict):
    """Words that are numbers; gensim learns the columns from the largest key."""

    def __missing__(self, key: int) -> str:
        return str(key)


class Truncated:
    """TruncatedSVD of the whole matrix."""

    def __init__(self, rank: int, algorithm: str) -> None:
        self.model = TruncatedSVD(rank, algorithm=algorithm, random_state=0)

    def fit(self, X: Any) -> Truncated:
        self.model.fit(X)
        self.components_ = self.model.components_
        self.singular_values_ = self.model.singular_values_
        self.certified = math.nan
        return self


class DenseBatches:
    """IncrementalPCA on batches made dense; its mean is put back, so that A'A is answered."""

    def __init__(self, rank: int, batch: int) -> None:
        self.model, self.batch = IncrementalPCA(rank), batch

    def fit(self, X: Any) -> DenseBatches:
        # A last batch may not have fewer rows than components.
        n_batches = max(X.shape[0] // self.batch, 1)
        edges = [*range(0, n_batches * self.batch, self.batch), X.shape[0]]
        for start, stop in pairwise(edges):
            self.model.partial_fit(X[start:stop].toarray())
        model = self.model
        rows = np.concatenate(
            [
                model.singular_values_[:, None] * model.components_,
                np.sqrt(X.shape[0]) * model.mean_[None],
            ]
        )
        self.singular_values_, self.components_ = gram_svd(rows)
        self.certified = math.nan
        return self


def gensim_missing() -> str:
    """Return why gensim can not be compared with, or nothing."""
    found = importlib.util.find_spec("gensim")
    return "" if found else "gensim is not installed; it comes with the extra 'bench'"


def flushes(X: Any, sketch_size: int) -> list[tuple[int, int]]:
    """Return the rows of each buffer of Algorithm 2: l d entries at the least, or d rows."""
    d, start, found = X.shape[1], 0, []
    while start < X.shape[0]:
        full = int(np.searchsorted(X.indptr, X.indptr[start] + (sketch_size + 1) * d))
        stop = min(full, start + d, X.shape[0])
        found.append((start, stop))
        start = stop
    return found


def thin_svd(P: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return singular values and right vectors, as rows, by LAPACK."""
    _, s, V = np.linalg.svd(P, full_matrices=False)
    return s, V


def gram_svd(P: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the same through P P', which is faster and resolves values down to 1e-7."""
    values, U = np.linalg.eigh(P @ P.T)
    s = np.sqrt(np.maximum(values[::-1], 0.0))
    keep = s > 1e-7 * s[0]
    return s[keep], (U[:, ::-1][:, keep] / s[keep]).T @ P


def shrink(s: np.ndarray, size: int) -> tuple[np.ndarray, float]:
    """Return what is left of the first singular values, and the cut in their squares."""
    cut = float(s[size]) ** 2 if len(s) > size else 0.0
    return np.sqrt(np.maximum(s[:size] ** 2 - cut, 0.0)), cut
