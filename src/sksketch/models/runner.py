"""Rows that dask holds: estimators tell them from others and hand them to a runner.

Runners know estimators and lie above them, so nothing here imports one at the start: `sksketch.run`
sets the one for dask when it is imported, at the latest when such rows arrive.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

PACKAGES = ("dask", "dask_expr")

Estimator = TypeVar("Estimator")
Method = TypeVar("Method", bound=Callable[..., Any])


class Runner(NamedTuple):
    """How to learn from a collection, and how to answer for one."""

    fit: Callable[..., Any]
    answer: Callable[[Any, str, Any], Any]


_runners: dict[str, Runner] = {}


def set_runner(fit: Callable[..., Any], answer: Callable[[Any, str, Any], Any]) -> None:
    """Set what learns from dask's rows, and what answers for them."""
    _runners["dask"] = Runner(fit, answer)


def _runner() -> Runner:
    if "dask" not in _runners:
        importlib.import_module("sksketch.run")
    return _runners["dask"]


def is_dask(X: object) -> bool:
    """Tell dask's arrays, frames and lists of Delayed from rows in memory."""
    if isinstance(X, list | tuple) and len(X):
        return all(module_of(part) == "dask.delayed" for part in X)
    return module_of(X).partition(".")[0] in PACKAGES


def module_of(value: object) -> str:
    """Return the module that defines the type of a value."""
    return type(value).__module__


def fit_dask(
    estimator: Estimator, X: object, y: object = None, sample_weight: object = None
) -> Estimator:
    """Learn from a collection of dask where its rows lie."""
    fitted: Estimator = _runner().fit(estimator, X, y, sample_weight)
    return fitted


def lazily(estimator: object, method: str, X: object) -> Any:
    """Return what a method would give for a dask collection, to be computed when needed."""
    return _runner().answer(estimator, method, X)


def lazy(method: Method) -> Method:
    """Let a method of a fitted estimator answer for dask's rows when the answer is needed."""

    @functools.wraps(method)
    def answer(self: Any, X: object) -> Any:
        if is_dask(X):
            self._require_fitted()
            return lazily(self, method.__name__, X)
        return method(self, X)

    return cast(Method, answer)


def restored(state: Any) -> Any:
    """Return the sketch or estimator that a state was taken from, whatever its kind.

    >>> from sksketch.sketches import ExactCovariance
    >>> restored(ExactCovariance().state())
    <ExactCovariance: 0 rows x ? features>
    """
    return importlib.import_module("sksketch.run.loading").restore(state)
