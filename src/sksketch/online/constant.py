"""The best constant so far: beside what it would have predicted a learner shows its worth."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from sksketch._typing import Array
from sksketch.online.checks import running_sums


@dataclass
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
    # Sum of the learner's errors, and the curve of both: rows, and the sums after them.
    learner_sum: float = 0.0
    curve: tuple[tuple[float, float, float], ...] = ()

    def after(self, columns: Array, learner: Array | None = None) -> Self:
        """Return what it is after more rows, whose errors the learner had."""
        if not len(columns):
            return self
        learner = np.zeros(len(columns)) if learner is None else learner
        if self.labels:
            columns = np.hstack([-columns, columns]) if columns.shape[1] == 1 else columns
            columns = (columns > 0.0).astype(np.float64)
        before = self.sums if len(self.sums) else np.zeros(columns.shape[1])
        # One after the other, so that no order of summation depends on the blocks.
        running = np.add.accumulate(np.vstack([before[None, :], columns]))
        if self.labels:
            guesses = np.argmax(running[:-1], axis=1)
            errors = 1.0 - columns[np.arange(len(columns)), guesses]
        else:
            counts = np.maximum(np.arange(self.n_rows, self.n_rows + len(columns)), 1)
            errors = ((columns - running[:-1] / counts[:, None]) ** 2).mean(axis=1)
        own, theirs = running_sums(self.error_sum, errors), running_sums(self.learner_sum, learner)
        n_rows = self.n_rows + len(columns)
        # Where an earlier release has saved no curve, there is none later.
        known = self.n_rows == 0 or bool(self.curve)
        marks = [1 << p for p in range(self.n_rows.bit_length(), n_rows.bit_length()) if known]
        places = [mark - self.n_rows for mark in marks]
        return replace(
            self,
            n_rows=n_rows,
            error_sum=float(own[-1]),
            sums=running[-1],
            learner_sum=float(theirs[-1]),
            curve=(
                *self.curve,
                *zip(marks, theirs[places].tolist(), own[places].tolist(), strict=True),
            ),
        )

    def count_label(self, place: int, learner: float) -> None:
        """Count one row with that label, whose error the learner had."""
        self._count_inplace(float(self.sums.argmax() != place), learner)
        self.sums[place] += 1.0

    def count_number(self, target: float, learner: float) -> None:
        """Count one row with that target, the only one, whose error the learner had."""
        gap = target - self.sums.item(0) / max(self.n_rows, 1)
        self._count_inplace(gap * gap, learner)
        self.sums[0] += target

    def _count_inplace(self, error: float, learner: float) -> None:
        self.n_rows += 1
        self.error_sum += error
        self.learner_sum += learner
        if not self.n_rows & (self.n_rows - 1) and (self.n_rows == 1 or self.curve):
            self.curve = (*self.curve, (self.n_rows, self.learner_sum, self.error_sum))

    def with_outputs(self, n_outputs: int) -> Self:
        """Return the same for more labels."""
        more = max(n_outputs, 2) - len(self.sums) if len(self.sums) else 0
        return replace(self, n_outputs=n_outputs, sums=np.append(self.sums, np.zeros(max(more, 0))))

    @property
    def mean_error(self) -> float:
        """Mean of the errors."""
        return self.error_sum / max(self.n_rows, 1)

    @property
    def constant(self) -> Array:
        """The mean of the targets so far, or the rows of each label."""
        return self.sums.copy() if self.labels else self.sums / max(self.n_rows, 1)

    @property
    def mean_errors(self) -> Array:
        """Rows so far, and the mean errors of the learner and of the constant after them."""
        marks = list(self.curve)
        if marks and marks[-1][0] != self.n_rows:
            marks.append((self.n_rows, self.learner_sum, self.error_sum))
        sums = np.array(marks, dtype=np.float64).reshape(-1, 3)
        return np.column_stack([sums[:, 0], sums[:, 1:] / np.maximum(sums[:, :1], 1.0)])

    def as_meta(self) -> dict[str, Any]:
        """Return it as plain fields."""
        return {
            "n_outputs": self.n_outputs,
            "labels": self.labels,
            "n_rows": self.n_rows,
            "error_sum": self.error_sum,
            "sums": self.sums.tolist(),
            "learner_sum": self.learner_sum,
            "curve": self.curve,
        }

    @classmethod
    def of(cls, fields: dict[str, Any]) -> Self:
        """Build it from its fields."""
        found = cls(**(fields | {"sums": np.array(fields["sums"], dtype=np.float64)}))
        return replace(found, curve=tuple((n, mine, own) for n, mine, own in found.curve))
