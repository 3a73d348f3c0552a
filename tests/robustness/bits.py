"""The same rows in every way they can lie, come and be worked on: one digest for each object."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from robustness import abuse, everyone

# Rows for which BLAS would take several threads.
N_WIDE, WIDE = 700, 150


def shifted(X: np.ndarray, offset: int) -> np.ndarray:
    """Return the same rows at an address that leaves so much when divided by 64."""
    raw = np.zeros(X.nbytes + 128, np.uint8)
    start = -raw.ctypes.data % 64 + offset
    found = raw[start : start + X.nbytes].view(X.dtype).reshape(X.shape)
    found[...] = X
    return found


def every_other(X: np.ndarray, axis: int) -> np.ndarray:
    """Return the same rows as every other row or column of a larger array."""
    shape = [2 * n if i == axis else n for i, n in enumerate(X.shape)]
    raw = np.full(shape, 7.0, X.dtype)
    chosen = tuple(slice(None, None, 2) if i == axis else slice(None) for i in range(X.ndim))
    raw[chosen] = X
    return raw[chosen]


def frozen(X: np.ndarray) -> np.ndarray:
    X = X.copy()
    X.flags.writeable = False
    return X


def backwards(X: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(X[::-1])[::-1]


LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    **{f"address {n}": lambda X, n=n: shifted(X, n) for n in (0, 1, 3, 4, 8, 16, 24)},
    "Fortran order": lambda X: np.asfortranarray(X),
    "Fortran order, address 3": lambda X: shifted(X.T, 3).T,
    "every other row": lambda X: every_other(X, 0),
    "every other column": lambda X: every_other(X, X.ndim - 1),
    "backwards": backwards,
    "read-only": frozen,
}
REDUCED = ("address 0", "address 3", "Fortran order, address 3", "every other column", "backwards")


def laid(value: Any, layout: str) -> Any:
    """Return an array or a CSR matrix with its numbers laid out so."""
    if sp.issparse(value):
        parts = (LAYOUTS[layout](part) for part in (value.data, value.indices, value.indptr))
        found = sp.csr_array(value.shape, dtype=value.dtype)
        found.data, found.indices, found.indptr = parts
        return found
    return LAYOUTS[layout](value)


def rows_of(wide: bool, dtype: str, sparse: bool) -> Any:
    X = everyone.X
    if wide:
        rng = np.random.default_rng(8)
        X = rng.standard_normal((N_WIDE, WIDE)) * 0.95 ** np.arange(WIDE) + 1.0
    X = X.astype(dtype)
    return sp.csr_array(X * (X > 1.0)) if sparse else X


def beside(name: str, X: Any) -> list[np.ndarray]:
    """Return what comes with so many rows."""
    found = [np.resize(part, (X.shape[0], *part.shape[1:])) for part in everyone.second_of(name)]
    if name == "MultiviewMixture":
        found = [X + 0.1, X - 0.1]
    return found


def digest(
    name: str,
    *,
    layout: str | None = None,
    block: int | None = None,
    dtype: str = "f8",
    sparse: bool = False,
    wide: bool = False,
) -> str:
    """Learn from the rows in blocks that lie so, read everything, and return its digest."""
    X = rows_of(wide, dtype, sparse)
    views = [X, *beside(name, X)]
    model = everyone.make(name)
    size = (block or X.shape[0]) if everyone.streams(name) else X.shape[0]
    for start in range(0, X.shape[0], size):
        parts = [view[start : start + size] for view in views]
        everyone.learn(model, *(part if layout is None else laid(part, layout) for part in parts))
    some = [view[:40] for view in views]
    read = [part if layout is None else laid(part, layout) for part in some]
    return everyone.digest(everyone.answers(model, *read))


def takes_sparse(name: str) -> bool:
    return name != "MultiviewMixture"


def fits_wide(name: str) -> bool:
    # Its landmarks are given, with fewer columns.
    return name != "StreamingKernelPCA landmarks"


def digests(wide: bool, full: bool) -> dict[str, str]:
    """Return the digest of everything on plain rows."""
    names = [*(everyone.SKETCHES if full else abuse.SKETCHES), *everyone.ESTIMATORS]
    return {name: digest(name, wide=wide) for name in names if not wide or fits_wide(name)}


def main(full: bool) -> None:
    """Print all digests, for a process of its own."""
    warnings.simplefilter("ignore")
    json.dump({str(wide): digests(wide, full) for wide in (False, True)}, sys.stdout)
