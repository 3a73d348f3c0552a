"""The sums of one pass: losses along a line of weights, and the gradient at its end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from sksketch._typing import Array, Matrix
from sksketch.exceptions import NotMergeableError
from sksketch.online.descent.affine import add_back_inplace, check_width, scores, squared_lengths
from sksketch.online.descent.line_search import STEPS
from sksketch.online.descent.row_sample import RowSample
from sksketch.online.descent.smooth_losses import SmoothLoss
from sksketch.online.descent.tiles import OpenTile, Tile
from sksketch.state.persistence import Plain, State


@dataclass(frozen=True, eq=False)
class Totals:
    """Sums over all rows of a pass, without the ridge.

    Parameters
    ----------
    losses : array of shape (n_steps,)
        Loss at ``point + step direction`` for each of `STEPS`; of the first alone in a pass
        without a direction.
    gradient : array of shape (n_outputs, n_columns)
        Derivative of the loss at ``point + direction``.
    curvature : float
        Second derivative along the direction, at the point.
    n_rows : int
        Rows of the pass.
    """

    losses: Array
    gradient: Array
    curvature: float
    n_rows: int


class PassSums:
    """Sums that one reading of the rows gives, the same bits however blocks are cut.

    Rows are summed in tiles of 1024, counted from the first row of the pass; those of the last
    tile are held until it is whole.

    Parameters
    ----------
    loss : SmoothLoss
        Loss of each row.
    point : array of shape (n_outputs, n_columns)
        Weights at which the pass begins. With one column more than the rows have, the last is
        an intercept.
    direction : array of shape (n_outputs, n_columns), default=None
        Change of the weights that is tried; None for the loss and the gradient at the point.
    sample : RowSample, default=None
        A sample that sees the rows as well.

    Examples
    --------
    >>> sums = PassSums(SmoothLoss("squared"), np.zeros((1, 2)))
    >>> totals = sums.add(np.eye(2), np.array([1.0, 2.0])).totals()
    >>> totals.losses, totals.gradient
    (array([2.5]), array([[-1., -2.]]))
    """

    kind = "descent-pass"

    def __init__(
        self,
        loss: SmoothLoss,
        point: Array,
        direction: Array | None = None,
        sample: RowSample | None = None,
    ) -> None:
        self.loss, self.point, self.direction = loss, point, direction
        self._sample = sample
        self._losses = np.zeros(1 if direction is None else len(STEPS))
        self._gradient = np.zeros(point.shape)
        self._curvature = 0.0
        self._n_tiles = self._n_rows = 0
        self._open = OpenTile()

    def add(self, X: Matrix, targets: Array, weights: Array | None = None) -> Self:
        """Add the next rows.

        Parameters
        ----------
        X : array or csr_array of shape (n_rows, n_features)
            Rows.
        targets : array of shape (n_rows,) or (n_rows, n_outputs)
            Numbers; for ``"softmax"`` classes from 0 on or indicators of them.
        weights : array of shape (n_rows,), default=None
            Importance of each row; 1 by default.

        Returns
        -------
        PassSums
            These sums.
        """
        check_width(X, self.point.shape[1])
        for tile in self._open.whole(Tile.of_block(X, targets, weights)):
            self._fold(tile)
        return self

    def _fold(self, tile: Tile) -> None:
        """Add one tile; the order of its own sums depends on nothing but its rows."""
        tile = tile.laid_out()
        rows = tile.rows
        targets = self.loss.targets(tile.targets, len(self.point))
        # A trial that leads too far may overflow; its loss is then no candidate.
        with np.errstate(over="ignore", invalid="ignore"):
            Z = scores(rows, self.point)
            end = Z
            if self.direction is not None:
                U = scores(rows, self.direction)
                bent = self.loss.bends(Z, targets)(U)
                self._curvature += float(tile.weights @ (U * bent).sum(axis=1))
                for k, step in enumerate(STEPS[1:], start=1):
                    self._losses[k] += tile.weights @ self.loss.values(Z + step * U, targets)
                end = Z + U
            self._losses[0] += tile.weights @ self.loss.values(end, targets)
            slopes = tile.weights[:, None] * self.loss.slopes(end, targets)
            add_back_inplace(self._gradient, rows, slopes)
            if self._sample is not None:
                # By curvature times squared length (Xu et al., 2016): rows far from any boundary
                # between classes add next to nothing to a Hessian.
                lengths = squared_lengths(rows, self.point.shape[1])
                sizes = tile.weights * lengths * self.loss.traces(end, targets)
                self._sample.take(self._n_tiles, tile, sizes)
        self._n_tiles += 1
        self._n_rows += len(tile)

    def _closed(self) -> PassSums:
        """Return sums that have no open tile; these ones if they have none."""
        rest = self._open.rest()
        if rest is None:
            return self
        twin = self._twin()
        twin._fold(rest)
        return twin

    def _twin(self) -> PassSums:
        sample = None if self._sample is None else self._sample.copy()
        twin = PassSums(self.loss, self.point, self.direction, sample)
        twin._losses, twin._gradient = self._losses.copy(), self._gradient.copy()
        twin._curvature = self._curvature
        twin._n_tiles, twin._n_rows = self._n_tiles, self._n_rows
        return twin

    def totals(self) -> Totals:
        """Return the sums over all rows so far; more rows may follow."""
        done = self._closed()
        return Totals(done._losses.copy(), done._gradient.copy(), done._curvature, done._n_rows)

    def sample(self) -> RowSample | None:
        """Return the sample of all rows so far, if there is one."""
        found = self._closed()._sample
        return None if found is None else found.copy()

    def merge(self, other: PassSums) -> Self:
        """Add the sums of another part of the rows, of the same pass.

        Parameters
        ----------
        other : PassSums
            Sums along the same line; they stay as they are.

        Returns
        -------
        PassSums
            These sums.

        Raises
        ------
        NotMergeableError
            If the other sums are of another loss or along another line.
        """
        if not self._is_same_pass(other):
            raise NotMergeableError(
                "sums of different passes cannot be merged; begin every part of a pass with the "
                "same Descent.new_pass()"
            )
        rest = self._open.rest()
        if rest is not None:
            self._fold(rest)
            self._open.keep(None)
        done = other._closed()
        self._losses += done._losses
        self._gradient += done._gradient
        self._curvature += done._curvature
        self._n_tiles += done._n_tiles
        self._n_rows += done._n_rows
        if self._sample is not None and done._sample is not None:
            self._sample.merge(done._sample)
        return self

    def _is_same_pass(self, other: PassSums) -> bool:
        both_sampled = (self._sample is None) == (other._sample is None)
        if self.direction is None or other.direction is None:
            same_line = self.direction is other.direction
        else:
            same_line = np.array_equal(self.direction, other.direction)
        same_point = np.array_equal(self.point, other.point)
        return self.loss == other.loss and same_point and same_line and both_sampled

    def state(self) -> State:
        """Return the sums and the rows of the open tile as plain data."""
        meta: dict[str, Plain] = {
            "loss": self.loss.name,
            "knee": self.loss.knee,
            "curvature": self._curvature,
            "n_tiles": self._n_tiles,
            "n_rows": self._n_rows,
        }
        arrays = {"point": self.point, "losses": self._losses, "gradient": self._gradient}
        if self.direction is not None:
            arrays["direction"] = self.direction
        arrays = {name: array.copy() for name, array in arrays.items()}
        if (rest := self._open.rest()) is not None:
            arrays |= {f"open_{name}": array for name, array in rest.arrays().items()}
        state = State(self.kind, 1, meta, arrays)
        return state if self._sample is None else state.with_inner("sample", self._sample.state())

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Return sums that continue where those of a state were."""
        state.require(1)
        meta: Any = state.meta
        sample = RowSample.from_state(state.inner("sample")) if "sample.kind" in meta else None
        loss = SmoothLoss(meta["loss"], meta["knee"])
        sums = cls(loss, state.arrays["point"], state.arrays.get("direction"), sample)
        sums._losses, sums._gradient = state.arrays["losses"], state.arrays["gradient"]
        sums._curvature = meta["curvature"]
        sums._n_tiles, sums._n_rows = meta["n_tiles"], meta["n_rows"]
        if rest := state.behind("open_"):
            sums._open.keep(Tile.from_arrays(rest))
        return sums
