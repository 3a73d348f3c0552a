"""The compiler: functions become machine code at their first call, kept on disk for later ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])


def jit(function: Function) -> Function:
    """Compile at the first call; a Python that numba does not support yet runs it as it is.

    Products may be fused with sums. Nothing else is reordered, so equal arguments give equal
    bits wherever the function is called from.

    What is kept on disk follows changes of the function's own file only: after an edit of a
    kernel that others call, remove ``arrays/kernels/__pycache__``.
    """
    try:
        import numba
    except ImportError:
        return function
    options: dict[str, Any] = {"nogil": True, "fastmath": {"contract"}, "error_model": "numpy"}
    try:
        return cast(Function, numba.njit(cache=True, **options)(function))
    except RuntimeError:
        # Neither the package nor the home directory can be written to.
        return cast(Function, numba.njit(**options)(function))
