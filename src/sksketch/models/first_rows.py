"""Rows with their targets and weights that wait, or that units are taken from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from sksketch._typing import Array, Rows
from sksketch.arrays.device_sparse import on_host
from sksketch.arrays.namespace import cast, copied, like, on_device, precision, to_numpy
from sksketch.arrays.rows import as_rows, as_weights, squared_row_norms
from sksketch.sketches.column_moments import ColumnMoments
from sksketch.state.rows import pack_rows, unpack_rows
from sksketch.streams.blocks import concatenated


class FirstRows(NamedTuple):
    """Rows and what came with them; never changed.

    Parameters
    ----------
    X : array or CSR array of shape (n_rows, n_features)
        Rows, where they are.
    targets : array of shape (n_rows,) or (n_rows, n_targets), or None
        Their targets, if they have any.
    weights : array of shape (n_rows,) or None
        Their weights; None for ones.

    Examples
    --------
    >>> rows = FirstRows.of(np.array([[1.0], [3.0]]), None, None)
    >>> FirstRows.joined([rows, rows]).X.shape, rows.scale()
    ((4, 1), array([1.]))
    """

    X: Any
    targets: Any
    weights: Array | None

    @classmethod
    def of(cls, X: Rows, targets: Any, weights: object) -> FirstRows:
        """Return rows with their weights checked."""
        return cls(on_host(X), targets, as_weights(weights, X.shape[0]))

    def check(self) -> None:
        """Refuse rows that a sketch would refuse, as they are."""
        squared_row_norms(self.X, precision(self.X))

    def scale(self) -> Array:
        """Return the standard deviation of each column, and one where it never changes."""
        return ColumnMoments.empty(self.X.shape[1]).updated(self.X, self.weights).scale()

    def part(self, start: int, stop: int) -> FirstRows:
        """Return some of the rows."""
        return FirstRows(*(None if part is None else part[start:stop] for part in self))

    def head(self, n_rows: int) -> FirstRows:
        """Return the first rows."""
        return self.part(0, n_rows)

    @classmethod
    def joined(cls, parts: Sequence[FirstRows]) -> FirstRows:
        """Return all rows, in the precision and place of the first ones."""
        first = parts[0].X
        blocks = [cast(part.X, precision(first)) for part in parts]
        if on_device(first):
            blocks = [
                like(block.toarray() if sp.issparse(block) else block, first) for block in blocks
            ]
        X = concatenated(blocks)
        targets = None
        if parts[0].targets is not None:
            targets = np.concatenate([to_numpy(part.targets) for part in parts])
        if all(part.weights is None for part in parts):
            return cls(X, targets, None)
        counts = [np.ones(p.X.shape[0]) if p.weights is None else p.weights for p in parts]
        return cls(X, targets, np.concatenate(counts))

    def owned(self) -> FirstRows:
        """Return copies, which nobody else can change."""
        X, *others = self
        X = copied(X) if on_device(X) else X.copy()
        targets, weights = (None if part is None else np.array(part) for part in others)
        return FirstRows(X, targets, weights)

    def arrays(self) -> dict[str, Array]:
        """Return plain arrays for a saved state."""
        found = {f"waiting.{name}": part for name, part in pack_rows(self.X).items()}
        found |= {} if self.targets is None else {"waiting.targets": np.array(self.targets)}
        return found | ({} if self.weights is None else {"waiting.weights": self.weights.copy()})

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, Array]) -> FirstRows:
        """Return what `arrays` came from."""
        rows = as_rows(unpack_rows(arrays))
        return cls.of(rows, arrays.get("targets"), arrays.get("weights"))
