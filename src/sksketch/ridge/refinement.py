"""Further passes over the rows that take a sketched solution to the exact one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from sksketch._typing import Array, Rows, RowsLike
from sksketch.arrays.device_sparse import on_host
from sksketch.arrays.namespace import DEVICE_ENTRIES, cast, like, on_device, to_numpy
from sksketch.models.checks import one_each
from sksketch.ridge.exact import RidgeReader
from sksketch.ridge.solution import RidgeSolution, rounding_level

BLOCK_BYTES = 8 << 20


def conjugate_gradients(
    reader: RidgeReader,
    rows: Rows,
    weights: RowsLike | None,
    start: Array,
    ridge: Array | float,
    n_steps: int,
) -> Array:
    """Return coefficients after some steps of conjugate gradients on the exact problem.

    One step is one pass over the rows, and one more pass comes before the first. The sketch
    gives the start and the preconditioner (K + ridge I)^-1, so directions that it knows well
    need no steps. The steps never lengthen the error in the norm of the exact problem, so the
    absolute bound of the sketch's answer, which rests on that norm, holds after them as well.

    Parameters
    ----------
    reader : RidgeReader
        Of the sketch that was learned from the same rows.
    rows : array or CSR matrix of shape (n_rows, n_features)
        Rows, in the units of the reader.
    weights : array-like of shape (n_rows,), default=None
        Weights of the rows.
    start : array of shape (n_features, n_targets)
        The sketch's answer.
    ridge : float or array of shape (n_targets,)
        Penalty, or one for each target.
    n_steps : int
        Steps.

    Returns
    -------
    array of shape (n_features, n_targets)
    """
    rows = on_host(rows)
    moments, summary = reader.moments, reader.summary
    mean = moments.mean if reader.sketch.centered else None
    each = one_each(weights, rows.shape[0])
    counted = None if each is None else np.asarray(each, dtype=np.float64)
    preconditioner = summary.with_ridge(summary.ridge + float(np.min(ridge)))
    floor = rounding_level(summary)

    def apply(V: Array) -> Array:
        return _covariance_product(rows, counted, mean, V) + ridge * V

    x = start.astype(np.float64)
    residual = moments.cross - apply(x)
    z = preconditioner.solve(residual, floor=floor)
    direction, before = z, np.vecdot(residual.T, z.T)
    for step in range(1, n_steps + 1):
        image = apply(direction)
        curvature = np.vecdot(direction.T, image.T)
        moving = curvature > 0
        length = np.where(moving, before / np.where(moving, curvature, 1.0), 0.0)
        x = x + length * direction
        if step == n_steps:
            break
        residual = residual - length * image
        z = preconditioner.solve(residual, floor=floor)
        after = np.vecdot(residual.T, z.T)
        ratio = np.where(before > 0, after / np.where(before > 0, before, 1.0), 0.0)
        direction, before = z + ratio * direction, after
    return np.asarray(x)


def with_refined(solution: RidgeSolution, refined: Array) -> RidgeSolution:
    """Return refined coefficients with the bounds of those where the steps began.

    >>> start = RidgeSolution(np.ones((2, 1)), 0.1, np.full(1, 0.1), np.full(1, 0.1))
    >>> with_refined(start, np.full((2, 1), 1.1)).absolute_bounds.round(3)
    array([0.241])
    """
    # Steps of conjugate gradients round as well. Whatever they did, it was no longer than this.
    moved = np.linalg.norm(refined - solution.coefficients, axis=0)
    absolute = solution.absolute_bounds + moved * (1.0 + 1e-9)
    shortest = np.linalg.norm(refined, axis=0) - absolute
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.where(shortest > 0, absolute / shortest, np.inf)
    relative = np.where(absolute == 0, 0.0, relative)
    return replace(
        solution,
        coefficients=refined,
        relative_bound=float(relative.max()) * (1.0 + 1e-9),
        absolute_bounds=absolute,
        scales=1.0,
        scaled_bounds=None,
    )


def _covariance_product(rows: Rows, weights: Array | None, mean: Array | None, V: Array) -> Array:
    """Return A'A V for the rows around their mean, a block of rows at a time."""
    if on_device(rows):
        return _covariance_product_on_device(rows, weights, mean, V)
    n_rows, n_features = rows.shape
    sparse = sp.issparse(rows)
    step = n_rows if sparse else max(1, BLOCK_BYTES // (8 * n_features))
    shift = 0.0 if mean is None or not sparse else mean @ V
    total = np.zeros_like(V)
    pull = np.zeros(V.shape[1])
    for start in range(0, n_rows, step):
        block = rows[start : start + step]
        if mean is not None and not sparse:
            # Not afterwards: rows far from zero would lose their digits.
            block = block - mean
        image = np.asarray(block @ V) - shift
        if weights is not None:
            image = image * weights[start : start + step, None]
        total += block.T @ image
        pull += image.sum(axis=0)
    return total - np.outer(mean, pull) if sparse and mean is not None else total


def _covariance_product_on_device(
    rows: Rows, weights: Array | None, mean: Array | None, V: Array
) -> Array:
    """Return the same for rows on a device, a block of them at a time in float64."""
    step = max(1, DEVICE_ENTRIES // int(rows.shape[1]))
    directions, total = like(V, rows), 0.0 * V
    for start in range(0, rows.shape[0], step):
        block = cast(rows[start : start + step], np.float64)
        if mean is not None:
            block = block - like(mean, rows)
        image = block @ directions
        if weights is not None:
            image = image * like(weights[start : start + step, None], rows)
        total += to_numpy(block.T @ image)
    return total
