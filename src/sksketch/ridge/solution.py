"""Ridge regression read from a sketch of the rows and their cross moment with the targets.

With K the operator of a sketch, E = A'A - K, c = A'b and r the ridge, up to rounding::

    x_hat = (K + r I)^-1 c          x = (A'A + r I)^-1 c

No row is needed, so every r can be asked of one pass (Shi and Phillips (2021), Algorithms 1 to
3, with r kept out of the state).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from sksketch._typing import Array
from sksketch.arrays.linalg import eigh_descending
from sksketch.arrays.rounding import gamma, unit_roundoff
from sksketch.low_rank import LowRankPlusRidge
from sksketch.sketches.wrappers.moment_sums import Moments

BLOCK_BYTES = 8 << 20


@dataclass(frozen=True, eq=False)
class RidgeSolution:
    """Coefficients at one ridge, and how far they can be from those of the exact covariance.

    Parameters
    ----------
    coefficients : array of shape (n_features, n_targets)
        x_hat, one column for each target.
    relative_bound : float
        Bound on ``|x_hat - x| / |x|`` for every target; ``inf`` if none is certified.
    absolute_bounds : array of shape (n_targets,)
        Bounds on ``|x_hat - x|``.
    image_bounds : array of shape (n_targets,)
        Bounds on ``|A (x_hat - x)|``.
    scales : array of shape (n_features,) or float
        Units of the columns, in which ``|scales * (x_hat - x)|`` is bounded.
    scaled_bounds : array of shape (n_targets,), default=None
        Those bounds; the absolute ones if not given.
    """

    coefficients: Array
    relative_bound: float
    absolute_bounds: Array
    image_bounds: Array
    scales: Array | float = 1.0
    scaled_bounds: Array | None = None

    def for_division(self) -> RidgeSolution:
        """Return the solution with bounds that hold after coefficients were divided once."""
        off = gamma(2) * np.linalg.norm(self.coefficients, axis=0)
        bounds = self.scaled_bounds
        if bounds is not None:
            scaled = (self.coefficients.T * self.scales).T
            bounds = bounds + gamma(2) * np.linalg.norm(scaled, axis=0)
        relative = self.relative_bound + gamma(2) * (1.0 + self.relative_bound)
        absolute = self.absolute_bounds + off
        return replace(
            self, relative_bound=relative, absolute_bounds=absolute, scaled_bounds=bounds
        )


def each_at_its_own(solutions: Sequence[RidgeSolution]) -> RidgeSolution:
    """Return the solution that has target ``j`` of solution ``j``, at its ridge.

    >>> at = [RidgeSolution(np.full((1, 2), r), r, *np.full((2, 2), r)) for r in (1.0, 2.0)]
    >>> each_at_its_own(at).coefficients, each_at_its_own(at).relative_bound
    (array([[1., 2.]]), 2.0)
    """
    coefficients, absolute, image = (
        np.stack([getattr(one, name)[..., j] for j, one in enumerate(solutions)], axis=-1)
        for name in ("coefficients", "absolute_bounds", "image_bounds")
    )
    # Units may depend on the ridge, so bounds are in those of the coefficients.
    return RidgeSolution(
        coefficients, max(one.relative_bound for one in solutions), absolute, image
    )


# The root of the smallest number: squares of less than this are zero.
SMALLEST_ROOT = 1e-160


def rounding_level(summary: LowRankPlusRidge) -> float:
    """Return the size below which eigenvalues of a summary are rounding.

    >>> rounding_level(LowRankPlusRidge(np.eye(2)[:1], np.array([1.0]))) == 2 * 2.0**-52
    True
    """
    largest = float(summary.eigenvalues[0]) if summary.rank else 0.0
    return 2.0 * summary.n_features * unit_roundoff() * largest


def solve_summary(
    summary: LowRankPlusRidge, cross: Array, ridge: float, cross_error: Array | None = None
) -> RidgeSolution:
    """Solve with the operator of a sketch.

    Parameters
    ----------
    summary : LowRankPlusRidge
        K, with the bound D on its distance to A'A.
    cross : array of shape (n_features, n_targets)
        A'b as it was computed.
    ridge : float
        r. Directions whose eigenvalue is rounding with it count as zero, as without it.
    cross_error : array of shape (n_targets,), default=None
        Bounds on the length of the error of each column of ``cross``; zero if not given.

    Notes
    -----
    Let x_hat be the answer, p = c_hat - (K + r) x_hat its residual, dc = c_hat - c and
    M = A'A + r. Whatever rounding did to the solution, exactly::

        x_hat - x  =  M^-1 (E x_hat - p + dc)  =  (K + r)^-1 (E x - p + dc),    E = A'A - K

    M is at least r, and at least k + r - D with k the least eigenvalue of K. So the error is at
    most (D |x_hat| + |p| + |dc|) / max(r, k + r - D), and the relative one at most
    D / (k + r) + (|p| + |dc|) / ((k + r) |x|), which is Lemma 1 of the paper without rounding.
    Either form also says how short x can be, and so the first bounds the relative error as well.
    The norm of A M^-1/2 is at most 1: A (x_hat - x) is bounded with the root of the floor.

    p is computed, and its own rounding bounded: with rows of V of length one, V x, the product
    with the eigenvalues and that with V' are off by gamma(n_features + rank + 8) |eigenvalues| |x|.

    Examples
    --------
    >>> summary = LowRankPlusRidge(np.eye(2)[:1], np.array([3.0]), ridge=1.0, error_bound=1.0)
    >>> solution = solve_summary(summary, np.array([[4.0], [2.0]]), ridge=1.0)
    >>> solution.coefficients.ravel(), round(solution.relative_bound, 9)
    (array([0.8, 1. ]), 0.5)
    """
    shifted = summary.with_ridge(summary.ridge + ridge)
    coefficients = shifted.solve(cross, floor=rounding_level(summary))
    lengths = np.linalg.norm(coefficients, axis=0)
    D, floor, least = summary.error_bound, *floors(summary, ridge)
    if not math.isfinite(D) or least <= 0.0:
        nothing = np.full(len(lengths), math.inf)
        return RidgeSolution(coefficients, math.inf, nothing, nothing)
    other = np.linalg.norm(cross - shifted @ coefficients, axis=0)
    other = other + apply_error(shifted, lengths) + 2.0 * gamma(2) * np.linalg.norm(cross, axis=0)
    other = other + (0.0 if cross_error is None else cross_error)
    # A few operations more, on positive numbers.
    off = (D * lengths + other) * (1.0 + gamma(summary.n_features + 32))
    with np.errstate(divide="ignore", invalid="ignore"):
        # Coefficients themselves are rounded.
        absolute = np.where(off > 0.0, off / max(floor, 0.0) + gamma(4) * lengths, 0.0)
        image = np.where(off > 0.0, off / math.sqrt(max(floor, 0.0)), 0.0)
        known = lengths * (1.0 - gamma(summary.n_features + 2))
        shortest = np.maximum(known - absolute, (known * least - other) / (least + D))
        direct = np.where(shortest > 0.0, absolute / shortest, math.inf)
        lemma = D / least + np.where(shortest > 0.0, other / (least * shortest), math.inf)
    relative = np.where(off > 0.0, np.minimum(direct, lemma) * (1.0 + gamma(32)), 0.0)
    return RidgeSolution(coefficients, float(relative.max()), absolute, image)


def floors(summary: LowRankPlusRidge, ridge: float) -> tuple[float, float]:
    """Return lower bounds of the eigenvalues of A'A + ridge and of K + ridge."""
    least = summary.ridge
    if summary.rank == summary.n_features:
        # Components are orthonormal to rounding.
        shortest = 1.0 - gamma(4 * summary.n_features, summary.components.dtype)
        least += float(summary.eigenvalues[-1]) * max(shortest, 0.0)
    # The difference may be one of nearly equal numbers.
    rounding = gamma(4) * (least + ridge + summary.error_bound)
    certain = least + ridge - summary.error_bound - rounding
    return max(ridge, certain), (least + ridge) * (1.0 - gamma(4))


def apply_error(operator: LowRankPlusRidge, lengths: Array) -> Array:
    """Bound the rounding of an operator applied to vectors of these lengths."""
    roundings = gamma(operator.n_features + operator.rank + 8)
    size = float(np.linalg.norm(operator.eigenvalues)) + operator.ridge
    # Twice, since components may be of length one in single precision only.
    return np.asarray(2.0 * roundings * size * lengths)


class ProjectedRidge:
    """Ridge on the rows S A and targets S b of a linear sketch, for any number of ridges.

    Solved on the smaller side of S A; nothing is as large as columns squared.

    Parameters
    ----------
    matrix : array of shape (sketch_size, n_features)
        S A.
    targets : array of shape (sketch_size, n_targets)
        S b.
    ones : array of shape (sketch_size,), default=None
        S 1; given, an intercept is fitted without penalty.

    Examples
    --------
    >>> A = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
    >>> model = ProjectedRidge(A, A @ np.array([[1.0], [2.0]]))
    >>> model.solve(0.0)[0].round(9).ravel()
    array([1., 2.])
    """

    def __init__(self, matrix: Array, targets: Array, ones: Array | None = None) -> None:
        self._C = matrix.astype(np.float64)
        self._b = targets.astype(np.float64)
        self._u = None if ones is None or not ones.any() else ones.astype(np.float64)
        self._raw = self._C, self._b
        if self._u is not None:
            # Without penalty the intercept takes all that lies along S 1.
            unit = self._u / np.linalg.norm(self._u)
            self._C = self._C - np.outer(unit, unit @ self._C)
            self._b = self._b - np.outer(unit, unit @ self._b)
        if len(self._C) > self._C.shape[1]:
            U, singular_values, _ = np.linalg.svd(self._C, full_matrices=False)
            values = singular_values**2
        else:
            values, U = eigh_descending(self._C @ self._C.T)
        keep = values > len(values) * np.finfo(np.float64).eps * max(values[0], 0.0)
        self._values, self._U = values[keep], U[:, keep]

    def solve(self, ridge: float) -> tuple[Array, Array]:
        """Return coefficients of shape (n_features, n_targets) and intercepts."""
        small = (self._U.T @ self._b) / (self._values + ridge)[:, None]
        coefficients = self._C.T @ (self._U @ small)
        if self._u is None:
            return coefficients, np.zeros(self._b.shape[1])
        C, b = self._raw
        intercepts = self._u @ (b - C @ coefficients) / (self._u @ self._u)
        return coefficients, intercepts

    def score(self, ridge: float, weight: float) -> Array:
        """Return the generalized cross-validation scores of S A and S b, for rows of that weight.

        The sketch is a smaller problem of its own, with the rows that it has itself.
        """
        coefficients, _ = self.solve(ridge)
        errors = ((self._C @ coefficients - self._b) ** 2).sum(axis=0)
        n_rows, n_extra = len(self._C), self._u is not None
        left = n_rows - n_extra - len(self._values)
        kept = left + (float((ridge / (self._values + ridge)).sum()) if ridge > 0.0 else 0.0)
        if kept <= 0.0 or weight == 0.0:
            return np.full(len(errors), math.inf)
        return np.asarray(errors / weight * (n_rows / kept) ** 2)


def row_lengths(rows: Any, point: Array, scales: Array | float = 1.0) -> tuple[Array, Array]:
    """Return upper bounds of the lengths of rows, and of their distances to a point.

    Columns are measured in units of ``scales``.

    >>> [lengths.round(9).tolist() for lengths in row_lengths(np.eye(2), np.array([1.0, 0.0]))]
    [[1.0, 1.0], [0.0, 1.414213562]]
    """
    n_rows, n_features = rows.shape
    g = gamma(n_features + 12)
    # Squares of smaller entries vanish.
    vanished = math.sqrt(n_features) * SMALLEST_ROOT
    if sp.issparse(rows):
        rows, point = sp.csr_array(rows, dtype=np.float64), point / scales
        rows.data = rows.data / np.broadcast_to(scales, n_features)[rows.indices]
        squares = np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
        size = float(np.linalg.norm(point))
        expanded = squares - 2.0 * (rows @ point) + size**2
        sizes = np.sqrt(squares) * (1.0 + g) + vanished
        return sizes, np.sqrt(np.maximum(expanded, 0.0) + 2.0 * g * (sizes + size) ** 2) + vanished
    step = max(1, BLOCK_BYTES // (8 * n_features))
    sizes, away = np.empty(n_rows), np.empty(n_rows)
    for start in range(0, n_rows, step):
        part = slice(start, start + step)
        block = rows[part].astype(np.float64)
        sizes[part] = np.linalg.norm(block / scales, axis=1)
        away[part] = np.linalg.norm((block - point) / scales, axis=1)
    return sizes * (1.0 + g) + vanished, away * (1.0 + g) + vanished


def squared_error_interval(
    summary: LowRankPlusRidge, moments: Moments, coefficients: Array
) -> tuple[Array, Array]:
    """Return bounds on the sum of squared training residuals of the coefficients, per target.

    |A x - b|^2 = x'A'A x - 2 c'x + b'b, of which only the first term is not known but through K;
    the rounding of all three is allowed for.
    """
    lengths = np.linalg.norm(coefficients, axis=0)
    if not math.isfinite(summary.error_bound):
        return np.zeros(len(lengths)), np.full(len(lengths), math.inf)
    image = summary @ coefficients
    quadratic = np.vecdot(coefficients.T, image.T)
    linear = 2.0 * np.vecdot(moments.cross.T, coefficients.T)
    middle = quadratic - linear + moments.squares
    g = gamma(summary.n_features + 8)
    sizes = np.linalg.norm(image, axis=0) + 2.0 * np.linalg.norm(moments.cross, axis=0)
    rounding = g * (sizes * lengths + moments.squares) + apply_error(summary, lengths) * lengths
    rounding = rounding + 2.0 * moments.cross_error * lengths + moments.squares_error
    slack = (summary.error_bound * lengths**2 + rounding) * (1.0 + g)
    return np.maximum(middle - slack, 0.0), np.maximum(middle + slack, 0.0)


def effective_dimension(summary: LowRankPlusRidge, ridge: float) -> float:
    """Return the trace of K (K + ridge I)^-1: how many columns a ridge leaves free.

    Eigenvalues that are rounding count as zero.

    >>> effective_dimension(LowRankPlusRidge(np.eye(3)[:1], np.array([3.0])), ridge=1.0)
    0.75
    """
    inside = summary.eigenvalues + summary.ridge
    inside = inside[inside > rounding_level(summary)]
    outside = summary.n_features - summary.rank
    free = float((inside / (inside + ridge)).sum())
    if summary.ridge > rounding_level(summary):
        free += outside * summary.ridge / (summary.ridge + ridge)
    return free


def residual_dimension_interval(
    summary: LowRankPlusRidge, moments: Moments, ridge: float, n_extra: int
) -> tuple[float, float]:
    """Bound n - trace(A'A (A'A + ridge I)^-1) - n_extra, with n the weight of the rows.

    Notes
    -----
    At most R = min(n_features, rows - n_extra) eigenvalues of A'A are not zero, so that this is
    n - n_extra - R plus the sum of ridge / (s_i + ridge) over R eigenvalues, and nothing cancels.
    Each s_i is within the error bound D of that of K, and their sum is the squared norm. The
    terms are convex in s_i: given the sum, the least total has the s_i as equal as their
    intervals let them be, and the largest is at most that of the chords of the intervals.

    >>> from sksketch.sketches.wrappers.cross_moments import CrossMoments
    >>> moments = CrossMoments(3, 1, centered=False)
    >>> moments = moments.update(np.eye(5)[:, :3], np.zeros((5, 1)), np.ones(5)).read()
    >>> exact = LowRankPlusRidge(np.eye(3), np.ones(3), error_bound=0.0, squared_norm=3.0)
    >>> [round(end, 9) for end in residual_dimension_interval(exact, moments, 1.0, 1)]
    [2.5, 2.5]
    """
    n_features, D = summary.n_features, summary.error_bound
    R = min(n_features, max(moments.n_rows - n_extra, 0))
    start = moments.weight - n_extra - R
    values = np.full(n_features, summary.ridge)
    values[: summary.rank] += summary.eigenvalues
    # A shift of the read-out cancels in the lower end, and leaves its rounding.
    rounding = gamma(8) * (values[:R] + D)
    low, high = np.maximum(values[:R] - D - rounding, 0.0), values[:R] + D + rounding
    if not math.isfinite(D) or not R:
        return (start, start + R) if R else (start, start)
    total = summary.squared_norm
    slack = gamma(moments.n_rows + n_features + 16) * total + D
    most, least = _evened(low, high, total + slack), low
    with np.errstate(divide="ignore", invalid="ignore"):

        def kept(s: Array) -> Array:
            # At no ridge what is zero is kept whole.
            return np.where(s > 0.0, ridge / (s + ridge), 1.0)

        lower, ends = float(kept(most).sum()), (kept(low), kept(high))
        # What is certainly there beyond the lower ends goes where it costs least.
        spare = max(total - slack - float(least.sum()), 0.0)
        drop, room = ends[0] - ends[1], high - low
        order = np.argsort(np.where(room > 0.0, drop / np.where(room > 0.0, room, 1.0), np.inf))
    filled = np.clip((spare - (np.cumsum(room[order]) - room[order])), 0.0, room[order])
    share = np.divide(filled, room[order], out=np.zeros(R), where=room[order] > 0.0)
    upper = float((ends[0][order] - share * drop[order]).sum())
    g = gamma(R + 8)
    return start + lower * (1.0 - g), start + max(upper, lower) * (1.0 + g)


def _evened(low: Array, high: Array, total: float) -> Array:
    """Return numbers between ends that sum to ``total``, as equal as can be."""
    if high.sum() <= total:
        return high
    ends = float(low.min()), float(high.max())
    for _ in range(100):
        level = 0.5 * (ends[0] + ends[1])
        enough = float(np.clip(level, low, high).sum()) >= total
        ends = (ends[0], level) if enough else (level, ends[1])
    return np.asarray(np.clip(ends[1], low, high))
