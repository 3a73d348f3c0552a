"""Parameters of an estimator as plain data, in one encoding, and back.

All parameters are one JSON object, ``params``. What JSON has no word for is an object with one
name: a tuple, a dictionary (its keys may be numbers), rows (arrays of the state behind
``param.NAME``) or an empty sketch (an inner state ``param_NAME``).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state

from sksketch._typing import Array
from sksketch.exceptions import StateFormatError
from sksketch.sketches import Sketch, load_sketch
from sksketch.state.persistence import State
from sksketch.state.rows import pack_rows, unpack_rows

# Version 1 had parameters as JSON texts in the files of these kinds, and as they are in others.
_JSON_IN_VERSION_1 = (
    *("online-newton-classifier", "online-newton-regressor", "random-features-transformer"),
    *("streaming-kernel-pca", "streaming-kernel-svd", "streaming-kernel-cca"),
    *("spectral-clustering", "multiview-mixture"),
)


def with_parameters(state: State, parameters: Mapping[str, object]) -> State:
    """Return a state with the parameters stored in it."""
    plain: dict[str, Any] = {}
    arrays: dict[str, Array] = {}
    for name, value in parameters.items():
        if isinstance(value, Sketch):
            state = state.with_inner(f"param_{name}", value.fresh().state())
            plain[name] = {"sketch": True}
        elif (rows := _rows_of(value)) is not None:
            plain[name] = {"rows": len(rows)}
            for i, part in enumerate(rows):
                found = pack_rows(part)
                arrays |= {f"param.{name}.{i}.{key}": array for key, array in found.items()}
        else:
            plain[name] = _encoded(value)
    return state.with_more({"params": json.dumps(plain)}, arrays)


def parameters_of(state: State) -> dict[str, Any]:
    """Return the parameters that `with_parameters` has stored, or an earlier version."""
    if state.version == 1:
        return _of_version_1(state)
    found = json.loads(str(state.meta.get("params")))
    if not isinstance(found, dict):
        raise StateFormatError(
            f"the parameters of the {state.kind!r} are {found!r:.40}; take another copy of the file"
        )
    return {name: _decoded(state, name, value) for name, value in found.items()}


def _encoded(value: object) -> object:
    if isinstance(value, np.random.RandomState):
        return seed_of(value)
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, dict):
        return {"pairs": [[_encoded(key), _encoded(part)] for key, part in value.items()]}
    if isinstance(value, tuple):
        return {"tuple": [_encoded(part) for part in value]}
    return [_encoded(part) for part in value] if isinstance(value, list) else value


def _decoded(state: State, name: str, value: object) -> Any:
    if isinstance(value, list):
        return [_decoded(state, name, part) for part in value]
    if not isinstance(value, dict):
        return value
    ((form, content),) = value.items()
    return _FORMS[form](state, name, content)


def _rows(state: State, name: str, n_parts: int) -> Any:
    return _unpacked(state, f"param.{name}.", n_parts, "")


def _sketch(state: State, name: str, _: object) -> Sketch:
    return load_sketch(state.inner(f"param_{name}"))


def _pairs(state: State, name: str, content: Iterable[Any]) -> dict[Any, Any]:
    return {_decoded(state, name, k): _decoded(state, name, part) for k, part in content}


def _tuple(state: State, name: str, content: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(_decoded(state, name, part) for part in content)


_FORMS: dict[str, Callable[[State, str, Any], Any]] = {
    "rows": _rows,
    "sketch": _sketch,
    "pairs": _pairs,
    "tuple": _tuple,
}


def _unpacked(state: State, prefix: str, n_parts: int, inner: str) -> Any:
    parts = tuple(unpack_rows(state.behind(f"{prefix}{i}.{inner}")) for i in range(n_parts))
    return parts if len(parts) > 1 else parts[0]


def _of_version_1(state: State) -> dict[str, Any]:
    """Return the parameters of a file from before there was one encoding."""
    meta: Any = state.meta
    texts = state.kind in _JSON_IN_VERSION_1
    found: dict[str, Any] = {}
    for key, value in meta.items():
        kind, _, name = key.partition(".")
        if kind == "param":
            found[name] = _of_text(value) if texts else value
            if not texts and name == "class_weight" and value not in (None, "balanced"):
                found[name] = dict(json.loads(value))
        elif kind == "rows":
            found[name] = _unpacked(state, f"{key}.", int(value), "0.")
        elif kind.startswith("template_") and name == "kind":
            found[kind.removeprefix("template_")] = load_sketch(state.inner(kind))
    if "alphas" in state.arrays:
        found["alphas"] = state.arrays["alphas"].tolist()
    return found


def _of_text(text: str) -> Any:
    value = json.loads(text)
    return dict(map(tuple, value["pairs"])) if isinstance(value, dict) else value


def _rows_of(value: object) -> list[Any] | None:
    """Return the arrays that a parameter is made of; None if it is no rows."""
    parts = list(value) if isinstance(value, tuple) and value else [value]
    if all(sp.issparse(part) or getattr(part, "ndim", 0) == 2 for part in parts):
        return parts
    return None


def seed_of(random_state: object) -> int:
    """Return a seed: an integer as it is, or a number drawn from a generator."""
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
