"""Two views by the covariances of their features, accumulated as they are and solved once."""

from __future__ import annotations

from typing import Any, NamedTuple

from sksketch._typing import Array, Rows
from sksketch.arrays.namespace import like, namespace, solve_triangular, to_numpy, zeros
from sksketch.arrays.random import stream
from sksketch.arrays.subspace import block_krylov
from sksketch.kernel_methods.expansions import Functions
from sksketch.kernel_methods.feature_maps import FeatureMap


class PairedFunctions(NamedTuple):
    """Functions of either view, column by column, and how strongly each pair is related."""

    strengths: Array
    x: Functions
    y: Functions


class PairMoments:
    """Covariances within and between the features of two views; merge by addition.

    Features are scaled by 1/sqrt(n_columns), so that their inner products are kernel values.
    """

    def __init__(self, x: FeatureMap, y: FeatureMap, device: Rows, *, within: bool = True) -> None:
        self.x, self.y = x, y
        self.n_rows = 0
        self.within = within
        sizes = x.n_columns, y.n_columns
        self.sums = [zeros(size, device) for size in sizes]
        self.between = zeros(sizes, device)
        self.squares = [zeros((s, s), device) for s in sizes] if within else []

    def add(self, X: Rows, Y: Rows) -> None:
        """Take more pairs of rows."""
        xp = namespace(X)
        self.between = like(self.between, X)
        self.sums = [like(part, X) for part in self.sums]
        self.squares = [like(part, X) for part in self.squares]
        views = [self.x.transform(X), self.y.transform(Y)]
        for i, F in enumerate(views):
            self.sums[i] += xp.sum(F, axis=0, dtype=xp.float64)
            if self.within:
                self.squares[i] += xp.astype(F.T @ F, xp.float64, copy=False)
        self.between += xp.astype(views[0].T @ views[1], xp.float64, copy=False)
        self.n_rows += X.shape[0]

    def _means(self, center: bool) -> list[Any]:
        return [total / self.n_rows * float(center) for total in self.sums]

    def covariances(self, center: bool) -> tuple[list[Any], Any]:
        """Return the covariance of each view and that between them."""
        means = self._means(center)
        within = [
            square / self.n_rows - mean[:, None] * mean[None, :]
            for square, mean in zip(self.squares, means, strict=False)
        ]
        return within, self.between / self.n_rows - means[0][:, None] * means[1][None, :]

    def cca(self, rank: int, ridge: float) -> PairedFunctions:
        """Return canonical correlations, and functions of variance one before the ridge."""
        (Cxx, Cyy), Cxy = self.covariances(True)
        return self._functions(*canonical_pairs(Cxx, Cyy, Cxy, ridge, rank), center=True)

    def svd(self, rank: int, center: bool) -> PairedFunctions:
        """Return singular values of the cross-covariance, and functions of length one."""
        s, U, V = leading_pairs(self.covariances(center)[1], rank)
        return self._functions(s, U, V, center=center)

    def _functions(self, strengths: Array, A: Rows, B: Rows, center: bool) -> PairedFunctions:
        sides = []
        for features, W, mean in zip((self.x, self.y), (A, B), self._means(center), strict=True):
            sides.append(Functions(features, W * features.n_columns**-0.5, to_numpy(mean @ W)))
        return PairedFunctions(strengths, *sides)

    def merge(self, other: PairMoments) -> None:
        """Add the pairs that another one has seen."""
        for i in range(2):
            self.sums[i] += other.sums[i]
            if self.within:
                self.squares[i] += other.squares[i]
        self.between += other.between
        self.n_rows += other.n_rows

    def arrays(self) -> dict[str, Array]:
        """Return all sums as named numpy arrays."""
        found = {"between": self.between, "sum0": self.sums[0], "sum1": self.sums[1]}
        found |= {f"square{i}": part for i, part in enumerate(self.squares)}
        return {name: to_numpy(part) for name, part in found.items()}

    def restore(self, arrays: dict[str, Array], n_rows: int) -> None:
        """Take back what `arrays` gave."""
        self.n_rows = n_rows
        self.between = arrays["between"].copy()
        self.sums = [arrays[f"sum{i}"].copy() for i in range(2)]
        self.squares = [arrays[f"square{i}"].copy() for i in range(2)] if self.within else []


def canonical_pairs(
    Cxx: Rows, Cyy: Rows, Cxy: Rows, ridge: float, rank: int
) -> tuple[Array, Any, Any]:
    """Return canonical correlations and the directions of either side, as columns.

    With C a covariance and its ridge, the directions A have A'C A = 1.

    >>> import numpy as np
    >>> I = np.eye(2)
    >>> canonical_pairs(4 * I, I, np.diag([1.0, 0.0]), 0.0, 1)[0].round(6)
    array([0.5])
    """
    xp = namespace(Cxy)
    roots = []
    for C in (Cxx, Cyy):
        size = C.shape[0]
        floor = 1e-12 * max(float(xp.max(xp.linalg.diagonal(C))), 1e-300)
        ridged = xp.asarray(C, copy=True)
        xp.reshape(ridged, (-1,))[:: size + 1] += max(ridge, floor)
        roots.append(xp.linalg.cholesky(ridged))
    T = solve_triangular(roots[0], solve_triangular(roots[1], Cxy.T).T)
    rho, *sides = leading_pairs(T, rank)
    A, B = (
        solve_triangular(root, W, transposed=True) for root, W in zip(roots, sides, strict=True)
    )
    return rho, A, B


def leading_pairs(T: Rows, rank: int) -> tuple[Array, Any, Any]:
    """Return the leading singular values and vectors of a matrix, as columns.

    >>> import numpy as np
    >>> s, U, V = leading_pairs(np.diag([3.0, 2.0, 1.0]), 2)
    >>> s.round(6)
    array([3., 2.])
    """
    xp = namespace(T)
    size = T.shape[1]
    if size <= 2 * rank + 16 or T.shape[0] <= rank + 8:
        U, s, Vt = xp.linalg.svd(T, full_matrices=False)
        return to_numpy(s)[:rank], U[:, :rank], Vt[:rank].T
    start = stream(0, "pairs").standard_normal((size, rank + 8))
    _, V = block_krylov(lambda W: T.T @ (T @ W), like(start, T), 8, rank)
    U, s, Rt = xp.linalg.svd(T @ V, full_matrices=False)
    return to_numpy(s), U, V @ Rt.T
