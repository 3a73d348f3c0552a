"""Canonical correlations of two views, with intervals.

Let A = X'X + r, B = Y'Y + r and C = X'Y. The correlations are the singular values of
A^-1/2 C B^-1/2, or the positive eigenvalues of J v = t M v with J = [[0, C], [C', 0]] and
M = diag(A, B). What is known of J and M has errors, and M is at least m_x and m_y on its blocks: in
units where M is one, the error of J is at most n = e_xy / sqrt(m_x m_y), and that of M at most
h = max(e_x / m_x, e_y / m_y). By the minimax principle of Courant and Fischer, for each i::

    (t_i - n) / (1 + h)  <=  true t_i  <=  (t_i + n) / (1 - h)
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from sksketch._typing import Array
from sksketch.arrays.rounding import unit_roundoff
from sksketch.moments.views import View, Views


class Canonical(NamedTuple):
    """Pairs of directions, most correlated first.

    ``x_weights`` and ``y_weights`` have one column for each pair, of scores with variance one, the
    ridge included; ``intervals`` certified ends of each correlation.
    """

    correlations: Array
    intervals: Array
    x_weights: Array
    y_weights: Array


class _Whitened(NamedTuple):
    """A view in coordinates where its products and the ridge are one.

    Rows ``left`` times ``sizes`` are the coordinates of the rows of the view; ``back`` takes
    directions there to columns, and ``least`` bounds the products with the ridge from below.
    """

    left: Array
    sizes: Array
    back: Array
    least: float


def canonical(views: Views, n_components: int, ridge: float) -> Canonical:
    """Return the leading pairs of directions.

    Parameters
    ----------
    views : Views
        Products of the two views.
    n_components : int
        Pairs.
    ridge : float
        Added to the diagonals of X'X and Y'Y.

    Returns
    -------
    Canonical

    Examples
    --------
    >>> x = View(np.eye(2), np.ones(2), 0.0, 0.0, np.zeros(2), np.ones(2))
    >>> y = View(np.array([[1.0], [0.0]]), np.ones(1), 0.0, 0.0, np.zeros(1), np.ones(1))
    >>> canonical(Views(x, y, 0.0, 3.0), 1, 0.0).correlations.round(12)
    array([1.])
    """
    x, y = _whitened(views.x, ridge), _whitened(views.y, ridge)
    inner = (x.left * x.sizes).T @ (y.left * y.sizes)
    U, t, Vt = np.linalg.svd(inner, full_matrices=False)
    k = min(n_components, len(t))
    root = math.sqrt(views.degrees)
    wx, wy = x.back @ U[:, :k] * root, y.back @ Vt[:k].T * root
    signs = np.ones(k)
    if k:
        signs = np.sign(np.take_along_axis(wx, np.abs(wx).argmax(axis=0)[None], axis=0)[0])
    signs = np.where(signs == 0.0, 1.0, signs)
    found = np.zeros(n_components)
    found[:k] = np.minimum(t[:k], 1.0)
    pad = ((0, 0), (0, n_components - k))
    intervals = _intervals(found, views, x.least, y.least)
    return Canonical(found, intervals, np.pad(wx * signs, pad), np.pad(wy * signs, pad))


def _whitened(view: View, ridge: float) -> _Whitened:
    ridge = ridge + view.shift
    rows, units = view.rows, view.units
    if len(rows) < rows.shape[1] and (units == units[0]).all():
        # In units that are all the same so is the ridge.
        ridge = ridge / units[0] ** 2
        left, s, Vt = np.linalg.svd(rows, full_matrices=False)
        roots = np.sqrt(s**2 + ridge)
        kept = roots > rows.shape[1] * unit_roundoff() * 4.0 * (s[0] if len(s) else 0.0)
        left, s, Vt, roots = left[:, kept], s[kept], Vt[kept], roots[kept]
        # Directions that the rows do not have correlate with nothing.
        return _Whitened(left, s / roots, (Vt / units).T / roots, ridge)
    # Rows below one another with the ridge are a factor of the whole.
    scaled = np.vstack([rows, np.diag(math.sqrt(ridge) / units)])
    left, s, Vt = np.linalg.svd(scaled, full_matrices=False)
    kept = s > len(s) * unit_roundoff() * 4.0 * s[0]
    back = (Vt[kept] / units).T / s[kept]
    least = float(s[-1]) if kept.all() and len(s) == rows.shape[1] else 0.0
    # A float, whose square is infinite without a warning.
    least *= least
    return _Whitened(left[: len(rows), kept], np.ones(int(kept.sum())), back, least)


def _intervals(found: Array, views: Views, least_x: float, least_y: float) -> Array:
    if not (least_x > 0.0 and least_y > 0.0 and math.isfinite(views.cross_error)):
        return np.tile([0.0, 1.0], (len(found), 1))
    # A few operations, and decompositions of matrices no larger than the columns.
    size = len(views.x.mean) + len(views.y.mean)
    rounding = 64.0 * size * unit_roundoff() / min(least_x, least_y, 1.0)
    n = views.cross_error / math.sqrt(least_x * least_y) + rounding
    h = max(views.x.error / least_x, views.y.error / least_y) + rounding
    low = np.maximum((found - n) / (1.0 + h), 0.0)
    high = np.minimum((found + n) / (1.0 - h), 1.0) if h < 1.0 else np.ones_like(found)
    return np.stack([low, np.maximum(high, low)], axis=1)
