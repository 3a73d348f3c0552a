"""The array library that rows belong to, and moving numbers there and back."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import ModuleType
from typing import Any

import array_api_compat
import numpy as np
import numpy.typing as npt
import scipy.linalg
import scipy.sparse as sp
import scipy.special

from sksketch._typing import Array, Matrix

# Entries that are converted together on a device: enough to fill it, and little memory.
DEVICE_ENTRIES = 1 << 24

# Squares that are summed in single precision, and a sum of them below which some may vanish.
SEGMENT, SMALLEST_SINGLE = 256, 1e-20


def on_device(X: object) -> bool:
    """Return whether ``X`` is an array of torch or cupy, whatever device it is on.

    >>> on_device(np.zeros(3))
    False
    """
    kind: Any = type(X)
    return _namespace_of(kind)[0]


def namespace(X: Matrix) -> Any:
    """Return the array API namespace of ``X``: numpy's for everything that is on no device.

    >>> namespace(np.zeros(3)).__name__
    'array_api_compat.numpy'
    """
    kind: Any = type(X)
    return _namespace_of(kind)[1]


@functools.cache
def _namespace_of(kind: object) -> tuple[bool, Any]:
    """Return both for arrays of a class; small steps on a device ask often."""
    library = kind.__module__.partition(".")[0]
    if library == "torch":
        import array_api_compat.torch as torch_namespace

        return True, torch_namespace
    if library == "cupy":
        import array_api_compat.cupy as cupy_namespace

        return True, cupy_namespace
    return False, array_api_compat.array_namespace(np.empty(0))


@functools.cache
def _dtype(xp: ModuleType, dtype: npt.DTypeLike) -> Any:
    return getattr(xp, np.dtype(dtype).name)


def like(values: Any, X: object, dtype: Any = None) -> Any:
    """Return ``values`` in the library and on the device of ``X``, as ``dtype``.

    ``dtype`` is a numpy dtype, its name, or None, which keeps that of the values.

    >>> like([1, 2], np.zeros(1), np.float32)
    array([1., 2.], dtype=float32)
    """
    xp = namespace(X)
    if dtype is not None:
        dtype = _dtype(xp, dtype)
    if not on_device(X):
        return np.asarray(to_numpy(values), dtype=dtype)
    if on_device(values):
        values = array_api_compat.to_device(values, array_api_compat.device(X))
        return values if dtype is None else xp.astype(values, dtype, copy=False)
    device = array_api_compat.device(X)
    return xp.asarray(np.ascontiguousarray(values), dtype=dtype, device=device)


def zeros(shape: int | tuple[int, ...], X: object, dtype: object = np.float64) -> Any:
    """Return zeros in the library and on the device of ``X``, made there.

    >>> zeros(2, np.empty(0))
    array([0., 0.])
    """
    xp = namespace(X)
    device = array_api_compat.device(X) if on_device(X) else "cpu"
    return xp.zeros(shape, dtype=_dtype(xp, dtype), device=device)


def to_numpy(values: object) -> Array:
    """Return values of any library as a numpy array.

    >>> to_numpy([1.0, 2.0])
    array([1., 2.])
    """
    if on_device(values):
        values = array_api_compat.to_device(values, "cpu")
        values = values.detach() if hasattr(values, "detach") else values
    return np.asarray(values)


def dtype_name(X: Matrix) -> str:
    """Return the name of an array's dtype, without its library.

    >>> dtype_name(np.zeros(1, np.float32))
    'float32'
    """
    return str(X.dtype).rpartition(".")[2]


def precision(X: Matrix) -> np.dtype[Any]:
    """Return the dtype of an array of any library, as numpy calls it.

    >>> precision(np.zeros(1, np.float32))
    dtype('float32')
    """
    dtype = X.dtype
    # Asked for with every tile of rows, so numpy's own, whose name is slow to make, come first.
    return dtype if isinstance(dtype, np.dtype) else np.dtype(dtype_name(X))


def cast(X: Any, dtype: Any) -> Any:
    """Return an array of any library as ``dtype``, without a copy if it is that already.

    >>> cast(np.zeros(1), np.float32).dtype
    dtype('float32')
    """
    if not on_device(X):
        return X.astype(dtype, copy=False)
    xp = namespace(X)
    return xp.astype(X, _dtype(xp, dtype), copy=False)


def joined(arrays: Sequence[Array], axis: int = 0) -> Any:
    """Return arrays of one library one after the other.

    >>> joined([np.zeros((1, 2)), np.ones((1, 2))])
    array([[0., 0.],
           [1., 1.]])
    """
    return namespace(arrays[0]).concat(arrays, axis=axis)


def empty(shape: int | tuple[int, ...], X: Matrix, dtype: object) -> Any:
    """Return room in the library and on the device of ``X``."""
    xp = namespace(X)
    device = array_api_compat.device(X) if on_device(X) else "cpu"
    return xp.empty(shape, dtype=_dtype(xp, dtype), device=device)


def copied(X: Matrix) -> Any:
    """Return a copy of an array of any library."""
    return namespace(X).asarray(X, copy=True)


def same_place(A: Array, B: Array) -> bool:
    """Return whether two arrays are of one library and on one device.

    >>> same_place(np.zeros(1), np.ones(2))
    True
    """
    if on_device(A) != on_device(B) or type(A) is not type(B):
        return False
    return not on_device(A) or array_api_compat.device(A) == array_api_compat.device(B)


def squared_norms(rows: Matrix) -> Array:
    """Return the squared norms of rows on a device, summed in float64, in numpy.

    Rows in single precision are read once: segments of them are summed as they are, which is
    exact to a rounding or two, unless all squares are so small that they would vanish.
    """
    xp = namespace(rows)
    n_rows, n_features = (int(n) for n in rows.shape)
    if precision(rows) == np.float32 and n_rows:
        whole = n_features // SEGMENT * SEGMENT
        segments = xp.reshape(rows[:, :whole], (n_rows, -1, SEGMENT))
        parts = [xp.linalg.vector_norm(segments, axis=2)] if whole else []
        if whole < n_features:
            parts.append(xp.linalg.vector_norm(rows[:, whole:], axis=1)[:, None])
        norms = to_numpy(xp.sum(cast(joined(parts, axis=1), np.float64) ** 2, axis=1))
        if not norms.max() < SMALLEST_SINGLE:
            return norms
    step = max(1, DEVICE_ENTRIES // max(int(rows.shape[1]), 1))
    tiles = (cast(rows[i : i + step], np.float64) for i in range(0, len(rows), step))
    sums = [to_numpy(xp.sum(tile * tile, axis=1)) for tile in tiles]
    return np.concatenate(sums) if sums else np.zeros(0)


def in_order(X: Matrix) -> bool:
    """Return whether the rows lie one after the other; a device need not know."""
    return on_device(X) or bool(X.flags.c_contiguous)


def weighted_sum(rows: Matrix, weights: Array) -> Array:
    """Return the sum of rows, each times its weight, in float64 and in numpy.

    >>> weighted_sum(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, 0.5]))
    array([2.5, 4. ])
    """
    if not on_device(rows):
        return np.asarray(rows.T @ weights)
    xp = namespace(rows)
    if (weights == 1.0).all():
        return to_numpy(xp.sum(rows, axis=0, dtype=xp.float64))
    w = like(weights, rows, np.float64)
    step = max(1, DEVICE_ENTRIES // max(int(rows.shape[1]), 1))
    starts = range(0, len(rows), step)
    parts = [w[i : i + step] @ cast(rows[i : i + step], np.float64) for i in starts]
    return np.asarray(np.sum([to_numpy(part) for part in parts], axis=0))


@contextmanager
def full_precision(X: Matrix) -> Iterator[None]:
    """Let products of torch on a GPU keep all digits of single precision inside a ``with`` block.

    Its users may have allowed shorter factors (TF32), with which no error bound would hold.
    """
    if not array_api_compat.is_torch_array(X) or X.device.type != "cuda":
        yield
        return
    import torch

    matmul: Any = torch.backends.cuda.matmul
    # Newer releases have a name for each precision, and refuse to read what they did not set.
    named = hasattr(matmul, "fp32_precision")
    if matmul.fp32_precision in ("ieee", "none") if named else not matmul.allow_tf32:
        yield
        return
    before = "high"
    with suppress(RuntimeError):
        before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def finite(X: Matrix) -> bool:
    """Return whether all entries are finite numbers."""
    if sp.issparse(X):
        X = X.data
    xp = namespace(X)
    return bool(xp.all(xp.isfinite(X)))


def solve_triangular(L: Any, B: Any, *, transposed: bool = False) -> Any:
    """Return L^-1 B for a lower triangular L, or L^-T B.

    >>> solve_triangular(np.array([[2.0, 0.0], [1.0, 1.0]]), np.array([[2.0], [3.0]]))
    array([[1.],
           [2.]])
    """
    if array_api_compat.is_torch_array(L):
        import torch

        return torch.linalg.solve_triangular(L.T if transposed else L, B, upper=transposed)
    if array_api_compat.is_cupy_array(L):
        from cupyx.scipy.linalg import solve_triangular as solve

        return solve(L, B, trans=int(transposed), lower=True)
    return scipy.linalg.solve_triangular(L, B, trans=int(transposed), lower=True)


def normal_quantile(p: Any) -> Any:
    """Return where the standard normal distribution reaches the probabilities ``p``.

    >>> normal_quantile(np.array([0.5, 0.975])).round(2)
    array([0.  , 1.96])
    """
    if array_api_compat.is_torch_array(p):
        import torch

        return torch.special.ndtri(p)
    if array_api_compat.is_cupy_array(p):
        from cupyx.scipy.special import ndtri

        return ndtri(p)
    return scipy.special.ndtri(p)


def csr_matrix_of(data: Any, indices: Any, starts: Any, shape: tuple[int, int]) -> Any:
    """Return a CSR matrix of the library of ``data``, on its device."""
    if array_api_compat.is_torch_array(data):
        import torch

        with warnings.catch_warnings():
            # It says that sparse tensors are in beta.
            warnings.simplefilter("ignore", UserWarning)
            return torch.sparse_csr_tensor(starts, indices.to(starts.dtype), data, size=shape)
    from cupyx.scipy.sparse import csr_matrix

    return csr_matrix((data, indices, starts), shape=shape)


def csr_parts_of(X: Any) -> Callable[[], tuple[Any, Any, Array]] | None:
    """Return what takes a sparse matrix of a device apart: entries, columns and starts of rows.

    None if ``X`` is something else. The starts come in numpy.
    """

    def of_cupy() -> tuple[Any, Any, Array]:
        rows = X.tocsr()
        rows.sum_duplicates()
        return rows.data, rows.indices, to_numpy(rows.indptr)

    def of_torch() -> tuple[Any, Any, Array]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            rows = X.detach()
            rows = (rows.coalesce() if "coo" in str(X.layout) else rows).to_sparse_csr()
        return rows.values(), rows.col_indices(), to_numpy(rows.crow_indices())

    if type(X).__module__.startswith("cupyx."):
        return of_cupy if hasattr(X, "tocsr") else None
    sparse = array_api_compat.is_torch_array(X) and "sparse" in str(X.layout)
    return of_torch if sparse else None


def find_device(device: str) -> tuple[Any, Any]:
    """Return torch and its device of that name, or say what is missing."""
    try:
        import torch
    except ImportError:
        raise ImportError(
            "a device needs torch; install it with: pip install 'scikit-sketch[gpu]'"
        ) from None
    try:
        place = torch.device(device)
    except RuntimeError:
        raise ValueError(f"device is {device!r}, which torch does not know; give cuda") from None
    if place.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device is {device!r}, but torch sees no such device here; leave it out")
    return torch, place
