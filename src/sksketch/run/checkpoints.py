"""A checkpoint: one file with the estimator, the rows it has seen and what tells the source."""

from __future__ import annotations

import hashlib
import json
import os
import re
from typing import Any

import numpy as np

from sksketch._typing import PathLike
from sksketch.exceptions import ExplainedError, Option, StateFormatError
from sksketch.models.base import put
from sksketch.models.pipelines.plain_states import from_state, has_learned, state_of
from sksketch.sketches import Sketch, load_sketch
from sksketch.state.blame import fitting
from sksketch.state.disk import sweep
from sksketch.state.persistence import State, read_state, write_state

KIND, VERSION = "checkpoint", 1
ADVICE = ("; delete the file, or pass ", Option("resume", False), " to start over")


class ChangedRunError(ExplainedError):
    """A checkpoint is that of another estimator or source."""


class Checkpoint:
    """The file from which an interrupted run resumes.

    Parameters
    ----------
    path : path
    estimator : estimator, pipeline or sketch
        What is run, with its parameters.
    fingerprint : dict
        What tells the source from another.
    pilot : int, default=None
        Rows that steps of a pipeline learn from, if not from all.

    Attributes
    ----------
    n_written : int
        Rows that the file has.
    pass_rows : int
        Rows of one pass, if the run has ended one; 0 if not.
    """

    def __init__(
        self,
        path: PathLike,
        estimator: object,
        fingerprint: dict[str, Any],
        pilot: int | None = None,
    ) -> None:
        self.path = os.fspath(path)
        self.n_written = self.pass_rows = 0
        if pilot is not None:
            fingerprint = {**fingerprint, "pilot": pilot}
        self._estimator = _as_json(described(estimator))
        self._source = _as_json(fingerprint)

    def write(self, model: Any, n_rows: int, *steps: Any) -> None:
        """Replace the file by one for ``n_rows`` rows, or leave it as it was.

        ``steps`` are those before the model that the rows have changed. What has not seen any
        row yet is left out.
        """
        facts: dict[str, Any] = {"estimator": self._estimator, "source": self._source}
        facts |= {"rows_done": n_rows, "pass_rows": self.pass_rows}
        state = State(KIND, VERSION, facts, {})
        for name, part in _named(model, steps):
            if has_learned(part):
                state = state.with_inner(name, state_of(part))
        write_state(state, self.path)
        self.n_written = n_rows

    def restore(self, model: Any, *steps: Any, resume: bool) -> int:
        """Put model and steps where the file has them; return the rows done, 0 to start over."""
        sweep(self.path)
        if not os.path.exists(self.path):
            return 0
        # Looked at even to start over: what is not a checkpoint is not ours to replace.
        state = read_state(self.path)
        meta: Any = state.meta
        if state.kind != KIND:
            raise StateFormatError(
                f"{self.path!r} holds a {state.kind!r} and not a checkpoint; give another name"
            )
        if not resume:
            return 0
        if state.version > VERSION:
            raise StateFormatError(f"{self.path!r} is from a newer release; upgrade sksketch")
        for what in ("estimator", "source"):
            mine = json.loads(getattr(self, f"_{what}"))
            with fitting(self.path):
                changed = difference(json.loads(meta[what]), mine)
            if changed is not None:
                raise ChangedRunError(
                    f"cannot resume from the checkpoint {self.path!r}, because the {what} has "
                    f"changed: {changed}",
                    *ADVICE,
                )
        with fitting(self.path):
            n_done = state.count("rows_done")
            self.pass_rows = int(meta.get("pass_rows") or 0)
            parts = [pair for pair in _named(model, steps) if f"{pair[0]}.kind" in meta]
            restored = [_restored(part, state.inner(name)) for name, part in parts]
        for (_, part), found in zip(parts, restored, strict=True):
            put(found, part)
        self.n_written = n_done
        return n_done


def _restored(part: Any, state: State) -> Any:
    own = getattr(type(part), "from_state", None)
    return from_state(state, load_sketch) if own is None else own(state)


def _named(model: Any, steps: tuple[Any, ...]) -> list[tuple[str, Any]]:
    """Return the parts of a checkpoint with the names that they have in the file."""
    return [("model", model), *((f"step{i}", step) for i, step in enumerate(steps))]


def described(value: object) -> Any:
    """Return plain data that are equal in two processes if two values would do the same.

    >>> described({"size": np.int64(3), "f": len})
    {'size': 3, 'f': 'builtins.len'}
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return described(value.item())
    if isinstance(value, np.ndarray):
        digest = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()[:16]
        return f"array of shape {value.shape} and {value.dtype}, {digest}"
    if isinstance(value, dict):
        return {str(name): described(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [described(part) for part in value]
    if isinstance(value, Sketch):
        state = value.fresh().state()
        return {"class": type(value).__qualname__, "options": dict(state.meta)}
    if hasattr(value, "get_params") and not isinstance(value, type):
        parameters = value.get_params(deep=False)
        return {"class": type(value).__qualname__, **described(parameters)}
    if hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}{_code(value)}"
    return _without_addresses(repr(value))


def _code(function: object) -> str:
    """Return a digest that differs between two functions of the same name."""
    code = getattr(function, "__code__", None)
    if code is None:
        return ""
    facts = f"{code.co_code.hex()} {_without_addresses(repr(code.co_consts))} {code.co_names}"
    return f" {hashlib.sha256(facts.encode()).hexdigest()[:16]}"


def _without_addresses(text: str) -> str:
    return re.sub(r" at 0x[0-9a-fA-F]+", "", text)


def difference(old: object, new: object, name: str = "") -> str | None:
    """Name the first place where two plain values differ; None if they do not.

    >>> difference({"a": 1, "b": [2, 3]}, {"a": 1, "b": [2, 4]})
    'b.1 was 3 and is 4'
    """
    if isinstance(old, dict) and isinstance(new, dict) and old.keys() == new.keys():
        pairs = [(key, old[key], new[key]) for key in old]
    elif isinstance(old, dict) and isinstance(new, dict) and old.get("class") != new.get("class"):
        pairs = [("class", old.get("class"), new.get("class"))]
    elif isinstance(old, dict) and isinstance(new, dict):
        pairs = [(key, old.get(key), new.get(key)) for key in {**old, **new}]
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        plain = not any(isinstance(part, dict | list) for part in old)
        if old and isinstance(old[0], str) and old != new and old[0] == new[0] and name and plain:
            # A file: its name, then what tells its content.
            return f"{old[0]} is not the same file as before"
        pairs = [(str(i), *both) for i, both in enumerate(zip(old, new, strict=True))]
    else:
        if old == new:
            return None
        return f"{name or 'it'} was {_short(old)} and is {_short(new)}"
    parts = (difference(a, b, f"{name}.{key}" if name else key) for key, a, b in pairs)
    return next((part for part in parts if part is not None), None)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _as_json(value: object) -> str:
    return json.dumps(value, sort_keys=True, default=str)
