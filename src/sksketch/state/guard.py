"""Guards at the public methods of every sketch and estimator.

One thread at a time may change an object, and nobody may read it meanwhile. BLAS works with one
thread, so that no bit depends on how many the machine has. And what arrives from elsewhere, as
a `State` or out of a pickle, becomes memory of its own: it may be read-only, shared with others
or at an address that compiled loops do not expect.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from dataclasses import replace
from threading import get_ident
from types import FunctionType
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

from sksketch.arrays.threads import one_blas_thread
from sksketch.exceptions import ConcurrentUseError

# Public methods that change the object; all others only read it.
WRITERS = frozenset(
    {
        *("update", "merge", "compact", "fit", "fit_transform", "fit_predict", "fit_rows"),
        *("partial_fit", "partial_fit_predict", "progressive_score", "learn_one"),
        *("next_pass", "end_pass", "certify", "keep_embedding", "take_pilot"),
    }
)

# The thread that changes each object now. Not a lock inside of the object, which copies and
# pickles would have to leave out.
_writing: dict[int, tuple[int]] = {}
_one_thread = one_blas_thread()
_local = threading.local()


class Guarded:
    """Puts a door before every public method, property and ``from_state`` of its subclasses."""

    # Learning row by row is so short that the limit is set where BLAS is called, which is rare.
    _learns_with_blas: ClassVar[bool] = True

    def __init_subclass__(cls, **options: object) -> None:
        put_doors(cls)
        super().__init_subclass__(**options)

    def __setstate__(self, state: object) -> None:
        # A buffer beside the pickle, or a map of its file, belongs to others as well.
        self.__dict__.update(own(state, {}))

    def __copy__(self) -> Self:
        return shallow_copy(self)


Class = TypeVar("Class", bound=type)
Object = TypeVar("Object")


def put_doors(cls: Class) -> Class:
    """Put a door before every public method and property that a class itself defines."""
    for name, member in list(vars(cls).items()):
        if name == "from_state":
            setattr(cls, name, classmethod(_with_own_arrays(member.__func__)))
        elif name.startswith("_"):
            continue
        elif isinstance(member, FunctionType):
            setattr(cls, name, (writes if name in WRITERS else reads)(member))
        elif isinstance(member, property) and member.fget is not None:
            door = property(reads(member.fget), member.fset, doc=member.__doc__)
            setattr(cls, name, door)
    return cls


def shallow_copy(original: Object) -> Object:
    """Return a twin that shares what the original has, and not what unpickling makes of it."""
    twin = type(original).__new__(type(original))
    vars(twin).update(vars(original))
    return twin


def writes(method: Callable[..., Any]) -> Any:
    """Let one thread at a time through, which may come back from inside."""

    @functools.wraps(method)
    def door(self: Any, *args: object, **options: object) -> Any:
        key, mine = id(self), (get_ident(),)
        # Atomic: of two threads that come at once, one finds the entry of the other.
        found = _writing.setdefault(key, mine)
        if found is not mine:
            if found != mine:
                _refuse(self)
            return method(self, *args, **options)
        try:
            if not self._learns_with_blas:
                return method(self, *args, **options)
            with _one_thread:
                return method(self, *args, **options)
        finally:
            del _writing[key]

    return door


def reads(method: Callable[..., Any]) -> Any:
    """Let any number of threads through, unless another one changes the object meanwhile."""

    @functools.wraps(method)
    def door(self: object, *args: object, **options: object) -> Any:
        if id(self) in _writing:
            refuse_if_written(self)
        with _one_thread:
            answer = method(self, *args, **options)
        if id(self) in _writing:
            refuse_if_written(self)
        return answer

    return door


def refuse_if_written(target: object) -> None:
    """Raise if another thread is changing an object."""
    if _writing.get(id(target), (get_ident(),)) != (get_ident(),):
        _refuse(target)


def _refuse(target: object) -> None:
    raise ConcurrentUseError(
        f"another thread is changing this {type(target).__name__}; give each thread one of its "
        "own and merge them, or hold a lock around every call"
    )


def _with_own_arrays(function: Callable[..., Any]) -> Any:
    """Give a ``from_state`` copies of the arrays, once, however many states are inside."""

    @functools.wraps(function)
    def door(cls: Any, state: Any) -> Any:
        if getattr(_local, "restores", False):
            return function(cls, state)
        _local.restores = True
        try:
            arrays = {name: np.array(array, order="C") for name, array in state.arrays.items()}
            return function(cls, replace(state, arrays=arrays))
        finally:
            _local.restores = False

    return door


def own(value: object, seen: dict[int, Any]) -> Any:
    """Return what was unpickled with copies of all arrays that are not memory of their own.

    Containers and objects are changed in place; ``seen`` has what was met before, and by that
    keeps it alive.
    """
    if id(value) in seen:
        return seen[id(value)][1]
    found = value
    if isinstance(value, np.ndarray):
        if not (value.flags.owndata and value.flags.aligned and value.flags.writeable):
            found = np.array(value)
    elif isinstance(value, tuple):
        parts = [own(part, seen) for part in value]
        if any(new is not old for new, old in zip(parts, value, strict=True)):
            found = type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    elif isinstance(value, dict | list) or _is_ours(value):
        seen[id(value)] = value, value
        fields = value if isinstance(value, dict | list) else getattr(value, "__dict__", {})
        names = range(len(fields)) if isinstance(fields, list) else list(fields)
        for name in names:
            fields[name] = own(fields[name], seen)
    seen[id(value)] = value, found
    return found


def _is_ours(value: object) -> bool:
    """Return whether an object is of this package or a sparse matrix, which hold arrays."""
    return type(value).__module__.startswith(("sksketch.", "scipy.sparse."))
