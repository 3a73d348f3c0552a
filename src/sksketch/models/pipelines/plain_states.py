"""Estimators of scikit-learn, and pipelines of them and ours, as plain data and back.

Only what is listed here is read: a file names a class of this table, and nothing else is imported.
"""

from __future__ import annotations

import json
from typing import Any, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator

from sksketch.exceptions import StateFormatError
from sksketch.models.base import Estimator
from sksketch.models.parameters import parameters_of, with_parameters
from sksketch.sketches import Sketch
from sksketch.state.persistence import State

#: What has a state of its own.
Stateful: TypeAlias = Estimator | Sketch

PIPELINE, FROZEN, PREFIX = "pipeline", "frozen", "scikit-learn."
VERSION = 2
# Nobody writes more, and each takes time to read.
MOST_NESTED = 32
# Of sklearn.preprocessing, which takes time to load.
PLAIN = ("Binarizer", "MaxAbsScaler", "MinMaxScaler", "Normalizer", "StandardScaler")


def is_plain(model: Any) -> bool:
    """Return whether a model can be saved as plain data."""
    if isinstance(model, Stateful):
        return True
    if _is_pipeline(model):
        return all(
            step is None or step == "passthrough" or is_plain(step) for _, step in model.steps
        )
    if isinstance(model, FrozenEstimator):
        return is_plain(model.estimator)
    return _is_listed(model)


def _is_pipeline(model: Any) -> bool:
    return type(model).__module__ == "sklearn.pipeline" and hasattr(model, "steps")


def _is_listed(model: object) -> bool:
    kind = type(model)
    return kind.__module__.startswith("sklearn.preprocessing.") and kind.__name__ in PLAIN


def has_learned(model: Any) -> bool:
    """Return whether a model has seen rows."""
    if isinstance(model, Sketch):
        return model.n_features is not None
    fitted = getattr(model, "_fitted", None)
    return hasattr(model, "n_features_in_") if fitted is None else hasattr(model, fitted)


def state_of(model: Any) -> State:
    """Return a model as plain data."""
    if _is_pipeline(model):
        names = [[name, not (s is None or s == "passthrough")] for name, s in model.steps]
        state = State(PIPELINE, VERSION, {"steps": json.dumps(names)}, {})
        for i, (_, step) in enumerate(model.steps):
            if names[i][1]:
                state = state.with_inner(f"step{i}", state_of(step))
        return state
    if isinstance(model, FrozenEstimator):
        return State(FROZEN, VERSION, {}, {}).with_inner("estimator", state_of(model.estimator))
    if isinstance(model, Stateful) or hasattr(model, "state"):
        own: State = model.state()
        return own
    if not _is_listed(model):
        raise TypeError(
            f"{type(model).__name__} cannot be saved as plain data; pipelines of sksketch's "
            f"estimators and of {', '.join(PLAIN)} can"
        )
    return _of_plain(model)


def _of_plain(model: BaseEstimator) -> State:
    parameters = model.get_params(deep=False)
    facts: dict[str, Any] = {}
    arrays: dict[str, Any] = {}
    for name, value in vars(model).items():
        if name in parameters or not name.endswith("_"):
            continue
        if isinstance(value, np.ndarray | np.generic) and not value.dtype.hasobject:
            arrays[f"learned.{name}"] = np.asarray(value)
        else:
            facts[name] = value.tolist() if isinstance(value, np.ndarray) else value
    state = State(f"{PREFIX}{type(model).__name__}", VERSION, {"facts": json.dumps(facts)}, arrays)
    return with_parameters(state, parameters)


def is_of_scikit_learn(state: State) -> bool:
    """Return whether a state is one that `from_state` reads."""
    return state.kind in (PIPELINE, FROZEN) or state.kind.startswith(PREFIX)


def from_state(state: State, restore: Any) -> Any:
    """Return what `state_of` was given; ``restore`` builds our own estimators and sketches."""
    state.require(VERSION)
    if any(name.count(".") > MOST_NESTED for name in state.meta):
        raise StateFormatError(f"pipelines in pipelines, more than {MOST_NESTED} deep")
    if state.kind == FROZEN:
        return FrozenEstimator(restore(state.inner("estimator")))
    if state.kind == PIPELINE:
        listed = [(str(name), there) for name, there in json.loads(str(state.meta["steps"]))]
        names = {name for name, _ in listed}
        if not names or len(names) < len(listed) or any("__" in name for name in names):
            raise StateFormatError("the steps of the pipeline have no names that tell them apart")
        from sklearn.pipeline import Pipeline

        return Pipeline(
            [
                (name, restore(state.inner(f"step{i}")) if there else "passthrough")
                for i, (name, there) in enumerate(listed)
            ]
        )
    name = state.kind.removeprefix(PREFIX)
    if name not in PLAIN:
        raise StateFormatError(f"this release reads no {state.kind!r}; upgrade sksketch")
    from sklearn import preprocessing

    kind = getattr(preprocessing, name)
    model = kind(**parameters_of(state))
    learned = dict(json.loads(str(state.meta["facts"])))
    if "feature_names_in_" in learned:
        learned["feature_names_in_"] = np.asarray(learned["feature_names_in_"], dtype=object)
    for name, value in (learned | state.behind("learned.")).items():
        if not name.endswith("_") or name.startswith("_"):
            raise StateFormatError(f"{name!r} is nothing that a {kind.__name__} learns")
        # scikit-learn wants numbers of numpy, such as the rows seen, back as they were.
        setattr(model, name, value[()] if isinstance(value, np.ndarray) else value)
    return model
