"""The one place that knows scikit-learn's private names, and tags that many estimators set.

``tests/models`` holds it to the names.

Callbacks are loaded when some are set: they bring a progress bar's library along.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sklearn.utils import Tags

# Where scikit-learn keeps the callbacks of an estimator, those of a running fit, and its task.
CALLBACKS, TEARDOWN, FIT_TASK = "_skl_callbacks", "_skl_callbacks_to_teardown", "_callback_fit_ctx"
# The method that begins a fit's task.
BEGIN_FIT = "_init_callback_context"
# What `set_output` has asked for.
OUTPUT = "_sklearn_output_config"
# Callbacks, routing of metadata and the task of a meta-estimator: settings, and nothing learned.
SETTINGS = ("_skl", "_metadata", "_parent")


def is_classifier(model: object) -> bool:
    """Return whether a model tells classes apart."""
    from sklearn.base import is_classifier as is_one

    return hasattr(model, "__sklearn_tags__") and bool(is_one(model))


def output_of(estimator: object) -> str:
    """Return the container that `set_output` has asked ``transform`` for."""
    return str(vars(estimator).get(OUTPUT, {}).get("transform") or "default")


def set_callbacks(estimator: object, *callbacks: object) -> None:
    """Set scikit-learn's callbacks on an estimator; none removes those that were set."""
    _mixin().set_callbacks(estimator, *callbacks)


def _mixin() -> Any:
    try:
        from sklearn.callback import CallbackSupportMixin
    except ImportError:
        raise ImportError(
            "callbacks need scikit-learn 1.9 or newer: pip install -U scikit-learn"
        ) from None
    return CallbackSupportMixin


class Callbacks:
    """The callbacks set on an estimator with ``set_callbacks``, called for every block.

    The run is a task and each block a task in it. An estimator of a scikit-learn without
    callbacks, or with none set, costs nothing.
    """

    def __init__(self, estimator: object) -> None:
        self._estimator = estimator if getattr(estimator, CALLBACKS, None) else None
        self._task: Any = None

    @contextmanager
    def running(self, task: str, n_blocks: int | None = 0) -> Iterator[None]:
        """Call the callbacks at the beginning and at the end of a run of ``n_blocks`` blocks."""
        estimator = self._estimator
        if estimator is None:
            yield
            return
        try:
            self._task = getattr(_mixin(), BEGIN_FIT)(estimator, task, max_subtasks=n_blocks)
            self._task.call_on_fit_task_begin(estimator=estimator)
            yield
            self._task.call_on_fit_task_end(estimator=estimator)
        finally:
            for callback in vars(estimator).pop(TEARDOWN, []):
                callback.teardown(estimator=estimator, context=self._task)
            vars(estimator).pop(FIT_TASK, None)

    def block(self, X: object, y: object) -> None:
        """Call the callbacks after a block was learned from."""
        if self._estimator is not None:
            task = self._task.subcontext(task_name="block")
            task.call_on_fit_task_begin(estimator=self._estimator, X=X, y=y)
            task.call_on_fit_task_end(estimator=self._estimator, X=X, y=y)


def preserving_precision(tags: Tags) -> Tags:
    """Return the tags of a transformer whose columns have the precision of the rows."""
    assert tags.transformer_tags is not None
    tags.transformer_tags.preserves_dtype = ["float64", "float32"]
    return tags


def requiring_targets(tags: Tags) -> Tags:
    """Return the tags of an estimator that learns from targets, or from a second view."""
    tags.target_tags.required = True
    return tags
