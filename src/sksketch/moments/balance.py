"""One factor that makes two views about as long as each other, so that a sketch keeps both."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from sksketch._typing import Array
from sksketch.exceptions import NotMergeableError, StateFormatError
from sksketch.models.intake import FirstRows, Intake, Units
from sksketch.models.standardized import keeps_gram
from sksketch.sketches import Sketch
from sksketch.sketches.column_moments import ColumnMoments
from sksketch.sketches.merging import refuse_mismatch
from sksketch.state.persistence import State

# Rows whose sizes balance the two views, unless all are known.
FIRST_ROWS = 1000


@dataclass(frozen=True)
class Balance(Units):
    """Units of rows ``[x, y]``: ones, and those of the second view a power of two.

    A sketch takes ``[x, b y]``; the exact covariance takes rows as they are. What is read of
    either is in the user's units.

    Parameters
    ----------
    n_features, n_features_y : int
        Columns of the two views.
    """

    n_features: int
    n_features_y: int

    def are_for(self, sketch: Sketch) -> bool:
        """Return whether a sketch takes rows divided by units."""
        return not keeps_gram(sketch)

    def check(self, intake: Intake, sketch: Sketch) -> None:
        """Take more rows, whatever those before were."""

    def check_alike(self, sketch: Sketch, other: Units, other_sketch: Sketch) -> None:
        """Refuse to merge what has another second view, also where rows still wait."""
        assert isinstance(other, Balance)
        if self.n_features_y != other.n_features_y:
            raise NotMergeableError(
                f"cannot merge second views of {self.n_features_y} and {other.n_features_y} "
                "columns; fit both for the same"
            )
        refuse_mismatch(sketch, other_sketch)

    def n_first(self, n_features: int) -> int:
        """Return how many rows units are taken from."""
        return FIRST_ROWS

    def scale_of(self, rows: FirstRows) -> Array:
        """Return units in which the second view is about as long as the first."""
        rows.check()
        columns = ColumnMoments.empty(rows.X.shape[1]).updated(rows.X, rows.weights)
        scales = np.where(columns.squares > 0.0, columns.scale(), 0.0)
        x, y = (float(np.linalg.norm(part)) for part in np.split(scales, [self.n_features]))
        balance = 2.0 ** round(math.log2(x / y)) if x > 0.0 and y > 0.0 else 1.0
        return self._scale(balance)

    def _scale(self, balance: float) -> Array:
        return np.repeat([1.0, 1.0 / balance], [self.n_features, self.n_features_y])

    @staticmethod
    def of_second(scale: Array | None) -> float:
        """Return the factor of the second view.

        >>> Balance.of_second(Balance(1, 2)._scale(4.0))
        4.0
        """
        return 1.0 if scale is None else 1.0 / float(scale[-1])

    def rounding(self, rows: FirstRows) -> float:
        """Return the relative error of entries that were divided: a power of two rounds none."""
        return 0.0

    def difference(self, mine: Array | None, theirs: Array | None) -> str:
        """Say why rows in one of these units cannot be added to those in the other."""
        return (
            f"the second view of one is multiplied by {self.of_second(mine):g}, that of the other "
            f"by {self.of_second(theirs):g}, each for its own first rows; bring the views to about "
            "the same size, learn both parts in one run, or take sketch='exact'"
        )

    def stored(self, state: State, scale: Array, n_rows: int) -> State:
        """Return a state with the factor stored in it."""
        return state.with_more({"balance": self.of_second(scale)}, {})

    def recalled(self, state: State, n_features: int) -> tuple[Array | None, int]:
        """Return the units that `stored` has stored; the number of rows behind them is not kept."""
        meta: Any = state.meta
        if "balance" not in meta:
            return None, 0
        if self.n_features + self.n_features_y != n_features:
            raise StateFormatError(
                f"the views have {self.n_features:,} and {self.n_features_y:,} columns, and the "
                f"sketch {n_features:,}; save it again"
            )
        return self._scale(float(meta["balance"])), 0
