"""The matrices H of the Newton steps of `reference`, one class for each method of the paper."""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np

from sksketch._typing import Array

RANK_RTOL = 1e-8
NO_CUT_RTOL = 1e-12


class Hessian(Protocol):
    """The matrix H of the Newton step, of which every method has its own kind."""

    alpha: float

    def add(self, r: Array, g: Array, t: int) -> float:
        """Take in the row r with gradient g of round t; return what a shrink has cut."""

    def dense(self) -> Array:
        """Return H itself."""

    def solve(self, v: Array) -> Array:
        """Return H^-1 v, or the pseudo-inverse."""


class Diagonal:
    """H is diagonal: ogd (alpha sqrt(t)) and AdaGrad (alpha + sqrt of the squared gradients)."""

    def __init__(self, d: int, alpha: float, kind: str) -> None:
        self.alpha, self.kind = alpha, kind
        self.squares = np.zeros(d)
        self.t = 1

    def add(self, r: Array, g: Array, t: int) -> float:
        """Add the squares of the gradient."""
        self.squares += g * g
        self.t = t
        return 0.0

    def diagonal(self) -> Array:
        """Return the diagonal of H."""
        if self.kind == "ogd":
            return np.full(len(self.squares), self.alpha * math.sqrt(self.t))
        return np.asarray(self.alpha + np.sqrt(self.squares))

    def dense(self) -> Array:
        """Return H."""
        return np.diag(self.diagonal())

    def solve(self, v: Array) -> Array:
        """Return H^-1 v."""
        return np.asarray(v / self.diagonal())


class Full:
    """H = alpha I + sum of r r'."""

    def __init__(self, d: int, alpha: float) -> None:
        self.alpha = alpha
        self.gram = np.zeros((d, d))

    def add(self, r: Array, g: Array, t: int) -> float:
        """Add r r'."""
        self.gram += np.outer(r, r)
        return 0.0

    def dense(self) -> Array:
        """Return H."""
        return np.asarray(self.gram + self.alpha * np.eye(len(self.gram)))

    def solve(self, v: Array) -> Array:
        """Return H^-1 v."""
        return np.linalg.solve(self.dense(), v)


class Rows:
    """H = B'B + alpha I with a small matrix B: what fd, pfd, rfd, rp and oja have in common."""

    def __init__(self, d: int, alpha: float) -> None:
        self.alpha = alpha
        self.B = np.zeros((0, d))

    def dense(self) -> Array:
        """Return H."""
        return np.asarray(self.B.T @ self.B + self.alpha * np.eye(self.B.shape[1]))

    def range(self) -> tuple[Array, Array]:
        """Return the singular values of B that count, and their directions as rows."""
        if not self.B.size:
            return np.zeros(0), np.zeros((0, self.B.shape[1]))
        _, s, V = np.linalg.svd(self.B, full_matrices=False)
        keep = s > RANK_RTOL * s[0]
        return s[keep], V[keep]

    def solve(self, v: Array) -> Array:
        """Return H^-1 v; without a ridge the pseudo-inverse (Algorithm 3, line 11)."""
        if self.alpha > 0:
            return np.linalg.solve(self.dense(), v)
        s, V = self.range()
        return np.asarray(V.T @ ((V @ v) / s**2))


class Shrinking(Rows):
    """Frequent Directions: a full buffer is cut down to ``size - 1`` rows.

    It has room for ``new`` rows beside those, and for twice as many after each cut up to ``most``.
    """

    def __init__(
        self, d: int, alpha: float, size: int, new: int, most: int, reduced: int, robust: bool
    ) -> None:
        super().__init__(d, alpha)
        self.kept, self.new, self.most = size - 1, new, most
        self.reduced, self.robust = reduced, robust
        self.shrinkage = 0.0

    def add(self, r: Array, g: Array, t: int) -> float:
        """Append r, and shrink if that fills the buffer (Algorithm 3, lines 6 to 10)."""
        self.B = np.vstack([self.B, r])
        if len(self.B) < self.kept + self.new:
            return 0.0
        self.new = min(2 * self.new, self.most)
        _, s, V = np.linalg.svd(self.B, full_matrices=False)
        squares = s**2
        cut = float(squares[self.kept]) if len(squares) > self.kept else 0.0
        if self.alpha == 0 and cut <= NO_CUT_RTOL * squares[0]:
            cut = 0.0
        left = squares[: self.kept].copy()
        first = self.kept + 1 - self.reduced
        left[first:] = np.maximum(left[first:] - cut, 0.0)
        self.B = np.sqrt(left)[:, None] * V[: self.kept]
        self.shrinkage += cut
        if self.robust:
            self.alpha += cut / 2
        return cut


class RandomProjection(Rows):
    """B += s_t r_t' with fresh s_t ~ N(0, I / size)."""

    def __init__(self, d: int, alpha: float, size: int, rng: np.random.Generator) -> None:
        super().__init__(d, alpha)
        self.B = np.zeros((size, d))
        self.rng = rng

    def add(self, r: Array, g: Array, t: int) -> float:
        """Add s_t r'."""
        self.B += np.outer(self.rng.standard_normal(len(self.B)) / math.sqrt(len(self.B)), r)
        return 0.0


class Oja(Rows):
    """Leading eigenpairs of the rows, followed by Oja's rule from orthonormal rows ``V``."""

    def __init__(self, d: int, alpha: float, V: Array) -> None:
        super().__init__(d, alpha)
        self.V, self.values = np.array(V, dtype=np.float64), np.zeros(len(V))

    def add(self, r: Array, g: Array, t: int) -> float:
        """Turn the directions towards r by a step of length 1/t."""
        gamma = 1.0 / t
        p = self.V @ r
        self.values = (1 - gamma) * self.values + gamma * p**2
        Q, R = np.linalg.qr((self.V + gamma * np.outer(p, r)).T)
        self.V = (Q * np.where(np.diag(R) < 0, -1.0, 1.0)).T
        self.B = np.sqrt(t * self.values)[:, None] * self.V
        return 0.0


def make_hessian(method: str, d: int, alpha: float, size: int, **options: Any) -> Hessian:
    """Build the curvature of a method before its first row."""
    if method in ("ogd", "adagrad"):
        return Diagonal(d, alpha, method)
    if method == "full":
        return Full(d, alpha)
    if method == "rp":
        return RandomProjection(d, alpha, size, options["rng"])
    if method == "oja":
        return Oja(d, alpha, options["start"])
    reduced = max(1, int(options.get("fraction", 0.2) * size)) if method == "pfd" else size
    new, most = 1, 3 * size - (size - 1)
    if buffer_rows := options.get("buffer_rows"):
        new = most = buffer_rows - (size - 1)
    return Shrinking(d, alpha, size, new, most, reduced, method == "rfd")
