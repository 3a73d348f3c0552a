"""One BLAS thread: import this module before numpy, then run inside `one_thread`.

The environment is read when a BLAS library loads; the limit catches those that ignore it.
Importing this loads nothing but threadpoolctl.
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from typing import Any

for _library in ("OPENBLAS", "OMP", "MKL", "BLIS", "VECLIB", "NUMEXPR", "NUMBA"):
    os.environ[f"{_library}_NUM_THREADS"] = "1"

from threadpoolctl import threadpool_info, threadpool_limits  # noqa: E402  (after the environment)


def one_thread() -> AbstractContextManager[Any]:
    """Limit every BLAS and OpenMP library that is loaded by now to one thread."""
    return threadpool_limits(limits=1)


def blas_names() -> str:
    """Return the BLAS libraries in use; raise if one of them has several threads."""
    libraries = [info for info in threadpool_info() if info["user_api"] == "blas"]
    threaded = [info["prefix"] for info in libraries if info["num_threads"] != 1]
    if threaded:
        raise RuntimeError(f"{threaded} run several threads; import {__name__} before numpy")
    names = {f"{i['internal_api']} {i['version']} ({i.get('architecture')})" for i in libraries}
    return ", ".join(sorted(names))
