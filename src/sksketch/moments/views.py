"""Two views of the same rows, from one sketch of both side by side.

With Z = [X, b Y], whatever b, a sketch knows Z'Z to a certain error, and so all of X'X, X'Y
and Y'Y. Where 0 <= Z'Z - K <= 2 D, as for the low-rank part of Frequent Directions, the middle
K + D is off by at most D; the shift stands on the diagonal alone, so the cross block of K itself is
off by at most D, and X'Y by D / b.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sksketch._typing import Array
from sksketch.arrays.linalg import eigh_descending
from sksketch.arrays.rounding import eigen_error, gamma
from sksketch.sketches import Centered


@dataclass(frozen=True, eq=False)
class View:
    """Knowledge of one view: few rows with nearly the products of all.

    Parameters
    ----------
    rows : array of shape (n_rows, n_features)
        Their products are those of the view, with columns divided by ``units``.
    units : array of shape (n_features,)
        Units of the columns; ones for a sketch.
    shift : float
        What is to be added to the diagonal of the products, before columns are divided.
    error : float
        Bound on the spectral error of the products in units.
    mean, squares : arrays of shape (n_features,)
        Means of the columns, and sums of their squares around these.
    """

    rows: Array
    units: Array
    shift: float
    error: float
    mean: Array
    squares: Array

    def deviations(self, degrees: float) -> Array:
        """Return the standard deviations of the columns, one where nothing varies."""
        found = np.sqrt(np.maximum(self.squares, 0.0) / degrees)
        return np.asarray(np.where(found > 0.0, found, 1.0))


@dataclass(frozen=True, eq=False)
class Views:
    """Two views around their means.

    Parameters
    ----------
    x, y : View
        Each of them.
    cross_error : float
        Bound on the spectral error of the products of the first with the second.
    weight : float
        Sum of the weights of the rows.
    """

    x: View
    y: View
    cross_error: float
    weight: float

    @property
    def degrees(self) -> float:
        """Degrees of freedom of a variance."""
        return max(self.weight - 1.0, 1.0)


def read_views(sketch: Centered, n_features: int, balance: float, ridge: float = 0.0) -> Views:
    """Return both views of a sketch of rows ``[x, balance y]``.

    Parameters
    ----------
    sketch : Centered
        With rows.
    n_features : int
        Columns of the first view.
    balance : float
        Factor of the second view.
    ridge : float, default=0.0
        Columns shorter than its root are measured by that.

    Returns
    -------
    Views
    """
    p = n_features
    parts = slice(None, p), slice(p, None)
    factors = 1.0, balance
    gram = sketch._exact_gram()
    if gram is not None and math.isfinite(gram.errors.flat):
        # In units of the columns, so that none is lost beside larger ones.
        squares = np.maximum(gram.matrix.diagonal(), 0.0)
        units = np.sqrt(squares + gram.ridge + ridge)
        units = np.where(units > 0.0, units, 1.0)
        values, V = eigh_descending(gram.matrix / units / units[:, None])
        kept = values > 0.0
        rows = (np.sqrt(values[kept]) * V[:, kept]).T
        error = gram.errors.norm(units) + 8.0 * eigen_error(len(units), float(values[0]))
        shift = gram.ridge
    else:
        summary = sketch.summary()
        rows = summary.components * np.sqrt(summary.eigenvalues)[:, None]
        rows = rows.astype(np.float64)
        top = float(summary.eigenvalues[0]) if summary.rank else 0.0
        error = summary.error_bound + gamma(8 * summary.n_features) * top
        shift, squares, units = summary.ridge, sketch.column_squares, np.ones(rows.shape[1])
    both = gram is not None
    x, y = (
        View(
            rows[:, part] if both else rows[:, part] / factor,
            units[part] / factor if both else units[part],
            # One after the other: the square of a factor may be beyond all numbers.
            shift / factor / factor,
            error if both else error / factor / factor,
            sketch.mean[part] / factor,
            squares[part] / factor / factor,
        )
        for part, factor in zip(parts, factors, strict=True)
    )
    return Views(x, y, error if both else error / balance, sketch.total_weight)
