"""Products of BLAS that add to what is there, without holding up other threads.

scipy's own wrappers of these routines hold the interpreter for as long as a product takes.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

from scipy.linalg import cython_blas

from sksketch._typing import Array


def add_inner_inplace(C: Array, left: Array, right: Array) -> None:
    """Add ``left' right`` to ``C``.

    Where both are the same rows, only the upper triangle of ``C`` is touched.

    Parameters
    ----------
    C : float64 array of shape (m, n), columns of a Fortran-ordered array
    left, right : float64 arrays of shapes (k, m) and (k, n), columns of C-ordered arrays

    Examples
    --------
    >>> import numpy as np
    >>> C, rows = np.zeros((2, 2), order="F"), np.array([[1.0, 2.0], [0.0, 1.0]])
    >>> add_inner_inplace(C, rows, rows)
    >>> C
    array([[1., 2.],
           [0., 5.]])
    """
    if not (C.strides[0] == left.strides[1] == right.strides[1] == 8):
        raise ValueError("expected float64, Fortran order of the square and C order of the rows")
    (n_rows, n_left), n_right = left.shape, right.shape[1]
    # Rows in C order are columns in Fortran order.
    of_left, of_right, of_C = left.strides[0] // 8, right.strides[0] // 8, C.strides[1] // 8
    one = ctypes.byref(ctypes.c_double(1.0))
    if left is right:
        sizes = _integer(n_left), _integer(n_rows)
        matrices = one, left.ctypes.data, _integer(of_left), one, C.ctypes.data, _integer(of_C)
        _routine("dsyrk", 8)(b"U", b"N", *sizes, *matrices)
        return
    sizes3 = _integer(n_left), _integer(n_right), _integer(n_rows)
    factors = left.ctypes.data, _integer(of_left), right.ctypes.data, _integer(of_right)
    _routine("dgemm", 11)(b"N", b"T", *sizes3, one, *factors, one, C.ctypes.data, _integer(of_C))


def _integer(value: int) -> Any:
    return ctypes.byref(ctypes.c_int(value))


@functools.cache
def _routine(name: str, n_pointers: int) -> Any:
    """Return a routine of scipy's BLAS, with two letters first, as a foreign function."""
    capsule = cython_blas.__pyx_capi__[name]
    name_of = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(
        ("PyCapsule_GetName", ctypes.pythonapi)
    )
    pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    signature = [ctypes.c_char_p] * 2 + [ctypes.c_void_p] * n_pointers
    return ctypes.CFUNCTYPE(None, *signature)(pointer_of(capsule, name_of(capsule)))
