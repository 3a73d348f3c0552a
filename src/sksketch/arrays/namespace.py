"""Which array library rows belong to, and how to move numbers there and back."""

from __future__ import annotations

import functools
from typing import Any

import array_api_compat
import numpy as np
import scipy.linalg
import scipy.sparse as sp
import scipy.special

from sksketch._typing import Array


def on_device(X: Any) -> bool:
    """Say whether ``X`` is an array of torch or cupy, whatever device it is on.

    >>> on_device(np.zeros(3))
    False
    """
    kind: Any = type(X)
    return _namespace_of(kind)[0]


def namespace(X: Any) -> Any:
    """Return the array API namespace of ``X``: numpy's for everything that is on no device.

    >>> namespace(np.zeros(3)).__name__
    'array_api_compat.numpy'
    """
    kind: Any = type(X)
    return _namespace_of(kind)[1]


@functools.cache
def _namespace_of(kind: Any) -> tuple[bool, Any]:
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
def _dtype(xp: Any, dtype: Any) -> Any:
    return getattr(xp, np.dtype(dtype).name)


def like(values: Any, X: Any, dtype: Any = None) -> Any:
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


def zeros(shape: Any, X: Any, dtype: Any = np.float64) -> Any:
    """Return zeros in the library and on the device of ``X``, made there.

    >>> zeros(2, np.empty(0))
    array([0., 0.])
    """
    xp = namespace(X)
    device = array_api_compat.device(X) if on_device(X) else "cpu"
    return xp.zeros(shape, dtype=_dtype(xp, dtype), device=device)


def to_numpy(values: Any) -> Array:
    """Return values of any library as a numpy array.

    >>> to_numpy([1.0, 2.0])
    array([1., 2.])
    """
    if on_device(values):
        values = array_api_compat.to_device(values, "cpu")
        values = values.detach() if hasattr(values, "detach") else values
    return np.asarray(values)


def dtype_name(X: Any) -> str:
    """Return the name of an array's dtype, without its library.

    >>> dtype_name(np.zeros(1, np.float32))
    'float32'
    """
    return str(X.dtype).rpartition(".")[2]


def finite(X: Any) -> bool:
    """Say whether all entries are finite numbers."""
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
