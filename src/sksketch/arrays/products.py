"""Products with many rows, on all cores and with the same bits on any number of them.

A product is cut by its shape, so that each part has enough to do for a thread and few enough
numbers for its cache. Where parts are added up, that is in their order. Rows on a device stay
there, whole.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from sksketch._typing import Array
from sksketch.arrays.blas import add_inner_inplace
from sksketch.arrays.kernels import kernels
from sksketch.arrays.namespace import DEVICE_ENTRIES, cast, on_device, precision, squared_norms
from sksketch.arrays.parallel import helped, in_parallel, scratch, spans
from sksketch.arrays.rounding import gamma

# Entries of the rows that one part reads: this many parts, if those are large enough.
PARTS, PART_ENTRIES = 16, (1 << 17, 1 << 19)
# Columns of a part where the product has all of them, and rows that are enough for BLAS to be fast.
PART_COLUMNS, FAST_ROWS = 256, 256
# Up to how many multiplications a product takes one thread less time than others need to begin.
SMALL_PRODUCT = 1 << 20
# Up to how many rows of a W are few for ``W rows' rows``.
FEW_DIRECTIONS = 20
# Squares of few columns are the sum of those of groups of rows, which fit a cache: the fewest and
# the most rows of one, its bytes, and those of the squares that wait to be added up.
FEW_COLUMNS, GROUP_ROWS, GROUP_BYTES, SQUARES_BYTES = 640, (1024, 4096), 1 << 20, 32 << 20
# Squares of many columns are cut into strips of columns, whose products read some rows at a time.
# Up to ALIKE_COLUMNS it costs little to find out if BLAS gives the same bits for strips and whole.
ALIKE_COLUMNS, MANY_COLUMNS, STRIPS, MANY_STRIPS, STRIP, TILE_ROWS = 2000, 2048, 5, 6, 32, 1024

# Entries whose squares are summed together, how many such sums are added one after the other, and
# the relative error of all: of more sums pairs of pairs add a rounding for each doubling. On a
# device, single precision is summed as it is.
SEGMENT, FEW_SEGMENTS = 4096, 128
NORM_ERROR = gamma(SEGMENT + 128)
DEVICE_NORM_ERROR = gamma(32, np.float32)


def part_entries(rows: Array) -> int:
    """Return how many entries of some rows make a part.

    >>> part_entries(np.empty((10, 10))), part_entries(np.empty((4000, 1000)))
    (131072, 250000)
    """
    fewest, most = PART_ENTRIES
    return max(fewest, min(most, rows.size // PARTS))


def gram(rows: Array) -> Array:
    """Return ``rows @ rows.T`` in float64, whatever the precision of ``rows``.

    >>> gram(np.array([[1.0, 2.0]], dtype=np.float32))
    array([[5.]])
    """
    if on_device(rows):
        double = cast(rows, np.float64)
        product: Array = double @ double.T
        return product
    # Parts of the sum are as large as the product.
    size = max(part_entries(rows) // max(len(rows), 1), 4 * len(rows), 1)
    parts = spans(rows.shape[1], size)

    def part_of(i: int) -> Array:
        part = _cast(rows[:, parts[i]], np.float64)
        return np.asarray(part @ part.T)

    total: Array = _sum(in_parallel(part_of, len(parts)), np.zeros((len(rows), len(rows))))
    return total


def times_rows(rows: Array, W: Array) -> Array:
    """Return ``rows @ W`` for many rows, all of one precision.

    >>> times_rows(np.eye(2), np.array([[1.0], [2.0]]))
    array([[1.],
           [2.]])
    """
    if on_device(rows) or not rows.size:
        product: Array = rows @ W
        return product
    parts = spans(len(rows), max(FAST_ROWS, part_entries(rows) // rows.shape[1]))
    out = np.empty((len(rows), W.shape[1]), dtype=rows.dtype)
    in_parallel(lambda i: np.matmul(rows[parts[i]], W, out=out[parts[i]]), len(parts))
    return out


def combined_rows(C: Array, rows: Array) -> Array:
    """Return ``C @ rows`` in the precision of C, a combination of many rows for each row of C.

    >>> combined_rows(np.ones((1, 2)), np.eye(2, dtype=np.float32))
    array([[1., 1.]])
    """
    dtype = precision(C)
    if on_device(rows) or not (rows.size and len(C)):
        product: Array = C @ cast(rows, dtype)
        return product
    out = np.empty((len(C), rows.shape[1]), dtype=dtype)
    columns = spans(rows.shape[1], PART_COLUMNS)
    width = columns[0].stop
    groups = spans(len(rows), max(1, part_entries(rows) // width))
    if len(groups) == 1:

        def write(i: int) -> None:
            np.matmul(C, _cast(rows[:, columns[i]], dtype), out=out[:, columns[i]])

        if len(C) * rows.size > SMALL_PRODUCT:
            in_parallel(write, len(columns))
        else:
            # Threads would take longer to begin.
            for i in range(len(columns)):
                write(i)
        return out

    def part_of(i: int) -> Array:
        column, group = divmod(i, len(groups))
        part = _cast(rows[groups[group], columns[column]], dtype)
        return np.asarray(C[:, groups[group]] @ part)

    found = in_parallel(part_of, len(columns) * len(groups))
    for i, part in enumerate(columns):
        out[:, part] = _sum(found[i * len(groups) : (i + 1) * len(groups)])
    return out


def normal_rows(W: Array, rows: Array) -> Array:
    """Return ``W rows' rows`` in the precision of W, reading the rows once.

    >>> normal_rows(np.eye(2), np.array([[1.0, 2.0]]))
    array([[1., 2.],
           [2., 4.]])
    """
    dtype = precision(W)
    if on_device(rows) or not rows.size:
        # A device is fastest with all rows at once, if they need no copy.
        size = len(rows) if precision(rows) == dtype else DEVICE_ENTRIES // int(rows.shape[1])
        images = (cast(rows[part], dtype) for part in spans(len(rows), max(1, size)))
        total: Array = _sum([(W @ part.T) @ part for part in images], 0.0 * W)
        return total
    rows = rows if rows.strides[1] == rows.itemsize else np.ascontiguousarray(rows)
    return (_normal_of_few if len(W) <= FEW_DIRECTIONS else _normal_of_many)(W, rows)


def _normal_of_few(W: Array, rows: Array) -> Array:
    """Return ``W rows' rows`` for a W with few rows, whose images of all parts cost little."""
    parts = spans(len(rows), max(1, part_entries(rows) // rows.shape[1]))

    def part_of(i: int) -> Array:
        part = _cast(rows[parts[i]], W.dtype)
        return np.asarray((W @ part.T) @ part)

    return np.asarray(_sum(in_parallel(part_of, len(parts))))


def _normal_of_many(W: Array, rows: Array) -> Array:
    """Return ``W rows' rows`` from products that are large enough for BLAS to be fast."""
    images = np.empty((len(W), len(rows)), W.dtype)
    parts = spans(len(rows), FAST_ROWS)

    def project(i: int) -> None:
        np.matmul(W, _cast(rows[parts[i]], W.dtype).T, out=images[:, parts[i]])

    in_parallel(project, len(parts))
    return combined_rows(images, rows)


def add_normal_inplace(total: Array, rows: Array, V: Array) -> None:
    """Add ``rows' rows V`` to ``total``, all of one precision, for a few rows that are long.

    >>> total = np.ones((2, 1))
    >>> add_normal_inplace(total, np.array([[1.0, 2.0]]), np.array([[1.0], [0.0]]))
    >>> total
    array([[2.],
           [3.]])
    """
    images = combined_rows(rows, V)
    if on_device(total):
        total += rows.T @ images
        return
    parts = spans(len(total), max(1, part_entries(rows) // max(len(rows), 1)))

    def add(i: int) -> None:
        total[parts[i]] += rows[:, parts[i]].T @ images

    in_parallel(add, len(parts))


def add_gram_inplace(C: Array, rows: Array, factor: float = 1.0) -> None:
    """Replace the upper triangle of ``C`` by ``factor`` times itself plus ``rows' rows``.

    Parameters
    ----------
    C : float64 array of shape (d, d) in Fortran order
    rows : float64 array of shape (n, d)
    factor : float

    Examples
    --------
    >>> C = np.zeros((2, 2), order="F")
    >>> add_gram_inplace(C, np.array([[1.0, 2.0], [0.0, 1.0]]))
    >>> np.triu(C)
    array([[1., 2.],
           [0., 5.]])
    """
    if not (C.flags.f_contiguous and C.dtype == rows.dtype == np.float64):
        raise ValueError("expected float64, and Fortran order of the square")
    rows = np.ascontiguousarray(rows)
    if factor != 1.0:
        C *= factor
    if rows.shape[1] <= FEW_COLUMNS:
        _add_gram_by_rows(C, rows)
    else:
        _add_gram_by_columns(C, rows)


def group_rows(n_features: int) -> int:
    """Return how many rows are a group of `add_gram_inplace`, for few columns.

    >>> group_rows(10), group_rows(100), group_rows(640)
    (4096, 1024, 1024)
    """
    fewest, most = GROUP_ROWS
    fitting = max(1, GROUP_BYTES // (8 * n_features))
    return max(fewest, min(most, 1 << (fitting.bit_length() - 1)))


def _add_gram_by_rows(C: Array, rows: Array) -> None:
    """Add the products of one group of rows after the other: of few columns they are small."""
    d = len(C)
    size = group_rows(d)
    if len(rows) <= size:
        part = scratch((d, d), np.float64).T
        part.fill(0.0)
        add_inner_inplace(part, rows, rows)
        C += part
        return
    groups = [rows[i : i + size] for i in range(0, len(rows), size)]
    most = max(1, SQUARES_BYTES // (8 * d * d)) if helped() else 1
    for first in range(0, len(groups), most):
        _add_groups(C, groups[first : first + most])


def _add_groups(C: Array, groups: Sequence[Array]) -> None:
    """Add the squares of some groups of rows, each computed on its own, in their order."""
    d = len(C)
    parts = scratch((len(groups), d, d), np.float64).transpose(0, 2, 1)
    # The lower triangle as well, which is added and saved with the other.
    parts.fill(0.0)
    columns = spans(d, max(1, PART_ENTRIES[0] // (d * len(parts))))
    in_parallel(lambda i: add_inner_inplace(parts[i], groups[i], groups[i]), len(groups))
    in_parallel(lambda i: _add_columns(C, parts, columns[i]), len(columns))


def _add_columns(C: Array, parts: Array, columns: slice) -> None:
    """Add some columns of squares, one after the other."""
    for part in parts:
        C[:, columns] += part[:, columns]


def gram_depth(depth: int, n_rows: int, n_features: int) -> int:
    """Return how many sums a term of `add_gram_inplace` is part of at most.

    ``depth`` is that of what the square held before.

    >>> gram_depth(0, 100, 10), gram_depth(0, 16384, 10), gram_depth(0, 16384, 1000)
    (101, 4100, 16384)
    """
    if n_features > FEW_COLUMNS:
        # In whatever order BLAS adds, it may do so once for each row.
        return depth + n_rows
    size = group_rows(n_features)
    return max(depth, min(size, n_rows)) + -(-n_rows // size)


def _add_gram_by_columns(C: Array, rows: Array) -> None:
    """Add tiles of the product, each from all rows; or the whole, where it has the same bits."""
    groups = [slice(i, i + TILE_ROWS) for i in range(0, len(rows), TILE_ROWS)]
    if not helped():
        # BLAS is faster with one large product. For the few rows at the end a trial would not pay.
        while groups and groups[0].stop <= len(rows) and strips_are_alike(len(C), TILE_ROWS):
            part = rows[groups.pop(0)]
            add_inner_inplace(C, part, part)
    _add_strips(C, [rows[group] for group in groups])


def _add_strips(C: Array, groups: Sequence[Array]) -> None:
    """Add the products of groups of rows, strip by strip of the columns."""
    n_strips = MANY_STRIPS if len(C) > MANY_COLUMNS else STRIPS
    width = -(-len(C) // (n_strips * STRIP)) * STRIP
    strips = [slice(i, min(i + width, len(C))) for i in range(0, len(C), width)]
    # Those beside the diagonal take twice as long, and come first.
    tiles = [(i, j) for i in range(len(strips)) for j in range(i + 1, len(strips))]
    tiles += [(i, i) for i in range(len(strips))]

    def add(k: int) -> None:
        i, j = tiles[k]
        for group in groups:
            left = group[:, strips[i]]
            right = left if i == j else group[:, strips[j]]
            add_inner_inplace(C[strips[i], strips[j]], left, right)

    if groups:
        in_parallel(add, len(tiles))


@functools.cache
def strips_are_alike(n_features: int, n_rows: int) -> bool:
    """Return whether this BLAS gives the same bits for strips as for the whole product.

    What it adds up in which order depends on the shapes alone, so one trial tells. Other tiles may
    meet the edge of a strip with other instructions.
    """
    if n_features > ALIKE_COLUMNS:
        return False
    rows = np.random.default_rng(0).standard_normal((n_rows, n_features))
    whole = np.ones((n_features, n_features), order="F")
    strips = whole.copy(order="F")
    add_inner_inplace(whole, rows, rows)
    _add_strips(strips, [rows])
    return bool(np.array_equal(np.triu(whole), np.triu(strips)))


def squared_norm(rows: Array) -> float:
    """Return the sum of squared entries in float64, to a relative error of `NORM_ERROR`.

    Segments are summed on their own and then in pairs, so the error does not grow with the rows.

    >>> squared_norm(np.array([[3.0, 4.0]]))
    25.0
    """
    if on_device(rows):
        return float(squared_norms(rows).sum())
    flat = rows.reshape(-1) if rows.flags.c_contiguous else np.ascontiguousarray(rows).ravel()
    if len(flat) <= FEW_SEGMENTS * SEGMENT:
        total = np.zeros(1)
        kernels().add_squares_inplace(total, flat, SEGMENT)
        return total.item(0)
    whole = len(flat) // SEGMENT * SEGMENT
    segments, rest = flat[:whole].reshape(-1, SEGMENT), flat[whole:].astype(np.float64)
    parts = spans(len(segments), max(1, PART_ENTRIES[1] // SEGMENT))

    norms = np.empty(len(segments))
    loop = kernels().row_norms_inplace
    in_parallel(lambda i: loop(norms[parts[i]], segments[parts[i]]), len(parts))
    return float(norms.sum() + rest @ rest)


def norm_error(rows: Array) -> float:
    """Return the relative error of `squared_norm`."""
    single = on_device(rows) and precision(rows) == np.float32
    return DEVICE_NORM_ERROR if single else NORM_ERROR


def row_norms(rows: Array) -> Array:
    """Return the squared norm of every row in float64.

    >>> row_norms(np.array([[3.0, 4.0]]))
    array([25.])
    """
    parts = spans(len(rows), max(1, PART_ENTRIES[0] // rows.shape[1]))
    out = np.empty(len(rows))

    loop = kernels().row_norms_inplace
    single = rows.dtype in (np.float32, np.float64)

    def write(i: int) -> None:
        part = rows[parts[i]] if single else rows[parts[i]].astype(np.float64)
        loop(out[parts[i]], np.ascontiguousarray(part))

    # Numbers that overflow are found in the norms.
    with np.errstate(over="ignore", invalid="ignore"):
        in_parallel(write, len(parts))
    return out


def _cast(rows: Array, dtype: Any) -> Array:
    """Return rows in a precision, in room of this thread if it is another one than theirs."""
    if rows.dtype == dtype:
        return rows
    room = scratch(rows.shape, dtype)
    np.copyto(room, rows)
    return room


def _sum(parts: Sequence[Array], empty: Any = None) -> Any:
    """Return the sum of parts in their order, which may be the first one changed."""
    if not parts:
        return empty
    total = parts[0]
    for part in parts[1:]:
        total += part
    return total
