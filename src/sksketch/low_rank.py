"""The operator every answer is read from: a low-rank matrix plus a ridge."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from sksketch._typing import Array


@dataclass(frozen=True, eq=False, repr=False)
class LowRankPlusRidge:
    """The matrix ``components' diag(eigenvalues) components + ridge I``, never formed.

    Every operation costs O(rank * n_features) or less, except `to_dense`.

    Parameters
    ----------
    components : array of shape (rank, n_features)
        Orthonormal rows.
    eigenvalues : array of shape (rank,)
        Weights of the rows, not negative, largest first. Held in float64.
    ridge : float, default=0.0
        Weight of the identity, not negative.
    error_bound : float, default=math.inf
        Bound on the spectral distance between this operator and the matrix it
        stands for; ``inf`` if none is certified.
    confidence : float, default=1.0
        Probability with which the bound holds; 1.0 if it is deterministic.
    n_rows_seen : int, default=0
        Rows that the operator summarizes.
    squared_norm : float, default=0.0
        Sum of the squared entries of those rows.

    See Also
    --------
    Sketch.summary : Returns the operator of a sketch.
    Certificate : Bounds on its distance from A'A.

    Examples
    --------
    >>> H = LowRankPlusRidge(np.eye(3)[:1], np.array([3.0]), ridge=1.0)
    >>> H
    LowRankPlusRidge(rank=1, n_features=3, ridge=1, error_bound=inf)
    >>> H @ np.ones(3)
    array([4., 1., 1.])
    >>> H.condition_number()
    4.0
    """

    components: Array
    eigenvalues: Array
    ridge: float = 0.0
    error_bound: float = math.inf
    confidence: float = 1.0
    n_rows_seen: int = 0
    squared_norm: float = 0.0

    def __post_init__(self) -> None:
        components = np.asarray(self.components)
        if components.dtype.kind != "f":
            components = components.astype(np.float64)
        eigenvalues = np.asarray(self.eigenvalues, dtype=np.float64)
        if components.ndim != 2 or eigenvalues.shape != components.shape[:1]:
            raise ValueError(
                f"components of shape {components.shape} do not fit eigenvalues of shape "
                f"{eigenvalues.shape}; give shapes (rank, n_features) and (rank,)"
            )
        # Written so that a NaN fails too.
        if not (np.all(eigenvalues >= 0.0) and np.all(eigenvalues[1:] <= eigenvalues[:-1])):
            raise ValueError(
                f"eigenvalues {eigenvalues} are not descending and >= 0; sort and clip them first"
            )
        if not 0.0 <= self.ridge < math.inf:
            raise ValueError(f"ridge is {self.ridge}; give a finite number >= 0")
        if not self.error_bound >= 0.0:
            raise ValueError(f"error_bound is {self.error_bound}; give a number >= 0, or inf")
        object.__setattr__(self, "components", components)
        object.__setattr__(self, "eigenvalues", eigenvalues)
        object.__setattr__(self, "ridge", float(self.ridge))
        object.__setattr__(self, "error_bound", float(self.error_bound))

    def __repr__(self) -> str:
        return (
            f"LowRankPlusRidge(rank={self.rank}, n_features={self.n_features}, "
            f"ridge={self.ridge:.4g}, error_bound={self.error_bound:.4g})"
        )

    @property
    def rank(self) -> int:
        """Number of components, whatever their eigenvalues."""
        return int(self.components.shape[0])

    @property
    def n_features(self) -> int:
        """Rows and columns of the operator."""
        return int(self.components.shape[1])

    @property
    def shape(self) -> tuple[int, int]:
        """``(n_features, n_features)``."""
        return self.n_features, self.n_features

    def __matmul__(self, b: Array) -> Array:
        """Apply the operator to a vector or to the columns of a block."""
        return self._apply(b, self.ridge, self.eigenvalues)

    def solve(self, b: Array, *, floor: float = 0.0) -> Array:
        """Return ``x`` with ``self @ x == b``, for a vector or the columns of a block.

        With ``ridge == 0`` this is the pseudo-inverse of Luo et al. (2019),
        Algorithm 3 line 11; eigenvalues at rounding level of the largest
        count as zero. With a ``floor`` so do those up to it, the ridge included.

        Parameters
        ----------
        b : array of shape (n_features,) or (n_features, k)
            A vector, or a block of columns.
        floor : float, default=0.0
            Eigenvalues up to it count as zero.

        Returns
        -------
        array
            The solution, of the shape of ``b``.

        Examples
        --------
        >>> H = LowRankPlusRidge(np.eye(3)[:1], np.array([3.0]), ridge=1.0)
        >>> H.solve(np.ones(3))
        array([0.25, 1.  , 1.  ])
        >>> H.with_ridge(0.0).solve(np.ones(3)).round(3)
        array([0.333, 0.   , 0.   ])
        >>> H.solve(np.ones(3), floor=1.0)
        array([0.25, 0.  , 0.  ])
        """
        if self.ridge <= floor or self._spans_all:
            return self._apply(b, 0.0, self._inverse_eigenvalues(floor))
        # 1/(s + r) - 1/r without subtracting nearly equal reciprocals.
        inside = -self.eigenvalues / (self.eigenvalues + self.ridge) / self.ridge
        return self._apply(b, 1.0 / self.ridge, inside)

    def sqrt_solve(self, b: Array) -> Array:
        """Apply the inverse square root; applied twice it is `solve`.

        With ``ridge == 0`` this is the square root of the pseudo-inverse.
        ``H.sqrt_solve(X.T).T`` are the rows of X, whitened by H.

        Parameters
        ----------
        b : array of shape (n_features,) or (n_features, k)
            A vector, or a block of columns.

        Returns
        -------
        array
            The product with the inverse square root, of the shape of ``b``.

        Examples
        --------
        >>> H = LowRankPlusRidge(np.eye(3)[:1], np.array([3.0]), ridge=1.0)
        >>> H.sqrt_solve(np.ones(3))
        array([0.5, 1. , 1. ])
        """
        if self.ridge == 0.0 or self._spans_all:
            return self._apply(b, 0.0, np.sqrt(self._inverse_eigenvalues()))
        root, roots = math.sqrt(self.ridge), np.sqrt(self.eigenvalues + self.ridge)
        # 1/sqrt(s + r) - 1/sqrt(r), again without the subtraction.
        inside = -self.eigenvalues / (roots * (roots + root)) / root
        return self._apply(b, 1.0 / root, inside)

    def with_ridge(self, ridge: float) -> LowRankPlusRidge:
        """Return the same low-rank part with ``ridge`` in place of the present one.

        The error bound is kept: changing the ridge shifts the operator and
        the matrix it stands for by the same multiple of the identity.

        Parameters
        ----------
        ridge : float
            Weight of the identity, not negative.

        Returns
        -------
        LowRankPlusRidge
            A new operator.

        Examples
        --------
        >>> H = LowRankPlusRidge(np.eye(3)[:1], np.array([3.0]), error_bound=0.5)
        >>> H.with_ridge(2.0)
        LowRankPlusRidge(rank=1, n_features=3, ridge=2, error_bound=0.5)
        """
        return replace(self, ridge=ridge)

    def logdet(self) -> float:
        """Return the logarithm of the determinant, ``-inf`` if it is zero.

        Returns
        -------
        float
            The natural logarithm.

        Examples
        --------
        >>> LowRankPlusRidge(np.eye(3)[:1], np.array([3.0]), ridge=1.0).logdet()  # log 4
        1.3862943611198906
        """
        if self.ridge == 0.0:
            return float(np.log(self.eigenvalues).sum()) if self._is_invertible else -math.inf
        outside = (self.n_features - self.rank) * math.log(self.ridge)
        return outside + float(np.log(self.eigenvalues + self.ridge).sum())

    def condition_number(self) -> float:
        """Return the largest eigenvalue over the smallest, ``inf`` if that is zero.

        Returns
        -------
        float
            At least 1.

        Examples
        --------
        >>> LowRankPlusRidge(np.eye(3)[:1], np.array([3.0])).condition_number()
        inf
        """
        if self.ridge == 0.0 and not self._is_invertible:
            return math.inf
        largest = float(self.eigenvalues[0]) if self.rank else 0.0
        smallest = float(self.eigenvalues[-1]) if self._spans_all else 0.0
        return (largest + self.ridge) / (smallest + self.ridge)

    def trace(self) -> float:
        """Return the sum of all eigenvalues.

        Returns
        -------
        float
            The trace of the operator.

        Examples
        --------
        >>> LowRankPlusRidge(np.eye(3)[:1], np.array([3.0]), ridge=1.0).trace()
        6.0
        """
        return float(self.eigenvalues.sum()) + self.n_features * self.ridge

    def to_dense(self) -> Array:
        """Return the matrix itself, in float64; it has n_features ** 2 entries.

        Returns
        -------
        array of shape (n_features, n_features)
            The symmetric matrix.

        Examples
        --------
        >>> LowRankPlusRidge(np.eye(2)[:1], np.array([3.0]), ridge=1.0).to_dense()
        array([[4., 0.],
               [0., 1.]])
        """
        V = self.components
        dense: Array = (V.T * self.eigenvalues) @ V
        dense[np.diag_indices(self.n_features)] += self.ridge
        return dense

    @property
    def _spans_all(self) -> bool:
        return self.rank == self.n_features

    @property
    def _is_invertible(self) -> bool:
        """Whether the low-rank part has full rank on its own."""
        return self._spans_all and bool(np.all(self._inverse_eigenvalues() > 0.0))

    def _inverse_eigenvalues(self, floor: float = 0.0) -> Array:
        """Return 1 / (eigenvalues + ridge), or zero where that would divide by rounding noise."""
        shifted = self.eigenvalues + self.ridge
        if self.ridge == 0.0 and self.rank:
            noise = self.rank * float(np.finfo(self.components.dtype).eps) * float(shifted[0])
            floor = max(floor, noise)
        return np.divide(1.0, shifted, out=np.zeros_like(shifted), where=shifted > floor)

    def _apply(self, b: Array, outside: float, inside: Array) -> Array:
        """Return outside * b + components' diag(inside) components b."""
        b = np.asarray(b)
        if b.ndim not in (1, 2) or b.shape[0] != self.n_features:
            raise ValueError(
                f"an operator of {self.n_features} features cannot act on an array of shape "
                f"{b.shape}; give a vector of shape ({self.n_features},) or a block of shape "
                f"({self.n_features}, k)"
            )
        V = self.components
        coefficients = V @ b
        weights = inside if b.ndim == 1 else inside[:, np.newaxis]
        # The weights are float64; their range, not their digits, is what float32 needs.
        result: Array = V.T @ (weights * coefficients).astype(coefficients.dtype)
        return result + outside * b if outside else result
