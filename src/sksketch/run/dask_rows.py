"""Dask's collections as blocks of rows, one per partition, and answers that stay lazy."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from sksketch._typing import Matrix
from sksketch.arrays.rows import without_traps
from sksketch.models.base import Estimator
from sksketch.models.runner import is_dask, module_of
from sksketch.models.scikit_learn import output_of
from sksketch.run.shards import Rows
from sksketch.streams.blocks import concatenated

if TYPE_CHECKING:
    import pandas
    from dask.array import Array as DaskArray
    from dask.dataframe import DataFrame as DaskFrame


def load_dask() -> Any:
    """Return dask with the parts in use, or say what to install."""
    try:
        import dask
        import dask.base
        import dask.delayed
        import dask.utils
    except ImportError:
        raise ImportError("dask is needed: pip install 'scikit-sketch[dask]'") from None
    return dask


class Parts(NamedTuple):
    """The partitions of a collection: rows, targets and weights of each, as Delayed."""

    blocks: list[tuple[Any, Any, Any]]
    # Rows in all, where the lengths of all partitions are known.
    n_rows: int | None


def collect(X: object, y: object = None, weights: object = None) -> Parts:
    """Return the partitions of rows with what came beside them."""
    load_dask()
    if not is_dask(X):
        raise TypeError(
            f"expected a dask array, a dask DataFrame or a list of Delayed, got {X!r:.80}; call "
            "fit for rows in memory"
        )
    blocks, lengths = _partitions(X, "X")
    columns = []
    for name, beside in (("y", y), ("sample_weight", weights)):
        if beside is None:
            columns.append([None] * len(blocks))
        else:
            columns.append(_aligned(beside, name, len(blocks), lengths))
    parts = list(zip(blocks, *columns, strict=True))
    return Parts(parts, None if lengths is None else sum(lengths))


def _partitions(X: Any, name: str) -> tuple[list[Any], list[int] | None]:
    """Return a Delayed, or a list of blocks of columns, per partition, and known lengths."""
    if isinstance(X, list | tuple):
        return list(X), None
    if module_of(X).startswith("dask.array"):
        if X.ndim not in ((2,) if name == "X" else (1, 2)):
            raise ValueError(f"{name} has {X.ndim} dimensions, expected rows and columns")
        chunks = X.to_delayed().reshape(X.numblocks[0], -1).tolist()
        blocks = [row[0] if len(row) == 1 else row for row in chunks]
        lengths = X.chunks[0]
        return blocks, None if any(map(math.isnan, lengths)) else list(lengths)
    if module_of(X) == "dask.delayed":
        raise TypeError(f"{name} is one Delayed; give a list of them, one for each partition")
    return list(X.to_delayed()), None


def _aligned(beside: Any, name: str, n_parts: int, lengths: list[int] | None) -> list[Any]:
    """Return targets or weights in as many partitions as the rows."""
    if not is_dask(beside):
        raise TypeError(
            f"{name} is in memory and the rows are dask's; give {name} in the same partitions, "
            f"such as dask.array.from_array({name}, chunks=X.chunks[0])"
        )
    array = module_of(beside).startswith("dask.array")
    if array and lengths is not None and not any(map(math.isnan, beside.chunks[0])):
        if beside.shape[0] != sum(lengths):
            raise ValueError(f"{name} has {beside.shape[0]} rows and X has {sum(lengths)}")
        beside = beside.rechunk({0: tuple(lengths)})
    found = _partitions(beside, name)[0]
    if len(found) != n_parts:
        raise ValueError(
            f"{name} has {len(found)} partitions and X has {n_parts}, of unknown lengths; cut both "
            "alike"
        )
    return found


def rows_of(X: Any, y: Any, weights: Any) -> Iterator[Rows]:
    """Yield a partition as rows, on the worker that has it."""
    X, y = _joined(X), _joined(y)
    weights = None if weights is None else np.asarray(_joined(weights)).ravel()
    for name, beside in (("targets", y), ("weights", weights)):
        if beside is not None and beside.shape[0] != X.shape[0]:
            raise ValueError(f"it has {X.shape[0]} rows and {beside.shape[0]} {name}")
    yield Rows(X, y, weights)


def _joined(chunks: object) -> Any:
    """Return blocks of columns side by side, and whatever has no shape as an array."""
    if isinstance(chunks, list) and chunks and getattr(chunks[0], "shape", None):
        if any(map(sp.issparse, chunks)):
            return sp.hstack(list(map(without_traps, chunks)), format="csr")
        return np.hstack(chunks)
    if isinstance(chunks, list | tuple):
        return np.asarray(chunks)
    return chunks


def first_rows(parts: Parts, n_rows: int, compute: Callable[[Any], Any]) -> Any:
    """Return the first rows of the collection, for a pilot."""
    dask = load_dask()
    heads: list[Any] = []
    for X, _, _ in parts.blocks:
        missing = n_rows - sum(head.shape[0] for head in heads)
        if missing <= 0:
            break
        head = compute(dask.delayed(_head, pure=False)(X, missing))
        if head.shape[0]:
            heads.append(head)
    if not heads:
        raise ValueError("the partitions hold no rows; give some that do")
    return concatenated(heads)


def _head(X: object, n_rows: int) -> Any:
    return _joined(X)[:n_rows]


# Answers


def lazily(estimator: Estimator, method: str, X: object) -> Any:
    """Return what a method would give for a dask collection, to be computed when needed.

    An array gives an array in the same partitions, a frame a frame with the names of the new
    columns (or a series), and a list of Delayed a list of them.
    """
    dask = load_dask()
    if output_of(estimator) != "default":
        raise ValueError(
            "set_output makes tables in memory, and dask's rows are not; set it to 'default'. A "
            "dask DataFrame gives named columns by itself"
        )
    if isinstance(X, list | tuple):
        task = dask.delayed(_answer, pure=False)
        return [task(estimator, method, part) for part in X]
    if module_of(X).startswith("dask.array"):
        return _lazy_array(estimator, method, X)
    return _lazy_frame(estimator, method, X)


def _answer(estimator: object, method: str, X: object) -> Any:
    return getattr(estimator, method)(X)


def _example(estimator: object, method: str, X: object) -> Any:
    """Return the answer for one row; what is read from the sketch is then there for all."""
    with warnings.catch_warnings():
        # That rows have no names is said where they are computed.
        warnings.simplefilter("ignore", UserWarning)
        return np.asarray(getattr(estimator, method)(X))


def _lazy_array(estimator: Estimator, method: str, X: DaskArray) -> Any:
    if X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    dtype = X.dtype if X.dtype.kind == "f" else np.float64
    example = _example(estimator, method, np.zeros((1, estimator.n_features_in_), dtype=dtype))
    meta = np.empty((0,) * example.ndim, dtype=example.dtype)
    if example.ndim == 1:
        return X.map_blocks(_in_block, estimator, method, drop_axis=1, meta=meta)
    chunks = (X.chunks[0], (example.shape[1],))
    return X.map_blocks(_in_block, estimator, method, chunks=chunks, meta=meta)


def _in_block(X: Matrix, estimator: Estimator, method: str) -> Any:
    if not X.shape[0]:
        # A partition without rows has no answers, and scikit-learn would refuse it.
        return _example(estimator, method, np.zeros((1, X.shape[1]), dtype=X.dtype))[:0]
    return getattr(estimator, method)(X)


def _lazy_frame(estimator: Estimator, method: str, X: DaskFrame) -> Any:
    example = _example(estimator, method, X._meta_nonempty)
    names = None
    if example.ndim > 1:
        transforms = method == "transform"
        names = estimator.get_feature_names_out() if transforms else range(example.shape[1])
    meta = _in_frame(X._meta_nonempty, estimator, method, names)
    return X.map_partitions(_in_frame, estimator, method, names, meta=meta.iloc[:0])


def _in_frame(
    X: pandas.DataFrame, estimator: object, method: str, names: Collection[object] | None
) -> Any:
    import pandas

    if len(X):
        values = np.asarray(getattr(estimator, method)(X))
    else:
        values = np.zeros((0,) if names is None else (0, len(names)))
    if names is None:
        return pandas.Series(values, index=X.index)
    return pandas.DataFrame(values, index=X.index, columns=list(names))
