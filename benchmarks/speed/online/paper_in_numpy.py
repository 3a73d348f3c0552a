"""The paper's RFD-SON in numpy: dense rows, a buffer of 2 m, O(m d) for a row."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

CURVATURE = 1.0 / 8.0
NEGLIGIBLE = 1e-14


class PaperUpdate:
    """Luo et al. (2019), Algorithm 6, squared loss and |w'x| <= 1; ``size`` is its m.

    The Gram matrix of the buffer is kept up to date, and the projection and the Newton step
    share their direction, so that a row costs two products with the buffer, B x and B'h, and
    every (m + 1)-th one product with a matrix of m - 1 rows. The first row sets the ridge.
    """

    def __init__(self, n_features: int, size: int) -> None:
        self.kept, self.n_rows = size - 1, 2 * size
        self.B = np.zeros((self.n_rows, n_features))
        self.K = np.zeros((self.n_rows, self.n_rows))
        self.w = np.zeros(n_features)
        # Rows this long are given back to the system when freed, so they are kept.
        self._row = np.zeros(n_features)
        self._kept = np.zeros((self.kept, n_features))
        self.k = self.t = 0
        self.alpha = 0.0

    def learn(self, x: np.ndarray, y: float) -> float:
        """Learn one dense row and return the score that it had before."""
        self.t += 1
        k, B = self.k, self.B[: self.k]
        score, squared = float(self.w @ x), float(x @ x)
        z = min(max(score, -1.0), 1.0)
        slope = 2.0 * (z - y)
        c = math.sqrt(CURVATURE + 1.0 / self.t) * slope
        if squared == 0.0 or (slope == 0.0 and z == score):
            return score
        self.alpha = self.alpha or c * c * squared
        b = B @ x
        h = np.linalg.solve(self.K[:k, :k] + self.alpha * np.eye(k), b)
        q = squared - float(b @ h)
        step = -(score - z) / q
        if slope:
            np.multiply(x, c, out=self.B[k])
            self.K[k, :k] = self.K[:k, k] = c * b
            self.K[k, k] = c * c * squared
            self.k += 1
            if self.k < self.n_rows:
                step -= slope / (self.alpha + c * c * q)
        if step:
            self._move(step, x, h, B)
        if self.k == self.n_rows:
            self._shrink(x, slope)
        return score

    def _shrink(self, x: np.ndarray, slope: float) -> None:
        values, V = np.linalg.eigh(self.K)
        values, V = values[::-1], V[:, ::-1]
        cut = max(float(values[self.kept]), 0.0)
        left = np.maximum(values[: self.kept] - cut, 0.0)
        used = values[: self.kept] > NEGLIGIBLE * values[0]
        scale = np.sqrt(np.where(used, left / np.where(used, values[: self.kept], 1.0), 0.0))
        B = np.matmul((V[:, : self.kept] * scale).T, self.B, out=self._kept)
        self.B[: self.kept] = B
        self.K[...] = 0.0
        np.fill_diagonal(self.K[: self.kept, : self.kept], left)
        self.alpha += cut / 2
        self.k = self.kept
        self._move(-slope / self.alpha, x, (B @ x) / (left + self.alpha), B)

    def _move(self, step: float, x: np.ndarray, h: np.ndarray, B: np.ndarray) -> None:
        """Add step (x - B'h) to the weights."""
        row = np.matmul(h, B, out=self._row)
        np.subtract(x, row, out=row)
        row *= step
        self.w += row


def scores(X: Any, y: np.ndarray, size: int) -> np.ndarray:
    """Return the score of every row before it is learned; sparse rows are spread out first."""
    model = PaperUpdate(X.shape[1], size)
    found = np.empty(X.shape[0])
    if isinstance(X, np.ndarray):
        for i in range(len(X)):
            found[i] = model.learn(X[i], y[i])
        return found
    x = np.zeros(X.shape[1])
    for i in range(X.shape[0]):
        part = slice(X.indptr[i], X.indptr[i + 1])
        x[X.indices[part]] = X.data[part]
        found[i] = model.learn(x, y[i])
        x[X.indices[part]] = 0.0
    return found
