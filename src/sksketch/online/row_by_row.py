"""Rows that come one at a time, as dictionaries of names or sequences of numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from sksketch._typing import Array
from sksketch.online.baselines import OjaNewton
from sksketch.online.learner import OnlineLearner
from sksketch.online.named_columns import NamedColumns
from sksketch.online.vocabulary import Vocabulary


class RowByRow:
    """The part of an online estimator that takes single rows, and names as they come."""

    n_features_in_: int
    learners_: list[OnlineLearner]
    _names: NamedColumns | None
    _vocabulary: Vocabulary
    _check_params: Callable[[], None]

    def _row(self, x: Any, *, grow: bool) -> Any:
        """Return one checked row, from a dictionary of names or a sequence of numbers."""
        if isinstance(x, Mapping):
            row = self._named_row(x, grow)
        else:
            row = np.reshape(np.asarray(x, dtype=np.float64), (1, -1))
            if not np.isfinite(row).all():
                raise ValueError("the row has a value that is NaN or infinite; give finite numbers")
            if hasattr(self, "learners_") and row.shape[1] != self.n_features_in_:
                raise ValueError(
                    f"the row has {row.shape[1]} values, expected {self.n_features_in_}"
                )
        return row

    def _named_row(self, x: Mapping[Any, Any], grow: bool) -> Any:
        if not hasattr(self, "learners_"):
            self._names = NamedColumns(self.hash_size)  # type: ignore[attr-defined]
        if self._names is not None:
            return self._names.row(x, grow=grow)
        names = getattr(self, "feature_names_in_", None)
        if names is None:
            raise ValueError(
                "got a row with names, but the estimator has learned from columns without names; "
                "give a sequence of numbers"
            )
        columns = NamedColumns.of(names)
        if (missing := next((name for name in x if name not in columns), None)) is not None:
            raise ValueError(f"there is no column {missing!r}; it has {list(names)[:5]}")
        return columns.row(x, grow=False)

    def _meet(self, x: Any, begin: Callable[[int], None]) -> Any:
        """Return one row to learn from, with room for its columns; ``begin`` if it is the first."""
        first = not hasattr(self, "learners_")
        row = self._row(x, grow=True)
        if first:
            names = self.__dict__.get("_names")
            self._check_params()
            begin(row.shape[1])
            self._names = names
        elif row.shape[1] > self.n_features_in_:
            if any(isinstance(learner, OjaNewton) for learner in self.learners_):
                raise ValueError("method 'oja' needs all columns at the start; pass hash_size")
            self._vocabulary.widen(row.shape[1])
        self.n_features_in_ = row.shape[1]
        return row

    def _scores_of_one(self, x: Any) -> Array:
        """Return the raw scores of one row, at the cost of its own features."""
        features, values = self._vocabulary.known(self._row(x, grow=False))
        return np.array([[values @ learner.weights(features) for learner in self.learners_]])
