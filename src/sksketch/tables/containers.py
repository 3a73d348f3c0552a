"""Rows of any container as one Arrow table."""

from __future__ import annotations

from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import scipy.sparse as sp

from sksketch._typing import Array
from sksketch.streams.columns import is_table
from sksketch.streams.formats.arrow import load_pyarrow
from sksketch.streams.formats.frames import as_arrow


def as_table(X: Any) -> tuple[Any, bool]:
    """Return rows as an Arrow table, and whether their columns have names."""
    pa = load_pyarrow()
    if is_table(X):
        table = X if isinstance(X, pa.Table) else pa.Table.from_batches([X])
    else:
        if sp.issparse(X):
            raise TypeError(
                "sparse matrices are no tables, and their numbers are not encoded; give them to "
                "the next step, or a dense array with toarray()"
            )
        frame = nw.from_native(X, eager_only=True, pass_through=True)
        if not isinstance(frame, nw.DataFrame):
            return _of_array(np.asarray(X)), False
        table = as_arrow(frame, "the frame")
    if len(set(table.column_names)) < table.num_columns:
        raise ValueError("two columns of the table have the same name; rename one")
    return table, True


def _of_array(X: Array) -> Any:
    pa = load_pyarrow()
    if X.ndim != 2:
        raise ValueError(
            f"expected a table or 2-D array of rows, got {X.ndim}-D. Reshape your data with "
            "reshape(-1, 1) if it is one column"
        )
    if not X.shape[1]:
        raise ValueError(f"0 feature(s) (shape={X.shape}) while a minimum of 1 is required.")
    if X.dtype.kind == "c":
        raise ValueError("Complex data not supported; give real numbers")
    try:
        columns = [pa.array(column, from_pandas=True) for column in X.T]
    except (pa.ArrowException, TypeError) as error:
        raise ValueError(f"a column of the array is of several types ({error})") from None
    return pa.table(columns, names=[f"x{i}" for i in range(X.shape[1])])
