"""Rows that wait until there are enough of them for a step."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import scipy.sparse as sp

from sksketch._typing import Array, Rows
from sksketch.arrays.namespace import like, namespace, to_numpy
from sksketch.state.rows import pack_rows, unpack_rows


class BatchQueue:
    """Blocks of rows in, batches of an exact size out; several arrays go side by side.

    Examples
    --------
    >>> import numpy as np
    >>> waiting = BatchQueue()
    >>> waiting.add(np.arange(3)[:, None])
    >>> waiting.add(np.arange(3, 5)[:, None])
    >>> waiting.take(4)[0].ravel(), len(waiting)
    (array([0, 1, 2, 3]), 1)
    """

    def __init__(self) -> None:
        self._parts: list[tuple[Any, ...]] = []
        self._n_rows = 0

    def __len__(self) -> int:
        return self._n_rows

    def add(self, *arrays: Rows) -> None:
        """Let copies of rows wait, behind those that do: their owner may use the memory again."""
        self._parts.append(tuple(map(copied, arrays)))
        self._n_rows += arrays[0].shape[0]

    def take(self, n_rows: int) -> tuple[Any, ...]:
        """Return the first rows, as one block of each array; they wait no more."""
        taken, missing = [], min(n_rows, self._n_rows)
        while missing:
            part = self._parts.pop(0)
            if part[0].shape[0] > missing:
                # A copy, or a few rows would keep a large block in memory.
                rest = tuple(copied(X[missing:]) for X in part)
                self._parts.insert(0, rest)
                part = tuple(X[:missing] for X in part)
            taken.append(part)
            missing -= part[0].shape[0]
            self._n_rows -= part[0].shape[0]
        return tuple(joined_rows(parts) for parts in zip(*taken, strict=True))

    def all(self) -> tuple[Any, ...]:
        """Return all rows that wait, as one block of each array; they keep waiting."""
        return tuple(map(joined_rows, zip(*self._parts, strict=True)))

    def arrays(self) -> dict[str, Array]:
        """Return all rows that wait as named numpy arrays."""
        if not self._n_rows:
            return {}
        found: dict[str, Array] = {}
        for i, X in enumerate(self.all()):
            found |= {f"{i}.{name}": array for name, array in pack_rows(X).items()}
        return found

    @classmethod
    def of_rows(cls, *arrays: Rows) -> BatchQueue:
        """Return one in which these rows wait."""
        waiting = cls()
        waiting.add(*arrays)
        return waiting

    @classmethod
    def of(cls, arrays: dict[str, Array]) -> BatchQueue:
        """Build it again from what `arrays` gave."""
        waiting = cls()
        views: dict[int, dict[str, Array]] = {}
        for name, array in arrays.items():
            number, _, part = name.partition(".")
            views.setdefault(int(number), {})[part] = array
        if views:
            waiting.add(*(unpack_rows(views[i]) for i in sorted(views)))
        return waiting


def joined_rows(parts: Iterable[Any]) -> Any:
    """Return blocks of rows one below the other: sparse if one is, else where the last one is."""
    parts = list(parts)
    if len(parts) == 1:
        return parts[0]
    if any(map(sp.issparse, parts)):
        dense = (part if sp.issparse(part) else to_numpy(part) for part in parts)
        return sp.csr_array(sp.vstack([sp.csr_array(part) for part in dense]))
    return namespace(parts[-1]).concat([like(part, parts[-1]) for part in parts], axis=0)


def copied(X: Any) -> Any:
    """Return a copy of rows, sparse or dense, where they are."""
    return X.copy() if sp.issparse(X) else namespace(X).asarray(X, copy=True)
