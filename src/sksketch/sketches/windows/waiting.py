"""The newest rows of a window, as they are: each with its time, weight and targets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from sksketch._typing import Array
from sksketch.arrays.sparse import from_sparse_arrays, sparse_arrays

# Parts that are joined once there are as many, so that rows may come one by one.
MOST_PARTS = 64


class Part(NamedTuple):
    """Rows of one kind, dense or CSR, and what came with them.

    Parameters
    ----------
    rows : array or CSR array of shape (n_rows, n_features)
        Rows.
    times : array of shape (n_rows,)
        Their times.
    weights, energies : arrays of shape (n_rows,)
        Their weights, and their squared lengths times those.
    targets : array of shape (n_rows, n_targets)
        Their targets; without columns where none have come.
    """

    rows: Any
    times: Array
    weights: Array
    energies: Array
    targets: Array

    @property
    def n_rows(self) -> int:
        """How many rows."""
        return len(self.times)

    def cut(self, start: int, stop: int) -> Part:
        """Return some of the rows, sharing memory."""
        return Part(*(part[start:stop] for part in self))

    def owned(self) -> Part:
        """Return copies, which nobody else can change."""
        return Part(*(part.copy() for part in self))

    @property
    def is_sparse(self) -> bool:
        """Whether the rows are CSR."""
        return bool(sp.issparse(self.rows))


def joined(parts: list[Part]) -> Part:
    """Return parts of one kind, one below the other."""
    if len(parts) == 1:
        return parts[0]
    rows: Any = [part.rows for part in parts]
    rows = sp.vstack(rows, format="csr") if parts[0].is_sparse else np.concatenate(rows)
    return Part(rows, *map(np.concatenate, list(zip(*parts, strict=True))[1:]))


class WaitingRows:
    """Rows in the order of their arrival, taken from the front.

    >>> waiting = WaitingRows()
    >>> ones = np.ones(3)
    >>> waiting.add(Part(np.eye(3), ones, ones, ones, np.zeros((3, 0))))
    >>> [part.rows.shape for part in waiting.take(2)], len(waiting)
    ([(2, 3)], 1)
    """

    def __init__(self) -> None:
        self._parts: list[Part] = []
        self._n_rows = 0
        # Parts at the end that are still memory of others.
        self._n_views = 0

    def __len__(self) -> int:
        return self._n_rows

    def __iter__(self) -> Iterator[Part]:
        """Give the longest runs of rows of one kind."""
        run: list[Part] = []
        for part in self._parts:
            if run and part.is_sparse != run[0].is_sparse:
                yield joined(run)
                run = []
            run.append(part)
        if run:
            yield joined(run)

    def column(self, name: str) -> Array:
        """Return one number of every row: its time, weight or energy."""
        return np.concatenate([getattr(part, name) for part in self._parts])

    def add(self, part: Part) -> None:
        """Add rows, which are not copied until `own` is called."""
        if part.n_rows:
            self._parts.append(part)
            self._n_rows += part.n_rows
            self._n_views += 1

    def take(self, n_rows: int) -> list[Part]:
        """Remove the first rows and return them, in parts of one kind."""
        taken = WaitingRows()
        while n_rows:
            first = self._parts[0]
            n = min(n_rows, first.n_rows)
            taken.add(first.cut(0, n))
            self._n_rows -= n
            n_rows -= n
            if n == first.n_rows:
                self._parts.pop(0)
            else:
                self._parts[0] = first.cut(n, first.n_rows)
        return list(taken)

    def own(self) -> None:
        """Copy the rows that are memory of others, and join what is in many parts."""
        first = max(len(self._parts) - self._n_views, 0)
        self._parts[first:] = [part.owned() for part in self._parts[first:]]
        self._n_views = 0
        if len(self._parts) > MOST_PARTS:
            self._parts = list(self)

    def copy(self) -> WaitingRows:
        """Return other rows that wait, with the same arrays, which are never changed."""
        twin = WaitingRows()
        twin._parts, twin._n_rows = list(self._parts), self._n_rows
        return twin

    def arrays(self) -> dict[str, Array]:
        """Return plain arrays, the same however the rows came in blocks."""
        if not self._parts:
            return {}
        found = {name: self.column(name) for name in ("times", "weights", "energies", "targets")}
        runs = list(self)
        found["are_sparse"] = np.concatenate([np.full(run.n_rows, run.is_sparse) for run in runs])
        if dense := [run for run in runs if not run.is_sparse]:
            found["dense"] = np.array(joined(dense).rows)
        if sparse := [run for run in runs if run.is_sparse]:
            found |= sparse_arrays("sparse", joined(sparse).rows)
            # scipy chooses the type of indices by their number.
            for name in ("sparse_indices", "sparse_indptr"):
                found[name] = found[name].astype(np.int64)
        return found

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, Array], n_features: int) -> WaitingRows:
        """Return the rows that `arrays` came from."""
        waiting = cls()
        if "times" not in arrays:
            return waiting
        are_sparse = arrays["are_sparse"]
        ends = np.flatnonzero(np.diff(are_sparse)) + 1
        bounds = [0, *ends.tolist(), len(are_sparse)]
        done = {False: 0, True: 0}
        blocks: dict[bool, Any] = {}
        if "dense" in arrays:
            blocks[False] = arrays["dense"]
        if "sparse_data" in arrays:
            blocks[True] = from_sparse_arrays("sparse", arrays, n_features)
        for start, stop in pairwise(bounds):
            kind, n = bool(are_sparse[start]), stop - start
            rows = blocks[kind][done[kind] : done[kind] + n]
            done[kind] += n
            others = (arrays[name][start:stop] for name in Part._fields[1:])
            waiting.add(Part(rows, *others).owned())
        return waiting


def merged_by_time(mine: WaitingRows, theirs: WaitingRows) -> WaitingRows:
    """Return the rows of both in order of time; of equal times the first ones come first."""
    whole, runs = WaitingRows(), [*mine, *theirs]
    times = np.concatenate([run.times for run in runs])
    starts = np.cumsum([0, *(run.n_rows for run in runs)])
    order = np.argsort(times, kind="stable")
    which = np.searchsorted(starts, order, side="right") - 1
    ends = np.flatnonzero((np.diff(order) != 1) | (np.diff(which) != 0)) + 1
    for begin, stop in pairwise([0, *ends.tolist(), len(order)]):
        run = int(which[begin])
        first = int(order[begin] - starts[run])
        whole.add(runs[run].cut(first, first + stop - begin))
    whole.own()
    return whole
