"""The compiler: functions become machine code at their first call, kept on disk for later ones."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])


def jit(function: Function, *, fused: bool = True) -> Function:
    """Compile at the first call; a Python that numba does not support yet runs it as it is.

    Products may be fused with sums, unless ``fused`` is False. Nothing else is reordered, so
    equal arguments give equal bits wherever the function is called from.
    """
    try:
        import numba
    except ImportError:
        return function
    # What is on disk is looked up by this name. numba would notice a change of the function's
    # own file only, and keep the old code of what it calls in others.
    function.__qualname__ = f"{function.__qualname__}_{_sources()}"
    contract: Any = {"contract"} if fused else False
    options: dict[str, Any] = {"nogil": True, "fastmath": contract, "error_model": "numpy"}
    try:
        return cast(Function, numba.njit(cache=True, **options)(function))
    except RuntimeError:
        # Neither the package nor the home directory can be written to.
        return cast(Function, numba.njit(**options)(function))


def is_kept(function: Any) -> bool:
    """Return whether the compiled form of a function is on disk, or it is not compiled at all."""
    kept = getattr(function, "_cache", None)
    path = getattr(kept, "cache_path", None)
    if path is None:
        return not hasattr(function, "py_func")
    return any(Path(path).glob(f"*{function.__qualname__}*.nbi"))


@functools.cache
def _sources() -> str:
    """Return a digest of all kernels, here and in the themes."""
    found = hashlib.blake2b(digest_size=6)
    for path in sorted(Path(__file__).parents[2].glob("**/kernels/*.py")):
        found.update(path.read_bytes())
    return found.hexdigest()
