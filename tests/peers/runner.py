"""scikit-learn's own tests, run on our estimators through shims that only rename.

A file ``test_<peer>.py`` names a test module of scikit-learn, what stands for the peer in it, and
the tests that fail with the reason why. ``pytest tests/peers -m "slow or not slow"`` runs all and
prints how many pass, fail for a reason that is written down, or fail without one.
"""

from __future__ import annotations

import fnmatch
import importlib
import importlib.util
import inspect
import itertools
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import pytest
import sklearn

# The release whose tests the tables are about: others have other tests.
RELEASE = "1.9"
# The tables of the modules that pytest has collected, by the path of their file.
PEERS: dict[str, Peer] = {}


def renamed(
    ours: Callable[..., Any],
    theirs: type,
    takes: Mapping[str, str | Callable[[Any], dict[str, Any]]],
    *,
    drops: tuple[str, ...] = (),
) -> Callable[..., Any]:
    """Return what takes the arguments of the peer, and makes our estimator of them.

    Parameters
    ----------
    ours, theirs : callable
        The estimators.
    takes : mapping
        For an argument of the peer our name of it, or what makes ours of its value.
    drops : tuple of str
        Arguments that say how to compute and not what, which have no meaning here. Any other one
        is refused unless it has its default.
    """
    signature = inspect.signature(theirs)

    def shim(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs)
        given.apply_defaults()
        options: dict[str, Any] = {}
        for name, value in given.arguments.items():
            if name in takes:
                to = takes[name]
                options |= {to: value} if isinstance(to, str) else to(value)
            elif name not in drops and value != signature.parameters[name].default:
                raise NotImplementedError(f"{ours.__name__} has nothing for {name}={value!r}")
        return ours(**options)

    # Names of features begin with that of the class.
    shim.__name__ = ours.__name__
    return shim


@dataclass(frozen=True)
class Peer:
    """A test module of scikit-learn, and what becomes of it here.

    Parameters
    ----------
    name : str
        What the tests were written for.
    module : str
        The module.
    shims : dict
        By the public names of the peers, what stands for them while the module is imported.
    instead : dict
        Names of the module to be replaced afterwards.
    quick : bool
        Whether the tests are run by default: all of them in a few seconds.
    expected : dict
        By the reason, patterns of the names of tests that fail. One that passes fails the run.
    beside : tuple of str
        Patterns of tests of other estimators that the module has as well.
    """

    name: str
    module: str
    shims: dict[str, Callable[..., Any]] = field(default_factory=dict)
    instead: dict[str, Any] = field(default_factory=dict)
    quick: bool = False
    expected: dict[str, tuple[str, ...]] = field(default_factory=dict)
    beside: tuple[str, ...] = ()

    def tests(self, path: str) -> dict[str, Any]:
        """Return the names of the module, with ours for the peers', or skip the file."""
        if not sklearn.__version__.startswith(RELEASE + "."):
            reason = f"the tables are about scikit-learn {RELEASE}, this is {sklearn.__version__}"
            pytest.skip(reason, allow_module_level=True)
        if importlib.util.find_spec(self.module.rpartition(".")[0]) is None:
            pytest.skip("scikit-learn's tests are not installed", allow_module_level=True)
        PEERS[path] = self
        # What it imports is imported now, so that only this module sees the shims.
        source = importlib.import_module(self.module).__spec__
        assert source is not None
        copied = importlib.util.module_from_spec(source)
        assert source.loader is not None
        patches = [mock.patch(public, shim) for public, shim in self.shims.items()]
        for patch in patches:
            patch.start()
        try:
            source.loader.exec_module(copied)
        finally:
            for patch in patches:
                patch.stop()
        vars(copied).update(self.instead)
        found = {k: v for k, v in vars(copied).items() if not k.startswith("__")}
        for value in found.values():
            if isinstance(value, types.FunctionType) and hasattr(value, "pytestmark"):
                value.pytestmark = [_repeatable(mark) for mark in value.pytestmark]
        return found

    def is_about(self, item: Any) -> bool:
        """Return whether a test makes one of our estimators, itself or by its parameters."""
        made = [*self.shims.values(), *self.instead.values()]
        params = item.callspec.params.values() if hasattr(item, "callspec") else ()
        return any(_uses(value, made) for value in (item.obj, *params))

    def is_beside(self, item: Any) -> bool:
        """Return whether a test is about another estimator."""
        return any(_matches(item.name, pattern) for pattern in self.beside)

    def reason(self, item: Any) -> str | None:
        """Return why a test fails, if it does."""
        for reason, patterns in self.expected.items():
            if any(_matches(item.name, pattern) for pattern in patterns):
                return reason
        return None

    def stale(self, items: list[Any]) -> list[str]:
        """Return the patterns that no test has the name of."""
        patterns = [*itertools.chain(*self.expected.values()), *self.beside]
        return [p for p in patterns if not any(_matches(item.name, p) for item in items)]


def _repeatable(mark: Any) -> Any:
    """Return a mark whose values can be read again, as pytest wants them from release 10 on."""
    if mark.name != "parametrize" or isinstance(mark.args[1], list | tuple):
        return mark
    names, values, *others = mark.args
    return pytest.mark.parametrize(names, list(values), *others, **mark.kwargs).mark


def _matches(name: str, pattern: str) -> bool:
    return fnmatch.fnmatchcase(name, pattern)


def _uses(value: Any, made: list[Any], seen: frozenset[int] = frozenset()) -> bool:
    """Return whether a value is, holds or calls what makes our estimators."""
    if id(value) in seen:
        return False
    seen = seen | {id(value)}
    if any(value is one for one in made) or _is_ours(value):
        return True
    if isinstance(value, list | tuple):
        return any(_uses(part, made, seen) for part in value)
    value = inspect.unwrap(value) if callable(value) else value
    if isinstance(value, types.FunctionType):
        around = [c.cell_contents for c in value.__closure__ or ()]
        named = [value.__globals__.get(name) for name in _names(value.__code__)]
        here = [v for v in (*around, *named) if _from(v, value.__globals__, made)]
        return any(_uses(v, made, seen) for v in here)
    return False


def _is_ours(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "sksketch"


def _from(value: Any, names: dict[str, Any], made: list[Any]) -> bool:
    """Return whether a value is of the module itself: not what the module has imported."""
    if isinstance(value, list | tuple) or _is_ours(value) or any(value is one for one in made):
        return True
    return isinstance(value, types.FunctionType) and value.__globals__ is names


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)
