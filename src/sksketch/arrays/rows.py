"""Row blocks as users pass them, turned into checked two-dimensional float arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import narwhals as nw
import numpy as np
import scipy.sparse as sp

from sksketch._typing import Array, Matrix
from sksketch.arrays.device_sparse import (
    DeviceCSR,
    as_device_csr,
    is_sparse_on_device,
    on_host,
)
from sksketch.arrays.namespace import (
    cast,
    dtype_name,
    like,
    on_device,
    precision,
    squared_norms,
    to_numpy,
)
from sksketch.arrays.products import row_norms

TILE_BYTES = 1 << 20

# Squares of larger numbers would overflow in sums over many rows.
LARGEST_SQUARED_NORM = {np.dtype(np.float32): 1e36, np.dtype(np.float64): 1e300}


def as_rows(X: object, *, n_features: int | None = None) -> Any:
    """Return ``X`` as a 2-D array or CSR matrix of numbers, without a copy where possible.

    A one-dimensional ``X`` is a single row. Data frames, lists, sparse matrices of any
    format and arrays on a device, where they stay, are accepted; text, objects, complex
    numbers, empty blocks and blocks of another width than ``n_features`` are not.

    >>> as_rows([1, 2, 3]).shape
    (1, 3)
    """
    if isinstance(X, DeviceCSR):
        rows: Any = X
    elif is_sparse_on_device(X):
        sparse = as_device_csr(X)
        rows = sparse.with_data(_as_floats_on_device(sparse.data))
    elif on_device(X):
        rows = _as_floats_on_device(X)
    elif sp.issparse(X):
        rows = laid_out(_as_csr(X))
        if not rows.has_canonical_format:
            rows = rows.copy()
            rows.sum_duplicates()
        rows = _as_floats(rows)
    else:
        rows = _as_floats(_as_dense(X))
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


def _as_floats(rows: Matrix) -> Any:
    """Return rows in single or double precision."""
    if rows.dtype.kind in "biu":
        return rows.astype(np.float64)
    if rows.dtype.kind != "f":
        raise TypeError(
            f"expected rows of real numbers, got dtype {rows.dtype}; "
            "encode text, dates and categories as numbers first"
        )
    if rows.dtype not in LARGEST_SQUARED_NORM:
        return rows.astype(np.float32 if rows.dtype.itemsize < 4 else np.float64)
    return rows


def _as_floats_on_device(X: object) -> Any:
    """Return an array on a device in single or double precision."""
    name = dtype_name(X)
    if name.startswith("complex"):
        raise TypeError(f"expected rows of real numbers, got dtype {name}; take their real part")
    X = X.detach() if hasattr(X, "detach") else X
    if name in ("float32", "float64"):
        return X
    return cast(X, np.float32 if "float" in name else np.float64)


def _as_csr(X: Matrix) -> Any:
    """Return a sparse matrix of any format as CSR, after a look at its indices."""
    if X.dtype.kind not in "biuf":
        raise TypeError(
            f"expected rows of real numbers, got a sparse matrix of dtype {X.dtype}; "
            "encode text, dates and categories as numbers first"
        )
    X = without_traps(X)
    if isinstance(X, sp.csr_array) and X.ndim == 2:
        return X
    return sp.csr_array(X.reshape(1, -1) if X.ndim == 1 else X)


def without_traps(X: Any) -> Any:
    """Return ``X`` itself, unless its numbers are hidden or its indices lead out of it.

    >>> without_traps(np.ma.MaskedArray([1.0, 2.0], mask=[True, False]))
    Traceback (most recent call last):
    ValueError: 1 values are masked, expected all to be known; fill them or drop their rows
    """
    if isinstance(X, np.ma.MaskedArray) and (hidden := int(np.ma.getmaskarray(X).sum())):
        raise ValueError(
            f"{hidden} values are masked, expected all to be known; fill them or drop their rows"
        )
    if not sp.issparse(X):
        return X
    try:
        # Indices out of bounds would make scipy read and write outside the arrays.
        if X.format in ("csr", "csc", "bsr"):
            X.check_format(full_check=True)
            # scipy looks at differences, and those of the largest numbers wrap around.
            if (X.indptr[1:] < X.indptr[:-1]).any():
                raise ValueError("indptr decreases")
        elif X.format == "coo":
            for index, size in zip(X.coords, X.shape, strict=True):
                if X.nnz and (index.min() < 0 or index.max() >= size):
                    raise ValueError(f"index {index.max()} or {index.min()} in a size of {size}")
        else:
            if X.format == "dia":
                _check_diagonals(X)
            X.tocsr().check_format(full_check=True)
    except (ValueError, IndexError) as error:
        raise ValueError(
            f"got a sparse matrix with broken indices ({error}); build it again from its entries"
        ) from None
    return X


def _check_diagonals(X: sp.dia_array) -> None:
    """Refuse diagonals outside of a matrix; far ones make scipy write outside of its arrays."""
    offsets, (n_rows, n_columns) = np.asarray(X.offsets), X.shape
    if X.data.ndim != 2 or offsets.shape != (len(X.data),):
        raise ValueError(f"{offsets.size} offsets for data of shape {X.data.shape}")
    if len(np.unique(offsets)) < len(offsets):
        raise ValueError("a diagonal comes twice")
    if offsets.size and (offsets.min() <= -n_rows or offsets.max() >= n_columns):
        raise ValueError(f"diagonal {offsets.max()} or {offsets.min()} in a shape of {X.shape}")


def laid_out(X: Matrix) -> Any:
    """Return rows in C order and where their type is aligned: a copy only of those that are not.

    BLAS and compiled loops sum the same numbers in another order where they lie otherwise.
    Whatever is not an array of the host is returned as it is.

    >>> laid_out(np.eye(3)[:, ::2]).flags.c_contiguous
    True
    """
    if isinstance(X, np.ndarray):
        return X if lies_well(X) else np.array(X, order="C")
    if sp.issparse(X) and X.format == "csr" and not all(map(lies_well, _parts_of(X))):
        return type(X)(tuple(map(laid_out, _parts_of(X))), shape=X.shape)
    return X


def lies_well(X: Array) -> bool:
    """Return whether an array is in C order and aligned."""
    return X.flags.c_contiguous and X.flags.aligned


def _parts_of(X: sp.csr_array) -> tuple[Array, Array, Array]:
    return X.data, X.indices, X.indptr


def _as_dense(X: object) -> Array:
    if isinstance(X, np.ndarray):
        return np.asarray(without_traps(X))
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        if others := columns_without_numbers(frame):
            name, kind = next(iter(others.items()))
            raise TypeError(
                f"expected columns of numbers, got {name!r} of type {kind}; drop or encode the "
                "columns that are not numbers"
            )
        rows = np.asarray(frame.to_numpy())
        if rows.dtype == object:
            # Columns of several types, or with missing values that are no numbers.
            rows = np.column_stack([_as_numbers(frame.get_column(name)) for name in frame.columns])
        return rows
    try:
        return np.asarray(X)
    except ValueError:
        raise ValueError(
            f"could not read a {type(X).__name__} as rows of numbers; pass rows of equal length"
        ) from None


def columns_without_numbers(X: object) -> dict[str, str]:
    """Return names and types of those columns of a data frame that are not numbers.

    >>> columns_without_numbers([[1.0]])
    {}
    """
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return {}
    kinds = frame.schema.items()
    return {n: str(kind) for n, kind in kinds if not _is_number(kind, frame.get_column(n))}


def _is_number(kind: nw.dtypes.DType, column: nw.Series[Any]) -> bool:
    # Half precision has no name in older releases of narwhals.
    known = kind.is_numeric() or kind == nw.Boolean
    return bool(known or (kind == nw.Unknown and column.to_numpy().dtype.kind == "f"))


def _as_numbers(column: nw.Series[Any]) -> Array:
    if column.null_count():
        raise ValueError(
            f"column {column.name!r} has missing values, expected numbers; drop or impute such rows"
        )
    return np.asarray(column.to_numpy(), dtype=np.float64)


def squared_row_norms(rows: Any, dtype: np.dtype[Any]) -> Array:
    """Return the squared norm of every row in float64, refusing what ``dtype`` cannot hold.

    NaN, infinite and overflowing values are found here, in the pass that the
    norms need anyway.

    >>> squared_row_norms(np.array([[3.0, 4.0]]), np.dtype(np.float64))
    array([25.])
    """
    with np.errstate(over="ignore", invalid="ignore"):
        if on_device(rows):
            norms = squared_norms(rows)
        elif isinstance(rows, DeviceCSR):
            norms = rows.squared_norms()
        elif sp.issparse(rows):
            norms = np.zeros(rows.shape[0])
            # Sums between the starts of rows that have entries.
            filled = np.diff(rows.indptr) > 0
            if filled.any():
                squares = rows.data.astype(np.float64) ** 2
                norms[filled] = np.add.reduceat(squares, rows.indptr[:-1][filled])
        else:
            norms = row_norms(rows)
    # A NaN fails this comparison, too.
    if not norms.max() <= LARGEST_SQUARED_NORM[dtype]:
        raise ValueError(_complaint(rows, dtype))
    return np.asarray(norms)


def _complaint(rows: Matrix, dtype: np.dtype[Any]) -> str:
    rows = on_host(rows)
    if on_device(rows):
        # Only the first bad row is looked at.
        norms = squared_norms(rows)
        row = int(np.flatnonzero(~(norms <= LARGEST_SQUARED_NORM[dtype]))[0])
        text = _complaint(to_numpy(rows[row : row + 1]), dtype)
        return text.replace("first in row 0,", f"first in row {row},")
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


def times(rows: Matrix, W: Array) -> Any:
    """Return the product of rows, wherever they are, with a matrix of the host, in their place.

    >>> times(np.eye(2), np.array([[1.0], [2.0]])).ravel()
    array([1., 2.])
    """
    if isinstance(rows, DeviceCSR):
        return rows.times(like(W, rows.data, rows.dtype))
    if on_device(rows):
        return rows @ like(W, rows, precision(rows))
    return np.asarray(rows @ W)


def as_weights(weights: object, n_rows: int) -> Array | None:
    """Return row weights as float64, or None; they must be finite and not negative."""
    if weights is None:
        return None
    given = to_numpy(without_traps(weights))
    try:
        # Complex ones would lose their imaginary parts.
        values = np.asarray("complex" if np.iscomplexobj(given) else given, dtype=np.float64)
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
    return np.asarray(laid_out(values))


def check_weighted_norms(norms: Array, weights: Array, dtype: np.dtype[Any]) -> None:
    """Refuse weights with which rows of the given squared norms would overflow."""
    with np.errstate(over="ignore"):
        largest = float((norms * weights).max())
    if not largest <= LARGEST_SQUARED_NORM[dtype]:
        raise ValueError(
            f"weights up to {weights.max():.3g} make the squares of the rows overflow {dtype}; "
            "rescale the weights"
        )


def dense_tiles(rows: Any, dtype: np.dtype[Any], tile_rows: int | None = None) -> Iterator[Array]:
    """Yield ``rows`` as consecutive dense tiles of ``dtype``, laid out, about one MiB each."""
    if on_device(rows):
        yield cast(rows, dtype)
        return
    n_rows, n_features = rows.shape
    step = tile_rows or max(1, TILE_BYTES // (n_features * 8))
    for start in range(0, n_rows, step):
        tile = rows[start : start + step]
        if sp.issparse(tile):
            tile = tile.toarray()
        yield laid_out(tile.astype(dtype, copy=False))
