"""Arrays that users pass by mistake, and odd ones that are right: each made anew from a seed.

``REFUSED`` must raise, ``TAKEN`` must give what the same numbers give as plain float64, and for
``EITHER`` one of the two: scikit-learn's validation takes more than ours. Sketches refuse
``REFUSED_BY_SKETCHES``, whose entries without a width of their own are ``ABSOLUTE``.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

WIDTH = 6
Maker = Callable[[np.random.Generator], Any]


def rows(rng, n_rows=None, width=WIDTH):
    n_rows = int(rng.integers(4, 30)) if n_rows is None else n_rows
    return rng.standard_normal((n_rows, width)).round(2) + 1.0


def spoiled(rng, value, dtype=np.float64):
    X = rows(rng).astype(dtype)
    X[rng.integers(len(X)), rng.integers(WIDTH)] = value
    return X


def broken(rng, kind=sp.csr_array):
    """Return a sparse matrix whose indices lead out of it; scipy lets one build it by hand."""
    X = kind(rows(rng, 5))
    how = int(rng.integers(6))
    if how == 0:
        X.indices[rng.integers(X.nnz)] = WIDTH + int(rng.integers(10**6))
    elif how == 1:
        X.indices[rng.integers(X.nnz)] = -int(rng.integers(1, 10**6))
    elif how == 2:
        X.indptr[2] = 10**6
    elif how == 3:
        X.indptr[2] = -5
    elif how == 4:
        X.indptr[-1] = X.nnz + 1000
    else:
        X.data = X.data[:-3]
    return X


def broken_coo(rng):
    X = sp.coo_array(rows(rng, 5))
    X.coords[int(rng.integers(2))][3] = int(rng.choice([-1, 10**6]))
    return X


def masked(rng):
    X = rows(rng)
    hidden = np.zeros(X.shape, dtype=bool)
    hidden[0, rng.integers(WIDTH)] = True
    return np.ma.MaskedArray(np.where(hidden, 1e3, X), mask=hidden)


def structured(rng):
    return np.zeros(4, dtype=[(name, "f8") for name in "abcdef"])


def text(rng):
    return rows(rng).astype("U6") if rng.random() < 0.5 else np.full((3, WIDTH), "word")


REFUSED: dict[str, Maker] = {
    "NaN": lambda rng: spoiled(rng, np.nan),
    "infinity": lambda rng: spoiled(rng, rng.choice([np.inf, -np.inf])),
    "NaN in float32": lambda rng: spoiled(rng, np.nan, np.float32),
    "NaN beside infinity": lambda rng: np.where(
        np.eye(7, WIDTH) > 0, np.inf, np.full((7, WIDTH), np.nan)
    ),
    "infinity in float16": lambda rng: spoiled(rng, np.inf, np.float16),
    "NaN, other bytes first": lambda rng: spoiled(rng, np.nan, ">f8"),
    "NaN in long double": lambda rng: spoiled(rng, np.nan, np.longdouble),
    "too long a double": lambda rng: spoiled(rng, np.longdouble("1e4000"), np.longdouble),
    "too narrow": lambda rng: rows(rng, width=int(rng.integers(1, WIDTH))),
    "too wide": lambda rng: rows(rng, width=int(rng.integers(WIDTH + 1, 40))),
    "no rows": lambda rng: np.zeros((0, WIDTH)),
    "no columns": lambda rng: np.zeros((4, 0)),
    "a number": lambda rng: rng.choice([3.0, -1.0]),
    "an array of no dimension": lambda rng: np.array(3.0),
    "three dimensions": lambda rng: np.ones((2, 3, WIDTH)),
    "four dimensions": lambda rng: np.ones((1, 1, 3, WIDTH)),
    "words": lambda rng: np.full((3, WIDTH), "word"),
    "numbers as text": lambda rng: np.full((3, WIDTH), "b1"),
    "bytes": lambda rng: np.full((3, WIDTH), b"word"),
    "objects": lambda rng: np.full((3, WIDTH), {"a": 1}, dtype=object),
    "None inside": lambda rng: np.array([[1.0, None, 2, 3, 4, 5]], dtype=object),
    "NA inside": lambda rng: np.array([[1.0, pd.NA, 2, 3, 4, 5]], dtype=object),
    "ragged list": lambda rng: [[1.0] * WIDTH, [1.0] * int(rng.integers(1, WIDTH))],
    "list of lists of lists": lambda rng: [[[1.0] * WIDTH]],
    "complex": lambda rng: rows(rng) + 1j,
    "complex in long double": lambda rng: rows(rng).astype(np.clongdouble) + 1j,
    "fields": structured,
    "one column of fields": lambda rng: structured(rng)[:, None],
    "void": lambda rng: np.zeros((3, WIDTH), dtype="V8"),
    "hidden values": masked,
    "frame with text": lambda rng: pd.DataFrame(np.full((3, WIDTH), "x")),
    "frame with missing values": lambda rng: pd.DataFrame(spoiled(rng, np.nan)),
    "frame of nullable values": lambda rng: pd.DataFrame(
        {str(i): pd.array([1, None], dtype="Int64") for i in range(WIDTH)}
    ),
    "frame of another width": lambda rng: pd.DataFrame(rows(rng, width=3)),
    "sparse NaN": lambda rng: sp.csr_array(spoiled(rng, np.nan)),
    "sparse infinity": lambda rng: sp.csc_array(spoiled(rng, np.inf)),
    "sparse of another width": lambda rng: sp.csr_matrix(rows(rng, width=3)),
    "sparse complex": lambda rng: sp.csr_array(rows(rng) + 1j),
    "sparse without rows": lambda rng: sp.csr_array((0, WIDTH)),
    "broken sparse rows": broken,
    "broken sparse columns": lambda rng: broken(rng, sp.csc_array),
    "broken sparse coordinates": broken_coo,
    "nothing": lambda rng: None,
    "a word": lambda rng: "rows",
    "a function": lambda rng: len,
    "an iterator": lambda rng: iter([[1.0] * WIDTH]),
    "a set": lambda rng: {1.0, 2.0},
    "a dictionary": lambda rng: {"a": [1.0, 2.0]},
    "a date": lambda rng: datetime.date(2020, 1, 1),
    "a type": lambda rng: np.ndarray,
}

EITHER: dict[str, Maker] = {
    "text of numbers": lambda rng: rows(rng).astype("U6"),
    "object numbers": lambda rng: rows(rng).astype(object),
    "decimals": lambda rng: np.array([[Decimal("1.5")] * WIDTH], dtype=object),
    "fractions": lambda rng: np.array([[Fraction(1, 3)] * WIDTH], dtype=object),
    "whole numbers beyond 64 bits": lambda rng: [[10**25] + [1] * (WIDTH - 1)],
    "dates": lambda rng: np.full((2, WIDTH), np.datetime64("2020-01-01")),
    "spans of time": lambda rng: np.full((2, WIDTH), np.timedelta64(3, "D")),
    "one row of one dimension": lambda rng: rows(rng, 1)[0],
    "a matrix": lambda rng: np.asmatrix(rows(rng)),
    "squares overflow": lambda rng: spoiled(rng, rng.choice([1e200, -1e170])),
    "sparse squares overflow": lambda rng: sp.coo_array(spoiled(rng, 1e200)),
    "squares overflow in float32": lambda rng: spoiled(rng, 1e30, np.float32),
    "nothing hidden": lambda rng: np.ma.MaskedArray(rows(rng)),
    "no array but like one": lambda rng: _Like(rows(rng)),
    "frame of times": lambda rng: pd.DataFrame(
        {str(i): pd.to_datetime(["2020-01-01"]) for i in range(WIDTH)}
    ),
    "a series": lambda rng: pd.Series(rows(rng, 1)[0]),
}

TAKEN: dict[str, Maker] = {
    "plain": rows,
    "bool": lambda rng: rows(rng) > 1.0,
    **{
        f"int of {bits} bits": lambda rng, bits=bits: rng.integers(-9, 9, (8, WIDTH)).astype(
            f"i{bits // 8}"
        )
        for bits in (8, 16, 32, 64)
    },
    "bytes as numbers": lambda rng: rng.integers(0, 256, (8, WIDTH)).astype("u1"),
    "largest whole numbers": lambda rng: np.full((4, WIDTH), 2**64 - 1, dtype="u8"),
    "other bytes first": lambda rng: rows(rng).astype(">f8"),
    "other bytes first, short": lambda rng: rows(rng).astype(">f4"),
    "other bytes first, whole": lambda rng: rng.integers(-9, 9, (8, WIDTH)).astype(">i4"),
    "half precision": lambda rng: rows(rng).astype(np.float16),
    "single precision": lambda rng: rows(rng).astype(np.float32),
    "long double": lambda rng: rows(rng).astype(np.longdouble),
    "columns first": lambda rng: np.asfortranarray(rows(rng)),
    "every other": lambda rng: rows(rng, 20, 2 * WIDTH)[::3, ::2],
    "backwards": lambda rng: rows(rng)[::-1, ::-1],
    "one row for all": lambda rng: np.broadcast_to(rows(rng, 1), (9, WIDTH)),
    "far apart": lambda rng: np.lib.stride_tricks.as_strided(
        rng.standard_normal(10**5), (5, WIDTH), (8 * 10**4, 8 * 10**3)
    ),
    "not aligned": lambda rng: (
        np.frombuffer(b"\0" + rows(rng, 7).tobytes(), np.uint8)[1:].view("f8").reshape(7, WIDTH)
    ),
    "read-only": lambda rng: _frozen(rows(rng)),
    "list": lambda rng: rows(rng).tolist(),
    "tuples": lambda rng: tuple(map(tuple, rows(rng).tolist())),
    "frame": lambda rng: pd.DataFrame(rows(rng).astype(np.float32)),
    "frame of mixed numbers": lambda rng: pd.DataFrame(
        {str(i): np.arange(4).astype(t) for i, t in enumerate(("i1", "f4", "f8", "b1", "u2", "i8"))}
    ),
    "denormals": lambda rng: rows(rng) * 5e-324,
    **{
        f"sparse {kind}": lambda rng, kind=kind: sp.coo_array(
            rows(rng, 12) * (rng.random((12, 6)) < 0.4)
        ).asformat(kind)
        for kind in ("csr", "csc", "coo", "lil", "dok", "bsr", "dia")
    },
    "sparse with long indices": lambda rng: _long_indices(sp.csr_array(rows(rng))),
    "sparse in no order": lambda rng: _unsorted(rng),
    "sparse with stored zeros": lambda rng: sp.csr_array(
        (np.zeros(3), ([0, 1, 2], [1, 2, 3])), shape=(3, 6)
    ),
    "sparse and whole": lambda rng: sp.csr_array(rng.integers(0, 3, (9, WIDTH)).astype("i2")),
}


class _Like:
    """Only knows how to become an array."""

    def __init__(self, X):
        self._X = X

    def __array__(self, dtype=None, copy=None):
        return self._X if dtype is None else self._X.astype(dtype)


def _frozen(X):
    X.flags.writeable = False
    return X


def _long_indices(X):
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


def _unsorted(rng):
    columns = rng.integers(0, WIDTH, 30)
    indptr = np.arange(0, 31, 5)
    return sp.csr_array((rng.standard_normal(30), columns, indptr), shape=(6, WIDTH))


def plain(X):
    """Return the numbers of X as an array of float64, however they were stored."""
    dense = X.toarray() if sp.issparse(X) else np.asarray(X)
    return np.array(dense, dtype=np.float64, order="C")


OVERFLOW = ("squares overflow", "sparse squares overflow")
REFUSED_BY_SKETCHES = REFUSED | {kind: EITHER[kind] for kind in (*OVERFLOW, "dates")}
ABSOLUTE = [
    kind
    for kind in REFUSED_BY_SKETCHES
    if "width" not in kind and kind not in ("too narrow", "too wide")
]

BAD_TARGETS: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "too few": lambda rng, n: np.ones(n - 1),
    "too many": lambda rng, n: np.ones(n + int(rng.integers(1, 5))),
    "NaN": lambda rng, n: np.r_[np.nan, np.ones(n - 1)],
    "infinite": lambda rng, n: np.r_[np.inf, np.ones(n - 1)],
    "complex": lambda rng, n: np.ones(n) + 1j,
    "three dimensions": lambda rng, n: np.ones((n, 2, 2)),
    "a number": lambda rng, n: 3.0,
    "a word": lambda rng, n: "y",
    "hidden values": lambda rng, n: np.ma.MaskedArray(np.ones(n), mask=np.arange(n) == 1),
    "None inside": lambda rng, n: np.array([None] * n, dtype=object),
    "ragged": lambda rng, n: [[1.0], *[[1.0, 2.0]] * (n - 1)],
}

BAD_WEIGHTS = {
    "too few": lambda rng, n: np.ones(n - 1),
    "too many": lambda rng, n: np.ones(n + 1),
    "a column": lambda rng, n: np.ones((n, 1)),
    "negative": lambda rng, n: np.r_[-1.0, np.ones(n - 1)],
    "NaN": lambda rng, n: np.r_[np.nan, np.ones(n - 1)],
    "infinite": lambda rng, n: np.r_[np.inf, np.ones(n - 1)],
    "so large that squares overflow": lambda rng, n: np.full(n, 1e305),
    "words": lambda rng, n: np.full(n, "w"),
    "complex": lambda rng, n: np.ones(n) + 1j,
    "hidden values": lambda rng, n: np.ma.MaskedArray(np.ones(n), mask=np.arange(n) == 1),
    "None inside": lambda rng, n: np.array([None] * n, dtype=object),
}
