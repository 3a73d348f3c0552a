"""Products of rows with weights whose last column may be an intercept."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from sksketch._typing import Array, Matrix


def scores(rows: Matrix, weights: Array) -> Array:
    """Return one column of scores for each row of weights.

    >>> scores(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0, 5.0]]))
    array([[16.]])
    """
    n_features = rows.shape[1]
    found: Array = np.asarray(rows @ weights[:, :n_features].T)
    if weights.shape[1] > n_features:
        found += weights[:, n_features]
    return found


def add_back_inplace(total: Array, rows: Matrix, slopes: Array) -> None:
    """Add the derivative in the weights to that of earlier rows.

    >>> total = np.zeros((1, 3))
    >>> add_back_inplace(total, np.array([[1.0, 2.0]]), np.array([[2.0]]))
    >>> total
    array([[2., 4., 2.]])
    """
    n_features = rows.shape[1]
    total[:, :n_features] += (rows.T @ slopes).T if sp.issparse(rows) else slopes.T @ rows
    if total.shape[1] > n_features:
        total[:, n_features] += slopes.sum(axis=0)


def squared_lengths(rows: Matrix, n_columns: int) -> Array:
    """Return the squared length of each row, with the 1 of an intercept.

    >>> squared_lengths(sp.csr_array([[3.0, 4.0]]), 3)
    array([26.])
    """
    squares: Array = np.asarray((rows * rows).sum(axis=1))
    found: Array = squares + float(n_columns - rows.shape[1])
    return found


def check_width(rows: Matrix, n_columns: int) -> None:
    """Refuse rows that are neither as wide as the weights nor one column less.

    >>> check_width(np.zeros((1, 2)), 5)
    Traceback (most recent call last):
    ValueError: got rows of 2 features for weights of 5 columns; expected 5, or 4 and an intercept
    """
    if rows.ndim != 2 or n_columns - rows.shape[1] not in (0, 1):
        width = rows.shape[1] if rows.ndim == 2 else rows.ndim
        raise ValueError(
            f"got rows of {width} features for weights of {n_columns} columns; expected "
            f"{n_columns}, or {n_columns - 1} and an intercept"
        )
