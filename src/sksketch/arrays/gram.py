"""Sums of outer products of rows, without holding up other threads."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np
from scipy.linalg import cython_blas

from sksketch._typing import Array


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

    Notes
    -----
    This is BLAS' dsyrk. scipy's own wrapper of it holds the interpreter, which would stop the
    thread that reads ahead for as long as the product takes.
    """
    n_rows, n_columns = rows.shape
    if not (C.flags.f_contiguous and C.dtype == rows.dtype == np.float64):
        raise ValueError("expected float64, and Fortran order of the square")
    rows = np.ascontiguousarray(rows)
    order, depth = ctypes.c_int(n_columns), ctypes.c_int(n_rows)
    # Rows in C order are columns in Fortran order.
    _dsyrk()(
        b"U",
        b"N",
        ctypes.byref(order),
        ctypes.byref(depth),
        ctypes.byref(ctypes.c_double(1.0)),
        rows.ctypes.data,
        ctypes.byref(order),
        ctypes.byref(ctypes.c_double(factor)),
        C.ctypes.data,
        ctypes.byref(order),
    )


@functools.cache
def _dsyrk() -> Any:
    """Return the routine of scipy's BLAS as a foreign function."""
    capsule = cython_blas.__pyx_capi__["dsyrk"]
    name_of = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(
        ("PyCapsule_GetName", ctypes.pythonapi)
    )
    pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    signature = [ctypes.c_char_p] * 2 + [ctypes.c_void_p] * 8
    return ctypes.CFUNCTYPE(None, *signature)(pointer_of(capsule, name_of(capsule)))
