"""A uniform sample of the rows of a stream, and Newton steps with its curvature."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from sksketch._typing import Array
from sksketch.arrays.random import stream
from sksketch.online.descent.affine import add_back_inplace, scores
from sksketch.online.descent.smooth_losses import SmoothLoss
from sksketch.online.descent.tiles import Tile
from sksketch.state.persistence import State

Precondition = Callable[[Array], Array]

# Sampled rows for each column from which on their curvature is better than what a sketch has:
# the relative error of a sampled Hessian is about the square root of columns over rows.
ROWS_PER_COLUMN = 32
# Where conjugate gradients stop: relative residual, and steps.
RESIDUAL, MOST_STEPS = 0.01, 100
# Curvature, as a share of the largest, that counts as none.
FLAT = 1e-12


class RowSample:
    """Up to ``size`` rows of a stream, any set of them equally likely.

    Each row has a random key, addressed by its place in the stream; the rows with the smallest
    keys stay. How blocks are cut makes no difference, and samples of parts merge.

    Parameters
    ----------
    size : int
        Rows to keep.
    seed : int, default=0
        Seed of the keys.

    Examples
    --------
    >>> sample = RowSample(2)
    >>> sample.take(0, Tile(np.arange(5.0)[:, None], np.zeros(5), np.ones(5)))
    >>> len(sample.rows()), sample.n_rows_seen, sample.is_whole
    (2, 5, False)
    """

    kind = "row-sample"

    def __init__(self, size: int, seed: int = 0) -> None:
        self.size, self.seed = size, seed
        self.n_rows_seen = 0
        self._keys: list[Array] = []
        self._parts: list[Tile] = []
        self._n_kept = 0
        # No row with a larger key can stay.
        self._limit = 1.0

    @property
    def is_whole(self) -> bool:
        """Whether the sample has all rows of the stream."""
        return self.n_rows_seen <= self.size

    def serves(self, n_columns: int) -> bool:
        """Return whether its curvature stands for that of all rows."""
        return self.is_whole or self.size >= ROWS_PER_COLUMN * n_columns

    def take(self, number: int, tile: Tile) -> None:
        """See the tile with a number."""
        keys = stream(self.seed, "descent sample", number).random(len(tile))
        self.n_rows_seen += len(tile)
        # Most tiles of a long stream have few rows with keys below those that are kept.
        low = np.flatnonzero(keys < self._limit)
        self._hold(keys[low], tile[low])

    def _hold(self, keys: Array, tile: Tile) -> None:
        self._keys.append(keys)
        self._parts.append(tile)
        self._n_kept += len(keys)
        if self._n_kept > 2 * self.size:
            self._prune()

    def _prune(self) -> None:
        """Keep the smallest keys, in the order in which their rows came."""
        keys, rows = np.concatenate(self._keys), Tile.joined(self._parts)
        if len(keys) > self.size:
            kept = np.sort(np.argpartition(keys, self.size - 1)[: self.size])
            keys, rows = keys[kept], rows[kept]
            self._limit = float(keys.max())
        self._keys, self._parts, self._n_kept = [keys], [rows], len(keys)

    def rows(self) -> Tile:
        """Return the rows of the sample."""
        self._prune()
        return self._parts[0]

    def copy(self) -> RowSample:
        """Return a sample that can take other rows than this one."""
        twin = RowSample(self.size, self.seed)
        twin.n_rows_seen, twin._n_kept = self.n_rows_seen, self._n_kept
        twin._limit = self._limit
        twin._keys, twin._parts = list(self._keys), list(self._parts)
        return twin

    def merge(self, other: RowSample) -> Self:
        """See the rows that another sample has seen."""
        for keys, part in zip(other._keys, other._parts, strict=True):
            self._hold(keys, part)
        self.n_rows_seen += other.n_rows_seen
        return self

    def state(self) -> State:
        """Return the sample as plain data."""
        meta = {"size": self.size, "seed": self.seed, "n_rows_seen": self.n_rows_seen}
        if not self._parts:
            return State(self.kind, 1, meta, {})
        rows = self.rows().arrays()
        return State(self.kind, 1, meta, {"keys": self._keys[0], **rows})

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Return the sample that a state was read from."""
        state.require(1)
        meta: Any = state.meta
        sample = cls(meta["size"], meta["seed"])
        sample.n_rows_seen = meta["n_rows_seen"]
        if "keys" in state.arrays:
            sample._hold(state.arrays["keys"], Tile.from_arrays(state.arrays))
        return sample


def newton_step(
    sample: RowSample,
    loss: SmoothLoss,
    ridge: Array,
    point: Array,
    precondition: Precondition,
) -> Precondition:
    """Return the inverse of the sample's Hessian at a point, by conjugate gradients.

    Parameters
    ----------
    sample : RowSample
        Rows, weighted so that they count for all rows that it has seen.
    loss : SmoothLoss
        Loss of each row.
    ridge : array of shape (n_columns,)
        Ridge of each column.
    point : array of shape (n_outputs, n_columns)
        Where the Hessian is taken.
    precondition : callable
        An inverse that is cheap, for the steps on the way.

    Returns
    -------
    callable
        Takes a gradient and returns H^-1 times it, up to the residual at which steps end.

    Examples
    --------
    >>> sample = RowSample(2)
    >>> sample.take(0, Tile(np.eye(2), np.zeros(2), np.ones(2)))
    >>> inverse = newton_step(
    ...     sample, SmoothLoss("squared"), np.ones(2), np.zeros((1, 2)), lambda g: g
    ... )
    >>> inverse(np.array([[4.0, 2.0]]))
    array([[2., 1.]])
    """
    tile = sample.rows()
    share = sample.n_rows_seen / max(len(tile), 1)
    Z = scores(tile.rows, point)
    bend = loss.bends(Z, loss.targets(tile.targets, len(point)))
    weights = share * tile.weights[:, None]

    def hessian(V: Array) -> Array:
        image = ridge * V
        add_back_inplace(image, tile.rows, weights * bend(scores(tile.rows, V)))
        return image

    return lambda gradient: _solve(hessian, gradient, precondition)


def _solve(hessian: Precondition, right: Array, precondition: Precondition) -> Array:
    """Return where preconditioned conjugate gradients for ``hessian(x) = right`` stop.

    They also stop before a direction that has hardly any curvature for its length in the metric
    of the preconditioner: a step along it would have no bounds.
    """
    x = np.zeros_like(right)
    residual = right.copy()
    along = image = precondition(residual)
    product = float(np.vdot(residual, image))
    length, most = product, 0.0
    goal = RESIDUAL * float(np.linalg.norm(right))
    for step in range(MOST_STEPS):
        image = hessian(along)
        bent = float(np.vdot(along, image))
        most = max(most, bent / length) if length > 0.0 else 0.0
        if not bent > FLAT * most * length:
            # Without any curvature, what the preconditioner says is all that is known.
            return x if step else along
        x += (product / bent) * along
        residual -= (product / bent) * image
        if float(np.linalg.norm(residual)) <= goal:
            break
        image = precondition(residual)
        former, product = product, float(np.vdot(residual, image))
        along = image + (product / former) * along
        length = product + (product / former) ** 2 * length
    return x
