"""Blocks of rows, the sources that give them, and how to cut them anew."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, NamedTuple, Protocol, Self, TypeGuard, runtime_checkable

import narwhals as nw
import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace, is_array_api_obj

from sksketch._typing import Array, Matrix
from sksketch.arrays.rows import without_traps
from sksketch.exceptions import StreamExhaustedError

BLOCK_BYTES = 8 * 2**20


class _Pair(NamedTuple):
    X: Array
    y: Array | None = None


class Block(_Pair):
    """Some rows and, where there are any, their targets and weights.

    It unpacks as ``X, y``. Weights and times are beside the pair; None means that every row counts
    once, and that times are not known.

    >>> Block(np.zeros((2, 3))).y is None
    True
    >>> X, y = Block(np.zeros((2, 3)), np.ones(2), sample_weight=np.array([1.0, 2.0]))
    """

    sample_weight: Array | None
    times: Array | None

    def __new__(
        cls,
        X: Array,
        y: Array | None = None,
        sample_weight: Array | None = None,
        times: Array | None = None,
    ) -> Self:
        """Build a block; arrays are kept as they are."""
        block = super().__new__(cls, X, y)
        block.sample_weight, block.times = sample_weight, times
        return block

    def rows(self, start: int, stop: int | None = None) -> Block:
        """Return the rows from ``start`` up to ``stop``, sharing memory."""
        return self.each(lambda part: part[start:stop])

    def each(self, change: Callable[[Any], Any]) -> Block:
        """Return rows, targets, weights and times after the same change of each."""
        others = self.y, self.sample_weight, self.times
        return Block(change(self.X), *(None if part is None else change(part) for part in others))


@runtime_checkable
class BlockSource(Protocol):
    """Anything that knows its columns and gives its rows block by block."""

    @property
    def n_features(self) -> int:
        """Columns of every block."""

    def blocks(self) -> Iterator[Block]:
        """Start over and give all blocks, or raise `StreamExhaustedError`."""


class ArraySource:
    """The rows of an array or sparse matrix, in slices that share its memory.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_rows, n_features)
        A memory map stays on disk until its blocks are read. Sparse formats
        other than CSR are converted once.
    y : array of shape (n_rows,) or (n_rows, n_targets), optional
        Targets.
    batch_rows : int, optional
        Rows of a block; by default as many as fill about 8 MiB.

    Examples
    --------
    >>> source = ArraySource(np.arange(10.0).reshape(5, 2), batch_rows=2)
    >>> [len(block.X) for block in source.blocks()]
    [2, 2, 1]
    """

    def __init__(self, X: Matrix, y: Array | None = None, batch_rows: int | None = None) -> None:
        block = _as_block(X, y)
        if batch_rows is not None and batch_rows < 1:
            raise ValueError(f"batch_rows is {batch_rows}; give at least 1, or None")
        self.X, self.y = block
        self.n_rows, self.n_features = (int(n) for n in block.X.shape)
        self.batch_rows = batch_rows or _rows_of_a_block(block.X)

    def blocks(self) -> Iterator[Block]:
        """Yield the rows in order, starting over at each call."""
        for start in range(0, self.n_rows, self.batch_rows):
            yield Block(self.X, self.y).rows(start, start + self.batch_rows)


class IterableSource:
    """The blocks of an iterable that can be walked once, such as a generator.

    Parameters
    ----------
    iterable : iterable of arrays, sparse matrices, frames, (X, y) pairs or Blocks
        A one-dimensional ``X`` is one row. ``(X, y, sample_weight)`` has a weight for each row.
        The first item is taken at once, to learn the number of columns.

    Examples
    --------
    >>> source = IterableSource(np.ones((2, 3)) for _ in range(4))
    >>> source.n_features, sum(len(block.X) for block in source.blocks())
    (3, 8)
    """

    def __init__(self, iterable: Iterable[Any]) -> None:
        items = map(_as_rows, iterable)
        first = next(items, None)
        if first is None:
            raise ValueError("the iterable gave no block, so its columns are unknown; give one")
        self.n_features = int(first.X.shape[1])
        shape = () if first.y is None else first.y.shape
        self.n_targets = len(shape) if len(shape) < 2 else int(shape[1])
        self._items: Iterator[Block] | None = chain([first], items)

    def blocks(self) -> Iterator[Block]:
        """Yield the blocks as they come; a second call raises `StreamExhaustedError`."""
        if self._items is None:
            raise StreamExhaustedError(
                "these rows came from an iterable that can be read only once, and it has been "
                "read; build the source again, or give an array or file to read them repeatedly"
            )
        items, self._items = self._items, None
        return self._checked(items)

    def _checked(self, items: Iterator[Block]) -> Iterator[Block]:
        for index, block in enumerate(items):
            if block.X.shape[1] != self.n_features:
                raise ValueError(
                    f"block {index} has {block.X.shape[1]} features and the first block had "
                    f"{self.n_features}; give every block the same columns"
                )
            yield block


def as_source(rows: Any, y: Array | None = None, batch_rows: int | None = None) -> BlockSource:
    """Return a source for whatever holds the rows.

    Parameters
    ----------
    rows : array, sparse matrix, data frame, BlockSource or iterable of blocks
        A source is returned as it is. A list of numbers or of lists of
        numbers is an array; any other list is an iterable of blocks.
    y : array, optional
        Targets of an array or frame; sources and iterables bring their own.
    batch_rows : int, optional
        Rows of a block.

    Examples
    --------
    >>> as_source([[1.0, 2.0], [3.0, 4.0]]).n_features
    2
    >>> as_source(np.ones((4, 2)) for _ in range(3)).n_features
    2
    """
    if isinstance(rows, BlockSource):
        if y is not None or batch_rows is not None:
            raise ValueError("a source brings its own y and block size; set both where it is built")
        return rows
    if not is_iterable_of_blocks(rows):
        return ArraySource(rows, y, batch_rows)
    if y is not None:
        raise ValueError("y was given beside an iterable of blocks; let it give (X, y) pairs")
    source = IterableSource(rows)
    return source if batch_rows is None else IterableSource(reblock(source.blocks(), batch_rows))


def reblock(source_blocks: Iterable[Block], rows: int) -> Iterator[Block]:
    """Cut blocks anew, so that all but the last have ``rows`` rows.

    Parts of one incoming block share its memory. What is left of a block is
    copied, so the producer may use its buffer again.

    >>> blocks = [Block(np.ones((5, 2))), Block(np.ones((4, 2)))]
    >>> [len(block.X) for block in reblock(blocks, rows=3)]
    [3, 3, 3]
    """
    if rows < 1:
        raise ValueError(f"cannot cut blocks of {rows} rows; give at least 1")
    pending: list[Block] = []
    n_pending = 0
    for block in source_blocks:
        start, n_rows = 0, int(block.X.shape[0])
        while n_pending + n_rows - start >= rows:
            stop = start + rows - n_pending
            yield _join([*pending, block.rows(start, stop)])
            pending, n_pending, start = [], 0, stop
        if start < n_rows:
            pending.append(block.rows(start).each(_copy))
            n_pending += n_rows - start
    if pending:
        yield _join(pending)


def is_iterable_of_blocks(rows: object) -> bool:
    """Return whether this is a generator or list of blocks and not one array-like."""
    if isinstance(rows, list | tuple):
        first: Any = rows[0] if rows else None
        if isinstance(first, tuple) and first:
            first = first[0]
        return _is_table(first) and len(first.shape) == 2
    return isinstance(rows, Iterable) and not _is_table(rows)


def _is_sparse(X: object) -> bool:
    return bool(sp.issparse(X))


def _is_table(X: Any) -> bool:
    frame = nw.from_native(X, pass_through=True)
    return is_array_api_obj(X) or _is_sparse(X) or isinstance(frame, nw.DataFrame)


def _as_rows(item: object) -> Block:
    """Read one item of an iterable: a Block, a tuple of X, y and weights, rows, or one row."""
    if isinstance(item, Block):
        item = item.X, item.y, item.sample_weight
    if _is_batch(item):
        item = (*item, None) if len(item) == 1 else tuple(item)
    if isinstance(item, tuple) and len(item) not in (2, 3):
        raise ValueError(
            f"the iterable gave a tuple of {len(item)}; let it give (X, y) pairs, "
            "(X, y, sample_weight), blocks or arrays"
        )
    X, y, *more = item if isinstance(item, tuple) else (item, None)
    weights = more[0] if more else None
    X = _as_table(X)
    if len(X.shape) == 1:
        X = X.reshape(1, -1)
        y = None if y is None else np.reshape(y, (1, *np.shape(y)))
        weights = None if weights is None else np.reshape(weights, (1, *np.shape(weights)))
    return _as_block(X, y, weights)


def _is_batch(item: Any) -> TypeGuard[list[Any]]:
    """Return whether a list is X, y and weights, as a DataLoader of torch gives them."""
    return (
        isinstance(item, list)
        and 1 <= len(item) <= 3
        and _is_table(item[0])
        and len(item[0].shape) == 2
    )


def _as_block(X: Any, y: Any, weights: Any = None) -> Block:
    X = _as_table(X)
    if len(X.shape) != 2:
        raise ValueError(
            f"rows have shape {tuple(X.shape)}, expected (n_rows, n_features); "
            "reshape one row to (1, -1) and one column to (-1, 1)"
        )
    if y is not None:
        y = y if is_array_api_obj(y) else np.asarray(y)
        if len(y.shape) == 0 or y.shape[0] != X.shape[0]:
            raise ValueError(
                f"{X.shape[0]} rows came with targets of shape {tuple(y.shape)}; "
                "give one target for each row"
            )
    if weights is not None:
        weights = weights if is_array_api_obj(weights) else np.asarray(weights)
        if tuple(weights.shape) != (X.shape[0],):
            raise ValueError(
                f"{X.shape[0]} rows came with weights of shape {tuple(weights.shape)}; "
                "give one weight for each row"
            )
    return Block(X, y, weights)


def _as_table(X: Any) -> Any:
    """Return an array or a CSR matrix, without a copy where the memory allows it."""
    if _is_sparse(X):
        # Whatever is sparse enters here, before scipy converts it or chooses columns.
        return without_traps(X).tocsr()
    if not is_array_api_obj(X):
        frame = nw.from_native(X, pass_through=True)
        X = frame.to_numpy() if isinstance(frame, nw.DataFrame) else np.asarray(X)
    if isinstance(X, np.ndarray) and X.dtype.kind not in "biuf":
        raise ValueError(
            f"rows of dtype {X.dtype} are not numbers; encode or drop the columns that hold "
            "text, dates or objects"
        )
    return X


def _rows_of_a_block(X: Any) -> int:
    n_rows, n_features = X.shape
    if _is_sparse(X):
        row_bytes = (X.data.nbytes + X.indices.nbytes) / max(n_rows, 1) + X.indptr.itemsize
    else:
        row_bytes = n_features * X.dtype.itemsize
    return max(1, int(BLOCK_BYTES / max(row_bytes, 1)))


def _copy(X: Matrix) -> Any:
    if _is_sparse(X) or isinstance(X, np.ndarray):
        return X.copy()
    # Tables of Arrow cannot be changed.
    return array_namespace(X).asarray(X, copy=True) if is_array_api_obj(X) else X


def _join(parts: list[Block]) -> Block:
    """Join blocks; a single one is passed on as it is."""
    if len(parts) == 1:
        return parts[0]
    targets = [part.y for part in parts if part.y is not None]
    if targets and len(targets) < len(parts):
        raise ValueError("some blocks have targets and some have none; give y with all or none")
    return Block(
        concatenated([part.X for part in parts]),
        concatenated(targets) if targets else None,
        joined_weights([(int(part.X.shape[0]), part.sample_weight) for part in parts]),
        None if any(part.times is None for part in parts) else _joined_times(parts),
    )


def _joined_times(parts: list[Block]) -> Array:
    return np.concatenate([np.asarray(part.times) for part in parts])


def joined_weights(parts: list[tuple[int, Array | None]]) -> Array | None:
    """Return the weights of consecutive blocks, given the rows of each; None if none has any."""
    if all(weights is None for _, weights in parts):
        return None
    return np.concatenate([np.ones(n) if weights is None else weights for n, weights in parts])


def unweighted(blocks: Iterable[Block], who: str) -> Iterator[Block]:
    """Yield blocks for what counts every row once; refuse rows with weights other than 1."""
    for block in blocks:
        if block.sample_weight is not None:
            refuse_weights(block.sample_weight, who)
        yield block


def refuse_weights(weights: Array, who: str) -> None:
    """Raise an error for what cannot take weights, unless all are 1."""
    others = weights[weights != 1.0]
    if len(others):
        raise ValueError(
            f"the source gives a row of weight {float(others[0]):g}, and {who} takes no "
            "sample_weight; repeat or leave out such rows, or use an estimator that takes it"
        )


def concatenated(parts: list[Any]) -> Any:
    """Return arrays, sparse rows or data frames, all of one kind, one below the other."""
    if len(parts) == 1:
        return parts[0]
    if any(_is_sparse(part) for part in parts):
        return sp.vstack(parts, format="csr")
    frames = [nw.from_native(part, eager_only=True, pass_through=True) for part in parts]
    if isinstance(frames[0], nw.DataFrame):
        return nw.concat(frames).to_native()
    return array_namespace(*parts).concat(parts, axis=0)
