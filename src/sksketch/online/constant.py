"""The best constant so far: beside what it would have predicted a learner shows its worth."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from sksketch._typing import Array
from sksketch.online.checks import running_sum


@dataclass(frozen=True)
class ConstantBaseline:
    """Predicts each row by the targets before it alone: their mean, or the commonest label.

    Parameters
    ----------
    n_outputs : int
        Columns of the targets.
    labels : bool
        Whether the columns are 1 and -1, for each of several labels or the second of two.

    Examples
    --------
    >>> ConstantBaseline(1, labels=False).after(np.array([[1.0], [3.0], [2.0]])).mean_error
    1.6666666666666667
    >>> ConstantBaseline(1, labels=True).after(np.array([[1.0], [1.0], [-1.0]])).error_sum
    2.0
    """

    n_outputs: int
    labels: bool
    n_rows: int = 0
    error_sum: float = 0.0
    # Sum of the targets so far, or rows of each label.
    sums: Array = field(default_factory=lambda: np.zeros(0))

    def after(self, columns: Array) -> Self:
        """Return what it is after more rows."""
        if not len(columns):
            return self
        if self.labels:
            columns = np.hstack([-columns, columns]) if columns.shape[1] == 1 else columns
            columns = (columns > 0.0).astype(np.float64)
        before = self.sums if len(self.sums) else np.zeros(columns.shape[1])
        if len(columns) == 1:
            return self._after_one(before, columns[0])
        # One after the other, so that no order of summation depends on the blocks.
        running = np.add.accumulate(np.vstack([before[None, :], columns]))
        if self.labels:
            guesses = np.argmax(running[:-1], axis=1)
            errors = 1.0 - columns[np.arange(len(columns)), guesses]
        else:
            counts = np.maximum(np.arange(self.n_rows, self.n_rows + len(columns)), 1)
            errors = ((columns - running[:-1] / counts[:, None]) ** 2).mean(axis=1)
        return replace(
            self,
            n_rows=self.n_rows + len(columns),
            error_sum=running_sum(self.error_sum, errors),
            sums=running[-1],
        )

    def _after_one(self, before: Array, row: Array) -> Self:
        """Do it for one row, without the arrays of a running sum."""
        if self.labels:
            error = 1.0 - row.item(int(before.argmax()))
        else:
            error = float(((row - before / max(self.n_rows, 1)) ** 2).mean())
        found = object.__new__(type(self))
        changes = {"n_rows": self.n_rows + 1, "error_sum": self.error_sum + error}
        vars(found).update(vars(self) | changes | {"sums": before + row})
        return found

    def with_outputs(self, n_outputs: int) -> Self:
        """Return the same for more labels."""
        more = max(n_outputs, 2) - len(self.sums) if len(self.sums) else 0
        return replace(self, n_outputs=n_outputs, sums=np.append(self.sums, np.zeros(max(more, 0))))

    @property
    def mean_error(self) -> float:
        """Mean of the errors."""
        return self.error_sum / max(self.n_rows, 1)

    def as_meta(self) -> dict[str, Any]:
        """Return it as plain fields."""
        return {
            "n_outputs": self.n_outputs,
            "labels": self.labels,
            "n_rows": self.n_rows,
            "error_sum": self.error_sum,
            "sums": self.sums.tolist(),
        }

    @classmethod
    def of(cls, fields: dict[str, Any]) -> Self:
        """Build it from its fields."""
        return cls(**(fields | {"sums": np.array(fields["sums"], dtype=np.float64)}))
