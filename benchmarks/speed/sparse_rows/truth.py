"""How far an answer is from A'A, computed from the sparse rows and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

from sksketch import LowRankPlusRidge

DENSE_COLUMNS = 4096
# Of the eigenvalues: flat spectra would take Lanczos very long to resolve further.
TOLERANCE = 1e-3
KRYLOV = 40


class SparseTruth:
    """A'A of sparse rows: formed up to 4096 columns, beyond that applied through the rows."""

    def __init__(self, X: Any, rank: int) -> None:
        self._X = X
        self.rank = rank
        self.total = float(X.data @ X.data)
        n = X.shape[1]
        if n <= DENSE_COLUMNS:
            self._gram = (X.T @ X).toarray()
            top = np.linalg.eigvalsh(self._gram)[-rank:]
        else:
            self._gram = None
            # The smaller of A'A and AA' has the same eigenvalues.
            small = X if X.shape[0] > n else X.T
            m = min(X.shape)
            operator = LinearOperator((m, m), lambda v: small.T @ (small @ v), dtype=np.float64)
            start = np.random.default_rng(0).standard_normal(m)
            top = eigsh(operator, k=rank, ncv=KRYLOV, tol=1e-6, v0=start, return_eigenvectors=False)
        self._best = self.total - float(top.sum())

    def covariance_error(self, summary: LowRankPlusRidge) -> float:
        """Return ``||A'A - summary||_2 / ||A||_F^2``; beyond 4096 columns to three digits."""
        V = summary.components.astype(np.float64)
        values, ridge, n = summary.eigenvalues, summary.ridge, V.shape[1]
        if self._gram is not None:
            difference = self._gram - (V.T * values) @ V - ridge * np.eye(n)
            return float(np.abs(np.linalg.eigvalsh(difference)).max()) / self.total

        def matvec(v: np.ndarray) -> np.ndarray:
            v = v.ravel()
            return self._apply(v) - V.T @ (values * (V @ v)) - ridge * v

        operator = LinearOperator((n, n), matvec=matvec, dtype=np.float64)
        start = np.random.default_rng(1).standard_normal(n)
        found = eigsh(operator, k=1, ncv=KRYLOV, v0=start, tol=TOLERANCE, return_eigenvectors=False)
        return float(np.abs(found).max()) / self.total

    def projection_error(self, components: np.ndarray) -> float:
        """Return the energy that the first components miss, over the least possible."""
        V = np.linalg.qr(components[: self.rank].T.astype(np.float64))[0]
        image = self._X @ V
        return (self.total - float(np.vdot(image, image))) / self._best

    def _apply(self, v: np.ndarray) -> np.ndarray:
        return np.asarray(self._X.T @ (self._X @ v.ravel()))
