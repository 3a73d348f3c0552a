"""The online learners by the name of their method, and by what a file calls them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from sksketch.exceptions import StateFormatError
from sksketch.online.curvature.exact_newton import ExactNewton
from sksketch.online.curvature.learner import CurvatureLearner
from sksketch.online.curvature.problem import Problem, SketchOptions
from sksketch.online.curvature.sketched_curvature import SketchedCurvature
from sksketch.online.gradient.baselines import Diagonal, FullNewton, OjaNewton, ProjectedNewton
from sksketch.online.gradient.newton import SketchedNewton
from sksketch.online.gradient.unridged_newton import UnridgedNewton
from sksketch.online.learner import OnlineLearner, RowLearner
from sksketch.online.losses import Loss
from sksketch.online.vocabulary import Vocabulary
from sksketch.state.persistence import State

# Methods that can take the curvature of the loss; the others are as the paper has them.
BY_LOSS = ("rfd", "fd", "pfd", "full")
CURVATURES = ("loss", "gradient")
KINDS: dict[str, Any] = {
    kind.kind: kind
    for kind in (
        *(SketchedNewton, UnridgedNewton, Diagonal, FullNewton, ProjectedNewton, OjaNewton),
        *(ExactNewton, SketchedCurvature),
    )
}
# Rows of the largest buffer for each direction, where none is asked for.
ROWS_PER_DIRECTION = 3


def new_learner(parameters: Mapping[str, Any], width: int, knee: float) -> RowLearner:
    """Return an empty learner of the paper, from the parameters of an estimator."""
    p = parameters
    method, sketch_size, buffer_rows = p["method"], p["sketch_size"], p["buffer_rows"]
    initial_ridge, auto = p["initial_ridge"], p["C"] == "auto"
    loss = Loss(p["loss"], 0.0 if auto else float(p["C"]), auto, knee)
    if method == "rfd" and initial_ridge == 0.0:
        n_rows = buffer_rows or 2 * sketch_size
        return UnridgedNewton(
            sketch_size, buffer_rows=n_rows, loss=loss, width=width, rule=p["null_projection"]
        )
    # The learners take zero for what the first row that is added gives.
    common: Any = {
        "loss": loss,
        "initial_ridge": 0.0 if initial_ridge == "auto" else float(initial_ridge),
    }
    if method in ("rfd", "fd", "pfd"):
        return SketchedNewton(
            sketch_size,
            buffer_rows=buffer_rows or ROWS_PER_DIRECTION * sketch_size,
            first_rows=buffer_rows or sketch_size,
            robust=method == "rfd",
            fraction=p["fraction"] if method == "pfd" else 1.0,
            width=width,
            **common,
        )
    if method == "rp":
        return ProjectedNewton(sketch_size=sketch_size, seed=p["random_state"], **common)
    if method == "oja":
        return OjaNewton(sketch_size=sketch_size, width=width, seed=p["random_state"], **common)
    if method == "full":
        return FullNewton(**common)
    return Diagonal(adaptive=method == "adagrad", **common)


def new_curvature_learner(
    parameters: Mapping[str, Any],
    n_outputs: int,
    knee: float | None,
    vocabulary: Vocabulary,
    *,
    dense: bool,
) -> CurvatureLearner:
    """Return an empty learner by the curvature of the loss, exact where columns are few.

    ``knee`` is None for labels.
    """
    p, width = parameters, vocabulary.width
    method, sketch_size = p["method"], p["sketch_size"]
    problem = Problem(
        "softmax" if p["loss"] == "logistic" and n_outputs > 1 else p["loss"],
        n_outputs,
        labels=knee is None,
        knee=1.0 if knee is None else knee,
        constant=p["fit_intercept"],
        normalize=p["normalize"],
        alpha=1.0 if p["initial_ridge"] == "auto" else float(p["initial_ridge"]),
    )
    sketch = SketchOptions(
        sketch_size,
        p["buffer_rows"] or ROWS_PER_DIRECTION * sketch_size,
        robust=method == "rfd",
        fraction=p["fraction"] if method == "pfd" else 1.0,
    )
    learner: CurvatureLearner
    if method == "full":
        learner = ExactNewton(width, problem)
    elif width <= sketch_size:
        learner = ExactNewton(width, problem, sketch)
    else:
        learner = SketchedCurvature(sketch, problem, width=width, centers=dense)
    if learner.takes_all_columns:
        vocabulary.restore(np.arange(width))
    return learner


def load_learner(state: State) -> OnlineLearner:
    """Return the learner that a state was taken from."""
    if state.kind not in KINDS:
        raise StateFormatError(f"there is no learner of kind {state.kind!r}; upgrade sksketch")
    learner: OnlineLearner = KINDS[state.kind].from_state(state)
    return learner
