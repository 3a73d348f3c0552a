"""The short way of single rows: dictionaries of known names and numbers, for few columns.

It does what the long way does, with the same bits; where it cannot, it says so by None.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from sksketch._typing import Array, OneRow
from sksketch.online.checks import signs
from sksketch.online.constant import ConstantBaseline
from sksketch.online.curvature.exact_newton import ExactNewton
from sksketch.online.learner import OnlineLearner
from sksketch.online.named_columns import NamedColumns


class Learning(Protocol):
    """An online estimator, which may have learned nothing yet."""

    learners_: list[OnlineLearner]
    _names: NamedColumns | None
    _expected: tuple[float, ...] | None
    _n_rows: int
    _error_sum: float
    _baseline: ConstantBaseline
    _answers: dict[str, Any]

    def _own_targets(self, columns: Array) -> Array: ...

    def _once(self, name: str, compute: Callable[[], Any]) -> Any: ...


class LearningLabels(Learning, Protocol):
    """An online classifier."""

    classes_: Array
    class_weight: Any


def learn_plain(model: Learning, x: OneRow, targets: Array) -> Array | None:
    """Learn from a plain row; return the scores that it had before.

    None leaves the model as it was: a number is larger than expected, or the row is not plain.
    """
    found = _plain(model, x)
    if found is None or model._expected is None or found[0].problem.n_outputs != len(targets):
        return None
    learner, values, columns = found
    scores = learner.learn_row(values, columns, targets, model._expected)
    if scores is not None:
        model._n_rows += 1
        model._answers = {}
    return scores


def learn_label(model: LearningLabels, x: OneRow, y: object) -> bool:
    """Learn from a plain row whose label was met before; return whether it was one."""
    if model.class_weight is not None or vars(model).get("_guess", 0) is not None:
        return False
    rows = model._once("targets_of_labels", lambda: _targets_of_labels(model))
    try:
        known = rows.get(y) if len(rows) > 1 else None
    except TypeError:
        # Not even a label.
        known = None
    scores = None if known is None else learn_plain(model, x, known[1])
    if known is None or scores is None:
        return False
    place = int(scores.argmax()) if len(scores) > 1 else int(scores.item(0) > 0.0)
    error = float(place != known[0])
    model._answers["targets_of_labels"] = rows
    model._error_sum += error
    model._baseline.count_label(known[0], error)
    return True


def scores_of_plain(model: Learning, x: OneRow) -> Array | None:
    """Return the scores of a plain row of finite numbers, None of others."""
    found = _plain(model, x)
    if found is None or not np.isfinite(found[1]).all():
        return None
    learner, values, columns = found
    return learner.score_row(values, columns)[None]


def _plain(model: Learning, x: OneRow) -> tuple[ExactNewton, Array, Array] | None:
    """Return the learner of few columns with the values and columns of a plain row."""
    names = vars(model).get("_names")
    if names is None or not isinstance(x, dict):
        return None
    learner, known = model.learners_[0], names.known(x)
    if known is None or not isinstance(learner, ExactNewton):
        return None
    return learner, *known


def _targets_of_labels(model: LearningLabels) -> dict[Any, tuple[int, Array]]:
    """Return the place of each label, and the targets of its rows."""
    targets = model._own_targets(signs(model.classes_, model.classes_))
    return {label: (i, targets[i]) for i, label in enumerate(model.classes_.tolist())}
