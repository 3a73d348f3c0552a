"""Rows of a stream in tiles of a fixed length, however its blocks are cut."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from sksketch._typing import Array, Matrix
from sksketch.arrays.rows import laid_out
from sksketch.state.rows import pack_rows, unpack_rows

TILE_ROWS = 1024


@dataclass(frozen=True, eq=False)
class Tile:
    """Rows with their targets and weights.

    Parameters
    ----------
    rows : array or csr_array of shape (n_rows, n_features)
        Features.
    targets : array of shape (n_rows,) or (n_rows, n_outputs)
        Numbers, or classes as integers.
    weights : array of shape (n_rows,)
        Importance of each row.
    """

    rows: Matrix
    targets: Array
    weights: Array

    def __len__(self) -> int:
        return len(self.weights)

    @classmethod
    def of_block(cls, X: Matrix, targets: Array, weights: Array | None) -> Tile:
        """Return a whole block, after a look at its lengths.

        >>> len(Tile.of_block(np.ones((3, 2)), np.ones(3), None))
        3
        """
        n_rows = X.shape[0]
        rows = sp.csr_array(X) if sp.issparse(X) else np.asarray(X)
        given = np.ones(n_rows) if weights is None else np.asarray(weights, dtype=np.float64)
        found = np.asarray(targets)
        if len(found) != n_rows or given.shape != (n_rows,):
            raise ValueError(
                f"got {n_rows} rows with {len(found)} targets and weights of shape {given.shape}; "
                "give one of each for every row"
            )
        return cls(rows, found, given)

    def __getitem__(self, part: slice | Array) -> Tile:
        return Tile(self.rows[part], self.targets[part], self.weights[part])

    def copy(self) -> Tile:
        """Return the same rows in memory of their own."""
        return Tile(self.rows.copy(), self.targets.copy(), self.weights.copy())

    def laid_out(self) -> Tile:
        """Return the rows in double precision and C order, without a copy where they are so."""
        if sp.issparse(self.rows):
            rows: Matrix = laid_out(self.rows.astype(np.float64, copy=False))
        else:
            rows = np.ascontiguousarray(self.rows, dtype=np.float64)
        return Tile(rows, self.targets, self.weights)

    @staticmethod
    def joined(tiles: list[Tile]) -> Tile:
        """Return the rows of several tiles, one after the other."""
        if len(tiles) == 1:
            return tiles[0]
        parts = [tile.rows for tile in tiles]
        sparse = any(map(sp.issparse, parts))
        rows = sp.csr_array(sp.vstack(parts, format="csr")) if sparse else np.concatenate(parts)
        return Tile(
            rows,
            np.concatenate([tile.targets for tile in tiles]),
            np.concatenate([tile.weights for tile in tiles]),
        )

    def arrays(self) -> dict[str, Array]:
        """Return the tile as named arrays of a state."""
        packed = {f"rows_{name}": array for name, array in pack_rows(self.rows).items()}
        return {**packed, "targets": self.targets, "weights": self.weights}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array]) -> Tile:
        """Return the tile that `arrays` was called on.

        >>> Tile.from_arrays(Tile(np.eye(2), np.ones(2), np.ones(2)).arrays()).rows
        array([[1., 0.],
               [0., 1.]])
        """
        packed = {n.removeprefix("rows_"): a for n, a in arrays.items() if n.startswith("rows_")}
        return cls(unpack_rows(packed), arrays["targets"], arrays["weights"])


class OpenTile:
    """The rows after the last whole tile; blocks go in and whole tiles come out.

    Examples
    --------
    >>> tiles = OpenTile()
    >>> block = Tile.of_block(np.ones((1500, 2)), np.ones(1500), None)
    >>> [len(tile) for tile in tiles.whole(block)], tiles.n_rows
    ([1024], 476)
    """

    def __init__(self) -> None:
        self._parts: list[Tile] = []
        self.n_rows = 0

    def whole(self, block: Tile) -> Iterator[Tile]:
        """Yield the tiles that a block completes, and keep a copy of the rest."""
        start = 0
        while start < len(block):
            stop = min(start + TILE_ROWS - self.n_rows, len(block))
            part = block[start:stop]
            start = stop
            if self.n_rows + len(part) < TILE_ROWS:
                self._parts.append(part.copy())
                self.n_rows += len(part)
                return
            tile = Tile.joined([*self._parts, part])
            self._parts, self.n_rows = [], 0
            yield tile

    def rest(self) -> Tile | None:
        """Return the rows that fill no tile yet."""
        return Tile.joined(self._parts) if self._parts else None

    def keep(self, rest: Tile | None) -> None:
        """Hold the rows that `rest` returned, and no others."""
        self._parts = [] if rest is None else [rest]
        self.n_rows = 0 if rest is None else len(rest)
