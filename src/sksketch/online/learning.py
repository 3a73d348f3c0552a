"""The learners of an estimator with the numbers of their features: learning, reading, saving.

There is one learner by the curvature of the loss for all outputs, or one of the paper for each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sksketch._typing import Array, Rows
from sksketch.online.catalog import load_learner
from sksketch.online.curvature.learner import CurvatureLearner
from sksketch.online.gradient.baselines import OjaNewton
from sksketch.online.learner import OnlineLearner, RowLearner
from sksketch.online.vocabulary import Vocabulary
from sksketch.state.persistence import State


def learn_rows(
    learners: Sequence[OnlineLearner],
    vocabulary: Vocabulary,
    X: Rows,
    targets: Array,
    weights: Array,
) -> Array:
    """Let the learners learn; return the scores that the rows had before."""
    first = learners[0]
    if isinstance(first, CurvatureLearner):
        return first.learn_rows(X, vocabulary, targets, weights)
    scores = np.empty((X.shape[0], len(learners)))
    own = [one for one in learners if isinstance(one, RowLearner)]
    for part, rows in vocabulary.blocks(X):
        for k, learner in enumerate(own):
            if isinstance(learner, OjaNewton):
                learner.meet_columns(vocabulary.columns(), vocabulary.constant)
            column = np.ascontiguousarray(targets[part, k])
            scores[part, k] = learner.learn(rows, vocabulary.size, column, weights[part])
    return scores


def scores_of_row(learners: Sequence[OnlineLearner], vocabulary: Vocabulary, row: Any) -> Array:
    """Return the raw scores of one row, at the cost of its own features."""
    first = learners[0]
    if isinstance(first, CurvatureLearner):
        return first.score(row, vocabulary)[None, :]
    features, values = vocabulary.known(row)
    return np.array([[values @ learner.weights(features) for learner in learners]])


def weights_of(learners: Sequence[OnlineLearner], vocabulary: Vocabulary) -> list[Array]:
    """Return the weights of all numbered features, for each output."""
    features = np.arange(vocabulary.size)
    found = [learner.weights(features) for learner in learners]
    return list(np.ascontiguousarray(found[0].T)) if found[0].ndim == 2 else found


def widened(
    learners: Sequence[OnlineLearner], vocabulary: Vocabulary, width: int
) -> list[OnlineLearner]:
    """Return the learners for rows of more columns."""
    if any(isinstance(learner, OjaNewton) for learner in learners):
        raise ValueError("method 'oja' needs all columns at the start; pass hash_size")
    vocabulary.widen(width)
    return [
        one.widened(width, vocabulary) if isinstance(one, CurvatureLearner) else one
        for one in learners
    ]


def with_label(
    learners: Sequence[OnlineLearner],
    vocabulary: Vocabulary,
    n_labels: int,
    new_learner: Callable[[], RowLearner],
) -> list[OnlineLearner]:
    """Return the learners for one label more, of three at least."""
    first = learners[0]
    if isinstance(first, CurvatureLearner):
        return [first.with_outputs(n_labels, vocabulary.size)]
    # Every label has a learner of its own now; the first one was for the second label.
    return [*([new_learner()] if n_labels == 3 else []), *learners, new_learner()]


def with_learners(state: State, learners: Sequence[OnlineLearner], vocabulary: Vocabulary) -> State:
    """Return a state with the learners and the numbers of their features stored in it."""
    facts = {"width": vocabulary.width, "n_learners": len(learners)}
    state = state.with_more(facts, {"columns": vocabulary.columns()})
    for k, learner in enumerate(learners):
        state = state.with_inner(f"learner{k}", learner.state())
    return state


def learners_of(state: State, *, constant: bool) -> tuple[list[OnlineLearner], Vocabulary]:
    """Return what `with_learners` has stored."""
    meta: Any = state.meta
    vocabulary = Vocabulary(meta["width"], constant=constant)
    vocabulary.restore(state.arrays["columns"])
    inner = (state.inner(f"learner{k}") for k in range(meta["n_learners"]))
    return [load_learner(one) for one in inner], vocabulary
