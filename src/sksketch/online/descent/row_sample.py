"""A sample of the rows of a stream, and Newton steps with its curvature."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Self

import numpy as np

from sksketch._typing import Array
from sksketch.arrays.random import stream
from sksketch.online.descent.affine import add_back_inplace, scores
from sksketch.online.descent.smooth_losses import SmoothLoss
from sksketch.online.descent.tiles import Tile
from sksketch.state.persistence import Plain, State

Precondition = Callable[[Array], Array]

# Where conjugate gradients stop: relative residual, and steps.
RESIDUAL, MOST_STEPS = 0.01, 100
# Curvature, as a share of the largest, that counts as none.
FLAT = 1e-12


class RowSample:
    """Up to ``size`` rows of a stream, large ones sooner, each with what it counts for.

    Parameters
    ----------
    size : int
        Rows to keep.
    seed : int, default=0
        Seed of the keys.

    Notes
    -----
    Priority sampling (Duffield, Lund and Thorup, 2007): a row has the key u / size, u uniform and
    addressed by its place in the stream. The rows with the smallest keys stay, and each counts
    for max(1, 1 / (key size)) rows, with the smallest key of those that do not stay: sums are
    unbiased. How blocks are cut makes no difference, and samples of parts merge.

    Examples
    --------
    >>> sample = RowSample(2)
    >>> sample.take(0, Tile(np.arange(5.0)[:, None], np.zeros(5), np.ones(5)), np.ones(5))
    >>> len(sample.rows()), sample.n_rows_seen, sample.is_whole
    (2, 5, False)
    """

    kind = "row-sample"

    def __init__(self, size: int, seed: int = 0) -> None:
        self.size, self.seed = size, seed
        self.n_rows_seen = 0
        # Keys and sizes of the rows of each part.
        self._marks: list[Array] = []
        self._parts: list[Tile] = []
        self._n_kept = 0
        # The smallest key of the rows that did not stay.
        self._limit = math.inf

    @property
    def is_whole(self) -> bool:
        """Whether the sample has all rows that count."""
        return self.n_rows_seen <= self.size

    def take(self, number: int, tile: Tile, sizes: Array) -> None:
        """See the tile with a number; rows of size 0 do not count."""
        draws = stream(self.seed, "descent sample", number).random(len(tile))
        keys = np.divide(draws, sizes, out=np.full(len(tile), math.inf), where=sizes > 0.0)
        self.n_rows_seen += int(np.count_nonzero(sizes))
        # Most tiles of a long stream have few rows with keys below those that are kept.
        low = np.flatnonzero(keys < self._limit)
        self._hold(np.array([keys[low], sizes[low]]), tile[low])

    def _hold(self, marks: Array, tile: Tile) -> None:
        self._marks.append(marks)
        self._parts.append(tile)
        self._n_kept += len(tile)
        if self._n_kept > 2 * self.size:
            self._prune()

    def _prune(self) -> None:
        """Keep the smallest keys, in the order in which their rows came."""
        marks, rows = np.concatenate(self._marks, axis=1), Tile.joined(self._parts)
        if len(rows) > self.size:
            order = np.argpartition(marks[0], self.size)
            self._limit = min(self._limit, float(marks[0, order[self.size]]))
            kept = np.sort(order[: self.size])
            marks, rows = marks[:, kept], rows[kept]
        self._marks, self._parts, self._n_kept = [marks], [rows], len(rows)

    def rows(self) -> Tile:
        """Return the rows of the sample, weighted so that they count for all that it has seen."""
        self._prune()
        rows, sizes = self._parts[0], self._marks[0][1]
        return Tile(
            rows.rows, rows.targets, rows.weights * np.maximum(1.0, 1.0 / self._limit / sizes)
        )

    def copy(self) -> RowSample:
        """Return a sample that can take other rows than this one."""
        twin = RowSample(self.size, self.seed)
        twin.n_rows_seen, twin._n_kept = self.n_rows_seen, self._n_kept
        twin._limit = self._limit
        twin._marks, twin._parts = list(self._marks), list(self._parts)
        return twin

    def merge(self, other: RowSample) -> Self:
        """See the rows that another sample has seen."""
        self._limit = min(self._limit, other._limit)
        for marks, part in zip(other._marks, other._parts, strict=True):
            self._hold(marks, part)
        self.n_rows_seen += other.n_rows_seen
        return self

    def state(self) -> State:
        """Return the sample as plain data."""
        meta: dict[str, Plain] = {"size": self.size, "seed": self.seed}
        meta["n_rows_seen"] = self.n_rows_seen
        if not self._parts:
            return State(self.kind, 1, {**meta, "limit": self._limit}, {})
        self._prune()
        arrays = {"marks": self._marks[0], **self._parts[0].arrays()}
        return State(self.kind, 1, {**meta, "limit": self._limit}, arrays)

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Return the sample that a state was read from."""
        state.require(1)
        meta: Any = state.meta
        sample = cls(meta["size"], meta["seed"])
        sample.n_rows_seen, sample._limit = meta["n_rows_seen"], meta["limit"]
        if "marks" in state.arrays:
            sample._hold(state.arrays["marks"], Tile.from_arrays(state.arrays))
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
        Rows of which the Hessian is the sum.
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
    >>> sample.take(0, Tile(np.eye(2), np.zeros(2), np.ones(2)), np.ones(2))
    >>> inverse = newton_step(
    ...     sample, SmoothLoss("squared"), np.ones(2), np.zeros((1, 2)), lambda g: g
    ... )
    >>> inverse(np.array([[4.0, 2.0]]))
    array([[2., 1.]])
    """
    tile = sample.rows()
    Z = scores(tile.rows, point)
    bend = loss.bends(Z, loss.targets(tile.targets, len(point)))
    weights = tile.weights[:, None]

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
