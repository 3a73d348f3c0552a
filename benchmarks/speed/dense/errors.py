"""The exact scatter matrix of one data set, and how far an answer is from it."""

from __future__ import annotations

import numpy as np
from scipy.linalg import blas
from scipy.sparse.linalg import LinearOperator, eigsh

from sksketch import LowRankPlusRidge

PIECE_ROWS = 2048
TOLERANCE = 1e-4


class Truth:
    """The scatter matrix C of the rows around their mean, in float64, never as more than needed.

    With at least as many rows as columns C itself is formed. Otherwise only the rows and their
    Gram matrix are held, which has the same eigenvalues, and C is applied through the rows.

    Parameters
    ----------
    X : array of shape (n_rows, n_features)
        Rows, in any precision.
    ranks : tuple of int
        Ranks at which projections will be measured.
    """

    def __init__(self, X: np.ndarray, ranks: tuple[int, ...]) -> None:
        rows = X.astype(np.float64)
        rows -= rows.mean(axis=0)
        self.total = float(np.vdot(rows, rows))
        self._wide = len(rows) < rows.shape[1]
        small = _gram(rows) if self._wide else _gram(rows.T)
        self._matrix = rows if self._wide else small
        start = np.random.default_rng(0).standard_normal(len(small))
        top = eigsh(
            small,
            k=min(max(ranks), len(small) - 2),
            ncv=min(2 * max(ranks) + 40, len(small)),
            tol=1e-8,
            v0=start,
            return_eigenvectors=False,
        )
        captured = np.cumsum(np.sort(top)[::-1])
        self._best = {rank: self.total - float(captured[rank - 1]) for rank in ranks}

    def covariance_error(self, summary: LowRankPlusRidge) -> float:
        """Return ``||C - summary||_2 / ||A||_F^2``, to about four digits."""
        V = summary.components.astype(np.float64)

        def matvec(v: np.ndarray) -> np.ndarray:
            v = v.ravel()
            return self._apply(v) - V.T @ (summary.eigenvalues * (V @ v)) - summary.ridge * v

        n = V.shape[1]
        operator = LinearOperator((n, n), matvec=matvec, dtype=np.float64)
        start = np.random.default_rng(1).standard_normal(n)
        seen = np.sqrt(n) * float(np.linalg.norm(matvec(start / np.linalg.norm(start))))
        if seen <= 1e-12 * n * self.total:
            # Rounding noise: Lanczos has nothing to converge to.
            return seen / self.total
        values = eigsh(operator, k=1, v0=start, tol=TOLERANCE, return_eigenvectors=False)
        return float(np.abs(values).max()) / self.total

    def projection_error(self, components: np.ndarray, rank: int) -> float:
        """Return the energy that the first components miss, over the least possible."""
        # Orthonormal in float64: lengths off by a float32 rounding would count as energy.
        V = np.linalg.qr(components[:rank].T.astype(np.float64))[0].T
        image = self._matrix @ V.T
        # Wide data are held as rows A, others as A'A.
        captured = np.vdot(image, image) if self._wide else np.vdot(V.T, image)
        return (self.total - float(captured)) / self._best[rank]

    def _apply(self, v: np.ndarray) -> np.ndarray:
        if not self._wide:
            return self._matrix @ v
        out = np.zeros_like(v)
        for start in range(0, len(self._matrix), PIECE_ROWS):
            piece = self._matrix[start : start + PIECE_ROWS]
            out += (piece @ v) @ piece
        return out


def _gram(rows: np.ndarray) -> np.ndarray:
    """Return ``rows rows'``, both triangles."""
    upper = blas.dsyrk(1.0, rows.T, trans=1) if rows.flags.c_contiguous else blas.dsyrk(1.0, rows)
    return np.asarray(np.triu(upper) + np.triu(upper, 1).T)
