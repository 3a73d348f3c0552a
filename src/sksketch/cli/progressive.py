"""Progressive learning: each row is predicted before it is learned from, and a table tells."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np

from sksketch._typing import Array
from sksketch.cli.printing import label_text
from sksketch.models.base import Estimator
from sksketch.online import OnlineNewtonClassifier
from sksketch.run.loading import restore
from sksketch.state.persistence import State

HEADER = f"{'rows':>12}  {'since last':>11}  {'loss':>11}  {'label':>10}  {'prediction':>10}"


class Mark(NamedTuple):
    """The state after a row: all losses and weights so far, and that row's label and prediction."""

    rows: int
    loss_sum: float
    label: float | str
    prediction: float | str
    weight_sum: float


class Progressive:
    """An online estimator as `fit_stream` runs it, with marks after 1, 2, 4, 8, ... rows.

    Parameters
    ----------
    template : estimator
        What to learn with; a new one with its parameters learns.

    Attributes
    ----------
    fitted : estimator
        The one that learns.
    marks : list of Mark
        Those at powers of two.
    last : Mark
        The one after the last row.
    undecided : bool
        Whether all labels so far are 1 and nobody said what the other one is.
    """

    # What only one that has seen rows has.
    _fitted = "fitted"
    fitted: Any
    marks: list[Mark]
    last: Mark
    undecided: bool

    def __init__(self, template: Estimator) -> None:
        self.template = template

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return what tells this run from another."""
        return {"template": self.template}

    def partial_fit(
        self, X: Any, y: Array, classes: Any = None, sample_weight: Array | None = None
    ) -> Self:
        """Predict and learn from rows, whatever their number, marking powers of two on the way."""
        if not hasattr(self, "fitted"):
            self.fitted = type(self.template)(**self.template.get_params(deep=False))
            self.marks, self.undecided = [], classes is None
        done, weighed = (
            (self.last.rows, self.last.weight_sum) if hasattr(self, "last") else (0, 0.0)
        )
        weights = np.ones(len(y)) if sample_weight is None else sample_weight
        options = {}
        if isinstance(self.template, OnlineNewtonClassifier):
            options["classes"] = self._classes(y, classes, done)
        start = 0
        while start < len(y):
            stop = min(len(y), start + next_power(done) - done)
            part = slice(start, stop)
            rows = X[part], y[part]
            found = self.fitted.partial_fit_predict(*rows, **options, sample_weight=weights[part])
            done += stop - start
            # One after the other, so that no sum depends on the blocks.
            weighed = float(np.add.accumulate(np.append(weighed, weights[part]))[-1])
            loss = float(self.fitted.cumulative_loss_)
            self.last = Mark(done, loss, _plain(y[stop - 1]), _plain(found[-1]), weighed)
            if done & (done - 1) == 0:
                self.marks.append(self.last)
            start = stop
        return self

    def _classes(self, y: Array, classes: Any, done: int) -> Any:
        """Return the classes, and refuse a label that is none of them."""
        if hasattr(self, "last"):
            began = self.fitted.classes_
            if classes is not None and not np.array_equal(np.unique(classes), began):
                raise ValueError(
                    f"the run began with the labels {', '.join(map(label_text, began))}; give the "
                    "same --classes, or pass --restart"
                )
            classes = began
        elif classes is None:
            classes = np.array([-1.0, 1.0])
        others = y[y != 1]
        if self.undecided and len(others):
            # The first label that is not 1 tells which of the two usual pairs it is.
            self.undecided = False
            if others[0] == 0:
                classes = np.array([0.0, 1.0])
                self._rename(classes)
        strange = ~np.isin(y, classes)
        if strange.any():
            row = int(np.argmax(strange))
            known = ", ".join(map(label_text, classes))
            raise ValueError(
                f"row {done + row + 1:,}: the label {label_text(y[row])} is none of {known}; name "
                "all labels with --classes, or predict numbers with --task regress"
            )
        return classes

    def _rename(self, classes: Array) -> None:
        """Let the first of two labels be another; nothing was learned from it yet."""
        if hasattr(self, "last"):
            self.fitted.classes_ = classes
            marks = [*self.marks, self.last]
            *self.marks, self.last = (
                m._replace(prediction=max(float(m.prediction), 0.0)) for m in marks
            )

    def table(self) -> list[Mark]:
        """Return all marks, and the last row if it is none of them."""
        marks = list(getattr(self, "marks", []))
        if hasattr(self, "last") and (not marks or marks[-1] != self.last):
            marks.append(self.last)
        return marks

    def state(self) -> State:
        """Return the estimator's state with the marks in it."""
        state = self.fitted.state()
        meta = {**state.meta, "table": json.dumps(self.table()), "undecided": self.undecided}
        return State(state.kind, state.version, meta, state.arrays)

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Build the run that ``state`` was taken from."""
        fitted = restore(state)
        run = cls(type(fitted)(**fitted.get_params(deep=False)))
        meta: Any = state.meta
        # Those of older checkpoints have no weights: every row counted once.
        marks = [Mark(*(*mark, mark[0])[:5]) for mark in json.loads(meta["table"])]
        run.fitted, run.last, run.undecided = fitted, marks[-1], meta["undecided"]
        run.marks = [mark for mark in marks if mark.rows & (mark.rows - 1) == 0]
        return run


def next_power(rows: int) -> int:
    """Return the smallest power of two above a number of rows.

    >>> [next_power(rows) for rows in (0, 1, 2, 3, 4)]
    [1, 2, 4, 4, 8]
    """
    return 1 << rows.bit_length()


def as_records(marks: list[Mark]) -> list[dict[str, Any]]:
    """Return the lines of the table: mean losses since the line above and since the start."""
    before = [Mark(0, 0.0, 0.0, 0.0, 0.0), *marks]
    return [
        {
            "rows": mark.rows,
            "loss_since_last": _mean(
                mark.loss_sum - last.loss_sum, mark.weight_sum - last.weight_sum
            ),
            "loss": _mean(mark.loss_sum, mark.weight_sum),
            "label": mark.label,
            "prediction": mark.prediction,
        }
        for last, mark in zip(before, marks, strict=False)
    ]


def _mean(loss_sum: float, weight_sum: float) -> float:
    """Return the loss of a row, 0 where none counts."""
    return loss_sum / weight_sum if weight_sum > 0 else 0.0


def _plain(label: Any) -> float | str:
    return label if isinstance(label, str) else float(label)


def _shown(label: float | str) -> str:
    return label[:10] if isinstance(label, str) else f"{label:.5g}"


class Printer:
    """Prints the lines of a table that are new, when `fit_stream` reports a block.

    Parameters
    ----------
    run : Progressive
    echo : callable
        Takes a line.
    """

    def __init__(self, run: Progressive, echo: Callable[[str], None]) -> None:
        self._run, self._write = run, echo
        self._n_shown: int | None = None
        self._has_reader = True

    def __call__(self, n_done: int, n_rows: int | None) -> None:
        """Print what is new; the first report, before any block, gives the header."""
        marks = getattr(self._run, "marks", [])
        if self._n_shown is None:
            self._echo(HEADER)
            self._n_shown = len(marks)
        self._print(marks)

    def finish(self) -> None:
        """Print the line of the last row."""
        self._print(self._run.table())

    def _echo(self, line: str) -> None:
        # Whoever has read enough of the table still wants the model.
        if self._has_reader:
            try:
                self._write(line)
            except BrokenPipeError:
                self._has_reader = False

    def _print(self, marks: list[Mark]) -> None:
        for line in as_records(marks)[self._n_shown or 0 :]:
            self._echo(
                f"{line['rows']:>12,}  {line['loss_since_last']:>11.6f}  {line['loss']:>11.6f}  "
                f"{_shown(line['label']):>10}  {_shown(line['prediction']):>10}"
            )
        self._n_shown = len(marks)
