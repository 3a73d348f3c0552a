"""The online learners by the name of their method, and by what a file calls them."""

from __future__ import annotations

from typing import Any

from sksketch.exceptions import StateFormatError
from sksketch.online.baselines import Diagonal, FullNewton, OjaNewton, ProjectedNewton
from sksketch.online.learner import OnlineLearner
from sksketch.online.losses import Loss
from sksketch.online.newton import SketchedNewton
from sksketch.online.unridged_newton import UnridgedNewton
from sksketch.state.persistence import State

METHODS = ("rfd", "fd", "pfd", "rp", "oja", "full", "adagrad", "ogd")
KINDS: dict[str, Any] = {
    kind.kind: kind
    for kind in (SketchedNewton, UnridgedNewton, Diagonal, FullNewton, ProjectedNewton, OjaNewton)
}
# Rows of the largest buffer for each direction, where none is asked for.
ROWS_PER_DIRECTION = 3


def new_learner(
    method: str,
    *,
    sketch_size: int,
    buffer_rows: int | None,
    fraction: float,
    loss: Loss,
    initial_ridge: float | str,
    rule: str,
    width: int,
    seed: int,
) -> OnlineLearner:
    """Return an empty learner."""
    if method == "rfd" and initial_ridge == 0.0:
        n_rows = buffer_rows or 2 * sketch_size
        return UnridgedNewton(sketch_size, buffer_rows=n_rows, loss=loss, width=width, rule=rule)
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
            fraction=fraction if method == "pfd" else 1.0,
            width=width,
            **common,
        )
    if method == "rp":
        return ProjectedNewton(sketch_size=sketch_size, seed=seed, **common)
    if method == "oja":
        return OjaNewton(sketch_size=sketch_size, width=width, seed=seed, **common)
    if method == "full":
        return FullNewton(**common)
    return Diagonal(adaptive=method == "adagrad", **common)


def load_learner(state: State) -> OnlineLearner:
    """Return the learner that a state was taken from."""
    if state.kind not in KINDS:
        raise StateFormatError(f"there is no learner of kind {state.kind!r}; upgrade sksketch")
    learner: OnlineLearner = KINDS[state.kind].from_state(state)
    return learner
