"""Row blocks as users pass them, turned into checked two-dimensional float arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import narwhals as nw
import numpy as np
import scipy.sparse as sp

from sksketch._typing import Array

CHUNK_BYTES = 1 << 20

# Squares of larger numbers would overflow in sums over many rows.
LARGEST_SQUARED_NORM = {np.dtype(np.float32): 1e36, np.dtype(np.float64): 1e300}


def as_rows(X: Any, *, n_features: int | None = None) -> Any:
    """Return ``X`` as a 2-D array or CSR matrix of numbers, without a copy where possible.

    A one-dimensional ``X`` is a single row. Data frames, lists and sparse
    matrices of any format are accepted; text, objects, complex numbers, empty
    blocks and blocks of another width than ``n_features`` are not.

    >>> as_rows([1, 2, 3]).shape
    (1, 3)
    """
    if sp.issparse(X):
        rows: Any = _as_csr(X)
        if not rows.has_canonical_format:
            rows = rows.copy()
            rows.sum_duplicates()
    else:
        rows = _as_dense(X)
    if rows.dtype.kind in "biu":
        rows = rows.astype(np.float64)
    elif rows.dtype.kind != "f":
        raise TypeError(
            f"expected rows of real numbers, got dtype {rows.dtype}; "
            "encode text, dates and categories as numbers first"
        )
    elif rows.dtype not in LARGEST_SQUARED_NORM:
        rows = rows.astype(np.float32 if rows.dtype.itemsize < 4 else np.float64)
    if rows.ndim == 1:
        rows = rows.reshape(1, -1)
    if rows.ndim != 2:
        raise ValueError(
            f"expected rows as a 2-D block (n_rows, n_features), got {rows.ndim}-D data of shape "
            f"{rows.shape}; reshape it"
        )
    if 0 in rows.shape:
        raise ValueError(
            f"got an empty block of shape {rows.shape}, expected at least one row and one column; "
            "skip empty blocks"
        )
    if n_features is not None and rows.shape[1] != n_features:
        raise ValueError(
            f"got rows of {rows.shape[1]} features, expected {n_features} as in the earlier rows; "
            "pass the same columns"
        )
    return rows


def _as_csr(X: Any) -> Any:
    """Return a sparse matrix of any format as CSR, after a look at its indices."""
    if X.dtype.kind not in "biuf":
        raise TypeError(
            f"expected rows of real numbers, got a sparse matrix of dtype {X.dtype}; "
            "encode text, dates and categories as numbers first"
        )
    try:
        # Indices out of bounds would make scipy read and write outside the arrays.
        if X.format in ("csr", "csc", "bsr"):
            X.check_format(full_check=True)
        elif X.format == "coo":
            for index, size in zip(X.coords, X.shape, strict=True):
                if X.nnz and (index.min() < 0 or index.max() >= size):
                    raise ValueError(f"index {index.max()} or {index.min()} in a size of {size}")
    except ValueError as error:
        raise ValueError(
            f"got a sparse matrix with broken indices ({error}); build it again from its entries"
        ) from None
    if isinstance(X, sp.csr_array) and X.ndim == 2:
        return X
    return sp.csr_array(X.reshape(1, -1) if X.ndim == 1 else X)


def _as_dense(X: Any) -> Array:
    if isinstance(X, np.ndarray):
        return np.asarray(X)
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        text = [n for n, t in frame.schema.items() if not (t.is_numeric() or t == nw.Boolean)]
        if text:
            raise TypeError(
                f"expected columns of numbers, got {text[0]!r} of type {frame.schema[text[0]]}; "
                "drop or encode the columns that are not numbers"
            )
        return np.asarray(frame.to_numpy())
    try:
        return np.asarray(X)
    except ValueError:
        raise ValueError(
            f"could not read a {type(X).__name__} as rows of numbers; pass rows of equal length"
        ) from None


def squared_row_norms(rows: Any, dtype: np.dtype[Any]) -> Array:
    """Return the squared norm of every row in float64, refusing what ``dtype`` can not hold.

    NaN, infinite and overflowing values are found here, in the pass that the
    norms need anyway.

    >>> squared_row_norms(np.array([[3.0, 4.0]]), np.dtype(np.float64))
    array([25.])
    """
    with np.errstate(over="ignore", invalid="ignore"):
        if sp.issparse(rows):
            norms = np.zeros(rows.shape[0])
            # Sums between the starts of rows that have entries.
            filled = np.diff(rows.indptr) > 0
            if filled.any():
                squares = rows.data.astype(np.float64) ** 2
                norms[filled] = np.add.reduceat(squares, rows.indptr[:-1][filled])
        elif rows.dtype == np.float64:
            norms = np.vecdot(rows, rows)
        else:
            pieces = dense_chunks(rows, np.dtype(np.float64))
            norms = np.concatenate([np.vecdot(piece, piece) for piece in pieces])
    # A NaN fails this comparison, too.
    if not norms.max() <= LARGEST_SQUARED_NORM[dtype]:
        raise ValueError(_complaint(rows, dtype))
    return np.asarray(norms)


def _complaint(rows: Any, dtype: np.dtype[Any]) -> str:
    values = rows.tocoo() if sp.issparse(rows) else rows
    flat = values.data if sp.issparse(rows) else values
    for name, test in (("NaN", np.isnan), ("infinity", np.isinf)):
        if (bad := test(flat)).any():
            where = np.argwhere(bad)[0]
            row, column = (
                (values.row[where[0]], values.col[where[0]]) if sp.issparse(rows) else where
            )
            return (
                f"input contains {name} (first in row {row}, column {column} of the block), "
                "expected finite numbers; drop or impute such rows"
            )
    return (
        f"input holds values up to {np.abs(flat).max():.3g}, whose squares overflow {dtype}; "
        "rescale the columns" + (" or pass float64 rows" if dtype == np.float32 else "")
    )


def as_weights(weights: Any, n_rows: int) -> Array | None:
    """Return row weights as float64, or None; they must be finite and not negative."""
    if weights is None:
        return None
    try:
        values = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(
            f"expected {n_rows} weights as numbers, got a {type(weights).__name__} of other things"
        ) from None
    if values.shape != (n_rows,):
        raise ValueError(
            f"got weights of shape {values.shape}, expected one weight for each of {n_rows} rows"
        )
    if not np.isfinite(values).all() or (values < 0).any():
        raise ValueError("weights must be finite and not negative; drop or repair those rows")
    return values


def check_weighted_norms(norms: Array, weights: Array, dtype: np.dtype[Any]) -> None:
    """Refuse weights with which rows of the given squared norms would overflow."""
    with np.errstate(over="ignore"):
        largest = float((norms * weights).max())
    if not largest <= LARGEST_SQUARED_NORM[dtype]:
        raise ValueError(
            f"weights up to {weights.max():.3g} make the squares of the rows overflow {dtype}; "
            "rescale the weights"
        )


def dense_chunks(rows: Any, dtype: np.dtype[Any], chunk_rows: int | None = None) -> Iterator[Array]:
    """Yield ``rows`` as consecutive dense pieces of ``dtype``, about one MiB each."""
    n_rows, n_features = rows.shape
    step = chunk_rows or max(1, CHUNK_BYTES // (n_features * 8))
    for start in range(0, n_rows, step):
        piece = rows[start : start + step]
        if sp.issparse(piece):
            piece = piece.toarray()
        yield piece.astype(dtype, copy=False)
