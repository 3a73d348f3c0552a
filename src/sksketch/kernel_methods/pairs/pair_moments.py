"""Two views by the covariances of their features, accumulated as they are and solved once."""

from __future__ import annotations

from typing import Any, NamedTuple

from sksketch._typing import Array, Rows
from sksketch.arrays.namespace import like, namespace, solve_triangular, to_numpy, zeros
from sksketch.arrays.random import stream
from sksketch.arrays.subspace import block_krylov
from sksketch.kernel_methods.expansions import Functions
from sksketch.kernel_methods.feature_maps import FeatureMap

# Rows are kept while there are at least this many columns for each; products take less from there.
COLUMNS_PER_KEPT_ROW = 2
# A view is constant where its variance is no more than this of its energy around the origin: the
# rounding of sums of products.
CONSTANT = 1e-12


class PairedFunctions(NamedTuple):
    """Functions of either view, column by column, and how strongly each pair is related."""

    strengths: Array
    x: Functions
    y: Functions


class PairMoments:
    """Covariances within and between the features of two views; merge by addition.

    Features are scaled by 1/sqrt(n_columns), so that their inner products are kernel values. While
    rows are few beside the features, these are kept themselves: what they span is small.
    """

    def __init__(self, x: FeatureMap, y: FeatureMap, device: Rows, *, within: bool = True) -> None:
        self.x, self.y = x, y
        self.n_rows = 0
        self.within = within
        self.sums = [zeros(n_columns, device) for n_columns in self._sizes]
        # Either the features of all rows, or the products of them.
        self.kept: list[Any] | None = [zeros((0, size), device) for size in self._sizes]
        self.between: Any = None
        self.squares: list[Any] = []

    @property
    def _sizes(self) -> tuple[int, int]:
        return self.x.n_columns, self.y.n_columns

    def add(self, X: Rows, Y: Rows) -> None:
        """Take more pairs of rows."""
        self._add([self.x.transform(X), self.y.transform(Y)])

    def _add(self, views: list[Any]) -> None:
        """Take the features of more pairs of rows."""
        xp = namespace(views[0])
        n_rows = views[0].shape[0]
        if self.kept is not None:
            self.kept = [like(part, views[0]) for part in self.kept]
            if self.n_rows + n_rows <= min(self._sizes) // COLUMNS_PER_KEPT_ROW:
                self.kept = [
                    xp.concat([part, xp.astype(F, xp.float64, copy=False)])
                    for part, F in zip(self.kept, views, strict=True)
                ]
            else:
                self._multiply_out()
        self.sums = [
            like(part, F) + xp.sum(F, axis=0, dtype=xp.float64)
            for part, F in zip(self.sums, views, strict=True)
        ]
        self.n_rows += n_rows
        if self.kept is None:
            self._add_products(views)

    def _multiply_out(self) -> None:
        """Have products from here on."""
        views = self.kept
        assert views is not None
        self.kept, self.between = None, zeros(self._sizes, views[0])
        self.squares = [zeros((s, s), views[0]) for s in self._sizes] if self.within else []
        self._add_products(views)

    def _add_products(self, views: list[Any]) -> None:
        xp = namespace(views[0])
        for i, square in enumerate(self.squares):
            square = like(square, views[0])
            square += xp.astype(views[i].T @ views[i], xp.float64, copy=False)
            self.squares[i] = square
        self.between = like(self.between, views[0])
        self.between += xp.astype(views[0].T @ views[1], xp.float64, copy=False)

    def _means(self, center: bool) -> list[Any]:
        return [total / self.n_rows * float(center) for total in self.sums]

    def _energy(self, view: int) -> float:
        """Return the mean squared length of the features of a view."""
        xp = namespace(self.sums[view])
        if self.kept is not None:
            return float(xp.sum(self.kept[view] ** 2)) / self.n_rows
        return float(xp.sum(xp.linalg.diagonal(self.squares[view]))) / self.n_rows

    def variance(self, view: int) -> float:
        """Return the total variance of the features of a view."""
        mean = to_numpy(self._means(True)[view])
        return max(self._energy(view) - float(mean @ mean), 0.0)

    def _covariances(self, center: bool) -> tuple[list[Any], Any, list[Any]]:
        """Return the covariance of each view, that between them, and bases they are in.

        The bases are None where it is that of the features.
        """
        means = self._means(center)
        if self.kept is not None:
            xp = namespace(means[0])
            factors = [xp.linalg.qr((F - mean).T) for F, mean in zip(self.kept, means, strict=True)]
            (P, R), (Q, S) = factors
            return [R @ R.T / self.n_rows, S @ S.T / self.n_rows], R @ S.T / self.n_rows, [P, Q]
        within = [
            square / self.n_rows - mean[:, None] * mean[None, :]
            for square, mean in zip(self.squares, means, strict=False)
        ]
        between = self.between / self.n_rows - means[0][:, None] * means[1][None, :]
        return within, between, [None, None]

    def cca(self, rank: int, ridge: float) -> PairedFunctions:
        """Return canonical correlations, and functions of variance one before the ridge."""
        (Cxx, Cyy), Cxy, bases = self._covariances(True)
        floors = [CONSTANT * self._energy(view) for view in range(2)]
        if any(self.variance(view) <= floor for view, floor in enumerate(floors)):
            # All that is left of a constant view is rounding, which correlates with nothing.
            Cxy = 0.0 * Cxy
        pairs = canonical_pairs(Cxx, Cyy, Cxy, (max(ridge, floors[0]), max(ridge, floors[1])), rank)
        return self._functions(pairs, bases, center=True)

    def svd(self, rank: int, center: bool) -> PairedFunctions:
        """Return singular values of the cross-covariance, and functions of length one."""
        _, Cxy, bases = self._covariances(center)
        return self._functions(leading_pairs(Cxy, rank), bases, center=center)

    def _functions(
        self, pairs: tuple[Array, Any, Any], bases: list[Any], center: bool
    ) -> PairedFunctions:
        strengths, *directions = pairs
        sides = []
        views = zip((self.x, self.y), directions, bases, self._means(center), strict=True)
        for features, direction, basis, mean in views:
            W = direction if basis is None else basis @ direction
            sides.append(Functions(features, W * features.n_columns**-0.5, to_numpy(mean @ W)))
        return PairedFunctions(strengths, *sides)

    def merge(self, other: PairMoments) -> None:
        """Add the pairs that another one has seen."""
        if other.kept is not None:
            self._add(other.kept)
            return
        if self.kept is not None:
            self._multiply_out()
        for i, square in enumerate(other.squares):
            self.squares[i] = self.squares[i] + square
        self.sums = [mine + theirs for mine, theirs in zip(self.sums, other.sums, strict=True)]
        self.between = self.between + other.between
        self.n_rows += other.n_rows

    def arrays(self) -> dict[str, Array]:
        """Return all it holds as named numpy arrays."""
        found = {f"sum{i}": part for i, part in enumerate(self.sums)}
        if self.kept is not None:
            found |= {f"kept{i}": part for i, part in enumerate(self.kept)}
        else:
            found |= {"between": self.between}
            found |= {f"square{i}": part for i, part in enumerate(self.squares)}
        return {name: to_numpy(part) for name, part in found.items()}

    def restore(self, arrays: dict[str, Array], n_rows: int) -> None:
        """Take back what `arrays` gave."""
        self.n_rows = n_rows
        self.sums = [arrays[f"sum{i}"].copy() for i in range(2)]
        if "kept0" in arrays:
            self.kept = [arrays[f"kept{i}"].copy() for i in range(2)]
            return
        self.kept, self.between = None, arrays["between"].copy()
        self.squares = [arrays[f"square{i}"].copy() for i in range(2)] if self.within else []


def canonical_pairs(
    Cxx: Rows, Cyy: Rows, Cxy: Rows, ridges: tuple[float, float], rank: int
) -> tuple[Array, Any, Any]:
    """Return canonical correlations and the directions of either side, as columns.

    With C a covariance and its ridge, the directions A have A'C A = 1.

    >>> import numpy as np
    >>> I = np.eye(2)
    >>> canonical_pairs(4 * I, I, np.diag([1.0, 0.0]), (0.0, 0.0), 1)[0].round(6)
    array([0.5])
    """
    xp = namespace(Cxy)
    roots = []
    for C, ridge in zip((Cxx, Cyy), ridges, strict=True):
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
    if size > 2 * rank + 16 and T.shape[0] > rank + 8:
        start = stream(0, "pairs").standard_normal((size, rank + 8))
        _, V = block_krylov(lambda W: T.T @ (T @ W), like(start, T), 8, rank)
        # Of a matrix of lower rank the iteration leaves fewer directions than are asked for.
        if V.shape[1] >= rank:
            U, s, Rt = xp.linalg.svd(T @ V, full_matrices=False)
            return to_numpy(s), U, V @ Rt.T
    U, s, Vt = xp.linalg.svd(T, full_matrices=False)
    return to_numpy(s)[:rank], U[:, :rank], Vt[:rank].T
